//! Decisions applied to an in-memory cluster until nothing is left to do.

mod coredns;
mod creation;
mod deletion;
mod health;
mod in_place;
mod remediation;
mod rollout;
mod secrets;
mod test_cluster;
mod waiting;

use capstan_capi_types::core::Machine;
use capstan_object::{Conditions, Time};
use jiff::SignedDuration;
use serde_json::json;

use self::test_cluster::{TestCluster, moment, summaries};
use super::*;
use crate::certificates::server_of;
use crate::control_plane::ControlPlaneController;
use crate::control_plane::observed::{EtcdMember, EtcdState};
use crate::testing::object;
use capstan_object::OwnerReference;

const IN_PROGRESS: &str = "controlplane.cluster.x-k8s.io/remediation-in-progress";
const FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";
const NOTHING: [&str; 0] = [];

/// Reasons and messages of the warnings that are recorded.
fn warnings(test: &TestCluster) -> Vec<(String, String)> {
    let notes = test.decided().notes.into_iter();
    let warnings = notes.filter(|note| note.kind == capstan_controller::NoteKind::Warning);
    warnings.map(|note| (note.reason, note.message)).collect()
}

/// Reasons of the events that the planned effects would leave if they failed.
fn failures(test: &TestCluster) -> Vec<String> {
    test.decided().effects.into_iter().filter_map(|planned| Some(planned.failure?.reason)).collect()
}

fn waits(test: &TestCluster) -> Vec<String> {
    test.decided().waits.into_iter().map(|wait| wait.reason).collect()
}
