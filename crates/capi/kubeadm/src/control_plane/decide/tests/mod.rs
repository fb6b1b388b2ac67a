//! Decisions applied to an in-memory cluster until nothing is left to do.

mod coredns;
mod creation;
mod deletion;
mod health;
mod remediation;
mod rollout;
mod secrets;
mod test_cluster;

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

fn waits(test: &TestCluster) -> Vec<String> {
    test.decided().waits.into_iter().map(|wait| wait.reason).collect()
}
