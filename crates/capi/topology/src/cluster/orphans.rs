//! Templates that were made for a cluster and that nothing uses any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_capi_core::contract::{External, contract_version, kind_name};
use capstan_capi_types::core::{ClusterClass, ContractVersionedObjectReference, MachineSet, label};
use capstan_controller::{KindName, ObserveError, View};
use capstan_object::{Key, Object};

use super::ClusterTopologies;
use super::current::object;
use crate::current::Current;
use crate::desired::{Desired, machines_reference};

/// Group and kind of templates.
pub(super) type TemplateKind = (String, String);

/// Templates of the cluster that neither it nor a MachineSet uses.
pub(super) async fn orphans(
    controller: &ClusterTopologies,
    view: &View,
    class: &ClusterClass,
    current: &Current,
    desired: &Desired,
) -> Result<Vec<External>, ObserveError> {
    let cluster = &current.cluster.metadata;
    let namespace = cluster.namespace.as_str();
    let sets = view.labelled::<MachineSet>(namespace, label::CLUSTER_NAME, &cluster.name)?;
    let references = references(current, &sets);
    let used = used(current, desired, &references);
    let mut kinds: BTreeSet<KindName> = copies(desired).map(|intent| intent.kind.clone()).collect();
    for (group, kind) in controller.template_kinds(&current.cluster.key(), declared(class), &references) {
        if kinds.iter().any(|known| (&*known.group, &*known.kind) == (&*group, &*kind)) {
            continue;
        }
        // A kind that is not installed has no objects.
        kinds.extend(contract_version(view, kind_name(&group, "", &kind))?);
    }
    let mut orphans = Vec::new();
    for kind in kinds {
        let templates = view.external_labelled(&kind, namespace, label::CLUSTER_NAME, &cluster.name).await?;
        for template in templates {
            let meta = template.metadata();
            let is_used = used.contains(&(kind.kind.to_string(), meta.name.clone()));
            let owned = meta.labels.contains_key(label::TOPOLOGY_OWNED)
                && meta.owner_references.iter().any(|owner| owner.uid == cluster.uid);
            if is_used || !owned || meta.is_deleting() {
                continue;
            }
            let key = Key::new(namespace, meta.name.as_str());
            let contract = desired.control_plane_contract;
            orphans.extend(object(view, &kind, contract, &key.namespace, &key.name).await?);
        }
    }
    Ok(orphans)
}

impl ClusterTopologies {
    /// The kinds that templates of a cluster may have: those of its class, and those that its workers had before the
    /// class changed. When the last reference to a kind goes, its templates are still there.
    fn template_kinds(
        &self,
        cluster: &Key,
        declared: BTreeSet<TemplateKind>,
        references: &[&ContractVersionedObjectReference],
    ) -> BTreeSet<TemplateKind> {
        let referenced = references.iter().filter(|reference| !reference.kind.is_empty());
        let referenced = referenced.map(|reference| (reference.api_group.clone(), reference.kind.clone()));
        let undeclared: Vec<TemplateKind> = referenced.filter(|kind| !declared.contains(kind)).collect();
        let mut former = self.former_kinds.lock();
        if !undeclared.is_empty() {
            former.entry(cluster.clone()).or_default().extend(undeclared);
        }
        let former = former.get(cluster).into_iter().flatten().cloned();
        declared.into_iter().chain(former).collect()
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::class;

    fn kind(group: &str, kind: &str) -> TemplateKind {
        (group.to_owned(), kind.to_owned())
    }

    #[test]
    fn kinds_of_former_references_are_kept_until_the_cluster_is_gone() {
        let controller = ClusterTopologies::default();
        let cluster = Key::new("ns", "one");
        let machines = kind("infra", "MachineTemplate");
        let of_class = || declared(&class(json!({})));
        assert_eq!(of_class(), BTreeSet::from([kind("boot", "BootTemplate"), machines.clone()]));

        let reference = |group: &str, kind: &str| ContractVersionedObjectReference {
            api_group: group.to_owned(),
            kind: kind.to_owned(),
            name: "x".to_owned(),
        };
        let (old, known, none) =
            (reference("boot", "OldTemplate"), reference("infra", "MachineTemplate"), reference("", ""));
        let expected =
            BTreeSet::from([kind("boot", "BootTemplate"), kind("boot", "OldTemplate"), machines.clone()]);
        for references in [vec![&old, &known, &none], vec![&known], vec![]] {
            assert_eq!(controller.template_kinds(&cluster, of_class(), &references), expected);
        }
        let other = Key::new("ns", "two");
        assert_eq!(controller.template_kinds(&other, of_class(), &[&known]), of_class());

        capstan_controller::Controller::gone(&controller, &cluster);
        assert_eq!(controller.template_kinds(&cluster, of_class(), &[]), of_class());
    }
}
