//! Static pods of the control plane, as far as their health shows in them.

use capstan_object::{ObjectMeta, object};
use serde::{Deserialize, Serialize};

object!(StaticPod, "" / "v1", "Pod", "pods", Namespaced);

/// A static pod, as far as its health shows in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StaticPod {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What the kubelet reports.
    pub status: PodStatus,
}

/// What is reported about a pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Stage of life.
    pub phase: String,
    /// Conditions.
    pub conditions: Vec<PodCondition>,
    /// Containers.
    pub container_statuses: Vec<ContainerStatus>,
}

/// A condition of a pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    /// Aspect.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

/// How a container fares.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Now.
    pub state: ContainerState,
    /// Before its last start.
    pub last_state: ContainerState,
}

/// What a container does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It waits to be started.
    pub waiting: Option<ContainerEvent>,
    /// It came to its end.
    pub terminated: Option<ContainerEvent>,
}

/// Why a container waits or ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerEvent {
    /// One word.
    pub reason: String,
    /// How it ended.
    pub exit_code: i32,
}

impl PodStatus {
    /// A condition holds.
    pub fn is(&self, kind: &str) -> bool {
        self.conditions.iter().any(|condition| condition.kind == kind && condition.status == "True")
    }
}
