//! Reads what a decision about a MachineDeployment depends on, and names what triggers one.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachineSet, label};
use capstan_controller::{Caches, Change, GATHER, ObserveError, View, Watches};
use capstan_object::Key;

use super::observed::{InPlace, Observed};
use crate::contract::{Definition, look_up};
use crate::members::{CLUSTER, of_cluster};
use crate::paused::concerns_members;
use crate::selector::selects;

/// Name of the index of sets without a controller, by namespace.
const ORPHANS: &str = "orphans";

pub async fn observe(deployment: &MachineDeployment, view: &View) -> Result<Observed, ObserveError> {
    let namespace = &deployment.metadata.namespace;
    let cluster = view.get::<Cluster>(&Key::new(namespace, deployment.spec.cluster_name.as_str()))?;
    let selector = &deployment.spec.selector;
    let mut sets = view.owned_by::<MachineSet>(&deployment.metadata.uid)?;
    sets.retain(|set| set.metadata.controller().is_some_and(|owner| owner.uid == deployment.metadata.uid));
    let mut orphans = view.indexed::<MachineSet>(ORPHANS, namespace)?;
    orphans.retain(|set| selects(selector, &set.metadata.labels));
    sets.extend(orphans);
    sets.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let name = &deployment.metadata.name;
    let mut machines = view.labelled::<Machine>(namespace, label::DEPLOYMENT_NAME, name)?;
    machines.retain(|machine| selects(selector, &machine.metadata.labels));
    let template = &deployment.spec.template.spec;
    Ok(Observed {
        cluster,
        sets,
        machines,
        infrastructure_template: look_up(view, &template.infrastructure_ref, namespace).await?,
        bootstrap_template: look_up(view, &template.bootstrap.config_ref, namespace).await?,
        in_place: InPlace::default(),
    })
}

/// Watches its sets, sets it may adopt, its machines, and its cluster.
pub fn watches(watches: &mut Watches<MachineDeployment>) {
    watches
        .owned_within::<MachineSet>(GATHER)
        .related::<MachineSet>(adopters)
        .related_within::<Machine>(GATHER, |change, _| {
            let name = |machine: &Arc<Machine>| {
                let name = machine.metadata.labels.get(label::DEPLOYMENT_NAME)?;
                Some(Key::new(machine.metadata.namespace.as_str(), name.as_str()))
            };
            change.latest().and_then(name).into_iter().collect()
        })
        .related::<Cluster>(|change, caches| {
            if !concerns_members(change) {
                return Vec::new();
            }
            of_cluster::<MachineDeployment>(caches, &change.key)
        })
        .index::<MachineDeployment>(CLUSTER, |deployment| vec![deployment.spec.cluster_name.clone()])
        .index::<MachineSet>(ORPHANS, |set| match set.metadata.controller() {
            Some(_) => Vec::new(),
            None => vec![set.metadata.namespace.clone()],
        })
        .index_label::<Machine>(label::DEPLOYMENT_NAME)
        .read::<Definition>();
}

fn adopters(change: &Change<MachineSet>, caches: &Caches) -> Vec<Key> {
    match &change.new {
        Some(set) if set.metadata.controller().is_none() => {
            let selects = |deployment: &Arc<MachineDeployment>| {
                selects(&deployment.spec.selector, &set.metadata.labels)
            };
            keys(caches, &change.key.namespace, selects)
        }
        _ => Vec::new(),
    }
}

fn keys(caches: &Caches, namespace: &str, wanted: impl Fn(&Arc<MachineDeployment>) -> bool) -> Vec<Key> {
    let deployments =
        caches.of::<MachineDeployment>().and_then(|cache| cache.list(namespace)).unwrap_or_default();
    deployments
        .iter()
        .filter(|deployment| wanted(deployment))
        .map(|deployment| deployment.metadata.key())
        .collect()
}
