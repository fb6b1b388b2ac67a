//! A machine of a control plane that an extension updates in place.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

const ROLE: &str = "node-role.kubernetes.io/control-plane";

fn control_planes() -> KindName {
    KindName::namespaced(
        "controlplane.cluster.x-k8s.io",
        "v1beta2",
        "KubeadmControlPlane",
        "kubeadmcontrolplanes",
    )
}

/// Machines with boot data become nodes whose static pods are ready.
async fn provide(world: &World) {
    let pods = KindName::namespaced("", "v1", "Pod", "pods");
    for machine in list(world, &fake("FakeMachine")).await {
        let name = machine["metadata"]["name"].as_str().expect("a name");
        if machine["status"]["initialization"]["provisioned"] == true {
            continue;
        }
        for component in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
            let pod = format!("{component}-{name}");
            let containers = json!([{"name": component, "image": "x"}]);
            let body = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": "kube-system"},
                "spec": {"containers": containers, "nodeName": name},
            });
            world.guest.create(&pods, "kube-system", &body).await.expect("a pod");
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let patch = capstan_controller::Patch::Merge(
                json!({"status": {"phase": "Running", "conditions": ready}}),
            );
            let key = Key::new("kube-system", pod.as_str());
            world.guest.patch(&pods, &key, Some("status"), &patch).await.expect("a status");
        }
        let taints = json!([{"key": ROLE, "effect": "NoSchedule"}]);
        join(world, name, json!({ROLE: ""}), taints).await;
    }
}

async fn provided(world: &World, what: &str, holds: impl Fn(&Value) -> bool) {
    for _ in 0..1200 {
        provide(world).await;
        let control_plane = read(world, &control_planes(), "kcp").await.expect("a control plane");
        if holds(&control_plane) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let state: Vec<Value> = [list(world, &control_planes()).await, list(world, &machines()).await]
        .into_iter()
        .flatten()
        .collect();
    panic!("never came to: {what}\n{}", serde_json::to_string_pretty(&state).expect("JSON"));
}

/// Two machines and an etcd elsewhere, which needs nobody to ask.
async fn control_plane(world: &World) {
    let provisioned = json!({"initialization": {"provisioned": true}});
    let endpoint = json!({"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}});
    world.create(&fake("FakeCluster"), "c", json!({"spec": endpoint, "status": provisioned})).await;
    let spec = json!({
        "infrastructureRef": {"apiGroup": "fake.example.com", "kind": "FakeCluster", "name": "c"},
        "controlPlaneRef":
            {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "kcp"},
    });
    world.create(&clusters(), "c", json!({"spec": spec})).await;
    for flavor in ["small", "large"] {
        let template = json!({"spec": {"template": {"spec": {"flavor": flavor}}}});
        world.create(&fake("FakeMachineTemplate"), flavor, template).await;
    }
    let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
    for name in ["c-etcd", "c-apiserver-etcd-client"] {
        let labels = json!({"cluster.x-k8s.io/cluster-name": "c"});
        let data = json!({"tls.crt": "certificate", "tls.key": "key"});
        world.create(&secrets, name, json!({"metadata": {"labels": labels}, "stringData": data})).await;
    }
    let config = KindName::namespaced("", "v1", "ConfigMap", "configmaps");
    let configuration = format!("kubernetesVersion: {OLD}\nnetworking: {{dnsDomain: cluster.local}}\n");
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
        "data": {"ClusterConfiguration": configuration},
    });
    world.guest.create(&config, "kube-system", &body).await.expect("a ConfigMap");
    let etcd = json!({"external": {
        "endpoints": ["https://10.0.0.9:2379"], "caFile": "/etcd/ca.crt", "certFile": "/etcd/c.crt",
        "keyFile": "/etcd/c.key",
    }});
    let template = json!({"apiGroup": "fake.example.com", "kind": "FakeMachineTemplate", "name": "small"});
    let spec = json!({
        "replicas": 2, "version": OLD,
        "machineTemplate": {"spec": {"infrastructureRef": template}},
        "kubeadmConfigSpec": {"clusterConfiguration": {"etcd": etcd}},
    });
    world.create(&control_planes(), "kcp", json!({"spec": spec})).await;
    provided(world, "two machines", |control_plane| {
        control_plane["status"]["availableReplicas"] == 2 && control_plane["status"]["upToDateReplicas"] == 2
    })
    .await;
}

#[tokio::test]
async fn a_machine_of_a_control_plane_is_updated_in_place() {
    let world = World::start().await;
    let server = Extension::start().await;
    register(&world, "ext", server.spec("")).await;
    control_plane(&world).await;
    let uid = |machine: &Value| machine["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let before: Vec<String> = list(&world, &machines()).await.iter().map(uid).collect();

    server.respond("CanUpdateMachine", json!({"status": "Failure", "message": "not now"}));
    server.block("UpdateMachine", "restarting");
    let template = json!({"infrastructureRef": {"name": "large"}});
    let change = json!({"version": NEW, "machineTemplate": {"spec": template}});
    world.patch(&control_planes(), "kcp", json!({"spec": change})).await;
    provided(&world, "the failure", |control_plane| {
        let message = condition(control_plane, "RollingOut")["message"].as_str().unwrap_or_default();
        message.contains("* CanUpdateMachine: ") && message.contains("not now")
    })
    .await;

    let version = json!([{"op": "replace", "path": "/spec/version", "value": NEW}]);
    let flavor = json!({"spec": {"flavor": "large"}});
    let gates = json!({"spec": {"clusterConfiguration": {"featureGates": null}}});
    server.respond(
        "CanUpdateMachine",
        json!({
            "machinePatch": {"patchType": "JSONPatch", "patch": STANDARD.encode(version.to_string())},
            "infrastructureMachinePatch":
                {"patchType": "JSONMergePatch", "patch": STANDARD.encode(flavor.to_string())},
            "bootstrapConfigPatch":
                {"patchType": "JSONMergePatch", "patch": STANDARD.encode(gates.to_string())},
        }),
    );
    let is_updated = |machine: &&Value| {
        condition(machine, "Updating")["message"] == "In-place update in progress: restarting"
    };
    let mut updated = String::new();
    for _ in 0..1200 {
        let all = list(&world, &machines()).await;
        if let Some(machine) = all.iter().find(is_updated) {
            assert_eq!(machine["spec"]["version"], NEW);
            updated = uid(machine);
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(before.contains(&updated), "one of the old machines: {:?}", server.calls("CanUpdateMachine"));
    let request = server.calls("CanUpdateMachine").pop().expect("a call");
    assert_eq!(request["kind"], "CanUpdateMachineRequest");
    for (side, version, flavor) in [("current", OLD, "small"), ("desired", NEW, "large")] {
        assert_eq!(request[side]["machine"]["spec"]["version"], version);
        assert_eq!(request[side]["infrastructureMachine"]["spec"]["flavor"], flavor);
        assert_eq!(request[side]["bootstrapConfig"]["kind"], "KubeadmConfig");
    }
    server.release("UpdateMachine");
    provided(&world, "both up to date", |control_plane| control_plane["status"]["upToDateReplicas"] == 2)
        .await;
    let after: Vec<String> = list(&world, &machines()).await.iter().map(uid).collect();
    assert!(after.contains(&updated), "it stays");
}
