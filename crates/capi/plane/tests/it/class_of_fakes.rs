//! A class of fake kinds and its templates.

use serde_json::{Value, json};

use crate::plane::{World, fake};

pub fn template(kind: &str) -> Value {
    json!({"templateRef": {"apiVersion": "fake.example.com/v1alpha1", "kind": kind, "name": "t"}})
}

/// The spec of the class, with more in it.
pub fn class_spec(more: Value) -> Value {
    let mut control_plane = template("FakeControlPlaneTemplate");
    control_plane["machineInfrastructure"] = template("FakeMachineTemplate");
    let mut spec = json!({
        "infrastructure": template("FakeClusterTemplate"),
        "controlPlane": control_plane,
        "workers": {"machineDeployments": [{
            "class": "worker",
            "bootstrap": template("FakeConfigTemplate"),
            "infrastructure": template("FakeMachineTemplate"),
        }]},
    });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    spec
}

/// The templates that the class refers to.
pub async fn create_templates(world: &World) {
    for kind in
        ["FakeClusterTemplate", "FakeControlPlaneTemplate", "FakeMachineTemplate", "FakeConfigTemplate"]
    {
        world.create(&fake(kind), "t", json!({"spec": {"template": {"spec": {}}}})).await;
    }
}
