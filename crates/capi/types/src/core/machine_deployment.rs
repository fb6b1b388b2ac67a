//! `MachineDeployment`: rolls MachineSets from one template to the next.

use capstan_object::{Condition, IntOrString, LabelSelector, ObjectMeta, Time, object};

use super::common::{Deprecated, StatusVersion, V1Beta1Condition};
use super::machine_set::{MachineNamingSpec, MachineSetDeletionSpec, MachineTemplateSpec};
use crate::wire::{choice, wire};

object!(
    MachineDeployment,
    "cluster.x-k8s.io" / "v1beta2",
    "MachineDeployment",
    "machinedeployments",
    Namespaced
);

wire! {
    /// A group of machines of one template, replaced step by step when the template changes.
    pub struct MachineDeployment {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: MachineDeploymentSpec,
        /// Observed state.
        pub status: MachineDeploymentStatus,
    }

    /// Desired state of a MachineDeployment.
    pub struct MachineDeploymentSpec {
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub cluster_name: String,
        /// Wanted number of machines.
        pub replicas: Option<i32>,
        /// When and how machines are replaced.
        pub rollout: MachineDeploymentRolloutSpec,
        /// Labels of the MachineSets and machines that belong to it.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub template: MachineTemplateSpec,
        /// How machines are named.
        pub machine_naming: MachineNamingSpec,
        /// What happens to unhealthy machines.
        pub remediation: MachineDeploymentRemediationSpec,
        /// How machines are deleted.
        pub deletion: MachineSetDeletionSpec,
        /// Stops rollouts.
        pub paused: Option<bool>,
    }

    /// When and how machines of a deployment are replaced.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentRolloutSpec {
        /// Replace machines created before this time, once it has passed.
        pub after: Option<Time>,
        /// How machines are replaced.
        pub strategy: MachineDeploymentRolloutStrategy,
    }

    /// How machines of a deployment are replaced.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentRolloutStrategy {
        /// The strategy.
        #[serde(rename = "type")]
        #[schemars(extend("x-required" = true))]
        pub kind: Option<MachineDeploymentRolloutStrategyType>,
        /// Settings of a rolling update.
        pub rolling_update: MachineDeploymentRolloutStrategyRollingUpdate,
    }

    /// Pace of a rolling update.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentRolloutStrategyRollingUpdate {
        /// Number or percentage of replicas that may be unavailable during a rollout.
        pub max_unavailable: Option<IntOrString>,
        /// Number or percentage of machines above the replicas during a rollout.
        pub max_surge: Option<IntOrString>,
    }

    /// How fast unhealthy machines are replaced.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentRemediationSpec {
        /// How many, or which share, may be under remediation at a time.
        pub max_in_flight: Option<IntOrString>,
    }

    /// Observed state of a MachineDeployment.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// The label selector as text, for the scale subresource.
        #[schemars(length(min = 1, max = 4096))]
        pub selector: String,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that have been ready long enough to count.
        pub available_replicas: Option<i32>,
        /// Machines that are up to date.
        pub up_to_date_replicas: Option<i32>,
        /// Kubernetes versions found, and how many machines have each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Lifecycle phase, for humans; programs should read the conditions.
        pub phase: Option<MachineDeploymentPhase>,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<MachineDeploymentV1Beta1DeprecatedStatus>>,
    }

    /// Status of a MachineDeployment under the v1beta1 contract.
    pub struct MachineDeploymentV1Beta1DeprecatedStatus {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Machines of the newest template.
        pub updated_replicas: i32,
        /// Machines that are ready.
        pub ready_replicas: i32,
        /// Machines that have been ready long enough to count.
        pub available_replicas: i32,
        /// Machines still missing or not yet available.
        pub unavailable_replicas: i32,
    }
}

choice! {
    /// How machines are replaced.
    pub enum MachineDeploymentRolloutStrategyType {
        /// New ones first, old ones as new ones become available.
        RollingUpdate = "RollingUpdate",
        /// Whenever someone deletes an old one.
        OnDelete = "OnDelete",
    }
}

choice! {
    /// Lifecycle phase of a MachineDeployment.
    pub enum MachineDeploymentPhase {
        /// Machines are being added.
        ScalingUp = "ScalingUp",
        /// Machines are being removed.
        ScalingDown = "ScalingDown",
        /// The desired number exists.
        Running = "Running",
        /// An error that needs a person.
        Failed = "Failed",
        /// Not known.
        Unknown = "Unknown",
    }
}

/// Keeps a MachineDeployment until its sets are gone.
pub const FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";

/// Keeps a MachineDeployment of a topology until its templates are gone.
pub const TOPOLOGY_FINALIZER: &str = "machinedeployment.topology.cluster.x-k8s.io";

/// Reasons of a MachineDeployment's conditions, beside the [shared ones](super::reason).
#[allow(missing_docs, reason = "the value is self-explanatory")]
pub mod reason {
    pub const WAITING_FOR_AVAILABLE_REPLICAS_SET: &str = "WaitingForAvailableReplicasSet";
}
