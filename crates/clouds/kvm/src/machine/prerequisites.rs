//! What must exist before a machine is ordered.

use capstan_capi_types::core::{Cluster, Machine};
use capstan_provider_kit::decisions;

use super::Seen;

/// The first thing that is missing: a reason and words.
pub(super) fn waits(
    seen: &Seen,
    machine: &Machine,
    cluster: &Cluster,
) -> Option<(&'static str, &'static str)> {
    let network = || seen.network.is_none().then_some(("WaitingForNetwork", "the KVMCluster of the cluster"));
    decisions::waits_for(machine, cluster).or_else(network)
}
