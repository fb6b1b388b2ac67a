//! Clusters of a class, with all controllers, in simulated time.

use capstan_controller::{Deletion, KindName, ListOptions, Patch};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::class_of_fakes::{class_spec, create_templates, template};
use crate::plane::{World, condition, core, fake};

pub const VERSION: &str = "v1.35.0";

pub fn clusters() -> KindName {
    core("Cluster", "clusters")
}

pub fn classes() -> KindName {
    core("ClusterClass", "clusterclasses")
}

pub fn deployments() -> KindName {
    core("MachineDeployment", "machinedeployments")
}

/// A class whose variables are known.
pub async fn create_class(world: &World, more: Value) {
    create_templates(world).await;
    world.create(&classes(), "k", json!({"spec": class_spec(more)})).await;
    let ready = |class: Option<&Value>| {
        class.is_some_and(|class| condition(class, "VariablesReady")["status"] == "True")
    };
    world.until(&classes(), "k", "variables are ready", ready).await;
}

pub fn topology() -> Value {
    json!({
        "classRef": {"name": "k"}, "version": VERSION, "controlPlane": {"replicas": 1},
        "workers": {"machineDeployments": [{"class": "worker", "name": "md", "replicas": 0}]},
    })
}

/// A cluster of the class whose topology is reconciled.
pub async fn create_cluster(world: &World) {
    world.create(&clusters(), "c", json!({"spec": {"topology": topology()}})).await;
    until_control_plane(world).await;
    control_plane_has(world, VERSION).await;
    reports(world, "ReconcileSucceeded", "").await;
}

/// Waits until the cluster has a control plane.
pub async fn until_control_plane(world: &World) {
    let named = |cluster: Option<&Value>| {
        cluster.is_some_and(|cluster| cluster["spec"]["controlPlaneRef"]["name"].is_string())
    };
    world.until(&clusters(), "c", "a control plane", named).await;
}

/// What the provider of the control plane reports.
pub async fn control_plane_has(world: &World, version: &str) {
    let cluster = world.get(&clusters(), "c").await.expect("a cluster");
    let name = cluster["spec"]["controlPlaneRef"]["name"].as_str().expect("a control plane").to_owned();
    let status = json!({"version": version, "initialization": {"controlPlaneInitialized": true}});
    world.status(&fake("FakeControlPlane"), &name, status).await;
}

pub async fn reports(world: &World, reason: &str, part: &str) {
    let holds = |cluster: Option<&Value>| {
        cluster.is_some_and(|cluster| {
            let condition = condition(cluster, "TopologyReconciled");
            condition["reason"] == reason && condition["message"].as_str().unwrap_or_default().contains(part)
        })
    };
    world.until(&clusters(), "c", &format!("{reason}: {part}"), holds).await;
}

pub async fn list(world: &World, kind: &KindName) -> Vec<Value> {
    world.user.list(kind, "default", &ListOptions::default()).await.expect("a list").items
}

