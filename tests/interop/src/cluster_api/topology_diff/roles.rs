//! What each generated object is for. Names are generated differently, so objects are compared by role.

use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    pub kind: String,
    pub name: String,
}

/// Roles of the objects in a namespace: `<cluster>/control-plane`, `<cluster>/deployment/<name>/bootstrap`, ….
pub type Roles = BTreeMap<String, ObjectName>;

pub fn of(objects: &[Value]) -> Roles {
    let mut roles = Roles::new();
    for cluster in objects.iter().filter(|object| object["kind"] == "Cluster") {
        let name = text(&cluster["metadata"]["name"]);
        let mut add = |role: &str, reference: &Value| {
            let named = ObjectName { kind: text(&reference["kind"]), name: text(&reference["name"]) };
            if !named.name.is_empty() {
                roles.insert(format!("{name}/{role}"), named);
            }
        };
        add("infrastructure", &cluster["spec"]["infrastructureRef"]);
        let control_plane = &cluster["spec"]["controlPlaneRef"];
        add("control-plane", control_plane);
        let running = objects.iter().find(|object| {
            object["kind"] == control_plane["kind"] && object["metadata"]["name"] == control_plane["name"]
        });
        if let Some(running) = running {
            let template = &running["spec"]["machineTemplate"];
            for reference in [&template["spec"]["infrastructureRef"], &template["infrastructureRef"]] {
                add("control-plane/machines", reference);
            }
        }
        for object in objects {
            let labels = &object["metadata"]["labels"];
            let (role, topology) = match object["kind"].as_str() {
                Some("MachineDeployment") => ("deployment", "topology.cluster.x-k8s.io/deployment-name"),
                Some("MachinePool") => ("pool", "topology.cluster.x-k8s.io/pool-name"),
                _ => continue,
            };
            if labels["cluster.x-k8s.io/cluster-name"] != name.as_str() || !labels[topology].is_string() {
                continue;
            }
            let role = format!("{role}/{}", text(&labels[topology]));
            let named = serde_json::json!({"kind": object["kind"], "name": object["metadata"]["name"]});
            add(&role, &named);
            let spec = &object["spec"]["template"]["spec"];
            add(&format!("{role}/bootstrap"), &spec["bootstrap"]["configRef"]);
            add(&format!("{role}/infrastructure"), &spec["infrastructureRef"]);
        }
    }
    roles
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn generated_objects_are_found_by_what_refers_to_them() {
        let labels = json!({
            "cluster.x-k8s.io/cluster-name": "one", "topology.cluster.x-k8s.io/deployment-name": "md-0",
        });
        let objects = [
            json!({
                "kind": "Cluster", "metadata": {"name": "one"},
                "spec": {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "one-abcde"}},
            }),
            json!({
                "kind": "KubeadmControlPlane", "metadata": {"name": "one-abcde"},
                "spec": {"machineTemplate": {"spec": {"infrastructureRef": {"kind": "DevMachineTemplate", "name": "m"}}}},
            }),
            json!({
                "kind": "MachineDeployment", "metadata": {"name": "one-md-0-fghij", "labels": labels},
                "spec": {"template": {"spec": {"bootstrap": {"configRef": {"kind": "K", "name": "b"}}}}},
            }),
        ];
        let roles: Vec<String> =
            of(&objects).into_iter().map(|(role, named)| format!("{role}: {}", named.name)).collect();
        assert_eq!(
            roles,
            [
                "one/control-plane: one-abcde",
                "one/control-plane/machines: m",
                "one/deployment/md-0: one-md-0-fghij",
                "one/deployment/md-0/bootstrap: b",
            ]
        );
    }
}
