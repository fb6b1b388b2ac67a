//! What keeps a part from being ready, read from its conditions.

use capstan_object::Conditions as _;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::part::PROBE;
use crate::topology::Unreconciled;
use crate::{Part, State};

/// What a Machine waits for until the API server of its cluster answers.
pub(crate) const UNINITIALIZED: &str = "Waiting for Cluster control plane to be initialized";

/// How long after a node has joined its CNI may be missing: a ClusterResourceSet or an add-on installs it then.
const CNI_GRACE: SignedDuration = SignedDuration::from_mins(1);

/// The kind of a problem. Reasons and messages are those of Cluster API's controllers, ours and upstream's, and of the
/// providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Problem {
    /// The part, or the cluster, is paused.
    Paused,
    /// The API server of the workload cluster answered before and does not any more.
    Unreachable,
    Failed,
    /// The class or `spec.topology` of a cluster cannot be used.
    TopologyFailed,
    /// A lifecycle hook holds the cluster back.
    HookBlocks,
    /// An object that the part refers to does not exist.
    DoesNotExist,
    DeletedInCloud,
    StoppedInCloud,
    /// The node is NotReady because no CNI is installed.
    NoCni,
    /// The machine runs, and its node has not joined the cluster.
    NotJoined,
    /// The machine is being created or boots.
    Starting,
    /// The cluster gets another version.
    Upgrading,
    Deleting,
    /// Its parent is being deleted, and it is not yet.
    StillExists,
    Waiting,
}

impl Problem {
    /// `in_deletion`: a parent is being deleted.
    pub(crate) fn of(part: &Part, in_deletion: bool, now: Timestamp) -> Self {
        let topology = part.unreconciled().map(|(reason, _)| reason);
        if topology == Some(Unreconciled::Hook) && part.state() != State::Paused {
            return Self::HookBlocks;
        }
        if part.deleted.is_some() {
            return Self::Deleting;
        }
        // Nothing can be deleted in a cloud that does not answer.
        if in_deletion && part.silent_cloud().is_none() {
            return Self::StillExists;
        }
        if part.state() == State::Paused {
            return Self::Paused;
        }
        if part.silent_cloud().is_some() {
            return Self::Failed;
        }
        if matches!(topology, Some(Unreconciled::Failed | Unreconciled::ClassNotReconciled)) {
            return Self::TopologyFailed;
        }
        let healthy = matches!(part.state(), State::Healthy | State::NoConditions);
        // Kinds outside the API groups of Cluster API are not read, so the controller has to agree.
        let reported = || part.conditions.iter().any(|it| it.message.contains("does not exist"));
        if !part.missing.is_empty() && !healthy && reported() {
            return Self::DoesNotExist;
        }
        if part.unreachable().is_some() {
            return Self::Unreachable;
        }
        let condition = part.explaining_condition().filter(|_| !healthy);
        let reason = condition.map(|it| it.reason.as_str()).unwrap_or_default();
        let message = condition.map(|it| it.message.as_str()).unwrap_or_default();
        match reason {
            "Gone" | "InstanceDeleted" => return Self::DeletedInCloud,
            "Stopped" | "Stopping" | "PoweredOff" => return Self::StoppedInCloud,
            // The state of an OpenStack server.
            "InstanceNotReady" if message.ends_with(" SHUTOFF") => return Self::StoppedInCloud,
            _ => {}
        }
        if part.state() == State::Failing {
            return Self::Failed;
        }
        if condition.and_then(Unreconciled::of) == Some(Unreconciled::Upgrading) {
            return Self::Upgrading;
        }
        if message.contains("cni plugin not initialized") || message.contains("NetworkPluginNotReady") {
            let since = condition.map(|it| it.last_transition_time.timestamp());
            let recent = since.is_some_and(|since| now.duration_since(since) < CNI_GRACE);
            return if recent { Self::Waiting } else { Self::NoCni };
        }
        if message.contains("Waiting for a Node with spec.providerID") || part.runs_uninitialized(message) {
            return Self::NotJoined;
        }
        match reason {
            "Booting" | "Deploying" | "Ordering" => Self::Starting,
            _ => Self::Waiting,
        }
    }

    /// Whether it stays until somebody acts. A node that has not joined may only be slow, and still is worth a look.
    pub(crate) fn needs_action(self) -> bool {
        !matches!(
            self,
            Self::NotJoined
                | Self::Starting
                | Self::Upgrading
                | Self::Deleting
                | Self::StillExists
                | Self::Waiting
        )
    }

    /// Position in the list of blockers: what hides other problems comes first.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Paused => 0,
            Self::Unreachable => 1,
            Self::DoesNotExist => 2,
            Self::Failed | Self::TopologyFailed | Self::HookBlocks => 3,
            Self::DeletedInCloud | Self::StoppedInCloud => 4,
            Self::NoCni | Self::NotJoined => 5,
            Self::Starting | Self::Upgrading | Self::Deleting | Self::StillExists | Self::Waiting => 6,
        }
    }
}

impl Part {
    /// Whether it is a control plane machine that runs, and the control plane is not initialized by it.
    fn runs_uninitialized(&self, message: &str) -> bool {
        let done = |kind: &str| self.conditions.is_condition_true(kind);
        message.contains(UNINITIALIZED) && done("InfrastructureReady") && done("BootstrapConfigReady")
    }

    /// The condition of a part whose cloud does not answer: it is as it was last seen, and may be ready.
    pub(crate) fn silent_cloud(&self) -> Option<&capstan_object::Condition> {
        self.conditions.condition("CloudReachable").filter(|reachable| !reachable.is_true())
    }

    /// The failed connection probe of a cluster whose control plane was initialized.
    pub(crate) fn unreachable(&self) -> Option<&capstan_object::Condition> {
        let was_up = self.kind == "Cluster" && self.conditions.is_condition_true("ControlPlaneInitialized");
        let probe = self.conditions.condition(PROBE);
        probe.filter(|probe| was_up && !probe.is_true())
    }
}
