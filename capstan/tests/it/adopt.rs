//! `capstan adopt`: a cluster of one server on a simulated CloudStack is taken over by another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cloudstack::FastCloud;
use crate::output::Transcript;
use crate::program::{Server, ask, failed, patch, succeeded};
use crate::verbs::on;

const NAMESPACED: &str = "namespaces/default";
const CLUSTER: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/demo";
const GROUPS: [&str; 6] = [
    "/api/v1",
    "/apis/cluster.x-k8s.io/v1beta2",
    "/apis/controlplane.cluster.x-k8s.io/v1beta2",
    "/apis/bootstrap.cluster.x-k8s.io/v1beta2",
    "/apis/addons.cluster.x-k8s.io/v1beta2",
    "/apis/infrastructure.cluster.x-k8s.io/v1beta3",
];

async fn get(server: &Server, path: &str) -> Value {
    ask(&server.admin(), Method::GET, path, &Value::Null).await.1
}

/// Every object of the default namespace, as `kubectl get -o yaml` prints them.
async fn exported(server: &Server) -> Vec<Value> {
    let mut all = Vec::new();
    for path in GROUPS {
        let resources = get(server, path).await;
        for resource in resources["resources"].as_array().unwrap() {
            let (name, kind) = (resource["name"].as_str().unwrap(), &resource["kind"]);
            let wanted = path != "/api/v1" || ["secrets", "configmaps"].contains(&name);
            if name.contains('/') || resource["namespaced"] == false || !wanted {
                continue;
            }
            let list = get(server, &format!("{path}/{NAMESPACED}/{name}")).await;
            for mut item in list["items"].as_array().unwrap().clone() {
                item["apiVersion"] = resources["groupVersion"].clone();
                item["kind"] = kind.clone();
                all.push(item);
            }
        }
    }
    all
}

