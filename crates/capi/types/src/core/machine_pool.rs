//! `MachinePool`: machines that their infrastructure keeps as one group.

use capstan_object::{Condition, ObjectMeta, object};

use super::common::{Deprecated, StatusVersion, V1Beta1Condition};
use super::machine_set::MachineTemplateSpec;
use crate::kubernetes::ObjectReference;
use crate::wire::{choice, wire};

object!(MachinePool, "cluster.x-k8s.io" / "v1beta2", "MachinePool", "machinepools", Namespaced);

wire! {
    /// A group of machines that the infrastructure provider manages.
    pub struct MachinePool {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: MachinePoolSpec,
        /// Observed state.
        pub status: MachinePoolStatus,
    }

    /// Desired state of a MachinePool.
    pub struct MachinePoolSpec {
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub cluster_name: String,
        /// Desired number of machines.
        pub replicas: Option<i32>,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub template: MachineTemplateSpec,
        /// Provider ids of the machines. Set by the infrastructure provider.
        #[serde(rename = "providerIDList")]
        #[schemars(
            length(max = 10000),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub provider_id_list: Vec<String>,
        /// Failure domains the machines are spread over.
        #[schemars(
            length(max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub failure_domains: Vec<String>,
    }

    /// Observed state of a MachinePool.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachinePoolStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Provisioning progress.
        pub initialization: MachinePoolInitializationStatus,
        /// References to the Nodes of the machines.
        #[schemars(length(max = 10000), extend("x-kubernetes-list-type" = "atomic"))]
        pub node_refs: Vec<ObjectReference>,
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
        pub phase: Option<MachinePoolPhase>,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<MachinePoolV1Beta1DeprecatedStatus>>,
    }

    /// Provisioning progress.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachinePoolInitializationStatus {
        /// Whether the infrastructure is provisioned.
        pub infrastructure_provisioned: Option<bool>,
        /// Whether the boot data is available.
        pub bootstrap_data_secret_created: Option<bool>,
    }

    /// Status of a MachinePool under the v1beta1 contract.
    pub struct MachinePoolV1Beta1DeprecatedStatus {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Machines that are ready.
        pub ready_replicas: i32,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: i32,
        /// Machines that are missing or not available.
        pub unavailable_replicas: i32,
    }
}

choice! {
    /// Lifecycle phase of a MachinePool.
    pub enum MachinePoolPhase {
        /// Waits for boot data and infrastructure.
        Pending = "Pending",
        /// Infrastructure is being created.
        Provisioning = "Provisioning",
        /// Infrastructure is provisioned; the Nodes have not joined.
        Provisioned = "Provisioned",
        /// The desired number exists.
        Running = "Running",
        /// Machines are being added.
        ScalingUp = "ScalingUp",
        /// Machines are being removed.
        ScalingDown = "ScalingDown",
        /// The number is changed externally.
        Scaling = "Scaling",
        /// Deletion is in progress.
        Deleting = "Deleting",
        /// A terminal error that needs manual intervention.
        Failed = "Failed",
        /// The phase is unknown.
        Unknown = "Unknown",
    }
}

/// Keeps a MachinePool until its infrastructure, boot data and Nodes are gone.
pub const FINALIZER: &str = "machinepool.cluster.x-k8s.io";

/// Keeps a MachinePool of a topology until its objects are gone.
pub const TOPOLOGY_FINALIZER: &str = "machinepool.topology.cluster.x-k8s.io";

/// Conditions of a MachinePool, beside the [shared ones](super::condition).
pub mod condition {
    pub const REPLICAS_READY: &str = "ReplicasReady";
}

/// Reasons of a MachinePool's conditions, beside the [shared ones](super::reason).
pub mod reason {
    pub const WAITING_FOR_REPLICAS_READY: &str = "WaitingForReplicasReady";
    pub const MACHINE_POOLS_NOT_SUPPORTED: &str = "MachinePoolsNotSupported";
    pub const NOT_A_MACHINE_POOL: &str = "NotAMachinePool";
}
