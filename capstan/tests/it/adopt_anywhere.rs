//! `capstan adopt`: a cluster of EKS Anywhere's API, in the shape that EKS Anywhere gives it.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cloudstack::FastCloud;
use crate::output::Transcript;
use crate::program::{Server, ask, patch, succeeded};
use crate::sample::example;
use crate::verbs::on;

const OWN: &str = "/apis/anywhere.eks.amazonaws.com/v1alpha1/namespaces/default";
const CLUSTER: &str = "/apis/anywhere.eks.amazonaws.com/v1alpha1/namespaces/default/clusters/anywhere";
const SYSTEM: &str = "eksa-system";
const GROUPS: [&str; 6] = [
    "/apis/cluster.x-k8s.io/v1beta2",
    "/apis/controlplane.cluster.x-k8s.io/v1beta2",
    "/apis/bootstrap.cluster.x-k8s.io/v1beta2",
    "/apis/addons.cluster.x-k8s.io/v1beta2",
    "/apis/infrastructure.cluster.x-k8s.io/v1beta3",
    "/api/v1",
];

async fn get(server: &Server, path: &str) -> Value {
    ask(&server.admin(), Method::GET, path, &Value::Null).await.1
}

async fn post(server: &Server, path: &str, body: &Value) {
    let (code, answer) = ask(&server.admin(), Method::POST, path, body).await;
    assert_eq!(code, 201, "{answer}");
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The objects of an API group in a namespace.
async fn listed(server: &Server, group: &str, namespace: &str) -> Vec<Value> {
    let resources = get(server, group).await;
    let mut all = Vec::new();
    for resource in resources["resources"].as_array().unwrap() {
        let (name, kind) = (resource["name"].as_str().unwrap(), &resource["kind"]);
        let wanted = group != "/api/v1" || ["secrets", "configmaps"].contains(&name);
        if name.contains('/') || resource["namespaced"] == false || !wanted {
            continue;
        }
        let list = get(server, &format!("{group}/namespaces/{namespace}/{name}")).await;
        for mut item in list["items"].as_array().unwrap().clone() {
            item["apiVersion"] = resources["groupVersion"].clone();
            item["kind"] = kind.clone();
            all.push(item);
        }
    }
    all
}

/// Everything of the cluster, without what EKS Anywhere does not write.
async fn exported(server: &Server) -> Vec<Value> {
    let mut all = listed(server, "/apis/anywhere.eks.amazonaws.com/v1alpha1", "default").await;
    for group in GROUPS {
        all.extend(listed(server, group, SYSTEM).await);
    }
    for object in &mut all {
        let meta = &mut object["metadata"];
        for (field, ours) in
            [("annotations", "capstan.dev/"), ("labels", "cluster.anywhere.eks.amazonaws.com/")]
        {
            if let Some(fields) = meta[field].as_object_mut() {
                fields.retain(|name, _| !name.starts_with(ours));
            }
        }
        if object["kind"] == "Cluster" && object["spec"].get("kubernetesVersion").is_some() {
            object["metadata"]["annotations"]["anywhere.eks.amazonaws.com/eksa-cilium"] = "".into();
        }
    }
    all
}

/// Makes a network for all tenants, and applies the example.
async fn created(cloud: &FastCloud, server: &Server) {
    let id = |command: &str, item: &str, name: &str| {
        let all = cloud.list(command, item);
        all.iter().find(|it| it["name"] == name).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let zone = id("listZones", "zone", "zone-1");
    let offering = id("listNetworkOfferings", "networkoffering", "DefaultSharedNetworkOffering");
    let network = [
        ("name", "shared"),
        ("displaytext", "shared"),
        ("zoneid", &zone),
        ("networkofferingid", &offering),
        ("gateway", "10.99.0.1"),
        ("netmask", "255.255.255.0"),
        ("startip", "10.99.0.2"),
        ("endip", "10.99.0.249"),
    ];
    cloud.call("createNetwork", &network);
    post(
        server,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}),
    )
    .await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "global"}, "stringData": cloud.keys});
    post(server, &format!("/api/v1/namespaces/{SYSTEM}/secrets"), &secret).await;
    for mut object in example("lifecycle-cluster.yaml").into_iter().filter(Value::is_object) {
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        match plural.as_str() {
            "clusters" => {
                // The simulator's addresses are those of this host, which refuses connections to them.
                object["metadata"]["annotations"] =
                    json!({"anywhere.eks.amazonaws.com/skip-ip-check": "true"});
                let host = format!("127.78.0.10:{}", cloud.endpoint_port);
                object["spec"]["controlPlaneConfiguration"]["endpoint"]["host"] = host.into();
            }
            "cloudstackdatacenterconfigs" => {
                object["spec"]["availabilityZones"][0]["managementApiEndpoint"] =
                    cloud.keys["api-url"].clone();
            }
            _ => {}
        }
        post(server, &format!("{OWN}/{plural}"), &object).await;
    }
}

