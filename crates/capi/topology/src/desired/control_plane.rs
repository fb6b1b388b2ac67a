//! Infrastructure and control plane of a cluster.

use std::collections::BTreeMap;

use capstan_capi_core::contract::{ContractVersion, ControlPlane, External};
use capstan_capi_types::core::label;
use serde::Serialize;
use serde_json::{Value, json};

use super::hooks::Calls;
use super::object::{self, Intent, Texts};
use super::versions::Upgrade;
use super::workers::{own_or_class, timeouts};
use super::{kind_of, names};
use crate::ask::Stop;
use crate::blueprint::Blueprint;
use crate::current::Current;
use crate::patches::value;

/// Name of infrastructure and control plane if the class has no template for it.
const NAME: &str = "{{ .cluster.name }}-{{ .random }}";

fn name(current: &Current, referenced: &str, naming: &str, what: &str) -> Result<String, String> {
    if !referenced.is_empty() {
        return Ok(referenced.to_owned());
    }
    let suffix = names::suffix(&current.cluster, &[what]);
    names::from_template(if naming.is_empty() { NAME } else { naming }, &current.cluster, None, &suffix)
}

pub(super) fn infrastructure(blueprint: &Blueprint, current: &Current) -> Result<Intent, String> {
    let naming = &blueprint.class.spec.infrastructure.naming.template;
    let referenced = &current.cluster.spec.infrastructure_ref.name;
    let name = name(current, referenced, naming, "infrastructure")?;
    let none = Texts::new();
    Ok(object::from_template(&blueprint.infrastructure, &current.cluster, &name, &none, &none))
}

/// Prefix of the names of templates for the control plane's machines.
pub fn machines_prefix(cluster: &str) -> String {
    format!("{cluster}-")
}

/// The template of the control plane's machines, if it has any.
pub(super) fn machines(blueprint: &Blueprint, current: &Current) -> Result<Option<Intent>, String> {
    let Some(template) = &blueprint.control_plane_machines else { return Ok(None) };
    let cluster = &current.cluster;
    let referenced = current.control_plane.as_ref().and_then(machines_reference);
    let name = referenced.unwrap_or_else(|| {
        let suffix = names::suffix(cluster, &["control-plane-machines"]);
        names::joined(&machines_prefix(&cluster.metadata.name), &suffix)
    });
    Ok(Some(object::copy_of_template(template, cluster, &name, &Texts::new())))
}

/// Where a control plane names the template of its machines.
pub(super) fn reference_path(contract: ContractVersion) -> &'static [&'static str] {
    match contract {
        ContractVersion::V1Beta1 => &["spec", "machineTemplate", "infrastructureRef"],
        ContractVersion::V1Beta2 => &["spec", "machineTemplate", "spec", "infrastructureRef"],
    }
}

/// The name of the template that a control plane's machines are cloned from.
pub fn machines_reference(control_plane: &External) -> Option<String> {
    let reference = value::at(control_plane.value(), reference_path(control_plane.contract))?;
    reference["name"].as_str().map(str::to_owned)
}

/// The version in which a control plane of the old contract names the template of its machines, if it names one of this
/// kind. Its controller may have raised the version: writing that of the class again would never end.
fn version_referred_to(control_plane: &Value, machines: &Intent) -> Option<String> {
    let reference = value::at(control_plane, reference_path(ContractVersion::V1Beta1))?;
    let version = reference["apiVersion"].as_str()?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    (group == &*machines.kind.group && reference["kind"] == *machines.kind.kind).then(|| version.to_owned())
}

/// Has a control plane use another template for its machines. `running` is the control plane that is there.
pub fn refer_to_machines(
    control_plane: &mut Intent,
    running: Option<&Value>,
    contract: ContractVersion,
    machines: &Intent,
) {
    let reference = match contract {
        ContractVersion::V1Beta1 => json!({
            "apiVersion": running
                .and_then(|running| version_referred_to(running, machines))
                .unwrap_or_else(|| machines.kind.api_version()),
            "kind": machines.kind.kind,
            "name": machines.name(),
            "namespace": machines.body["metadata"]["namespace"],
        }),
        ContractVersion::V1Beta2 => json!({
            "apiGroup": machines.kind.group,
            "kind": machines.kind.kind,
            "name": machines.name(),
        }),
    };
    value::put(&mut control_plane.body, reference_path(contract), reference);
}

/// Labels or annotations of two sources; the first wins.
pub(super) fn merged(first: &Texts, second: &Texts) -> Texts {
    let mut all = second.clone();
    all.extend(first.iter().map(|(key, text)| (key.clone(), text.clone())));
    all
}

