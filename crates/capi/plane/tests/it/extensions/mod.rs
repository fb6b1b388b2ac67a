//! Extension servers: discovery, patches, lifecycle hooks and updates in place over real HTTPS, in real time.

mod control_plane;
mod in_place;
mod server;
mod upgrade_plan;

use std::time::Duration;

use capstan_controller::{KindName, ListOptions, Patch};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::class_of_fakes::{class_spec, create_templates};
use crate::plane::{World, cluster_scoped, condition, core, fake};
use server::{Extension, Mood};

const OLD: &str = "v1.35.0";
const NEW: &str = "v1.36.0";

fn configs() -> KindName {
    cluster_scoped("runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig", "extensionconfigs")
}

fn clusters() -> KindName {
    core("Cluster", "clusters")
}

fn classes() -> KindName {
    core("ClusterClass", "clusterclasses")
}

fn machines() -> KindName {
    core("Machine", "machines")
}

async fn list(world: &World, kind: &KindName) -> Vec<Value> {
    let list = world.user.list::<Value>(kind, "default", &ListOptions::default()).await.expect("a list");
    list.items.iter().map(|item| serde_json::to_value(item).expect("an object")).collect()
}

/// The infrastructure of a machine is there, and a ready node of it has joined; `taints` and `labels` are the node's.
async fn join(world: &World, name: &str, labels: Value, taints: Value) {
    let nodes = cluster_scoped("", "v1", "Node", "nodes");
    let id = format!("fake://{name}");
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": id, "taints": taints},
    });
    world.guest.create(&nodes, "", &node).await.expect("a node");
    let is = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = [
        is("Ready", "True"),
        is("MemoryPressure", "False"),
        is("DiskPressure", "False"),
        is("PIDPressure", "False"),
    ];
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    world.guest.patch(&nodes, &Key::new("", name), Some("status"), &patch).await.expect("a status");
    world.patch(&fake("FakeMachine"), name, json!({"spec": {"providerID": id}})).await;
    world.status(&fake("FakeMachine"), name, json!({"initialization": {"provisioned": true}})).await;
}

async fn read(world: &World, kind: &KindName, name: &str) -> Option<Value> {
    let namespace = if *kind == configs() { "" } else { "default" };
    let reply = world.user.get_raw(kind, &Key::new(namespace, name)).await.expect("an answer");
    reply.map(|reply| reply.parse().expect("an object"))
}

