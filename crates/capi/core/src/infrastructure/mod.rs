//! What providers of infrastructure have in common: the frame of their decisions, what a machine waits for, its
//! boot data, orders in the journal.

mod boot_data;
pub mod console;
mod frame;
pub mod order;

pub use boot_data::{BootData, BootDataError, BootDataRef, boot_data};
pub use frame::{decide_cluster, decide_machine};

use capstan_capi_types::core::{Cluster, Machine, label, reason};

/// What must be there before a machine is made: a reason and words for it.
pub fn waits_for(machine: &Machine, cluster: &Cluster) -> Option<(&'static str, &'static str)> {
    let done = &cluster.status.initialization;
    let named = machine.spec.bootstrap.data_secret_name.as_ref().is_some_and(|name| !name.is_empty());
    if done.infrastructure_provisioned != Some(true) {
        return Some((reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY, "the infrastructure of the cluster"));
    }
    if named {
        return None;
    }
    let worker = !machine.metadata.labels.contains_key(label::CONTROL_PLANE);
    if worker && done.control_plane_initialized != Some(true) {
        return Some((
            reason::WAITING_FOR_CONTROL_PLANE_INITIALIZED,
            "the first machine of the control plane",
        ));
    }
    Some((reason::WAITING_FOR_BOOTSTRAP_DATA, "the boot data of the machine"))
}
