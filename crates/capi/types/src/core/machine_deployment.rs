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
    /// A group of machines of one template, replaced by a rollout when the template changes.
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
        /// Desired number of machines.
        pub replicas: Option<i32>,
        /// Settings of rollouts.
        pub rollout: MachineDeploymentRolloutSpec,
        /// Label selector of the MachineSets and machines.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub template: MachineTemplateSpec,
        /// Naming of the machines.
        pub machine_naming: MachineNamingSpec,
        /// Remediation of unhealthy machines.
        pub remediation: MachineDeploymentRemediationSpec,
        /// Settings of the deletion of machines.
        pub deletion: MachineSetDeletionSpec,
        /// Whether rollouts are paused.
        pub paused: Option<bool>,
    }

    /// Settings of rollouts of a MachineDeployment.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentRolloutSpec {
        /// Machines that were created before this time are replaced once it has passed.
        pub after: Option<Time>,
        /// Strategy of rollouts.
        pub strategy: MachineDeploymentRolloutStrategy,
    }

    /// Strategy of rollouts of a MachineDeployment.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentRolloutStrategy {
        /// Type of the strategy.
        #[serde(rename = "type")]
        #[schemars(extend("x-required" = true))]
        pub kind: Option<MachineDeploymentRolloutStrategyType>,
        /// Settings of a rolling update.
        pub rolling_update: MachineDeploymentRolloutStrategyRollingUpdate,
    }

    /// Settings of a rolling update.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentRolloutStrategyRollingUpdate {
        /// Maximum number or percentage of replicas that may be unavailable during a rollout.
        pub max_unavailable: Option<IntOrString>,
        /// Maximum number or percentage of machines above the desired replicas during a rollout.
        pub max_surge: Option<IntOrString>,
    }

    /// Limits of the remediation of unhealthy machines.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentRemediationSpec {
        /// Maximum number or percentage of machines under remediation at a time.
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
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: Option<i32>,
        /// Machines that are up to date.
        pub up_to_date_replicas: Option<i32>,
        /// Kubernetes versions of the machines, with the number of machines of each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Lifecycle phase, for display only: evaluate the conditions instead.
        pub phase: Option<MachineDeploymentPhase>,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<MachineDeploymentV1Beta1DeprecatedStatus>>,
    }

    /// Status of a MachineDeployment under the v1beta1 contract.
    pub struct MachineDeploymentV1Beta1DeprecatedStatus {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Machines of the latest template.
        pub updated_replicas: i32,
        /// Machines that are ready.
        pub ready_replicas: i32,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: i32,
        /// Machines that are missing or not available.
        pub unavailable_replicas: i32,
    }
}

choice! {
    /// Strategy of rollouts.
    pub enum MachineDeploymentRolloutStrategyType {
        /// Old machines are replaced as new machines become available.
        RollingUpdate = "RollingUpdate",
        /// Machines are replaced when they are deleted.
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
        /// A terminal error that needs manual intervention.
        Failed = "Failed",
        /// The phase is unknown.
        Unknown = "Unknown",
    }
}

/// Keeps a MachineDeployment until its sets are gone.
pub const FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";

/// Keeps a MachineDeployment of a topology until its templates are gone.
pub const TOPOLOGY_FINALIZER: &str = "machinedeployment.topology.cluster.x-k8s.io";

/// Reasons of a MachineDeployment's conditions, beside the [shared ones](super::reason).
pub mod reason {
    pub const WAITING_FOR_AVAILABLE_REPLICAS_SET: &str = "WaitingForAvailableReplicasSet";
}
