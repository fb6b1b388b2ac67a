//! What must be there before a machine is ordered.

use capstan_capi_types::core::{Cluster, Machine, label, reason};
use capstan_cloudstack_types::v1beta3::{CloudStackAffinityGroup, CloudStackMachine};
use jiff::Timestamp;

use super::failures::is_pausing;
use super::{Seen, placement};
use crate::failure_domain::has_endpoint;

/// Something that is waited for.
#[derive(Debug)]
pub(super) struct Missing {
    /// One word for conditions.
    pub reason: &'static str,
    /// Description of the obstacle.
    pub what: String,
    /// The affinity group, if it has to be made first.
    pub group: Option<Box<CloudStackAffinityGroup>>,
}

impl Missing {
    fn new(reason: &'static str, what: impl Into<String>) -> Self {
        Self { reason, what: what.into(), group: None }
    }
}

/// The failure domain of a machine, by name.
pub(super) fn place<'a>(
    object: &'a CloudStackMachine,
    seen: &'a Seen,
    machine: &'a Machine,
    cluster: &Cluster,
) -> Result<&'a str, Missing> {
    if cluster.status.initialization.infrastructure_provisioned != Some(true) {
        let why = reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY;
        return Err(Missing::new(why, "the infrastructure of the cluster"));
    }
    let Some(infrastructure) = &seen.infrastructure else {
        return Err(Missing::new("WaitingForCloudStackCluster", "the CloudStackCluster"));
    };
    let Some(place) = placement::failure_domain(object, machine, infrastructure, &seen.placed) else {
        return Err(Missing::new("NoFailureDomain", "a failure domain in the CloudStackCluster"));
    };
    // A failure domain whose network has the endpoint is not removed: control planes live nowhere else.
    let kept =
        seen.domain.as_ref().filter(|domain| domain.spec.name == place && !domain.metadata.is_deleting());
    let kept = kept.is_some() && seen.network.as_ref().is_some_and(|it| has_endpoint(it, infrastructure));
    if !kept && !infrastructure.spec.failure_domains.iter().any(|domain| domain.name == place) {
        let what = format!("failure domain {place}, which the CloudStackCluster does not have");
        return Err(Missing::new("NoFailureDomain", what));
    }
    Ok(place)
}

/// What a machine that is placed still lacks.
pub(super) fn missing(
    object: &CloudStackMachine,
    seen: &Seen,
    machine: &Machine,
    cluster: &Cluster,
    place: &str,
) -> Option<Missing> {
    let Some(domain) = seen.domain.as_ref().filter(|domain| domain.status.ready) else {
        return Some(Missing::new("WaitingForFailureDomain", format!("failure domain {place}")));
    };
    let named = machine.spec.bootstrap.data_secret_name.as_ref().is_some_and(|name| !name.is_empty());
    if !named {
        let worker = !machine.metadata.labels.contains_key(label::CONTROL_PLANE);
        if worker && cluster.status.initialization.control_plane_initialized != Some(true) {
            let why = reason::WAITING_FOR_CONTROL_PLANE_INITIALIZED;
            return Some(Missing::new(why, "the first machine of the control plane"));
        }
        return Some(Missing::new(reason::WAITING_FOR_BOOTSTRAP_DATA, "the boot data of the machine"));
    }
    let wanted = placement::group(object, machine, cluster, domain)?;
    let waiting = |group| Missing { group, ..Missing::new("WaitingForAffinityGroup", "the affinity group") };
    match &seen.group {
        None => Some(waiting(Some(Box::new(wanted)))),
        // Its id may be written a moment later than that it is ready.
        Some(group) if !group.status.ready || group.spec.id.is_empty() => Some(waiting(None)),
        Some(_) => None,
    }
}

/// A machine is to be ordered now: what the order is chosen from is worth asking for.
pub(super) fn may_order(object: &CloudStackMachine, seen: &Seen, now: Timestamp) -> bool {
    let (Some(machine), Some(cluster)) = (&seen.machine, &seen.cluster) else { return false };
    let pausing = is_pausing(&object.metadata, now);
    let placed = || {
        let place = place(object, seen, machine, cluster).ok()?;
        missing(object, seen, machine, cluster, place).is_none().then_some(())
    };
    !object.metadata.is_deleting() && !pausing && placed().is_some()
}