pub(super) fn object(
    blueprint: &Blueprint,
    current: &Current,
    machines: Option<&Intent>,
    upgrade: &mut Upgrade,
    calls: &mut Calls<'_>,
) -> Result<Intent, Stop> {
    let cluster = &current.cluster;
    let class = &blueprint.class.spec.control_plane;
    let topology = &blueprint.topology.control_plane;
    let mut labels = merged(&topology.metadata.labels, &class.metadata.labels);
    labels.insert(label::CLUSTER_NAME.to_owned(), cluster.metadata.name.clone());
    labels.insert(label::TOPOLOGY_OWNED.to_owned(), String::new());
    let annotations = merged(&topology.metadata.annotations, &class.metadata.annotations);
    let name = name(current, &cluster.spec.control_plane_ref.name, &class.naming.template, "control-plane")?;
    let template = &blueprint.control_plane;
    let mut intent = object::from_template(template, cluster, &name, &labels, &annotations);
    debug_assert_eq!(intent.kind, kind_of(template));
    let old = template.contract == ContractVersion::V1Beta1;
    if let Some(machines) = machines {
        let running = current.control_plane.as_ref().map(External::value);
        refer_to_machines(&mut intent, running, template.contract, machines);
        for (field, own) in [("labels", &labels), ("annotations", &annotations)] {
            let path = ["spec", "machineTemplate", "metadata", field];
            let mut all: BTreeMap<String, Value> = match value::at(&intent.body, &path) {
                Some(Value::Object(given)) => given.clone().into_iter().collect(),
                _ => BTreeMap::new(),
            };
            all.extend(own.iter().map(|(key, text)| (key.clone(), text.as_str().into())));
            if !all.is_empty() {
                value::put(&mut intent.body, &path, json!(all));
            }
        }
    }
    let mut set = |path: &[&str], new: Value| value::put(&mut intent.body, path, new);
    if let Some(replicas) = topology.replicas {
        set(&["spec", "replicas"], replicas.into());
    }
    if let Some(after) = &topology.rollout.after {
        set(&["spec", "rollout", "after"], json(after)?);
    }
    let of_machines = |field: &'static str| -> Vec<&'static str> {
        if old {
            vec!["spec", "machineTemplate", field]
        } else {
            vec!["spec", "machineTemplate", "spec", field]
        }
    };
    let gates = own_or_class([&topology.readiness_gates, &class.readiness_gates]);
    if !gates.is_empty() {
        set(&of_machines("readinessGates"), json(gates)?);
    }
    let taints = own_or_class([&topology.taints, &class.taints]);
    if !taints.is_empty() {
        set(&of_machines("taints"), json(taints)?);
    }
    let timeouts = timeouts(&topology.deletion, &class.deletion);
    for (field, seconds) in [
        ("nodeDrainTimeout", timeouts.node_drain_timeout_seconds),
        ("nodeVolumeDetachTimeout", timeouts.node_volume_detach_timeout_seconds),
        ("nodeDeletionTimeout", timeouts.node_deletion_timeout_seconds),
    ] {
        let Some(seconds) = seconds else { continue };
        if old {
            set(&["spec", "machineTemplate", field], format!("{seconds}s").into());
        } else {
            let field = format!("{field}Seconds");
            set(&["spec", "machineTemplate", "spec", "deletion", &field], seconds.into());
        }
    }
    let running = current.control_plane.as_ref().filter(|_| current.referenced);
    let version = match running {
        None => blueprint.topology.version.clone(),
        Some(running) => {
            let version = ControlPlane(running).version().map_err(|error| error.to_string())?;
            let version = version.unwrap_or_default();
            upgrade.control_plane_version(running, &version, &blueprint.topology.version, calls)?
        }
    };
    set(&["spec", "version"], version.into());
    Ok(intent)
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use capstan_controller::KindName;

    use super::*;

    #[test]
    fn a_version_that_the_control_plane_raised_in_its_reference_stays() {
        let kind = |group: &'static str, kind: &'static str| KindName::namespaced(group, "v1", kind, "any");
        let named = |name: &str| json!({"metadata": {"name": name, "namespace": "ns"}});
        let machines = Intent { kind: kind("infra", "MachineTemplate"), body: named("new") };
        for (referred, expected) in [
            (Value::Null, "infra/v1"),
            (json!({"apiVersion": "infra/v2", "kind": "MachineTemplate", "name": "old"}), "infra/v2"),
            (json!({"apiVersion": "infra/v2", "kind": "OtherTemplate", "name": "old"}), "infra/v1"),
            (json!({"apiVersion": "other/v2", "kind": "MachineTemplate", "name": "old"}), "infra/v1"),
        ] {
            let running = json!({"spec": {"machineTemplate": {"infrastructureRef": referred}}});
            let mut intent = Intent { kind: kind("cp", "ControlPlane"), body: named("cp") };
            refer_to_machines(&mut intent, Some(&running), ContractVersion::V1Beta1, &machines);
            let reference = value::at(&intent.body, reference_path(ContractVersion::V1Beta1)).expect("set");
            assert_eq!((&reference["apiVersion"], &reference["name"]), (&json!(expected), &json!("new")));
        }
    }
}
