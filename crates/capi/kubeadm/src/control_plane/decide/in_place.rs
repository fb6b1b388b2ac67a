//! Changes that need no new machine: metadata, deletion timeouts, readiness gates, taints, and the recorded expiry of
//! certificates.

use capstan_capi_core::propagate::merge_difference;
use capstan_capi_types::core::annotation;
use capstan_controller::{Effect, ObjectRef};
use capstan_object::{ObjectMeta, Time};
use serde_json::{Map, Value, json};

use super::scope::ReconcileScope;
use crate::control_plane::desired_machine as desired;

/// Propagates metadata and spec fields to machines, their KubeadmConfigs and their infrastructure machines.
pub(super) fn propagate(scope: &mut ReconcileScope<'_>) {
    let control_plane = &scope.look.object;
    let cluster = &scope.cluster.metadata.name;
    let uid = &control_plane.metadata.uid;
    let to_machine = desired::propagated_to_machine(control_plane, cluster);
    let to_parts = desired::propagated(control_plane, cluster);
    for seen in &scope.look.seen.machines {
        let machine = &seen.machine;
        if !machine.metadata.is_owned_by(uid) {
            continue;
        }
        let going = machine.metadata.is_deleting();
        let mut change = Map::new();
        if !going && let Some(metadata) = to_machine.change(&machine.metadata, &[]) {
            change.insert("metadata".to_owned(), metadata);
        }
        let mut followed = desired::followed(control_plane, &machine.spec);
        if going {
            // Of a machine that is being deleted only fields that affect the deletion are updated.
            followed.readiness_gates = machine.spec.readiness_gates.clone();
        }
        // Plain data always serializes.
        let form = |spec| serde_json::to_value(spec).unwrap_or_else(|_| json!({}));
        if let Some(spec) = merge_difference(&form(&machine.spec), &form(&followed)) {
            change.insert("spec".to_owned(), spec);
        }
        if !change.is_empty() {
            let target = ObjectRef::to(machine.as_ref());
            let change = Value::Object(change);
            scope.decision.then(Effect::merge_guarded(target, &machine.metadata, change));
        }
        if going {
            continue;
        }
        let config = seen.config.as_ref().map(|config| (ObjectRef::to(config.as_ref()), &config.metadata));
        let infrastructure =
            seen.infrastructure.object().map(|object| (object.reference(), &object.metadata));
        for (target, metadata) in [config, infrastructure].into_iter().flatten() {
            let metadata: &ObjectMeta = metadata;
            if let Some(change) = to_parts.change(metadata, &[]) {
                let change = json!({"metadata": change});
                scope.decision.then(Effect::merge_guarded(target, metadata, change));
            }
        }
    }
}

/// Records certificate expiry in annotations of KubeadmConfigs, where the Machine controller reads it.
pub(super) fn record_certificate_expiry(scope: &mut ReconcileScope<'_>) {
    let Some(reached) = scope.look.seen.workload.reached() else { return };
    for seen in &scope.look.seen.machines {
        let expiry = reached.expiries.get(&seen.machine.status.node_ref.name);
        if let (Some(config), Some(expiry)) = (&seen.config, expiry)
            && !config.metadata.annotations.contains_key(annotation::CERTIFICATES_EXPIRY)
        {
            let text = Time::new(*expiry).to_string();
            let change = json!({"metadata": {"annotations": {annotation::CERTIFICATES_EXPIRY: text}}});
            let target = ObjectRef::to(config.as_ref());
            scope.decision.then(Effect::merge_guarded(target, &config.metadata, change));
        }
    }
}
