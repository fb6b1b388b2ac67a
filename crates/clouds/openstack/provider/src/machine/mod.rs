//! `OpenStackMachine`: the infrastructure of a Machine.
//!
//! Owns: OpenStackMachines, their finalizer, provider id and status; the OpenStackServer of their name. Reads: the Machine
//! that owns it, its Cluster and OpenStackCluster. It calls no cloud: the OpenStackServer does, and the OpenStackCluster
//! makes control plane machines members of its load balancer.

mod decide;
mod spec;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, Machine, condition as capi, label};
use capstan_controller::{Change, Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackMachine};
use capstan_provider_kit::{cluster_of_machine, infrastructure_of_cluster, watch_machine};

use crate::{condition, server_group};

/// The controller of OpenStackMachines.
pub struct OpenStackMachines;

/// Observed state besides the OpenStackMachine.
#[derive(Debug, Default)]
pub struct Seen {
    pub machine: Option<Arc<Machine>>,
    pub cluster: Option<Arc<Cluster>>,
    pub infrastructure: Option<Arc<OpenStackCluster>>,
    /// The OpenStackServer of its name.
    pub server: Option<Arc<OpenStackServer>>,
}

impl Controller for OpenStackMachines {
    const NAME: &'static str = "openstackmachine";
    type Kind = OpenStackMachine;
    type Seen = Seen;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<OpenStackMachine>) {
        watch_machine(watches);
        watches.owned::<OpenStackServer>();
        // What servers are made of is in the status of the OpenStackCluster.
        watches.related::<OpenStackCluster>(|change: &Change<OpenStackCluster>, caches| {
            let relevant = |it: &Arc<OpenStackCluster>| {
                let status = &it.status;
                let groups = it.metadata.annotations.get(server_group::GROUPS).cloned();
                let network = (status.network.clone(), status.worker_security_group.clone());
                (status.initialization.clone(), network, groups)
            };
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            let Some(meta) = change.latest().map(|it| &it.metadata) else { return Vec::new() };
            let Some(cluster) = meta.labels.get(label::CLUSTER_NAME) else { return Vec::new() };
            let machines = caches
                .of::<OpenStackMachine>()
                .and_then(|machines| machines.labelled(&meta.namespace, label::CLUSTER_NAME, cluster));
            machines.unwrap_or_default().iter().map(|machine| machine.key()).collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[capi::READY, capi::PAUSED, condition::INSTANCE_READY]
    }

    fn paused(&self, object: &OpenStackMachine, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = cluster_of_machine(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, OpenStackMachine::KIND.kind))
    }

    async fn observe(&self, object: &Arc<OpenStackMachine>, view: &View) -> Result<Seen, ObserveError> {
        let meta = &object.metadata;
        let cluster = cluster_of_machine(meta, view)?;
        let key = cluster.as_deref().and_then(infrastructure_of_cluster::<OpenStackCluster>);
        Ok(Seen {
            machine: owners::of::<Machine>(meta, view)?,
            infrastructure: match key {
                Some(key) => view.get(&key)?,
                None => None,
            },
            cluster,
            server: view.get(&Key::new(meta.namespace.as_str(), meta.name.as_str()))?,
        })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}
