//! What a decision about a KVMCluster depends on.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine, MachineAddressType, label};
use capstan_controller::{ObserveError, View};

use crate::backend::Network;
use crate::types::{KVMCluster, KVMMachine};

/// What was seen beside the KVMCluster.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Cluster that owns it.
    pub cluster: Option<Arc<Cluster>>,
    /// Names of the cluster's machines of this provider.
    pub machines: Vec<String>,
    /// Addresses of those that belong to the control plane and stay.
    pub control_plane: BTreeSet<Ipv4Addr>,
    /// The network on this host.
    pub network: Option<Network>,
}

pub(super) fn observe(object: &KVMCluster, view: &View) -> Result<Seen, ObserveError> {
    let meta = &object.metadata;
    let mut seen = Seen { cluster: owners::of::<Cluster>(meta, view)?, ..Seen::default() };
    // The label outlives the owner: who is deleted without its Cluster still waits for its machines.
    let label = meta.labels.get(label::CLUSTER_NAME);
    let Some(cluster) = seen.cluster.as_ref().map(|cluster| &cluster.metadata.name).or(label) else {
        return Ok(seen);
    };
    for machine in view.labelled::<KVMMachine>(&meta.namespace, label::CLUSTER_NAME, cluster)? {
        seen.machines.push(machine.metadata.name.clone());
        if !machine.metadata.is_deleting() && is_control_plane(&machine, view)? {
            seen.control_plane.extend(address(&machine));
        }
    }
    Ok(seen)
}

/// The contract puts the label on Machines; most who clone put it on the infrastructure too.
fn is_control_plane(machine: &KVMMachine, view: &View) -> Result<bool, ObserveError> {
    if machine.metadata.labels.contains_key(label::CONTROL_PLANE) {
        return Ok(true);
    }
    let owner = owners::of::<Machine>(&machine.metadata, view)?;
    Ok(owner.is_some_and(|owner| owner.metadata.labels.contains_key(label::CONTROL_PLANE)))
}

fn address(machine: &KVMMachine) -> Option<Ipv4Addr> {
    let mut addresses = machine.status.addresses.iter();
    let internal = addresses.find(|address| address.kind == Some(MachineAddressType::InternalIP))?;
    internal.address.parse().ok()
}
