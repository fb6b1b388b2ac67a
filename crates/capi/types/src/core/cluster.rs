//! `Cluster`.

use std::collections::BTreeMap;

use capstan_object::{Condition, ObjectMeta, object};

use super::common::{
    ConditionPolarity, ContractVersionedObjectReference, Deprecated, StatusVersion, V1Beta1Condition,
};
use super::topology::Topology;
use crate::schema::pattern;
use crate::wire::{choice, wire};

object!(Cluster, "cluster.x-k8s.io" / "v1beta2", "Cluster", "clusters", Namespaced);

wire! {
    /// A Kubernetes cluster, managed through its objects here.
    pub struct Cluster {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: ClusterSpec,
        /// Observed state.
        pub status: ClusterStatus,
    }

    /// Desired state of a cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterSpec {
        /// Whether reconciliation of the cluster and its objects is paused.
        pub paused: Option<bool>,
        /// Address ranges and domain of the cluster's network.
        pub cluster_network: ClusterNetwork,
        /// Endpoint of the cluster's API server.
        pub control_plane_endpoint: APIEndpoint,
        /// Object that provides the control plane.
        pub control_plane_ref: ContractVersionedObjectReference,
        /// Object that provides the cluster's infrastructure.
        pub infrastructure_ref: ContractVersionedObjectReference,
        /// Topology of a cluster with a ClusterClass.
        pub topology: Topology,
        /// Additional conditions that must be met for the cluster to be available.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub availability_gates: Vec<ClusterAvailabilityGate>,
    }

    /// A condition that must be met for the cluster to be available.
    pub struct ClusterAvailabilityGate {
        /// Type of the condition to evaluate.
        #[schemars(
            length(min = 1, max = 316),
            regex(pattern = pattern::CONDITION_TYPE),
            extend("x-required" = true)
        )]
        pub condition_type: String,
        /// Polarity of the condition: `Positive` requires status `True`, `Negative` requires `False`. Defaults to
        /// `Positive`.
        pub polarity: Option<ConditionPolarity>,
    }

    /// Address ranges and domain of the cluster's network.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterNetwork {
        /// Port the API servers listen on.
        #[schemars(range(min = 1, max = 65535))]
        pub api_server_port: i32,
        /// Address ranges of services.
        pub services: NetworkRanges,
        /// Address ranges of pods.
        pub pods: NetworkRanges,
        /// Domain name of services.
        #[schemars(length(min = 1, max = 253))]
        pub service_domain: String,
    }

    /// Address ranges.
    pub struct NetworkRanges {
        /// Ranges in CIDR notation.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 43)),
            extend("x-required" = true, "x-kubernetes-list-type" = "atomic")
        )]
        pub cidr_blocks: Vec<String>,
    }

    /// Host and port of an API server.
    #[schemars(extend("minProperties" = 1))]
    pub struct APIEndpoint {
        /// Host name or IP address.
        #[schemars(length(min = 1, max = 512))]
        pub host: String,
        /// Port.
        #[schemars(range(min = 1, max = 65535))]
        pub port: i32,
    }

    /// Observed state of a cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Provisioning progress, as the Cluster API contract defines it.
        pub initialization: ClusterInitializationStatus,
        /// Replica counts of the control plane.
        pub control_plane: Option<ClusterReplicas>,
        /// Replica counts of the workers.
        pub workers: Option<ClusterReplicas>,
        /// Failure domains that the infrastructure provider reports.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub failure_domains: Vec<FailureDomain>,
        /// Lifecycle phase, for display only: evaluate the conditions instead.
        pub phase: Option<ClusterPhase>,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<ClusterV1Beta1DeprecatedStatus>>,
    }

    /// Provisioning progress of a cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterInitializationStatus {
        /// Whether the infrastructure is provisioned.
        pub infrastructure_provisioned: Option<bool>,
        /// Whether the control plane accepts requests.
        pub control_plane_initialized: Option<bool>,
    }

    /// Replica counts of the machines with one role.
    pub struct ClusterReplicas {
        /// Desired number of machines.
        pub desired_replicas: Option<i32>,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Machines that are up to date.
        pub up_to_date_replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: Option<i32>,
        /// Kubernetes versions of the machines, with the number of machines of each.
        #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        pub versions: Vec<StatusVersion>,
        /// Remaining versions of an upgrade.
        #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        pub upgrade_plan: Vec<StatusUpgradePlanVersion>,
    }

    /// A version of an upgrade plan.
    pub struct StatusUpgradePlanVersion {
        /// Kubernetes version.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub version: String,
    }

    /// A failure domain of the infrastructure.
    pub struct FailureDomain {
        /// Name of the failure domain.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Whether control plane machines may be placed in the failure domain.
        pub control_plane: Option<bool>,
        /// Attributes reported by the infrastructure.
        pub attributes: BTreeMap<String, String>,
    }

    /// Status of a cluster under the v1beta1 contract.
    pub struct ClusterV1Beta1DeprecatedStatus {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
    }
}

