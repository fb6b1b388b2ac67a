//! The connection to the workload cluster.

use std::time::Duration;

use capstan_capi_types::core::Cluster;
use capstan_capi_types::core::cluster::{condition as own, reason as own_reason};
use capstan_controller::{Decision, Health, Look, UNREACHABLE};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Conditions, Time};
use jiff::SignedDuration;

use super::ClusterController;
use crate::conditions::{self, ConditionState};

/// Failed probes before a cluster that never responded counts as unreachable.
const FIRST_PROBES: u32 = 5;

/// Probe intervals of reachable and of unreachable clusters.
const PROBE_AGAIN: Duration = Duration::from_secs(60);
const PROBE_SOON: Duration = Duration::from_secs(10);

/// Sets the condition about the connection to the cluster, and requeues it for the next probe.
pub(super) fn probe(
    look: &Look<ClusterController>,
    decision: &mut Decision<ClusterController>,
    grace: SignedDuration,
) {
    // A cluster that is being deleted is not probed; the last state stays.
    if look.object.metadata.is_deleting() {
        return;
    }
    let health = &look.seen.health;
    let kind = own::REMOTE_CONNECTION_PROBE;
    let conditions = &mut decision.object.status.conditions;
    let state = match health.last_success {
        None if health.failures < FIRST_PROBES => {
            // The state from before this process started stays until there is a probe result.
            conditions.condition(kind).is_none().then(|| {
                ConditionState::new(False, own_reason::PROBE_FAILED, "Remote connection not established yet")
            })
        }
        None => Some(ConditionState::new(False, own_reason::PROBE_FAILED, "Remote connection probe failed")),
        Some(last) if look.now.duration_since(last) > grace => {
            let message =
                format!("Remote connection probe failed, probe last succeeded at {}", Time::new(last));
            Some(ConditionState::new(False, own_reason::PROBE_FAILED, message))
        }
        Some(_) => Some(ConditionState::new(True, own_reason::PROBE_SUCCEEDED, "")),
    };
    if let Some(state) = state {
        let failed = state.status != True;
        conditions::set_state(look, conditions, kind, state, None);
        report_unreachable(&mut decision.object, health, failed);
    }
    // Reconciles probe, so requeue regularly, and sooner while the cluster is unreachable.
    if decision.object.spec.control_plane_endpoint.is_valid() {
        let silent = health.last_success.is_none() || health.failures > 0;
        decision.again_in(if silent { PROBE_SOON } else { PROBE_AGAIN });
    }
}

/// Keeps the error of the last probe of a cluster that answered before; the condition has upstream's text. Other figures
/// alone, such as ports and times, are not written.
fn report_unreachable(cluster: &mut Cluster, health: &Health, failed: bool) {
    let words = |text: &str| -> String { text.chars().filter(|c| !c.is_ascii_digit()).collect() };
    let annotations = &mut cluster.metadata.annotations;
    let was_up = cluster.status.initialization.control_plane_initialized == Some(true);
    match &health.error {
        Some(error) if failed && was_up => {
            if annotations.get(UNREACHABLE).is_none_or(|known| words(known) != words(error)) {
                annotations.insert(UNREACHABLE.to_owned(), error.clone());
            }
        }
        _ if failed && was_up => {}
        _ => drop(annotations.remove(UNREACHABLE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_cluster_does_not_answer_any_more_is_kept_beside_upstreams_condition() {
        let refused = "connect to 10.0.0.1:6443: refused";
        let mut cluster = Cluster::default();
        for (what, up, failed, error, expected) in [
            ("it was never up", false, true, Some(refused), None),
            ("the first error", true, true, Some(refused), Some(refused)),
            ("another port alone", true, true, Some("connect to 10.0.0.1:6444: refused"), Some(refused)),
            ("not known after a restart", true, true, None, Some(refused)),
            ("another error", true, true, Some("no answer within 5s"), Some("no answer within 5s")),
            ("within the grace period", true, false, Some(refused), None),
        ] {
            cluster.status.initialization.control_plane_initialized = Some(up);
            let health = Health { error: error.map(str::to_owned), ..Health::default() };
            report_unreachable(&mut cluster, &health, failed);
            assert_eq!(cluster.metadata.annotations.get(UNREACHABLE).map(String::as_str), expected, "{what}");
        }
    }
}
