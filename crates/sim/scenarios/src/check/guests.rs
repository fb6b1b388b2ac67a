//! The site as checkers see it: its machines as cloud resources, and the clusters they form.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::label;
use capstan_guest::vm::{Phase, Vm};
use capstan_guest::{GuestCluster, Site};
use capstan_harness::{Cloud, Mutation, Resource};
use capstan_sim_provider::MACHINE_TAG;

/// Machines by the uid of the SimMachine in their id.
pub struct ByMachine {
    site: Site,
    known: BTreeMap<String, (Resource, Phase)>,
}

impl ByMachine {
    pub fn new(site: &Site) -> Self {
        Self { site: site.clone(), known: BTreeMap::new() }
    }
}

/// Our ids end with the uid of the object that they were made for.
fn owner(vm: &Vm) -> Option<String> {
    let id = vm.tags.get(MACHINE_TAG)?;
    id.rsplit('/').next().map(str::to_owned)
}

fn resource(vm: &Vm) -> Resource {
    Resource { id: vm.id.clone(), owner: owner(vm) }
}

impl Cloud for ByMachine {
    fn resources(&self) -> Vec<Resource> {
        self.site.vms().iter().map(resource).collect()
    }

    /// A foreign machine that is gone or off was changed by us: there is nothing else here that could. It boots by
    /// itself.
    fn mutations(&mut self) -> Vec<Mutation> {
        let now: BTreeMap<String, (Resource, Phase)> =
            self.site.vms().into_iter().map(|vm| (vm.id.clone(), (resource(&vm), vm.phase))).collect();
        let before = std::mem::replace(&mut self.known, now);
        let changed = before.into_iter().filter_map(|(id, (resource, phase))| {
            let verb = match self.known.get(&id) {
                None => "destroy",
                Some((_, Phase::Off)) if phase != Phase::Off => "stop",
                Some(_) => return None,
            };
            Some(Mutation { verb: verb.to_owned(), resource })
        });
        changed.collect()
    }
}

/// Machines by host name, which is the name of the Machine and must be unique.
pub struct ByHostName(Site);

impl ByHostName {
    pub fn new(site: &Site) -> Self {
        Self(site.clone())
    }
}

impl Cloud for ByHostName {
    fn resources(&self) -> Vec<Resource> {
        let vms = self.0.vms().into_iter().filter(|vm| vm.tags.contains_key(MACHINE_TAG));
        vms.map(|vm| Resource { id: vm.id, owner: Some(vm.name) }).collect()
    }

    fn mutations(&mut self) -> Vec<Mutation> {
        Vec::new()
    }
}

/// Our machines and the clusters they are nodes of, by the name of the Cluster they were made for.
pub(super) fn clusters(site: &Site) -> BTreeMap<String, Vec<(Vm, Arc<GuestCluster>)>> {
    let mut clusters: BTreeMap<String, Vec<(Vm, Arc<GuestCluster>)>> = BTreeMap::new();
    for vm in site.vms() {
        if let (Some(name), Some(cluster)) = (vm.tags.get(label::CLUSTER_NAME), site.cluster_of(&vm.id)) {
            clusters.entry(name.clone()).or_default().push((vm, cluster));
        }
    }
    clusters
}

/// One cluster per name.
pub(super) fn formed(site: &Site) -> BTreeMap<String, Arc<GuestCluster>> {
    let first = |(name, members): (String, Vec<(Vm, Arc<GuestCluster>)>)| {
        members.into_iter().next().map(|(_, cluster)| (name, cluster))
    };
    clusters(site).into_iter().filter_map(first).collect()
}
