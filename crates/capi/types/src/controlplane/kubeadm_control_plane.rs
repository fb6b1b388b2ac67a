//! `KubeadmControlPlane`: control plane machines set up by kubeadm.

use capstan_object::{Condition, IntOrString, ObjectMeta, Time, object};

use crate::bootstrap::KubeadmConfigSpec;
use crate::core::{
    ContractVersionedObjectReference, Deprecated, MachineDeletionSpec, MachineNamingSpec,
    MachineReadinessGate, MachineTaint, StatusVersion, TemplateMeta, V1Beta1Condition,
};
use crate::wire::{choice, wire};

object!(
    KubeadmControlPlane,
    "controlplane.cluster.x-k8s.io" / "v1beta2",
    "KubeadmControlPlane",
    "kubeadmcontrolplanes",
    Namespaced
);

wire! {
    /// A control plane of machines that kubeadm sets up.
    pub struct KubeadmControlPlane {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: KubeadmControlPlaneSpec,
        /// Observed state.
        pub status: KubeadmControlPlaneStatus,
    }

    /// Desired state of a control plane.
    pub struct KubeadmControlPlaneSpec {
        /// Desired number of machines; odd unless etcd is external.
        pub replicas: Option<i32>,
        /// Kubernetes version.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub version: String,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub machine_template: KubeadmControlPlaneMachineTemplate,
        /// kubeadm configuration of the nodes.
        pub kubeadm_config_spec: KubeadmConfigSpec,
        /// Settings of rollouts.
        pub rollout: KubeadmControlPlaneRolloutSpec,
        /// Remediation of unhealthy machines.
        pub remediation: KubeadmControlPlaneRemediationSpec,
        /// Naming of the machines.
        pub machine_naming: MachineNamingSpec,
    }

    /// Template of the machines.
    pub struct KubeadmControlPlaneMachineTemplate {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: KubeadmControlPlaneMachineTemplateSpec,
    }

    /// Desired state of each control plane machine.
    pub struct KubeadmControlPlaneMachineTemplateSpec {
        /// Template of the machines' infrastructure.
        #[schemars(extend("x-required" = true))]
        pub infrastructure_ref: ContractVersionedObjectReference,
        /// Additional conditions that must be met for a machine to be ready.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// Settings of the deletion of machines.
        pub deletion: MachineDeletionSpec,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }

    /// Settings of rollouts of control plane machines.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRolloutSpec {
        /// Conditions that trigger a rollout ahead of time.
        pub before: KubeadmControlPlaneRolloutBeforeSpec,
        /// Machines that were created before this time are replaced once it has passed.
        pub after: Option<Time>,
        /// Strategy of rollouts.
        pub strategy: KubeadmControlPlaneRolloutStrategy,
    }

    /// Conditions that trigger a rollout ahead of time.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRolloutBeforeSpec {
        /// Machines are replaced this many days before their certificates expire.
        #[schemars(range(min = 7))]
        pub certificates_expiry_days: i32,
    }

    /// Strategy of rollouts of control plane machines.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRolloutStrategy {
        /// Type of the strategy.
        #[serde(rename = "type")]
        #[schemars(extend("x-required" = true))]
        pub kind: Option<KubeadmControlPlaneRolloutStrategyType>,
        /// Settings of a rolling update.
        pub rolling_update: KubeadmControlPlaneRolloutStrategyRollingUpdate,
    }

    /// Settings of a rolling update.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRolloutStrategyRollingUpdate {
        /// Maximum number of machines above the desired replicas during a rollout: 1, or 0 to scale down first.
        pub max_surge: Option<IntOrString>,
    }

    /// Remediation of unhealthy control plane machines.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRemediationSpec {
        /// Maximum number of retries of a failed replacement. Defaults to no limit.
        pub max_retry: Option<i32>,
        /// Minimum time between retries.
        #[schemars(range(min = 0))]
        pub retry_period_seconds: Option<i32>,
        /// Time after which a failure counts as a new one instead of a retry. Defaults to one hour.
        #[schemars(range(min = 0))]
        pub min_healthy_period_seconds: Option<i32>,
    }

    /// Observed state of a control plane.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Provisioning progress, as the Cluster API contract defines it.
        pub initialization: KubeadmControlPlaneInitializationStatus,
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
        /// Lowest Kubernetes version among the machines.
        #[schemars(length(min = 1, max = 256))]
        pub version: String,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Last remediation of an unhealthy machine.
        pub last_remediation: LastRemediationStatus,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<KubeadmControlPlaneV1Beta1DeprecatedStatus>>,
    }

    /// Provisioning progress of a control plane.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneInitializationStatus {
        /// Whether the first API server is available.
        pub control_plane_initialized: Option<bool>,
    }

    /// Last remediation of an unhealthy machine.
    pub struct LastRemediationStatus {
        /// Name of the machine that was replaced.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub machine: String,
        /// Time of the remediation.
        #[schemars(extend("x-required" = true))]
        pub time: Option<Time>,
        /// Number of the retry.
        #[schemars(range(min = 0), extend("x-required" = true))]
        pub retry_count: Option<i32>,
    }

    /// Status of a control plane under the v1beta1 contract.
    pub struct KubeadmControlPlaneV1Beta1DeprecatedStatus {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Reason of a terminal failure.
        pub failure_reason: String,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Machines of the latest template.
        pub updated_replicas: i32,
        /// Machines that are ready.
        pub ready_replicas: i32,
        /// Machines that are missing or not available.
        pub unavailable_replicas: i32,
    }
}