/// Waits until an object satisfies a condition. A failed call is repeated after up to two minutes of back-off, which
/// depends on how many reconciles met the failure.
async fn until(
    world: &World,
    kind: &KindName,
    name: &str,
    what: &str,
    holds: impl Fn(Option<&Value>) -> bool,
) -> Value {
    for _ in 0..3600 {
        let object = read(world, kind, name).await;
        if holds(object.as_ref()) {
            return object.unwrap_or_default();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let object = read(world, kind, name).await;
    panic!("{kind} {name} never came to: {what}\n{}", serde_json::to_string_pretty(&object).expect("JSON"));
}

async fn message(world: &World, kind: &KindName, name: &str, of: &str, reason: &str, part: &str) -> Value {
    until(world, kind, name, &format!("{of} {reason}: {part}"), |object| {
        let Some(object) = object else { return false };
        let condition = condition(object, of);
        let text = condition["message"].as_str().unwrap_or_default();
        condition["reason"] == reason && text.contains(part)
    })
    .await
}

async fn topology_reports(world: &World, reason: &str, part: &str) -> Value {
    message(world, &clusters(), "c", "TopologyReconciled", reason, part).await
}

async fn register(world: &World, name: &str, spec: Value) {
    world.create(&configs(), name, json!({"spec": spec})).await;
    message(world, &configs(), name, "Discovered", "Discovered", "").await;
}

/// A class of fake kinds, with the patch of an extension if wanted.
async fn create_class(world: &World, external: bool) {
    create_templates(world).await;
    let mut spec = class_spec(json!({}));
    if external {
        spec["patches"] = json!([{"name": "flavors", "external": {
            "generatePatchesExtension": "generatepatches.ext",
            "validateTopologyExtension": "validatetopology.ext",
            "discoverVariablesExtension": "discovervariables.ext",
            "settings": {"of": "class"},
        }}]);
    }
    world.create(&classes(), "k", json!({"spec": spec})).await;
}

async fn create_cluster(world: &World, variables: Value) {
    let mut spec = json!({"topology": {
        "classRef": {"name": "k"}, "version": OLD, "controlPlane": {"replicas": 1},
        "workers": {"machineDeployments": [{"class": "worker", "name": "md", "replicas": 0}]},
    }});
    if !variables.is_null() {
        spec["topology"]["variables"] = variables;
    }
    world.create(&clusters(), "c", json!({"spec": spec})).await;
}

async fn name_of(world: &World, field: &str) -> String {
    let cluster = until(world, &clusters(), "c", field, |cluster| {
        cluster.is_some_and(|cluster| cluster["spec"][field]["name"].is_string())
    })
    .await;
    cluster["spec"][field]["name"].as_str().expect("a name").to_owned()
}

/// What the provider of the control plane reports.
async fn control_plane_has(world: &World, version: &str) {
    let name = name_of(world, "controlPlaneRef").await;
    let status = json!({"version": version, "initialization": {"controlPlaneInitialized": true}});
    world.status(&fake("FakeControlPlane"), &name, status).await;
}

/// The template of the control plane's machines.
async fn machines_have(world: &World, flavor: &str) {
    let name = name_of(world, "controlPlaneRef").await;
    for _ in 0..600 {
        let control_plane = read(world, &fake("FakeControlPlane"), &name).await.expect("a control plane");
        let reference = &control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"];
        let template = reference.as_str().expect("a template").to_owned();
        let template = read(world, &fake("FakeMachineTemplate"), &template).await.unwrap_or_default();
        if template["spec"]["template"]["spec"]["flavor"] == flavor {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("machines never had flavor {flavor}");
}

async fn patch_cluster(world: &World, change: Value) {
    world.patch(&clusters(), "c", change).await;
}

#[tokio::test]
async fn handlers_are_discovered_and_the_authority_comes_from_a_secret() {
    let world = World::start().await;
    let server = Extension::start().await;
    let mut spec = server.spec("");
    spec["clientConfig"].as_object_mut().expect("a client").remove("caBundle");
    let annotations = json!({"runtime.cluster.x-k8s.io/inject-ca-from-secret": "default/ca"});
    world.create(&configs(), "ext", json!({"metadata": {"annotations": annotations}, "spec": spec})).await;
    message(&world, &configs(), "ext", "Discovered", "NotDiscovered", "secret default/ca does not exist")
        .await;

    let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
    world.create(&secrets, "ca", json!({"stringData": {"ca.crt": server.ca}})).await;
    let config = message(&world, &configs(), "ext", "Discovered", "Discovered", "").await;
    assert_eq!(config["spec"]["namespaceSelector"], json!({}), "defaulted");
    assert!(config["spec"]["clientConfig"]["caBundle"].is_string());
    let handlers = config["status"]["handlers"].as_array().expect("handlers");
    assert_eq!(handlers.len(), 16);
    assert_eq!(handlers[0]["name"], "generatepatches.ext");
    assert_eq!((&handlers[0]["timeoutSeconds"], &handlers[0]["failurePolicy"]), (&json!(5), &json!("Fail")));
    let old = cluster_scoped("runtime.cluster.x-k8s.io", "v1alpha1", "ExtensionConfig", "extensionconfigs");
    let old = world.user.get_raw(&old, &Key::new("", "ext")).await.expect("an answer").expect("an object");
    let old: Value = old.parse().expect("JSON");
    assert_eq!(old["status"]["v1beta2"]["conditions"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_server_that_comes_up_later_is_discovered_then() {
    let world = World::start().await;
    let address = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("an address")
    };
    let mut spec = Extension::start().await.spec("");
    spec["clientConfig"]["url"] = format!("https://{address}").into();
    world.create(&configs(), "ext", json!({"spec": spec})).await;
    message(&world, &configs(), "ext", "Discovered", "NotDiscovered", "connection refused").await;
    let server = Extension::start_at(address).await;
    let foreign = "certificate signed by unknown authority";
    message(&world, &configs(), "ext", "Discovered", "NotDiscovered", foreign).await;
    let spec = json!({"spec": server.spec("")});
    let patch = capstan_controller::Patch::Merge(spec);
    world.user.patch(&configs(), &Key::new("", "ext"), None, &patch).await.expect("a patch");
    message(&world, &configs(), "ext", "Discovered", "Discovered", "").await;
}

#[tokio::test]
async fn an_extension_patches_templates_and_what_it_gets_wrong_is_reported() {
    let world = World::start().await;
    let server = Extension::start().await;
    create_class(&world, true).await;
    let unregistered = "extension handler \"discovervariables.ext\" has not been registered";
    message(&world, &classes(), "k", "VariablesReady", "VariableDiscoveryFailed", unregistered).await;
    let mut spec = server.spec("");
    spec["settings"] = json!({"of": "config", "more": "1"});
    register(&world, "ext", spec).await;
    let class = message(&world, &classes(), "k", "VariablesReady", "VariablesReady", "").await;
    assert_eq!(class["status"]["variables"][0]["definitions"][0]["from"], "flavors");

    create_cluster(&world, json!([{"name": "flavor", "value": "big"}])).await;
    machines_have(&world, "big").await;
    let request = server.calls("GeneratePatches").pop().expect("a call");
    assert_eq!(request["kind"], "GeneratePatchesRequest");
    assert_eq!(request["settings"], json!({"of": "class", "more": "1"}), "the class overrides");
    assert!(!server.calls("ValidateTopology").is_empty());
    control_plane_has(&world, OLD).await;
    topology_reports(&world, "ReconcileSucceeded", "").await;

    for (mood, flavor, part) in [
        (Mood::Garbage, "a", "failed to call extension handler \"generatepatches.ext\""),
        (Mood::Silent, "b", "context deadline exceeded"),
        (Mood::Huge, "c", "the answer is longer than"),
        (Mood::Down, "d", "failed to call extension handler \"generatepatches.ext\""),
    ] {
        server.behave(mood);
        let variables = json!([{"name": "flavor", "value": flavor}]);
        patch_cluster(&world, json!({"spec": {"topology": {"variables": variables}}})).await;
        let cluster = topology_reports(&world, "ReconcileFailed", part).await;
        let text =
            condition(&cluster, "TopologyReconciled")["message"].as_str().expect("a message").to_owned();
        assert!(text.starts_with("GeneratePatches of patch \"flavors\": ") && text.len() < 2048, "{text}");
        server.behave(Mood::Healthy);
        machines_have(&world, flavor).await;
        topology_reports(&world, "ReconcileSucceeded", "").await;
    }

    let refusal = json!({"status": "Failure", "message": "this flavor is sold out"});
    server.respond("ValidateTopology", refusal);
    patch_cluster(&world, json!({"spec": {"topology": {"variables": [{"name": "flavor", "value": "e"}]}}}))
        .await;
    topology_reports(&world, "ReconcileFailed", "this flavor is sold out").await;
    server.release("ValidateTopology");
    machines_have(&world, "e").await;
}

#[tokio::test]
async fn hooks_hold_creation_upgrade_and_deletion_until_they_let_go() {
    let world = World::start().await;
    let server = Extension::start().await;
    server.block("BeforeClusterCreate", "no quota");
    register(&world, "ext", server.spec("")).await;
    // Selects no namespace of this test: its handlers are never called.
    let mut elsewhere = server.spec("/elsewhere");
    elsewhere["namespaceSelector"] = json!({"matchLabels": {"team": "other"}});
    register(&world, "elsewhere", elsewhere).await;
    // Its handlers fail, which may be ignored.
    register(&world, "flaky", server.spec("/flaky")).await;
    create_class(&world, false).await;
    create_cluster(&world, Value::Null).await;

    let blocking = "Following hooks are blocking Cluster topology creation: BeforeClusterCreate: no quota";
    let cluster = topology_reports(&world, "ClusterCreating", blocking).await;
    assert_eq!(cluster["spec"].get("infrastructureRef"), None);
    server.release("BeforeClusterCreate");
    let name = name_of(&world, "controlPlaneRef").await;
    let after_creation = server.calls("BeforeClusterCreate").len();
    let pending = |cluster: &Value| {
        let annotations = &cluster["metadata"]["annotations"];
        annotations["runtime.cluster.x-k8s.io/pending-hooks"].as_str().unwrap_or_default().to_owned()
    };
    let cluster = read(&world, &clusters(), "c").await.expect("a cluster");
    assert_eq!(pending(&cluster), "AfterControlPlaneInitialized");
    control_plane_has(&world, OLD).await;
    until(&world, &clusters(), "c", "no hook is due", |cluster| {
        cluster.is_some_and(|it| pending(it).is_empty())
    })
    .await;
    assert!(!server.calls("AfterControlPlaneInitialized").is_empty());

    let version = async |wanted: &'static str| {
        until(&world, &fake("FakeControlPlane"), &name, wanted, |object| {
            object.is_some_and(|object| object["spec"]["version"] == wanted)
        })
        .await
    };
    let workers = async || {
        let kind = core("MachineDeployment", "machinedeployments");
        let options = capstan_controller::ListOptions::default();
        let list = world.user.list::<Value>(&kind, "default", &options).await.expect("a list");
        list.items[0]["spec"]["template"]["spec"]["version"].as_str().expect("a version").to_owned()
    };
    server.block("BeforeClusterUpgrade", "maintenance window closed");
    server.block("BeforeControlPlaneUpgrade", "");
    server.block("AfterControlPlaneUpgrade", "checking");
    server.block("AfterClusterUpgrade", "reporting");
    patch_cluster(&world, json!({"spec": {"topology": {"version": NEW}}})).await;
    let held = "Following hooks are blocking upgrade: BeforeClusterUpgrade: maintenance window closed";
    topology_reports(&world, "ClusterUpgrading", held).await;
    version(OLD).await;
    server.release("BeforeClusterUpgrade");
    let held = "Following hooks are blocking upgrade: BeforeControlPlaneUpgrade\n";
    topology_reports(&world, "ClusterUpgrading", held).await;
    let due = |cluster: Option<&Value>| cluster.is_some_and(|it| pending(it) == "AfterClusterUpgrade");
    until(&world, &clusters(), "c", "a hook is due", due).await;
    version(OLD).await;
    server.release("BeforeControlPlaneUpgrade");
    version(NEW).await;
    control_plane_has(&world, NEW).await;
    let held = "Following hooks are blocking upgrade: AfterControlPlaneUpgrade: checking";
    topology_reports(&world, "ClusterUpgrading", held).await;
    assert_eq!(workers().await, OLD);
    server.release("AfterControlPlaneUpgrade");
    let held = "Following hooks are blocking upgrade: AfterClusterUpgrade: reporting";
    topology_reports(&world, "ClusterUpgrading", held).await;
    assert_eq!(workers().await, NEW);
    server.release("AfterClusterUpgrade");
    topology_reports(&world, "ReconcileSucceeded", "").await;
    let none = |cluster: Option<&Value>| cluster.is_some_and(|it| pending(it).is_empty());
    until(&world, &clusters(), "c", "no hook is due", none).await;
    let request = server.calls("BeforeControlPlaneUpgrade").pop().expect("a call");
    assert_eq!(
        (
            &request["fromKubernetesVersion"],
            &request["toKubernetesVersion"],
            &request["controlPlaneUpgrades"]
        ),
        (&json!(OLD), &json!(NEW), &json!([{"version": NEW}]))
    );
    assert_eq!(request["cluster"].get("status"), None);
    for hook in ["BeforeWorkersUpgrade", "AfterWorkersUpgrade"] {
        assert!(!server.calls(hook).is_empty(), "{hook}");
    }
    assert_eq!(server.calls("BeforeClusterCreate").len(), after_creation, "not called again");

    server.block("BeforeClusterDelete", "backup running");
    let deletion = capstan_controller::Deletion::default();
    world.user.delete(&clusters(), &Key::new("default", "c"), &deletion).await.expect("deleted");
    let held =
        "Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: backup running";
    topology_reports(&world, "Deleting", held).await;
    message(&world, &clusters(), "c", "Deleting", "WaitingForBeforeDeleteHook", "Waiting for").await;
    assert!(read(&world, &fake("FakeControlPlane"), &name).await.is_some(), "nothing is deleted meanwhile");
    server.release("BeforeClusterDelete");
    until(&world, &clusters(), "c", "gone", |cluster| cluster.is_none()).await;
    let paths = server.paths();
    assert!(
        !paths.iter().any(|path| path.starts_with("/elsewhere/") && !path.ends_with("/discovery")),
        "{paths:?}"
    );
    assert!(paths.iter().any(|path| path.starts_with("/flaky/") && path.contains("beforeclustercreate")));
}
