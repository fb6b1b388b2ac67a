//! What clouds refuse of a change that cannot be simulated: they are asked about one new machine of each changed part.

use std::sync::Arc;

use anyhow::Result;
use capstan_controller::Client;
use capstan_object::Key;
use capstan_provider_kit::{CapacityQuestion, PlannedMachine};
use capstan_rehearsal::Records;
use serde_json::{Value, json};

use super::topologies::key_of;
use super::{Proposal, only, snapshot};
use crate::change::Change;
use crate::connection::Management;

/// Where control planes, and MachineDeployments, have the template of their machines and their version.
const PARTS: [(&str, &str); 2] = [
    ("/spec/machineTemplate/spec/infrastructureRef", "/spec/version"),
    ("/spec/template/spec/infrastructureRef", "/spec/template/spec/version"),
];

/// Why orders of the cluster would fail.
pub async fn refused(management: &Management, cluster: &Key, proposal: &Proposal) -> Result<Vec<String>> {
    let (client, plugins): (&Client, _) = (&management.client, &management.plugins);
    let kinds = snapshot::kinds(plugins, client).await;
    let namespaces = [cluster.namespace.clone()].into();
    let mut records: Records = snapshot::records(client, &kinds, &namespaces).await?;
    only::keep(&mut records, cluster);
    let mut objects: Vec<Value> = proposal.apply.clone();
    objects.extend(records.0.into_iter().map(|(_, object)| object));
    objects.retain(|object| object["kind"] != "Secret");
    let machines: Vec<PlannedMachine> =
        proposal.patch.iter().filter_map(|change| machine(cluster, &objects, change)).collect();
    let manifest = &proposal.apply;
    let question = CapacityQuestion { client, manifest, objects: &objects, machines: &machines };
    let mut refused = Vec::new();
    for capacity in plugins.providers().filter_map(|provider| provider.capacity()) {
        let refusals = capacity.answer(question).await.refusals;
        refused.extend(refusals.into_iter().filter(|it| it.cluster == *cluster).map(|it| it.why));
    }
    refused.dedup();
    Ok(refused)
}

/// A machine of the part that a change is about, as it would be made.
fn machine(cluster: &Key, objects: &[Value], change: &Change) -> Option<PlannedMachine> {
    let named = |kind: &str, name: &str| {
        let key = Key::new(cluster.namespace.as_str(), name);
        objects.iter().find(move |object| object["kind"] == kind && key_of(object) == key)
    };
    let mut part = named(&change.kind.kind, &change.name)?.clone();
    merge(&mut part, &change.patch);
    let (reference, version) = PARTS.iter().find_map(|(reference, version)| {
        Some((part.pointer(reference)?, part.pointer(version).and_then(Value::as_str).unwrap_or_default()))
    })?;
    let template = named(reference["kind"].as_str()?, reference["name"].as_str()?)?;
    let name = format!("{}-new", change.name);
    Some(PlannedMachine {
        key: Key::new(cluster.namespace.as_str(), name.as_str()),
        cluster: cluster.name.clone(),
        of: format!("{}/{}", change.kind.kind, change.name),
        version: version.to_owned(),
        failure_domain: String::new(),
        new: true,
        infrastructure: Arc::new(json!({
            "apiVersion": template["apiVersion"],
            "kind": template["kind"].as_str()?.strip_suffix("Template")?,
            "metadata": {"name": name, "namespace": cluster.namespace},
            "spec": template["spec"]["template"]["spec"],
        })),
    })
}

/// Applies a merge patch.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => drop(into.as_object_mut().and_then(|object| object.remove(name))),
            value => merge(&mut into[name], value),
        }
    }
}

#[cfg(test)]
mod tests {
    use capstan_controller::KindName;

    use super::*;

    #[test]
    fn a_changed_part_gets_one_machine_from_its_template() {
        let template = |name: &str, image: &str| {
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "ToyMachineTemplate",
                "metadata": {"name": name, "namespace": "n"}, "spec": {"template": {"spec": {"image": image}}}})
        };
        let reference = json!({"kind": "ToyMachineTemplate", "name": "old"});
        let objects = [
            template("old", "v1.35"),
            template("new", "v1.36"),
            json!({"kind": "Control", "metadata": {"name": "cp", "namespace": "n"},
                "spec": {"version": "v1.35.0", "machineTemplate": {"spec": {"infrastructureRef": reference}}}}),
            json!({"kind": "Deployment", "metadata": {"name": "md", "namespace": "n"},
                "spec": {"template": {"spec": {"version": "v1.35.0", "infrastructureRef": reference}}}}),
        ];
        let new = json!({"infrastructureRef": {"name": "new"}});
        for (kind, name, patch, expected) in [
            ("Control", "cp", json!({"spec": {"version": "v1.36.0"}}), Some(("v1.36.0", "v1.35"))),
            (
                "Control",
                "cp",
                json!({"spec": {"version": "v1.36.0", "machineTemplate": {"spec": new}}}),
                Some(("v1.36.0", "v1.36")),
            ),
            ("Deployment", "md", json!({"spec": {"replicas": 3}}), Some(("v1.35.0", "v1.35"))),
            ("Deployment", "md", json!({"spec": {"template": {"spec": new}}}), Some(("v1.35.0", "v1.36"))),
            ("Deployment", "gone", json!({}), None),
        ] {
            let change = Change {
                kind: KindName::namespaced("g", "v1", kind, "x"),
                name: name.to_owned(),
                what: String::new(),
                patch,
            };
            let found = machine(&Key::new("n", "c"), &objects, &change);
            let image = |it: &PlannedMachine| it.infrastructure["spec"]["image"].as_str().map(str::to_owned);
            let found = found.as_ref().map(|it| (it.version.as_str(), image(it).expect("an image")));
            let found = found.as_ref().map(|(version, image)| (*version, image.as_str()));
            assert_eq!(found, expected, "{kind} {name}");
        }
    }
}