choice! {
    /// Lifecycle phase of a cluster.
    pub enum ClusterPhase {
        /// Waits for the infrastructure to be provisioned.
        Pending = "Pending",
        /// Infrastructure is being created.
        Provisioning = "Provisioning",
        /// Infrastructure is provisioned.
        Provisioned = "Provisioned",
        /// Deletion is in progress.
        Deleting = "Deleting",
        /// A terminal error that needs manual intervention.
        Failed = "Failed",
        /// The phase is unknown.
        Unknown = "Unknown",
    }
}

/// Keeps a Cluster until its objects are deleted.
pub const FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// Condition types of a Cluster, beside the [shared ones](super::condition).
pub mod condition {
    pub const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";
    pub const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
    pub const CONTROL_PLANE_AVAILABLE: &str = "ControlPlaneAvailable";
    pub const WORKERS_AVAILABLE: &str = "WorkersAvailable";
    pub const CONTROL_PLANE_MACHINES_READY: &str = "ControlPlaneMachinesReady";
    pub const WORKER_MACHINES_READY: &str = "WorkerMachinesReady";
    pub const CONTROL_PLANE_MACHINES_UP_TO_DATE: &str = "ControlPlaneMachinesUpToDate";
    pub const WORKER_MACHINES_UP_TO_DATE: &str = "WorkerMachinesUpToDate";
    pub const REMOTE_CONNECTION_PROBE: &str = "RemoteConnectionProbe";
}

/// Reasons of a Cluster's conditions, beside the [shared ones](super::reason).
pub mod reason {
    pub const INITIALIZED: &str = "Initialized";
    pub const NOT_INITIALIZED: &str = "NotInitialized";
    pub const NO_WORKERS: &str = "NoWorkers";
    pub const PROBE_FAILED: &str = "ProbeFailed";
    pub const PROBE_SUCCEEDED: &str = "ProbeSucceeded";
    pub const ROLLING_OUT_UNKNOWN: &str = "RollingOutUnknown";
    pub const SCALING_UP_UNKNOWN: &str = "ScalingUpUnknown";
    pub const SCALING_DOWN_UNKNOWN: &str = "ScalingDownUnknown";
    pub const WAITING_FOR_BEFORE_DELETE_HOOK: &str = "WaitingForBeforeDeleteHook";
    pub const WAITING_FOR_WORKERS_DELETION: &str = "WaitingForWorkersDeletion";
    pub const WAITING_FOR_CONTROL_PLANE_DELETION: &str = "WaitingForControlPlaneDeletion";
    pub const WAITING_FOR_INFRASTRUCTURE_DELETION: &str = "WaitingForInfrastructureDeletion";
    pub const RECONCILE_SUCCEEDED: &str = "ReconcileSucceeded";
    pub const RECONCILE_FAILED: &str = "ReconcileFailed";
    pub const CLUSTER_CREATING: &str = "ClusterCreating";
    pub const CONTROL_PLANE_UPGRADE_PENDING: &str = "ControlPlaneUpgradePending";
    pub const MACHINE_DEPLOYMENTS_CREATE_PENDING: &str = "MachineDeploymentsCreatePending";
    pub const MACHINE_DEPLOYMENTS_UPGRADE_PENDING: &str = "MachineDeploymentsUpgradePending";
    pub const MACHINE_DEPLOYMENTS_UPGRADE_DEFERRED: &str = "MachineDeploymentsUpgradeDeferred";
    pub const MACHINE_POOLS_CREATE_PENDING: &str = "MachinePoolsCreatePending";
    pub const MACHINE_POOLS_UPGRADE_PENDING: &str = "MachinePoolsUpgradePending";
    pub const MACHINE_POOLS_UPGRADE_DEFERRED: &str = "MachinePoolsUpgradeDeferred";
    pub const LIFECYCLE_HOOK_BLOCKING: &str = "LifecycleHookBlocking";
    pub const CLUSTER_UPGRADING: &str = "ClusterUpgrading";
    pub const CLUSTER_CLASS_NOT_RECONCILED: &str = "ClusterClassNotReconciled";
}

impl APIEndpoint {
    /// Neither host nor port is known.
    pub fn is_zero(&self) -> bool {
        self.host.is_empty() && self.port == 0
    }

    /// Host and port are both known.
    pub fn is_valid(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }
}

impl std::fmt::Display for APIEndpoint {
    /// `host:port`, with brackets around an IPv6 address.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}
