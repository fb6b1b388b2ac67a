//! When a network that was set up has to be looked at in the cloud again.

use capstan_capi_types::core::{Cluster, condition};
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackIsolatedNetwork};
use capstan_object::ConditionStatus::False;
use capstan_object::{Conditions, ObjectMeta};

use super::Made;
use super::allowed::allowed;

/// What it was set up with, so that a change is noticed without asking the cloud.
const SETTLED_WITH: &str = "capstan.dev/cloudstack-settled-with";

/// Records what the network was set up with.
pub(super) fn record(meta: &mut ObjectMeta, cluster: &CloudStackCluster) {
    meta.annotations.insert(SETTLED_WITH.to_owned(), allowed(cluster).join(","));
}

/// Whether the cloud has to be asked: until everything is there, and whenever something else is wanted.
pub(super) fn must_ask(object: &CloudStackIsolatedNetwork, cluster: &CloudStackCluster) -> bool {
    let settled = object.metadata.annotations.get(SETTLED_WITH);
    object.metadata.is_deleting()
        || !object.status.ready
        || !object.status.conditions.is_condition_true(condition::READY)
        || settled != Some(&allowed(cluster).join(","))
        || Made::of(&object.metadata).tag_failed
}

/// The cluster became unavailable after the network was ready: somebody may have taken away what leads to its API server.
/// Whether that answers proves nothing, as old connections outlive their rule.
pub(super) fn became_unavailable(object: &CloudStackIsolatedNetwork, cluster: &Cluster) -> bool {
    let settled = object.status.conditions.condition(condition::READY).filter(|it| it.is_true());
    let available = cluster.status.conditions.condition(condition::AVAILABLE);
    let (Some(settled), Some(available)) = (settled, available) else { return false };
    available.status == False && available.last_transition_time > settled.last_transition_time
}
