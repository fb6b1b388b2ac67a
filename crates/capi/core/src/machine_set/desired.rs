//! Desired machines of a set.

use capstan_capi_types::core::{Machine, MachineSet, MachineSpec, annotation, label, machine};
use capstan_object::{ObjectMeta, OwnerReference};

use crate::clone;
use crate::contract::External;
use crate::names::{from_template, joined};
use crate::propagate::Propagated;

/// Default of `nodeDeletionTimeoutSeconds`, as admission sets it, in seconds.
const DEFAULT_NODE_DELETION_TIMEOUT: i32 = 10;

/// Default name template.
const DEFAULT_NAMING: &str = "{{ .machineSet.name }}-{{ .random }}";

/// Name of a machine, its bootstrap config and its infrastructure machine.
pub fn name(set: &MachineSet, suffix: &str) -> String {
    let template = &set.spec.machine_naming.template;
    if template.is_empty() || template == DEFAULT_NAMING {
        return joined(&set.metadata.name, suffix);
    }
    let values =
        [(".cluster.name", set.spec.cluster_name.as_str()), (".machineSet.name", &set.metadata.name)];
    from_template(template, &values, suffix)
}

/// Labels and annotations of machines and the objects created for them.
pub fn propagated(set: &MachineSet) -> Propagated {
    let mut labels = set.spec.template.metadata.labels.clone();
    labels.insert(label::SET_NAME.to_owned(), label::value(&set.metadata.name));
    labels.insert(label::CLUSTER_NAME.to_owned(), set.spec.cluster_name.clone());
    if let Some(deployment) = set.metadata.labels.get(label::DEPLOYMENT_NAME) {
        labels.insert(label::DEPLOYMENT_NAME.to_owned(), deployment.clone());
    }
    Propagated { labels, annotations: set.spec.template.metadata.annotations.clone() }
}

/// A machine's spec with all fields that are updated in place.
pub fn followed(set: &MachineSet, spec: &MachineSpec) -> MachineSpec {
    let template = &set.spec.template.spec;
    let mut deletion = template.deletion.clone();
    deletion.node_deletion_timeout_seconds =
        deletion.node_deletion_timeout_seconds.or(Some(DEFAULT_NODE_DELETION_TIMEOUT));
    MachineSpec {
        min_ready_seconds: template.min_ready_seconds,
        readiness_gates: template.readiness_gates.clone(),
        taints: template.taints.clone(),
        deletion,
        ..spec.clone()
    }
}

/// Metadata of objects created for a new machine; the set owns them until the machine does.
pub fn part(set: &MachineSet, name: &str) -> ObjectMeta {
    let mut meta = ObjectMeta::named(set.metadata.namespace.clone(), name);
    propagated(set).write(&mut meta);
    meta.owner_references = vec![OwnerReference::to(set)];
    meta
}

/// A new Machine that refers to an infrastructure machine and a bootstrap config of the same name.
pub fn machine(
    set: &MachineSet,
    name: &str,
    infrastructure: &External,
    bootstrap: Option<&External>,
) -> Machine {
    let mut metadata = part(set, name);
    metadata.owner_references = vec![OwnerReference::controlled_by(set)];
    metadata.finalizers = vec![machine::FINALIZER.to_owned()];
    let mut spec = followed(set, &set.spec.template.spec);
    spec.cluster_name = set.spec.cluster_name.clone();
    spec.infrastructure_ref = clone::reference(infrastructure, name);
    spec.bootstrap.config_ref =
        bootstrap.map(|bootstrap| clone::reference(bootstrap, name)).unwrap_or_default();
    Machine { metadata, spec, ..Machine::default() }
}

/// Machines moved from another set that the deployment has not acknowledged do not count here either.
pub fn is_pending_acknowledge(machine: &Machine) -> bool {
    machine.metadata.annotations.contains_key(annotation::PENDING_ACKNOWLEDGE_MOVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_sets_template() {
        let mut set = MachineSet::default();
        set.metadata.name = "workers-abc".to_owned();
        set.spec.cluster_name = "prod".to_owned();
        for (template, expected) in [
            ("", "workers-abc-bcdfg"),
            ("{{ .machineSet.name }}-{{ .random }}", "workers-abc-bcdfg"),
            ("{{.cluster.name}}-w-{{ .random }}", "prod-w-bcdfg"),
            ("n{{ .random }}x", "nbcdfgx"),
        ] {
            set.spec.machine_naming.template = template.to_owned();
            assert_eq!(name(&set, "bcdfg"), expected, "{template}");
        }
        set.spec.machine_naming.template = format!("{}-{{{{ .random }}}}", "a".repeat(70));
        let long = name(&set, "bcdfg");
        assert_eq!((long.len(), long.ends_with("bcdfg")), (63, true));
    }

    #[test]
    fn in_place_fields_are_propagated_to_existing_machines() {
        let mut set = MachineSet::default();
        set.spec.template.spec.version = "v2".to_owned();
        set.spec.template.spec.deletion.node_drain_timeout_seconds = Some(7);
        let mut spec = MachineSpec { version: "v1".to_owned(), ..MachineSpec::default() };
        spec.min_ready_seconds = Some(3);
        let followed = followed(&set, &spec);
        assert_eq!((followed.version.as_str(), followed.min_ready_seconds), ("v1", None));
        assert_eq!(followed.deletion.node_drain_timeout_seconds, Some(7));
        assert_eq!(followed.deletion.node_deletion_timeout_seconds, Some(10));
    }
}
