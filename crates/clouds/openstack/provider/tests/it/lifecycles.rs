//! Lifecycles of clusters into which `cargo xtask openstack-faults` injects faults.

use serde_json::Value;

use crate::manifests::Shape;
use crate::story::Act::{Create, Delete, Destroy, ScaleControlPlane, ScaleWorkers, Upgrade};
use crate::story::Script;

/// Create and delete, without a CNI.
pub fn brief() -> Script {
    Script { bare: true, ..Script::of(&[Create, Delete]) }
}

/// Create, scale both ways, delete; without a CNI.
pub fn short() -> Script {
    Script { bare: true, ..Script::of(&[Create, ScaleWorkers(2), ScaleWorkers(1), Delete]) }
}

/// A cluster of 3+3 in two availability zones with everything that may befall it.
pub fn whole() -> Script {
    let shape = Shape { control_plane: 3, workers: 3, version: "v1.35.0" };
    let acts = [
        Create,
        ScaleWorkers(4),
        ScaleWorkers(2),
        Upgrade("v1.36.0"),
        Destroy { control_plane: false },
        Destroy { control_plane: true },
        ScaleControlPlane(1),
        ScaleControlPlane(3),
        Delete,
    ];
    Script { shape, change: Some(small_workers), ..Script::of(&acts) }
}

/// A project has twenty cores by default, and a rollout needs one machine more.
fn small_workers(body: &mut Value) {
    if body["kind"] == "OpenStackMachineTemplate" {
        body["spec"]["template"]["spec"]["flavor"]["filter"]["name"] = "m1.medium".into();
    }
}
