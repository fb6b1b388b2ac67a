//! Templates that were made for a cluster and that nothing uses any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_capi_core::contract::{External, contract_version, kind_name};
use capstan_capi_types::core::{ClusterClass, ContractVersionedObjectReference, MachineSet, label};
use capstan_controller::{KindName, ObserveError, View};
use capstan_object::Key;

use super::current::object;
use super::former_kinds::{self, TemplateKind};
use crate::current::Current;
use crate::desired::{Desired, machines_reference};

/// Templates of the cluster that neither it nor a MachineSet uses, and the kinds of former templates to be remembered.
pub(super) async fn orphans(
    view: &View,
    class: &ClusterClass,
    current: &Current,
    desired: &Desired,
) -> Result<(Vec<External>, BTreeSet<TemplateKind>), ObserveError> {
    let cluster = &current.cluster.metadata;
    let namespace = cluster.namespace.as_str();
    let sets = view.labelled::<MachineSet>(namespace, label::CLUSTER_NAME, &cluster.name)?;
    let references = references(current, &sets);
    let used = used(current, desired, &references);
    let mut kinds: BTreeSet<KindName> = copies(desired).map(|intent| intent.kind.clone()).collect();
    let declared = declared(class);
    let (referred, mut former) = former_kinds::of(&cluster.annotations, &declared, &references);
    for (group, kind) in declared.iter().chain(&former) {
        if kinds.iter().any(|known| (&*known.group, &*known.kind) == (&**group, &**kind)) {
            continue;
        }
        // A kind that is not installed has no objects.
        kinds.extend(contract_version(view, kind_name(group, "", kind))?);
    }
    let mut orphans = Vec::new();
    let mut there = referred;
    for kind in kinds {
        let templates = view.external_labelled(&kind, namespace, label::CLUSTER_NAME, &cluster.name).await?;
        for template in templates {
            let meta = template.metadata();
            let is_used = used.contains(&(kind.kind.to_string(), meta.name.clone()));
            let owned = meta.labels.contains_key(label::TOPOLOGY_OWNED)
                && meta.owner_references.iter().any(|owner| owner.uid == cluster.uid);
            if owned {
                there.insert((kind.group.to_string(), kind.kind.to_string()));
            }
            if is_used || !owned || meta.is_deleting() {
                continue;
            }
            let key = Key::new(namespace, meta.name.as_str());
            let contract = desired.control_plane_contract;
            orphans.extend(object(view, &kind, contract, &key.namespace, &key.name).await?);
        }
    }
    former.retain(|kind| there.contains(kind));
    Ok((orphans, former))
}

/// The kinds of which a cluster of the class gets templates of its own.
fn declared(class: &ClusterClass) -> BTreeSet<TemplateKind> {
    let spec = &class.spec;
    let of_workers = spec
        .workers
        .machine_deployments
        .iter()
        .flat_map(|class| [&class.bootstrap.template_ref, &class.infrastructure.template_ref]);
    let all = std::iter::once(&spec.control_plane.machine_infrastructure.template_ref).chain(of_workers);
    let all = all.filter(|template| template.is_defined());
    all.map(|template| (template.group().to_owned(), template.kind.clone())).collect()
}

/// The templates that the cluster should have.
fn copies(desired: &Desired) -> impl Iterator<Item = &crate::desired::Intent> {
    let of_workers = desired.deployments.values().flat_map(|it| [&it.bootstrap, &it.infrastructure]);
    desired.control_plane_machines.iter().chain(of_workers)
}

/// What MachineDeployments and MachineSets refer to.
fn references<'a>(
    current: &'a Current,
    sets: &'a [Arc<MachineSet>],
) -> Vec<&'a ContractVersionedObjectReference> {
    let of_deployments = current.deployments.values().map(|running| &running.object.spec.template.spec);
    let of_sets = sets.iter().map(|set| &set.spec.template.spec);
    of_deployments
        .chain(of_sets)
        .flat_map(|machine| [&machine.bootstrap.config_ref, &machine.infrastructure_ref])
        .collect()
}

/// Kind and name of the templates that are wanted or referred to.
fn used(
    current: &Current,
    desired: &Desired,
    references: &[&ContractVersionedObjectReference],
) -> BTreeSet<(String, String)> {
    let mut used: BTreeSet<(String, String)> =
        copies(desired).map(|intent| (intent.kind.kind.to_string(), intent.name().to_owned())).collect();
    if let Some(running) = &current.control_plane
        && let (Some(name), Some(machines)) = (machines_reference(running), &desired.control_plane_machines)
    {
        used.insert((machines.kind.kind.to_string(), name));
    }
    used.extend(references.iter().map(|reference| (reference.kind.clone(), reference.name.clone())));
    used
}