/// Objects of the cluster that are left on a server.
async fn left(server: &Server) -> Vec<String> {
    let all = exported(server).await;
    let title = |object: &Value| {
        format!("{}/{}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
    };
    all.iter().map(title).filter(|title| !title.ends_with("/kube-root-ca.crt")).collect()
}

fn written(dir: &Path, name: &str, objects: &[Value]) -> PathBuf {
    let path = dir.join(name);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    std::fs::write(&path, list.to_string()).unwrap();
    path
}

/// As `clusterctl move --to-directory` writes it: a file for every object.
fn written_apart(dir: &Path, objects: &[Value]) {
    std::fs::create_dir(dir).unwrap();
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let name = format!("{}_default_{}.yaml", text(&object["kind"]), text(&object["metadata"]["name"]));
        std::fs::write(dir.join(name), object.to_string()).unwrap();
    }
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Message of the `Paused` condition, if it is true.
async fn paused(server: &Server, path: &str) -> Option<String> {
    let object = get(server, path).await;
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let condition = conditions.into_iter().find(|it| it["type"] == "Paused" && it["status"] == "True")?;
    condition["message"].as_str().map(str::to_owned)
}

async fn machines(server: &Server) -> BTreeSet<String> {
    let list = get(server, "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines").await;
    list["items"].as_array().unwrap().iter().map(|it| it["spec"]["providerID"].to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_imported_locked_given_back_and_taken_over_without_a_change_in_the_cloud() {
    let dir = TempDir::new().unwrap();
    let cloud = FastCloud::start(dir.path());
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let old = Server::start(first.path(), &[]);
    let new = Server::start(second.path(), &[]);
    cloud.create_demo(&old).await;
    succeeded(on(&old, &["wait", "demo", "--timeout", "5m"]));
    let (resources, changes, ids) = (cloud.resources(), cloud.changes(), machines(&old).await);
    let export = written(dir.path(), "export.json", &exported(&old).await);
    let export = export.to_str().unwrap();

    let to = second.path();
    let mut transcript = Transcript::new(dir.path()).with_dir(first.path(), "[OLD]").with_dir(to, "[NEW]");
    succeeded(transcript.run_on(to, &["adopt", export, "--dry-run"]));
    assert_eq!(left(&new).await, [""; 0]);
    succeeded(transcript.run_on(to, &["adopt", export]));
    assert_eq!(machines(&new).await, ids);

    // The lock holds, whatever spec.paused is.
    let reset = json!({"spec": {"paused": false}});
    assert_eq!(patch(&new.admin(), &format!("{CLUSTER}?fieldManager=test"), &reset).await, 200);
    let deployment = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments/demo-workers";
    for path in [CLUSTER, deployment] {
        let locked = async || paused(&new, path).await.is_some_and(|why| why.contains("locked"));
        until(path, locked).await;
    }
    for arguments in [
        &["adopt", export][..],
        &["resume", "demo"],
        &["delete", "demo", "--yes"],
        &["adopt", "--unlock", "demo"],
        &["adopt", "--unlock", "nobody"],
    ] {
        failed(transcript.run_on(to, arguments));
    }
    let kubeconfig = old.dir.join("admin.kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let unlock = ["adopt", "--unlock", "demo", "--from-kubeconfig", kubeconfig];
    failed(transcript.run_on(to, &unlock));

    succeeded(transcript.run_on(to, &["adopt", "--rollback", "demo"]));
    assert_eq!(left(&new).await, [""; 0], "everything is removed");
    assert_eq!((cloud.resources(), cloud.changes()), (resources.clone(), changes.clone()));
    transcript.run_on(to, &["adopt", "--rollback", "demo"]);
    transcript.assert("adopt-export");

    // Live, and for good.
    let mut transcript = Transcript::new(dir.path()).with_dir(first.path(), "[OLD]").with_dir(to, "[NEW]");
    succeeded(transcript.run_on(to, &["adopt", "--from-kubeconfig", kubeconfig]));
    succeeded(transcript.run_on(first.path(), &["pause", "demo"]));
    // What the old management cluster changes after the import is not lost silently.
    let scaled = json!({"spec": {"replicas": 2}});
    assert_eq!(patch(&old.admin(), &format!("{deployment}?fieldManager=test"), &scaled).await, 200);
    transcript.note("after replicas were changed in the old management cluster");
    failed(transcript.run_on(to, &unlock));
    // Spec changes that are pending in the source are the plan's changes here.
    succeeded(transcript.run_on(to, &["adopt", "--rollback", "demo"]));
    transcript.run_on(to, &["adopt", "--from-kubeconfig", kubeconfig]);
    failed(transcript.run_on(to, &unlock));
    assert_eq!((cloud.resources(), cloud.changes()), (resources.clone(), changes.clone()));
    succeeded(on(&new, &["adopt", "--rollback", "demo"]));
    let scaled = json!({"spec": {"replicas": 1}});
    assert_eq!(patch(&old.admin(), &format!("{deployment}?fieldManager=test"), &scaled).await, 200);

    succeeded(on(&new, &["adopt", "--from-kubeconfig", kubeconfig]));
    transcript.note("after they were changed back, and the cluster was imported again");
    succeeded(transcript.run_on(to, &unlock));
    transcript.assert("adopt-live");
    until("it is reconciled", async || paused(&new, CLUSTER).await.is_none()).await;
    succeeded(on(&new, &["wait", "demo", "--timeout", "5m"]));
    assert_eq!((cloud.resources(), cloud.changes()), (resources.clone(), changes.clone()));
    assert_eq!(machines(&new).await, ids, "no machine was touched");

    // Nothing was changed yet, so it can still go back, and come again.
    succeeded(on(&new, &["adopt", "--rollback", "demo"]));
    assert_eq!(left(&new).await, [""; 0]);
    assert_eq!((cloud.resources(), cloud.changes()), (resources, changes));
    succeeded(on(&new, &["adopt", "--from-kubeconfig", kubeconfig]));
    succeeded(on(&new, &unlock));
    drop(old);
    grows_and_goes(&cloud, &new);
}

/// The cluster is really managed by the server: it is scaled, and deleted without a trace.
fn grows_and_goes(cloud: &FastCloud, server: &Server) {
    let scale = ["scale", "demo", "--workers", "workers=2", "--no-plan", "--wait", "--timeout", "5m"];
    succeeded(on(server, &scale));
    let mut transcript = Transcript::new(&server.dir);
    transcript.run_on(&server.dir, &["adopt", "--rollback", "demo"]);
    transcript.assert("adopt-rollback-too-late");
    succeeded(on(server, &["delete", "demo", "--yes", "--wait", "--timeout", "5m"]));
    assert_eq!(cloud.resources(), [""; 0]);
}

/// An export as CAPC would have made it.
fn stripped(mut objects: Vec<Value>) -> Vec<Value> {
    for object in &mut objects {
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.retain(|name, _| !name.starts_with("capstan.dev/"));
        }
    }
    objects
}

/// Makes the cloud what CAPC would have made, and lets the operator narrow who may reach the API server.
async fn as_capc(cloud: &FastCloud, server: &Server) {
    let path = "/apis/infrastructure.cluster.x-k8s.io/v1beta3/namespaces/default/cloudstackclusters/demo";
    let cluster = get(server, path).await;
    let tag = format!("CAPC_cluster_{}", cluster["metadata"]["uid"].as_str().unwrap());
    let tagged = |kind: &str, id: &str| {
        let tags = [
            ("resourceids", id),
            ("resourcetype", kind),
            ("tags[0].key", "created_by_CAPC"),
            ("tags[0].value", "1"),
            ("tags[1].key", tag.as_str()),
            ("tags[1].value", "1"),
        ];
        cloud.call("createTags", &tags);
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let networks = cloud.list("listNetworks", "network");
    let network = networks.iter().find(|network| network["name"] == "demo").unwrap();
    let network = text(&network["id"]);
    tagged("Network", &network);
    cloud.call("updateNetwork", &[("id", network.as_str()), ("displaytext", "demo")]);
    let host = cluster["spec"]["controlPlaneEndpoint"]["host"].clone();
    let addresses = cloud.list("listPublicIpAddresses", "publicipaddress");
    let address = addresses.iter().find(|address| address["ipaddress"] == host).unwrap();
    tagged("PublicIpAddress", &text(&address["id"]));
    let port = cloud.endpoint_port.to_string();
    for rule in cloud.list("listFirewallRules", "firewallrule") {
        if rule["ipaddressid"] == address["id"] {
            cloud.call("deleteFirewallRule", &[("id", text(&rule["id"]).as_str())]);
        }
    }
    let narrow = [
        ("ipaddressid", text(&address["id"])),
        ("protocol", "tcp".to_owned()),
        ("startport", port.clone()),
        ("endport", port),
        ("cidrlist", "127.0.0.0/8".to_owned()),
    ];
    let narrow: Vec<(&str, &str)> = narrow.iter().map(|(name, value)| (*name, value.as_str())).collect();
    cloud.call("createFirewallRule", &narrow);
}

/// A server that is gone leaves an export; another takes the cluster over from it.
async fn taken_over(from_capc: bool) {
    let dir = TempDir::new().unwrap();
    let cloud = FastCloud::start(dir.path());
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let old = Server::start(first.path(), &[]);
    cloud.create_demo(&old).await;
    succeeded(on(&old, &["wait", "demo", "--timeout", "5m"]));
    succeeded(on(&old, &["pause", "demo"]));
    if from_capc {
        as_capc(&cloud, &old).await;
    }
    let folder = dir.path().join("export");
    written_apart(&folder, &stripped(exported(&old).await));
    drop(old);
    let (resources, changes) = (cloud.resources(), cloud.changes());
    let rules = cloud.list("listFirewallRules", "firewallrule");

    let new = Server::start(second.path(), &[]);
    let mut transcript = Transcript::new(dir.path());
    succeeded(transcript.run_on(second.path(), &["adopt", folder.to_str().unwrap()]));
    succeeded(transcript.run_on(second.path(), &["adopt", "--unlock", "demo", "--source-stopped"]));
    transcript.assert("adopt-source-stopped");
    until("it is reconciled", async || paused(&new, CLUSTER).await.is_none()).await;
    let path = "/apis/infrastructure.cluster.x-k8s.io/v1beta3/namespaces/default/cloudstackisolatednetworks";
    let ready = async || {
        let networks = get(&new, path).await;
        let conditions = networks["items"][0]["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is = |kind: &str, status: &str| {
            conditions.iter().any(|it| it["type"] == kind && it["status"] == status)
        };
        is("Ready", "True") && is("Paused", "False")
    };
    until("the network is ready", ready).await;
    succeeded(on(&new, &["wait", "demo", "--timeout", "5m"]));
    assert_eq!((cloud.resources(), cloud.changes()), (resources, changes));
    assert_eq!(cloud.list("listFirewallRules", "firewallrule"), rules, "rules of the operator stay");
    grows_and_goes(&cloud, &new);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_as_capc_leaves_it_is_taken_over_without_a_change_in_the_cloud() {
    taken_over(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_whose_records_are_lost_is_known_by_the_uid_in_its_export() {
    taken_over(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_that_cannot_be_imported_are_refused_with_field_and_fix() {
    let dir = TempDir::new().unwrap();
    let data = TempDir::new().unwrap();
    let server = Server::start(data.path(), &["--in-memory"]);
    let cluster = |infrastructure: &str| {
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c", "namespace": "eksa"},
            "spec": {
                "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": infrastructure, "name": "c"},
                "controlPlaneRef": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane", "name": "c"},
            }, "status": {"phase": "Provisioned"}})
    };
    let infrastructure = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": "CloudStackCluster",
        "metadata": {"name": "c", "namespace": "eksa"},
        "spec": {"failureDomains": [{"name": "a", "acsEndpoint": {"name": "keys", "namespace": "eksa"}}]}});
    let control_plane = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane",
        "metadata": {"name": "c", "namespace": "eksa"}, "spec": {"machineTemplate": {"infrastructureRef":
            {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": "CloudStackMachineTemplate", "name": "t"}}}});
    let foreign = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
        "metadata": {"name": "c", "namespace": "eksa"}});
    let lone = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let mut bare = cluster("CloudStackCluster");
    bare.as_object_mut().unwrap().remove("status");
    let all = [cluster("CloudStackCluster"), infrastructure, control_plane.clone()];
    let mut transcript = Transcript::new(dir.path());
    for (what, objects) in [
        ("no cluster", &[lone][..]),
        ("another provider", &[cluster("AWSCluster"), foreign, control_plane]),
        ("a cluster alone", &[bare]),
        ("a cluster without templates and secrets", &all),
    ] {
        let file = written(dir.path(), "bad.json", objects);
        transcript.note(what);
        failed(transcript.run_on(data.path(), &["adopt", file.to_str().unwrap()]));
    }
    let export = written(dir.path(), "all.json", &all);
    let export = export.to_str().unwrap();
    let broken = dir.path().join("broken.yaml");
    std::fs::write(&broken, "a: [").unwrap();
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let nothing = dir.path().join("nothing");
    for arguments in [
        &["adopt"][..],
        &["adopt", broken.to_str().unwrap()],
        &["adopt", empty.to_str().unwrap()],
        &["adopt", nothing.to_str().unwrap()],
        &["adopt", export, "--cluster", "d"],
        &["adopt", "--from-kubeconfig", nothing.to_str().unwrap()],
        &["adopt", "--rollback", "c"],
    ] {
        failed(transcript.run_on(data.path(), arguments));
    }
    transcript.assert("adopt-errors");
    assert_eq!(left(&server).await, [""; 0], "nothing was imported");
}
