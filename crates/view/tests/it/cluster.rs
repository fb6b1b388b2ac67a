//! Objects of a sample cluster.

use capstan_view::{Part, Tree};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Two minutes after all objects were created.
pub fn now() -> Timestamp {
    "2026-01-01T00:02:00Z".parse().expect("a moment")
}

/// An object whose uid is `Kind/name`, owned by another.
pub fn object(kind: &str, name: &str, owner: &str, conditions: &[(&str, &str, &str, &str)]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status, reason, message)| {
            json!({"type": kind, "status": status, "reason": reason, "message": message,
                   "lastTransitionTime": "2026-01-01T00:01:30Z"})
        })
        .collect();
    json!({
        "kind": kind,
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("{kind}/{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "x/v1", "kind": "x", "name": "x", "uid": owner, "controller": true}],
        },
        "status": {"conditions": conditions},
    })
}

/// A healthy cluster: one of everything, and three machines of its control plane.
pub fn healthy() -> Vec<Value> {
    let ready = [("Ready", "True", "Ready", "")];
    let available = [("Available", "True", "Available", "")];
    let mut cluster = object("Cluster", "demo", "", &available);
    cluster["spec"] = json!({
        "controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "demo-cp"},
        "infrastructureRef": {"kind": "SimCluster", "name": "demo"},
    });
    let mut control_plane = object("KubeadmControlPlane", "demo-cp", "Cluster/demo", &available);
    control_plane["spec"] = json!({"replicas": 3, "version": "v1.36.3"});
    control_plane["status"]["readyReplicas"] = json!(3);
    let mut objects = vec![cluster, control_plane, object("SimCluster", "demo", "Cluster/demo", &ready)];
    for name in ["demo-cp-a", "demo-cp-b", "demo-cp-c"] {
        let mut machine = object("Machine", name, "KubeadmControlPlane/demo-cp", &ready);
        machine["spec"] = json!({
            "bootstrap": {"configRef": {"kind": "KubeadmConfig", "name": name}},
            "infrastructureRef": {"kind": "SimMachine", "name": name},
        });
        objects.push(machine);
        let owner = format!("Machine/{name}");
        objects.push(object("SimMachine", name, &owner, &ready));
        objects.push(object("KubeadmConfig", name, &owner, &ready));
    }
    objects.push(object("SimMachineTemplate", "demo", "Cluster/demo", &[]));
    objects
}

/// Changes the object of that uid.
pub fn change(objects: &mut [Value], uid: &str, change: impl FnOnce(&mut Value)) {
    change(
        objects.iter_mut().find(|object| object["metadata"]["uid"] == uid).expect("an object of the cluster"),
    );
}

pub fn set_conditions(objects: &mut [Value], uid: &str, conditions: &[(&str, &str, &str, &str)]) {
    change(objects, uid, |found| found["status"] = object("", "", "", conditions)["status"].clone());
}

/// The tree of the cluster.
pub fn tree(objects: &[Value]) -> Tree {
    Tree::below("Cluster/demo", objects.iter().filter_map(Part::of).collect()).expect("the cluster is there")
}
