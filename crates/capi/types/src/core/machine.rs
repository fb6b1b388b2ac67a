//! `Machine`: a host that becomes a node.

use capstan_object::{Condition, ObjectMeta, Time, object};

use super::common::{
    ConditionPolarity, ContractVersionedObjectReference, Deprecated, MachineTaint, V1Beta1Condition,
};
use crate::kubernetes::NodeSystemInfo;
use crate::schema::pattern;
use crate::wire::{choice, wire};

object!(Machine, "cluster.x-k8s.io" / "v1beta2", "Machine", "machines", Namespaced);

wire! {
    /// A machine that hosts a Node of a cluster.
    pub struct Machine {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: MachineSpec,
        /// Observed state.
        pub status: MachineStatus,
    }

    /// Desired state of a machine.
    pub struct MachineSpec {
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub cluster_name: String,
        /// Source of the machine's boot data.
        #[schemars(extend("x-required" = true))]
        pub bootstrap: Bootstrap,
        /// Object that provides the machine.
        #[schemars(extend("x-required" = true))]
        pub infrastructure_ref: ContractVersionedObjectReference,
        /// Kubernetes version of the node.
        #[schemars(length(min = 1, max = 256))]
        pub version: String,
        /// Provider id of the machine, equal to that of its Node.
        #[serde(rename = "providerID")]
        #[schemars(length(min = 1, max = 512))]
        pub provider_id: String,
        /// Failure domain the machine is placed in.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: String,
        /// Seconds that a machine must be ready to be available.
        #[schemars(range(min = 0))]
        pub min_ready_seconds: Option<i32>,
        /// Additional conditions that must be met for a machine to be ready.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// Settings of the machine's deletion.
        pub deletion: MachineDeletionSpec,
        /// Taints for the node.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }

    /// Source of a machine's boot data.
    pub struct Bootstrap {
        /// Reference to the bootstrap config.
        pub config_ref: ContractVersionedObjectReference,
        /// Name of the Secret with the boot data; set by the provider or by the user.
        #[schemars(length(min = 0, max = 253))]
        pub data_secret_name: Option<String>,
    }

    /// Timeouts of a machine's deletion.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeletionSpec {
        /// Timeout of draining the Node. 0 or absent means no timeout.
        #[schemars(range(min = 0))]
        pub node_drain_timeout_seconds: Option<i32>,
        /// Timeout of waiting for volumes to be detached. 0 or absent means no timeout.
        #[schemars(range(min = 0))]
        pub node_volume_detach_timeout_seconds: Option<i32>,
        /// Timeout of deleting the Node. 0 means no timeout.
        #[schemars(range(min = 0))]
        pub node_deletion_timeout_seconds: Option<i32>,
    }

    /// A condition that must be met for the machine to be ready.
    pub struct MachineReadinessGate {
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

    /// Observed state of a machine.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Provisioning progress, as the Cluster API contract defines it.
        pub initialization: MachineInitializationStatus,
        /// Reference to the Node of the machine.
        pub node_ref: MachineNodeReference,
        /// The node's system information.
        pub node_info: Option<NodeSystemInfo>,
        /// When the phase last changed.
        pub last_updated: Option<Time>,
        /// Addresses of the machine.
        #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
        pub addresses: Vec<MachineAddress>,
        /// Failure domain the machine was placed in.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: String,
        /// Lifecycle phase, for display only: evaluate the conditions instead.
        pub phase: Option<MachinePhase>,
        /// When the first certificate of a control plane machine expires.
        pub certificates_expiry_date: Option<Time>,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Progress of the deletion.
        pub deletion: Option<MachineDeletionStatus>,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<MachineV1Beta1DeprecatedStatus>>,
    }

    /// Reference to a Node.
    pub struct MachineNodeReference {
        /// Name of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
    }

    /// Provisioning progress of a machine.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineInitializationStatus {
        /// Whether the infrastructure is provisioned.
        pub infrastructure_provisioned: Option<bool>,
        /// Whether the boot data is available.
        pub bootstrap_data_secret_created: Option<bool>,
    }

    /// Start times of the steps of a machine's deletion.
    pub struct MachineDeletionStatus {
        /// Time when draining the Node began.
        pub node_drain_start_time: Option<Time>,
        /// Time when waiting for volumes to be detached began.
        pub wait_for_node_volume_detach_start_time: Option<Time>,
        /// Time when waiting for pre-drain hooks began.
        pub wait_for_pre_drain_hook_start_time: Option<Time>,
        /// Time when waiting for pre-terminate hooks began.
        pub wait_for_pre_terminate_hook_start_time: Option<Time>,
    }

    /// An address of a machine.
    pub struct MachineAddress {
        /// Type of the address.
        #[serde(rename = "type")]
        #[schemars(extend("x-required" = true))]
        pub kind: Option<MachineAddressType>,
        /// IP address or host name.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub address: String,
    }

    /// Status of a machine under the v1beta1 contract.
    pub struct MachineV1Beta1DeprecatedStatus {
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
    /// Lifecycle phase of a machine.
    pub enum MachinePhase {
        /// Waits for boot data and infrastructure.
        Pending = "Pending",
        /// Infrastructure is being created.
        Provisioning = "Provisioning",
        /// Infrastructure is provisioned; the Node has not joined.
        Provisioned = "Provisioned",
        /// The Node has joined the cluster.
        Running = "Running",
        /// An in-place update is in progress.
        Updating = "Updating",
        /// Deletion is in progress.
        Deleting = "Deleting",
        /// Infrastructure is deleted.
        Deleted = "Deleted",
        /// A terminal error that needs manual intervention.
        Failed = "Failed",
        /// The phase is unknown.
        Unknown = "Unknown",
    }
}

