//! Creates machines, with their KubeadmConfigs and infrastructure machines.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_core::clone;
use capstan_capi_core::contract::Lookup;
use capstan_capi_core::names::Names;
use capstan_capi_types::core::Machine;
use capstan_controller::{Effect, Note, ObjectRef};
use capstan_object::ObjectMeta;

use crate::control_plane::decide::scope::ReconcileScope;
use crate::control_plane::desired_machine as desired;
use crate::control_plane::observed::ControlPlaneState;

/// Names in use: by a machine, or by an object of one that is still being deleted.
fn names(scope: &ReconcileScope<'_>) -> Names {
    let control_plane = &scope.look.object;
    let cluster = &scope.cluster.metadata.name;
    Names::of(&control_plane.metadata, |suffix| {
        let name = desired::name(control_plane, cluster, suffix);
        scope.look.seen.machines.iter().any(|seen| seen.machine.metadata.name == name)
            || scope.look.seen.made.iter().any(|(_, meta)| meta.name == name && meta.is_deleting())
    })
}

/// Records the names in use, so that they are not reused after their machines are gone.
pub(crate) fn record_names(scope: &mut ReconcileScope<'_>) {
    names(scope).record(&mut scope.decision.object.metadata);
}

/// Creates the infrastructure machine and the KubeadmConfig, then the Machine.
pub(super) fn create(
    scope: &mut ReconcileScope<'_>,
    plane: &ControlPlaneState,
    failure_domain: &str,
    joins: bool,
) {
    let look = scope.look;
    let template = match &look.seen.template {
        Lookup::Object(template) => template,
        Lookup::Unusable(why) => {
            scope.obstacles.push(why.clone());
            return scope.wait("TemplateUnusable", why.clone());
        }
        Lookup::Missing | Lookup::NotReferenced => {
            return scope.wait("TemplateMissing", "the template of infrastructure machines");
        }
    };
    let Some(suffix) = names(scope).upcoming().next() else { return };
    let failure = match joins {
        true => Note::warning(
            "FailedScaleUp",
            "Create",
            format!(
                "Failed to create additional control plane Machine for cluster {}",
                scope.cluster.metadata.key()
            ),
        ),
        false => Note::warning(
            "FailedInitialization",
            "Create",
            format!(
                "Failed to create initial control plane Machine for cluster {} control plane",
                scope.cluster.metadata.key()
            ),
        ),
    };
    let cluster = &scope.cluster.metadata.name;
    let control_plane = &plane.control_plane;
    let name = desired::name(control_plane, cluster, &suffix);
    delete_leftovers(scope, Some(&name));
    let made = |kind: &str| {
        look.seen.made.iter().any(|(made, _)| made.key.name == name && made.kind.kind.as_ref() == kind)
    };
    if !made(&clone::kind_of(template).kind) {
        let part = desired::part(control_plane, cluster, &name);
        scope.decision.then(clone::create(template, &part)).or_noting(failure.clone());
    }
    if !made("KubeadmConfig") {
        let config = desired::config(control_plane, cluster, &name, joins);
        scope.decision.then(Effect::create(&config)).or_noting(failure.clone());
    }
    let machine: Machine = desired::machine(control_plane, cluster, &name, failure_domain, template);
    let note = Note::normal("SuccessfulCreate", "Create", format!("Created Machine {name:?}"));
    scope.decision.then_noting(Effect::create(&machine), note).or_noting(failure);
}

/// Deletes objects of machines that were never created, except for `coming`.
pub(super) fn delete_leftovers(scope: &mut ReconcileScope<'_>, coming: Option<&str>) {
    let seen = &scope.look.seen;
    let used: BTreeSet<&str> = seen
        .machines
        .iter()
        .flat_map(|seen| {
            let spec = &seen.machine.spec;
            [spec.infrastructure_ref.name.as_str(), spec.bootstrap.config_ref.name.as_str()]
        })
        .chain(coming)
        .collect();
    let made: BTreeMap<&ObjectRef, &ObjectMeta> = seen.made.iter().map(|(made, meta)| (made, meta)).collect();
    for (reference, meta) in made {
        // Objects that a Machine owns are deleted with it.
        let ours = meta.is_owned_by(&scope.look.object.metadata.uid)
            && !meta.owner_references.iter().any(|owner| owner.kind == "Machine");
        if ours && !meta.is_deleting() && !used.contains(meta.name.as_str()) {
            scope.decision.then(Effect::delete_seen(reference.clone(), meta));
        }
    }
}
