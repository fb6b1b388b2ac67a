//! The CNI of a cluster: installed as soon as its API answers; a new version only after its images have run on every
//! node; a changed setting at once.
//!
//! What is installed is recorded on the add-on's first ConfigMap, the last that is written: the digest of what the
//! manifests were made from, and a mark as long as the check of a version may have left objects in the workload cluster.

mod call;
mod observe;
mod phase;
mod state;
mod step;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_controller::Call;
use serde::{Deserialize, Serialize};

use crate::cni::Manifests;

pub(super) use call::run;
pub(super) use observe::observe;
pub(super) use phase::cni;
pub(super) use state::{Pending, SKIPPED, configured, is_left};

/// Name and namespace of Cilium's agents, its operator, and both parts of the check of a version.
const NAMESPACE: &str = "kube-system";
const AGENT: &str = "cilium";
const OPERATOR: &str = "cilium-operator";
const PREFLIGHT: &str = "cilium-pre-flight-check";

/// What is observed of a CNI that is to be installed or changed. Nothing is read of one that is as it is wanted.
#[derive(Debug, Default)]
pub struct CniSeen {
    /// The manifests, once the control plane is available.
    pub manifests: Option<Result<Arc<Manifests>, String>>,
    /// What runs in the workload cluster, if a version may have to be checked.
    pub running: Option<Result<Running, String>>,
}

/// Workloads of Cilium in the workload cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Running {
    pub agent: Option<Rollout>,
    pub operator: Option<Rollout>,
    /// The check of a version: images on every node, and what else the chart checks.
    pub preflight: Option<Rollout>,
    pub preflight_check: Option<Rollout>,
}

/// A DaemonSet or a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Of the first container.
    pub image: String,
    /// Its status is about its present generation.
    pub observed: bool,
    pub desired: i64,
    pub ready: i64,
}

impl Rollout {
    fn is_ready(&self) -> bool {
        self.observed && self.ready == self.desired
    }
}

impl Running {
    /// Whether another version than that of the manifests runs. What does not run is no version.
    pub fn is_other_version(&self, manifests: &Manifests) -> bool {
        let differs = |running: &Option<Rollout>, wanted: Option<&str>| {
            running.as_ref().zip(wanted).is_some_and(|(running, wanted)| running.image != wanted)
        };
        let installed = self.agent.is_some() && self.operator.is_some();
        installed
            && (differs(&self.agent, manifests.image("DaemonSet", AGENT))
                || differs(&self.operator, manifests.image("Deployment", OPERATOR)))
    }

    /// The minor version that runs, such as `1.17`.
    pub fn minor(&self) -> Option<String> {
        let image = &self.agent.as_ref()?.image;
        let name = image.split('@').next()?.rsplit('/').next()?;
        let version = name.split_once(':')?.1;
        let mut numbers = version.strip_prefix('v').unwrap_or(version).split(['.', '-', '+']);
        let (major, minor): (u32, u32) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some(format!("{major}.{minor}"))
    }
}

/// A call to the workload cluster. Idempotent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CniCall {
    /// Applies what checks a version on every node.
    StartPreflight { digest: String },
    /// Deletes it.
    EndPreflight { digest: String },
}

/// Result of a [`CniCall`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// Errors, one per object.
    pub errors: Vec<String>,
}

impl Call for CniCall {
    fn idempotency_key(&self) -> String {
        self.summary()
    }

    fn journalled(&self) -> bool {
        false
    }

    fn summary(&self) -> String {
        match self {
            Self::StartPreflight { .. } => "apply the preflight check of the CNI".to_owned(),
            Self::EndPreflight { .. } => "delete the preflight check of the CNI".to_owned(),
        }
    }
}