/// Names of the cluster's own templates of a kind.
pub async fn own(world: &World, kind: &str) -> Vec<String> {
    let all = list(world, &fake(kind)).await;
    let own = all.iter().filter(|it| it["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "c");
    own.map(|it| it["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// Waits until the cluster has so many templates of a kind.
pub async fn until_own(world: &World, kind: &str, count: usize) {
    for _ in 0..600 {
        if own(world, kind).await.len() == count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    panic!("{kind}: {:?} instead of {count}", own(world, kind).await);
}

#[tokio::test(start_paused = true)]
async fn the_templates_of_the_last_workers_are_deleted() {
    let world = World::start().await;
    create_class(&world, json!({})).await;
    create_cluster(&world).await;
    until_own(&world, "FakeConfigTemplate", 1).await;
    until_own(&world, "FakeMachineTemplate", 2).await;
    world.patch(&clusters(), "c", json!({"spec": {"topology": {"workers": null}}})).await;
    until_own(&world, "FakeConfigTemplate", 0).await;
    until_own(&world, "FakeMachineTemplate", 1).await;
    assert!(list(&world, &deployments()).await.is_empty());
    let class = world.get(&fake("FakeConfigTemplate"), "t").await;
    assert!(class.is_some(), "the template of the class stays");
}

#[tokio::test(start_paused = true)]
async fn templates_of_a_kind_that_the_class_no_longer_names_are_deleted() {
    let world = World::start().await;
    create_class(&world, json!({})).await;
    create_cluster(&world).await;
    until_own(&world, "FakeConfigTemplate", 1).await;
    // Bootstrap may change its kind.
    let workers = json!([{
        "class": "worker",
        "bootstrap": template("FakeMachineTemplate"),
        "infrastructure": template("FakeMachineTemplate"),
    }]);
    world.patch(&classes(), "k", json!({"spec": {"workers": {"machineDeployments": workers}}})).await;
    until_own(&world, "FakeConfigTemplate", 0).await;
    until_own(&world, "FakeMachineTemplate", 3).await;
    let deployment = &list(&world, &deployments()).await[0];
    assert_eq!(
        deployment["spec"]["template"]["spec"]["bootstrap"]["configRef"]["kind"],
        "FakeMachineTemplate"
    );
}

#[tokio::test(start_paused = true)]
async fn rules_of_variables_have_a_reason_in_spec_and_status() {
    let world = World::start().await;
    let schema =
        json!({"openAPIV3Schema": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}});
    create_class(&world, json!({"variables": [{"name": "size", "required": false, "schema": schema}]})).await;
    let class = world.get(&classes(), "k").await.expect("a class");
    let expected = json!([{"rule": "self > 1", "reason": "FieldValueInvalid"}]);
    let spec = &class["spec"]["variables"][0];
    let status = &class["status"]["variables"][0]["definitions"][0];
    for of in [spec, status] {
        assert_eq!(of["schema"]["openAPIV3Schema"]["x-kubernetes-validations"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_of_somebody_else_is_not_taken_over() {
    let world = World::start().await;
    let mut spec = class_spec(json!({}));
    spec["workers"]["machineDeployments"][0]["naming"] =
        json!({"template": "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}"});
    create_class(&world, json!({"workers": spec["workers"]})).await;
    let labels = json!({"somebody": "else"});
    let machine = json!({
        "clusterName": "c", "bootstrap": {"dataSecretName": "s"},
        "infrastructureRef": {"apiGroup": "fake.example.com", "kind": "FakeMachineTemplate", "name": "t"},
    });
    let foreign = json!({"spec": {
        "clusterName": "c", "replicas": 0, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": machine},
    }});
    world.create(&deployments(), "c-md", foreign).await;
    world.create(&clusters(), "c", json!({"spec": {"topology": topology()}})).await;
    until_control_plane(&world).await;
    control_plane_has(&world, VERSION).await;
    let taken = "failed to create MachineDeployment default/c-md: another object with this name exists that is not topology owned";
    reports(&world, "ReconcileFailed", taken).await;
    let found = world.get(&deployments(), "c-md").await.expect("a deployment");
    assert_eq!(found["spec"]["selector"]["matchLabels"]["somebody"], "else", "left alone");
    assert_eq!(found["metadata"]["labels"].get("topology.cluster.x-k8s.io/owned"), None);
    assert_eq!(own(&world, "FakeConfigTemplate").await, [""; 0]);

    let key = Key::new("default", "c-md");
    world.user.delete(&deployments(), &key, &Deletion::default()).await.expect("a deletion");
    let ours = |deployment: Option<&Value>| {
        let labels = deployment.map(|deployment| &deployment["metadata"]["labels"]);
        labels.is_some_and(|labels| labels.get("topology.cluster.x-k8s.io/owned").is_some())
    };
    world.until(&deployments(), "c-md", "it is the topology's", ours).await;
}

fn variables() -> Value {
    let proxy = json!({"type": "object", "properties": {
        "url": {"type": "string"}, "port": {"type": "integer", "default": 8080, "maximum": 9000},
    }});
    json!({"variables": [
        {"name": "size", "required": true, "schema": {"openAPIV3Schema": {"type": "integer", "default": 3}}},
        {"name": "proxy", "required": false, "schema": {"openAPIV3Schema": proxy}},
    ]})
}

/// Why a change is refused.
pub async fn refusal(world: &World, kind: &KindName, name: &str, change: Value) -> String {
    let patch = Patch::Merge(change.clone());
    let answer = world.user.patch(kind, &Key::new("default", name), None, &patch).await;
    answer.map(|_| panic!("{change} is accepted")).unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn defaults_of_variables_are_stored_in_clusters() {
    let world = World::start().await;
    create_class(&world, variables()).await;
    let override_ = json!({"overrides": [{"name": "proxy", "value": {"url": "y"}}]});
    let mut of = topology();
    of["variables"] = json!([{"name": "proxy", "value": {"url": "x"}}]);
    of["controlPlane"]["variables"] = override_.clone();
    of["workers"]["machineDeployments"][0]["variables"] = override_.clone();
    world.create(&clusters(), "c", json!({"spec": {"topology": of}})).await;
    let stored = world.get(&clusters(), "c").await.expect("a cluster")["spec"]["topology"].clone();
    let proxy = |url: &str| json!({"name": "proxy", "value": {"url": url, "port": 8080}});
    assert_eq!(stored["variables"], json!([proxy("x"), {"name": "size", "value": 3}]));
    for part in [&stored["controlPlane"], &stored["workers"]["machineDeployments"][0]] {
        assert_eq!(part["variables"], json!({"overrides": [proxy("y")]}), "no defaults of others");
    }

    // In another version, too.
    let old = KindName::namespaced("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters");
    world.create(&old, "d", json!({"spec": {"topology": {"class": "k", "version": VERSION}}})).await;
    let stored = world.get(&clusters(), "d").await.expect("a cluster");
    assert_eq!(stored["spec"]["topology"]["variables"], json!([{"name": "size", "value": 3}]));

    let variables = json!([{"name": "size", "value": 1}, {"name": "proxy", "value": {"port": 9999}}]);
    let refused =
        refusal(&world, &clusters(), "c", json!({"spec": {"topology": {"variables": variables}}})).await;
    assert_eq!(
        refused,
        "Cluster.cluster.x-k8s.io \"c\" is invalid: spec.topology.variables[proxy].value.port: Invalid value: \"{\\\"port\\\":9999}\": port in body should be less than or equal to 9000"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_created_right_after_its_class_gets_its_defaults() {
    let world = World::start().await;
    let create = json!({"spec": {"topology": topology()}});
    world.create(&clusters(), "early", create.clone()).await;
    let stored = world.get(&clusters(), "early").await.expect("a cluster");
    assert_eq!(stored["spec"]["topology"].get("variables"), None, "there is no class yet");
    create_templates(&world).await;
    world.create(&classes(), "k", json!({"spec": class_spec(variables())})).await;
    world.create(&clusters(), "c", create).await;
    let stored = world.get(&clusters(), "c").await.expect("a cluster");
    assert_eq!(stored["spec"]["topology"]["variables"], json!([{"name": "size", "value": 3}]));
}

#[tokio::test(start_paused = true)]
async fn a_version_is_changed_only_when_the_one_before_has_arrived() {
    let world = World::start().await;
    create_class(&world, json!({})).await;
    world.create(&clusters(), "c", json!({"spec": {"topology": topology()}})).await;
    let version = |version: &str| json!({"spec": {"topology": {"version": version}}});
    let refused = |text: &str, why: &str| {
        format!(
            "Cluster.cluster.x-k8s.io \"c\" is invalid: spec.topology.version: Invalid value: \"{text}\": version cannot be changed: {why}"
        )
    };
    until_control_plane(&world).await;
    assert_eq!(
        refusal(&world, &clusters(), "c", version("v1.36.0")).await,
        refused("v1.36.0", "control plane is currently provisioning")
    );
    control_plane_has(&world, VERSION).await;
    reports(&world, "ReconcileSucceeded", "").await;
    let mut change = version("v1.36.0");
    change["metadata"]["annotations"]["runtime.cluster.x-k8s.io/pending-hooks"] =
        "AfterClusterUpgrade".into();
    assert_eq!(
        refusal(&world, &clusters(), "c", change).await,
        "Cluster.cluster.x-k8s.io \"c\" is invalid: spec.topology.version: Invalid value: \"v1.36.0\": version cannot be changed when the \"AfterClusterUpgrade\" hook is still blocking"
    );
    world.patch(&clusters(), "c", version("v1.36.0")).await;
    reports(&world, "ClusterUpgrading", "FakeControlPlane upgrading to version v1.36.0").await;
    let deployment = &list(&world, &deployments()).await[0]["metadata"]["name"];
    let deployment = deployment.as_str().expect("a name");
    assert_eq!(
        refusal(&world, &clusters(), "c", version("v1.36.1")).await,
        refused(
            "v1.36.1",
            &format!(
                "[control plane is still completing a previous upgrade, there are still MachineDeployments completing a previous upgrade: [{deployment}]]"
            )
        )
    );
    // Whoever takes responsibility may.
    let mut change = version("v1.36.1");
    let annotation = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
    change["metadata"]["annotations"][annotation] = "".into();
    world.patch(&clusters(), "c", change).await;
}

#[tokio::test(start_paused = true)]
async fn a_class_stays_what_its_clusters_need() {
    let world = World::start().await;
    create_class(&world, json!({"kubernetesVersions": ["v1.34.0", VERSION]})).await;
    create_cluster(&world).await;
    let rebase = json!({"spec": {"topology": {"classRef": {"name": "nowhere"}}}});
    assert_eq!(
        refusal(&world, &clusters(), "c", rebase).await,
        "Cluster.cluster.x-k8s.io \"c\" is invalid: spec.topology.class: Internal error: ClusterClass default/nowhere not found"
    );
    for (change, expected) in [
        (
            json!({"spec": {"kubernetesVersions": ["v1.34.0"]}}),
            "spec.kubernetesVersions: Forbidden: Kubernetes Version v1.35.0 is used by Cluster \"c\" but not set in ClusterClass",
        ),
        (
            json!({"spec": {"workers": null}}),
            "spec.workers.machineDeployments: Forbidden: MachineDeploymentClass \"worker\" cannot be deleted because it is used by Cluster \"c\"",
        ),
    ] {
        let refused = refusal(&world, &classes(), "k", change).await;
        assert_eq!(refused, format!("ClusterClass.cluster.x-k8s.io \"k\" is invalid: {expected}"));
    }
    let key = Key::new("default", "k");
    let delete = async || world.user.delete(&classes(), &key, &Deletion::default()).await;
    assert_eq!(
        delete().await.expect_err("it is used").to_string(),
        "ClusterClass.cluster.x-k8s.io \"k\" is forbidden: ClusterClass cannot be deleted because it is used by Cluster(s): default/c"
    );
    let cluster = Key::new("default", "c");
    world.user.delete(&clusters(), &cluster, &Deletion::default()).await.expect("a deletion");
    world.until(&clusters(), "c", "gone", |cluster| cluster.is_none()).await;
    delete().await.expect("nobody uses it");
}