choice! {
    /// Type of an address.
    pub enum MachineAddressType {
        /// Name of the host.
        Hostname = "Hostname",
        /// Address reached from outside.
        ExternalIP = "ExternalIP",
        /// Address reached from inside.
        InternalIP = "InternalIP",
        /// DNS name for outside.
        ExternalDNS = "ExternalDNS",
        /// DNS name for inside.
        InternalDNS = "InternalDNS",
    }
}

/// Keeps a Machine until its infrastructure is gone.
pub const FINALIZER: &str = "machine.cluster.x-k8s.io";

/// Condition types of a Machine, beside the [shared ones](super::condition).
pub mod condition {
    pub const UP_TO_DATE: &str = "UpToDate";
    pub const UPDATING: &str = "Updating";
    pub const NODE_HEALTHY: &str = "NodeHealthy";
    pub const NODE_READY: &str = "NodeReady";
    pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
    pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
    pub const EXTERNALLY_REMEDIATED: &str = "ExternallyRemediated";
}

/// Reasons of a Machine's conditions, beside the [shared ones](super::reason).
pub mod reason {
    pub const WAITING_FOR_MIN_READY_SECONDS: &str = "WaitingForMinReadySeconds";
    pub const UPDATING: &str = "Updating";
    pub const NOT_UPDATING: &str = "NotUpdating";
    pub const IN_PLACE_UPDATING: &str = "InPlaceUpdating";
    pub const IN_PLACE_UPDATE_FAILED: &str = "InPlaceUpdateFailed";
    pub const DATA_SECRET_PROVIDED: &str = "DataSecretProvided";
    pub const NODE_READY: &str = "NodeReady";
    pub const NODE_NOT_READY: &str = "NodeNotReady";
    pub const NODE_READY_UNKNOWN: &str = "NodeReadyUnknown";
    pub const NODE_HEALTHY: &str = "NodeHealthy";
    pub const NODE_NOT_HEALTHY: &str = "NodeNotHealthy";
    pub const NODE_HEALTH_UNKNOWN: &str = "NodeHealthyUnknown";
    pub const NODE_DOES_NOT_EXIST: &str = "NodeDoesNotExist";
    pub const NODE_DELETED: &str = "NodeDeleted";
    pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
    pub const UNHEALTHY_NODE: &str = "UnhealthyNode";
    pub const UNHEALTHY_MACHINE: &str = "UnhealthyMachine";
    pub const NODE_STARTUP_TIMEOUT: &str = "NodeStartupTimeout";
    pub const HAS_REMEDIATE_ANNOTATION: &str = "HasRemediateAnnotation";
    pub const WAITING_FOR_REMEDIATION: &str = "WaitingForRemediation";
    pub const REMEDIATION_TEMPLATE_NOT_FOUND: &str = "RemediationTemplateNotFound";
    pub const REMEDIATION_REQUEST_CREATION_FAILED: &str = "RemediationRequestCreationFailed";
    pub const WAITING_FOR_PRE_DRAIN_HOOK: &str = "WaitingForPreDrainHook";
    pub const DRAINING_NODE: &str = "DrainingNode";
    pub const WAITING_FOR_VOLUME_DETACH: &str = "WaitingForVolumeDetach";
    pub const WAITING_FOR_PRE_TERMINATE_HOOK: &str = "WaitingForPreTerminateHook";
    pub const WAITING_FOR_INFRASTRUCTURE_DELETION: &str = "WaitingForInfrastructureDeletion";
    pub const WAITING_FOR_BOOTSTRAP_DELETION: &str = "WaitingForBootstrapDeletion";
    pub const DELETING_NODE: &str = "DeletingNode";
}
