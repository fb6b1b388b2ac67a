//! Machines of a deployment that an extension updates in place.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn deployments() -> KindName {
    core("MachineDeployment", "machinedeployments")
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"apiGroup": "fake.example.com", "kind": kind, "name": name})
}

/// What a provider does: infrastructure and bootstrap data come, and the machine becomes a node.
async fn provide(world: &World) {
    for machine in list(world, &fake("FakeMachine")).await {
        let name = machine["metadata"]["name"].as_str().expect("a name");
        if machine["status"]["initialization"]["provisioned"] == true {
            continue;
        }
        join(world, name, json!({}), json!([])).await;
    }
    for config in list(world, &fake("FakeConfig")).await {
        if config["status"]["initialization"]["dataSecretCreated"] != true {
            let name = config["metadata"]["name"].as_str().expect("a name");
            let status = json!({"initialization": {"dataSecretCreated": true}, "dataSecretName": "data"});
            world.status(&fake("FakeConfig"), name, status).await;
        }
    }
}

/// Waits, while the provider works, until the deployment satisfies a condition.
async fn provided(world: &World, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..600 {
        provide(world).await;
        let deployment = read(world, &deployments(), "d").await.expect("a deployment");
        if holds(&deployment) {
            return deployment;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let state: Vec<Value> =
        [list(world, &deployments()).await, list(world, &machines()).await].into_iter().flatten().collect();
    panic!("never came to: {what}\n{}", serde_json::to_string_pretty(&state).expect("JSON"));
}

/// All machines have a template and are available, and no other set is left.
async fn rolled_out(world: &World, infrastructure: &str) {
    for _ in 0..3 {
        provided(world, infrastructure, |deployment| {
            let count = |name: &str| deployment["status"][name].as_i64();
            deployment["metadata"]["generation"] == deployment["status"]["observedGeneration"]
                && ["replicas", "availableReplicas", "upToDateReplicas"]
                    .into_iter()
                    .all(|name| count(name) == Some(2))
        })
        .await;
        let sets = list(world, &core("MachineSet", "machinesets")).await;
        let is_current =
            |set: &Value| set["spec"]["template"]["spec"]["infrastructureRef"]["name"] == infrastructure;
        if sets.len() == 1 && is_current(&sets[0]) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("another set than that of {infrastructure} is left");
}

/// uid and provider id by name.
async fn identities(world: &World) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = list(world, &machines()).await;
    let identity = |machine: &Value| {
        let identity = (text(&machine["metadata"]["uid"]), text(&machine["spec"]["providerID"]));
        (text(&machine["metadata"]["name"]), identity)
    };
    all.iter().map(identity).collect()
}

async fn deployed(world: &World, max_unavailable: i32) {
    let provisioned = json!({"initialization": {"provisioned": true}});
    let endpoint = json!({"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}});
    world.create(&fake("FakeCluster"), "c", json!({"spec": endpoint, "status": provisioned})).await;
    let status = json!({"initialization": {"controlPlaneInitialized": true}});
    world.create(&fake("FakeControlPlane"), "c", json!({"spec": {}, "status": status})).await;
    let spec = json!({
        "infrastructureRef": reference("FakeCluster", "c"),
        "controlPlaneRef": reference("FakeControlPlane", "c"),
    });
    world.create(&clusters(), "c", json!({"spec": spec})).await;
    for (name, flavor) in [("small", "small"), ("large", "large"), ("huge", "huge")] {
        let template = json!({"spec": {"template": {"spec": {"flavor": flavor}}}});
        world.create(&fake("FakeMachineTemplate"), name, template).await;
    }
    world.create(&fake("FakeConfigTemplate"), "b", json!({"spec": {"template": {"spec": {}}}})).await;
    let template = json!({
        "metadata": {"labels": {"pool": "d"}},
        "spec": {
            "clusterName": "c", "version": OLD,
            "bootstrap": {"configRef": reference("FakeConfigTemplate", "b")},
            "infrastructureRef": reference("FakeMachineTemplate", "small"),
        },
    });
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {
        "maxSurge": 1 - max_unavailable, "maxUnavailable": max_unavailable,
    }});
    let spec = json!({
        "clusterName": "c", "replicas": 2, "selector": {"matchLabels": {"pool": "d"}},
        "rollout": {"strategy": strategy}, "template": template,
    });
    // The fake control plane has no version to check against.
    let annotations = json!({"machineset.cluster.x-k8s.io/skip-preflight-checks": "All"});
    let body = json!({"metadata": {"annotations": annotations}, "spec": spec});
    world.create(&deployments(), "d", body).await;
    rolled_out(world, "small").await;
}

async fn change(world: &World, version: &str, infrastructure: &str) {
    let spec =
        json!({"version": version, "infrastructureRef": reference("FakeMachineTemplate", infrastructure)});
    world.patch(&deployments(), "d", json!({"spec": {"template": {"spec": spec}}})).await;
}

/// Patches that make the old set like the new one: what an extension returns that makes both changes.
fn covering(version: &str, flavor: &str) -> Value {
    let at = "/spec/template/spec/version";
    let version = json!([{"op": "replace", "path": at, "value": version}]);
    let flavor = json!({"spec": {"template": {"spec": {"flavor": flavor}}}});
    json!({
        "machineSetPatch": {"patchType": "JSONPatch", "patch": STANDARD.encode(version.to_string())},
        "infrastructureMachineTemplatePatch":
            {"patchType": "JSONMergePatch", "patch": STANDARD.encode(flavor.to_string())},
    })
}

async fn rolling_out_says(world: &World, part: &str) {
    message(world, &deployments(), "d", "RollingOut", "RollingOut", part).await;
}

#[tokio::test]
async fn a_change_that_an_extension_makes_in_place_keeps_all_machines() {
    let world = World::start().await;
    let server = Extension::start().await;
    register(&world, "ext", server.spec("")).await;
    deployed(&world, 1).await;
    let before = identities(&world).await;
    assert_eq!(before.len(), 2);

    server.respond("CanUpdateMachineSet", covering(NEW, "large"));
    server.block("UpdateMachine", "draining");
    change(&world, NEW, "large").await;
    let is_updated = |machine: &Value| {
        condition(machine, "Updating")["message"] == "In-place update in progress: draining"
    };
    let mut updating = Vec::new();
    for _ in 0..600 {
        updating = list(&world, &machines()).await.into_iter().filter(is_updated).collect();
        if !updating.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let [machine] = &updating[..] else { panic!("one machine is updated at a time: {updating:?}") };
    assert_eq!(machine["spec"]["version"], NEW);
    assert_eq!(condition(machine, "UpToDate")["reason"], "Updating");
    assert_eq!(machine["status"]["phase"], "Updating");
    let request = server.calls("UpdateMachine").pop().expect("a call");
    assert_eq!(request["kind"], "UpdateMachineRequest");
    assert_eq!(request["desired"]["machine"]["spec"]["version"], NEW);
    assert_eq!(request["desired"]["infrastructureMachine"]["spec"]["flavor"], "large");
    assert_eq!(request["desired"]["bootstrapConfig"]["kind"], "FakeConfig");
    assert_eq!(request["desired"]["machine"].get("status"), None);

    let name = machine["metadata"]["name"].as_str().expect("a name").to_owned();
    server.respond("UpdateMachine", json!({"status": "Failure", "message": "the disk is full"}));
    message(&world, &machines(), &name, "Updating", "InPlaceUpdateFailed", "the disk is full").await;
    server.release("UpdateMachine");
    rolled_out(&world, "large").await;

    assert_eq!(identities(&world).await, before, "the same machines on the same servers");
    for (kind, count) in [(machines(), 2), (fake("FakeMachine"), 2), (fake("FakeConfig"), 2)] {
        let all = list(&world, &kind).await;
        assert_eq!(all.len(), count, "{kind}");
        for object in &all {
            let annotations = object["metadata"]["annotations"].to_string();
            assert!(!annotations.contains("in-place-updates") && !annotations.contains("UpdateMachine"));
        }
    }
    for machine in list(&world, &fake("FakeMachine")).await {
        assert_eq!(machine["spec"]["flavor"], "large");
        assert_eq!(machine["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"], "large");
        assert!(machine["spec"]["providerID"].is_string(), "what the provider set stays");
    }
    let asked = server.calls("CanUpdateMachineSet");
    assert_eq!(asked.len(), 1, "the response is kept");
    let request = &asked[0];
    assert_eq!(request["kind"], "CanUpdateMachineSetRequest");
    for (side, version, flavor) in [("current", OLD, "small"), ("desired", NEW, "large")] {
        let objects = &request[side];
        assert_eq!(objects["machineSet"]["spec"]["template"]["spec"]["version"], version);
        assert_eq!(objects["infrastructureMachineTemplate"]["spec"]["template"]["spec"]["flavor"], flavor);
        assert_eq!(objects["bootstrapConfigTemplate"]["metadata"]["name"], "b");
    }
}

#[tokio::test]
async fn what_an_extension_does_not_cover_is_rolled_out() {
    let world = World::start().await;
    let server = Extension::start().await;
    register(&world, "ext", server.spec("")).await;
    deployed(&world, 0).await;
    let before = identities(&world).await;
    // It changes the version, and leaves the flavor.
    let mut half = covering(NEW, "small");
    half["bootstrapConfigTemplatePatch"] = Value::Null;
    server.respond("CanUpdateMachineSet", half);
    change(&world, NEW, "large").await;
    rolled_out(&world, "large").await;
    let after = identities(&world).await;
    assert!(before.keys().all(|name| !after.contains_key(name)), "{before:?} {after:?}");
    assert!(server.calls("UpdateMachine").is_empty());
}

#[tokio::test]
async fn an_extension_that_does_not_answer_holds_the_rollout_and_the_condition_says_so() {
    let world = World::start().await;
    let server = Extension::start().await;
    register(&world, "ext", server.spec("")).await;
    deployed(&world, 1).await;
    let before = identities(&world).await;
    server.behave(Mood::Silent);
    change(&world, NEW, "large").await;
    rolling_out_says(&world, "* CanUpdateMachineSet: failed to call extension handler").await;
    server.behave(Mood::Garbage);
    rolling_out_says(&world, "* CanUpdateMachineSet: failed to call extension handler").await;
    server.behave(Mood::Healthy);
    let broken = json!({"patchType": "JSONPatch", "patch": STANDARD.encode("{")});
    server.respond("CanUpdateMachineSet", json!({"machineSetPatch": broken}));
    rolling_out_says(&world, "machineSetPatch: the patch is not JSON").await;
    register(&world, "second", server.spec("/second")).await;
    let several =
        "found multiple CanUpdateMachineSet hooks (canupdatemachineset.ext,canupdatemachineset.second)";
    rolling_out_says(&world, several).await;
    assert_eq!(identities(&world).await, before, "nothing happened meanwhile");

    let second = Key::new("", "second");
    world.user.delete(&configs(), &second, &capstan_controller::Deletion::default()).await.expect("deleted");
    server.respond("CanUpdateMachineSet", covering(NEW, "large"));
    rolled_out(&world, "large").await;
    assert_eq!(identities(&world).await, before);
}