/// The cluster is ready as its manifests are now.
async fn is_ready(server: &Server) -> bool {
    let cluster = get(server, CLUSTER).await;
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_true = conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
    is_true && cluster["status"]["reconciledGeneration"] == cluster["metadata"]["generation"]
}

/// Names of an infrastructure or core kind in the namespace of generated objects.
async fn names(server: &Server, group: &str, plural: &str) -> Vec<String> {
    let list = get(server, &format!("/apis/{group}/namespaces/{SYSTEM}/{plural}")).await;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

const MACHINES: (&str, &str) = ("cluster.x-k8s.io/v1beta2", "machines");
const TEMPLATES: (&str, &str) = ("infrastructure.cluster.x-k8s.io/v1beta3", "cloudstackmachinetemplates");

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_eks_anywhere_is_taken_over_with_its_manifests() {
    let dir = TempDir::new().unwrap();
    let cloud = FastCloud::start(dir.path());
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let old = Server::start(first.path(), &["--lifecycle=true"]);
    created(&cloud, &old).await;
    until("the cluster is ready", async || is_ready(&old).await).await;
    let paused = json!({"metadata": {"annotations": {"anywhere.eks.amazonaws.com/paused": "true"}}});
    assert_eq!(patch(&old.admin(), &format!("{CLUSTER}?fieldManager=test"), &paused).await, 200);
    succeeded(on(&old, &["pause", "anywhere", "-n", SYSTEM]));
    let export = dir.path().join("export.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": exported(&old).await});
    std::fs::write(&export, list.to_string()).unwrap();
    drop(old);
    let (resources, changes) = (cloud.resources(), cloud.changes());

    let new = Server::start(second.path(), &["--lifecycle=true"]);
    let adopt = ["adopt", export.to_str().unwrap(), "-n", SYSTEM];
    let mut transcript = Transcript::new(dir.path());
    succeeded(transcript.run_on(second.path(), &adopt));
    // It goes back without a trace, manifests too.
    succeeded(transcript.run_on(second.path(), &["adopt", "--rollback", "anywhere", "-n", SYSTEM]));
    assert_eq!(listed(&new, "/apis/anywhere.eks.amazonaws.com/v1alpha1", "default").await, [Value::Null; 0]);
    succeeded(on(&new, &adopt));
    let unlock = ["adopt", "--unlock", "anywhere", "-n", SYSTEM, "--source-stopped"];
    succeeded(transcript.run_on(second.path(), &unlock));
    transcript.assert("adopt-eks-anywhere");
    succeeded(on(&new, &["wait", "anywhere", "-n", SYSTEM, "--timeout", "5m"]));

    // From now on the manifests are in charge, and change nothing.
    let (machines, templates) =
        (names(&new, MACHINES.0, MACHINES.1).await, names(&new, TEMPLATES.0, TEMPLATES.1).await);
    let resumed = json!({"metadata": {"annotations": {"anywhere.eks.amazonaws.com/paused": null}}});
    for path in [
        format!("{OWN}/cloudstackdatacenterconfigs/anywhere"),
        format!("{OWN}/cloudstackmachineconfigs/anywhere-cp"),
        format!("{OWN}/cloudstackmachineconfigs/anywhere-md"),
        CLUSTER.to_owned(),
    ] {
        assert_eq!(patch(&new.admin(), &format!("{path}?fieldManager=test"), &resumed).await, 200);
    }
    let generated = "/apis/cluster.x-k8s.io/v1beta2/namespaces/eksa-system/machinedeployments/anywhere-md-0";
    until("the objects are applied", async || {
        get(&new, generated).await["metadata"]["annotations"].get("capstan.dev/lifecycle-applied").is_some()
            && is_ready(&new).await
    })
    .await;
    assert_eq!(names(&new, MACHINES.0, MACHINES.1).await, machines);
    assert_eq!(names(&new, TEMPLATES.0, TEMPLATES.1).await, templates);
    assert_eq!((cloud.resources(), cloud.changes()), (resources, changes));

    let mut groups = get(&new, CLUSTER).await["spec"]["workerNodeGroupConfigurations"].clone();
    groups[0]["count"] = 2.into();
    let scaled = json!({"spec": {"workerNodeGroupConfigurations": groups}});
    assert_eq!(patch(&new.admin(), &format!("{CLUSTER}?fieldManager=test"), &scaled).await, 200);
    until("it is scaled", async || is_ready(&new).await).await;
    let grown = names(&new, MACHINES.0, MACHINES.1).await;
    assert!(grown.len() == 3 && machines.iter().all(|name| grown.contains(name)), "{grown:?}");
    ask(&new.admin(), Method::DELETE, CLUSTER, &Value::Null).await;
    until("it is deleted", async || get(&new, CLUSTER).await["code"] == 404).await;
    assert_eq!(names(&new, MACHINES.0, MACHINES.1).await, [""; 0]);
    assert_eq!(cloud.resources(), [""; 0]);
}