choice! {
    /// Strategy of rollouts of control plane machines.
    pub enum KubeadmControlPlaneRolloutStrategyType {
        /// Machines are replaced one at a time.
        RollingUpdate = "RollingUpdate",
    }
}

/// Keeps a KubeadmControlPlane until its machines are gone.
pub const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";

/// Default time after which a failure is a new one, not a retry.
pub const DEFAULT_MIN_HEALTHY_PERIOD_SECONDS: i32 = 3600;

/// Annotations of control planes and their machines.
pub mod annotation {
    /// CoreDNS is not managed.
    pub const SKIP_COREDNS: &str = "controlplane.cluster.x-k8s.io/skip-coredns";
    /// kube-proxy is not managed.
    pub const SKIP_KUBE_PROXY: &str = "controlplane.cluster.x-k8s.io/skip-kube-proxy";
    /// Replacement that is under way.
    pub const REMEDIATION_IN_PROGRESS: &str = "controlplane.cluster.x-k8s.io/remediation-in-progress";
    /// Machine that this one replaces.
    pub const REMEDIATION_FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";
    /// Hook by which a machine's etcd member is removed before its infrastructure.
    pub const PRE_TERMINATE_HOOK_CLEANUP: &str =
        "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";
}

/// Condition types of a KubeadmControlPlane and its machines, beside the [shared ones](crate::core::condition).
pub mod condition {
    pub const INITIALIZED: &str = "Initialized";
    pub const CERTIFICATES_AVAILABLE: &str = "CertificatesAvailable";
    pub const ETCD_CLUSTER_HEALTHY: &str = "EtcdClusterHealthy";
    pub const CONTROL_PLANE_COMPONENTS_HEALTHY: &str = "ControlPlaneComponentsHealthy";
    pub const MACHINE_API_SERVER_POD_HEALTHY: &str = "APIServerPodHealthy";
    pub const MACHINE_CONTROLLER_MANAGER_POD_HEALTHY: &str = "ControllerManagerPodHealthy";
    pub const MACHINE_SCHEDULER_POD_HEALTHY: &str = "SchedulerPodHealthy";
    pub const MACHINE_ETCD_POD_HEALTHY: &str = "EtcdPodHealthy";
    pub const MACHINE_ETCD_MEMBER_HEALTHY: &str = "EtcdMemberHealthy";
    pub const MACHINE_NODE_KUBEADM_LABELS_AND_TAINTS_SET: &str = "NodeKubeadmLabelsAndTaintsSet";
}

/// Reasons of the conditions of a KubeadmControlPlane and its machines, beside the
/// [shared ones](crate::core::reason).
pub mod reason {
    pub const INITIALIZED: &str = "Initialized";
    pub const NOT_INITIALIZED: &str = "NotInitialized";
    pub const HEALTHY: &str = "Healthy";
    pub const NOT_HEALTHY: &str = "NotHealthy";
    pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
    pub const CANNOT_BE_REMEDIATED: &str = "CannotBeRemediated";
    pub const REMEDIATION_DEFERRED: &str = "RemediationDeferred";
    pub const MACHINE_DELETING: &str = "MachineDeleting";
    pub const WAITING_FOR_WORKERS_DELETION: &str = "WaitingForWorkersDeletion";
    pub const WAITING_FOR_MACHINE_DELETION: &str = "WaitingForMachineDeletion";
    pub const POD_RUNNING: &str = "Running";
    pub const POD_PROVISIONING: &str = "Provisioning";
    pub const POD_DOES_NOT_EXIST: &str = "DoesNotExist";
    pub const POD_FAILED: &str = "Failed";
    pub const LABELS_AND_TAINTS_SET: &str = "Set";
    pub const LABELS_AND_TAINTS_NOT_SET: &str = "NotSet";
}
