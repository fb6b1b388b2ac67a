//! Desired Machines of a pool.

use capstan_capi_types::core::{ContractVersionedObjectReference, Machine, MachinePool, label, machine};
use capstan_controller::{Effect, ObjectRef};
use capstan_object::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value, json};

use crate::contract::External;
use crate::machine::MachineCall;
use crate::owners;
use crate::propagate::Propagated;
use crate::workload::Node;

/// The Machine shows this infrastructure machine.
pub(super) fn is_for(machine: &Machine, infrastructure: &External) -> bool {
    machine.spec.infrastructure_ref == reference(infrastructure)
}

fn reference(infrastructure: &External) -> ContractVersionedObjectReference {
    ContractVersionedObjectReference {
        kind: infrastructure.kind.kind.to_string(),
        name: infrastructure.metadata.name.clone(),
        api_group: infrastructure.kind.group.to_string(),
    }
}

/// Labels and annotations of the Machines.
fn propagated(pool: &MachinePool) -> Propagated {
    let mut labels = pool.spec.template.metadata.labels.clone();
    labels.insert(label::POOL_NAME.to_owned(), label::value(&pool.metadata.name));
    labels.insert(label::CLUSTER_NAME.to_owned(), pool.spec.cluster_name.clone());
    Propagated { labels, annotations: pool.spec.template.metadata.annotations.clone() }
}

/// The kubelet's version: a pool's machines may be of any version while the provider replaces them.
fn version(node: Option<&Node>) -> Option<&str> {
    node.map(|node| node.status.node_info.kubelet_version.as_str()).filter(|version| !version.is_empty())
}

/// A new Machine for an infrastructure machine, of the same name. Its boot data is the pool's.
pub(super) fn machine(pool: &MachinePool, infrastructure: &External, node: Option<&Node>) -> Machine {
    let meta = &infrastructure.metadata;
    let mut metadata = ObjectMeta::named(pool.metadata.namespace.clone(), &meta.name);
    propagated(pool).write(&mut metadata);
    metadata.owner_references = vec![OwnerReference::controlled_by(pool)];
    metadata.finalizers = vec![machine::FINALIZER.to_owned()];
    let mut machine = Machine { metadata, ..Machine::default() };
    machine.spec.cluster_name = pool.spec.cluster_name.clone();
    machine.spec.infrastructure_ref = reference(infrastructure);
    machine.spec.bootstrap.data_secret_name = Some(String::new());
    machine.spec.version = version(node).unwrap_or_default().to_owned();
    let template = &pool.spec.template.spec;
    machine.spec.deletion = template.deletion.clone();
    machine.spec.min_ready_seconds = template.min_ready_seconds;
    machine
}

/// The patches that bring a Machine up to date: owner, labels, annotations, version, and fields that are updated in place.
pub(super) fn change(pool: &MachinePool, machine: &Machine, node: Option<&Node>) -> Vec<Effect<MachineCall>> {
    if machine.metadata.controller().is_none() {
        return vec![owners::adopt(pool, machine)];
    }
    let mut change = Map::new();
    if let Some(metadata) = propagated(pool).change(&machine.metadata, &[]) {
        change.insert("metadata".to_owned(), metadata);
    }
    let mut spec = machine.spec.clone();
    if let Some(version) = version(node) {
        spec.version = version.to_owned();
    }
    let template = &pool.spec.template.spec;
    let before = spec.deletion.node_deletion_timeout_seconds;
    spec.deletion = template.deletion.clone();
    // Admission sets a default if the pool has none.
    spec.deletion.node_deletion_timeout_seconds = spec.deletion.node_deletion_timeout_seconds.or(before);
    spec.min_ready_seconds = template.min_ready_seconds;
    // Plain data always serializes.
    let form = |spec| serde_json::to_value(spec).unwrap_or_else(|_| json!({}));
    if let Some(spec) = crate::propagate::merge_difference(&form(&machine.spec), &form(&spec)) {
        change.insert("spec".to_owned(), spec);
    }
    if change.is_empty() {
        return Vec::new();
    }
    vec![Effect::merge_guarded(ObjectRef::to(machine), &machine.metadata, Value::Object(change))]
}
