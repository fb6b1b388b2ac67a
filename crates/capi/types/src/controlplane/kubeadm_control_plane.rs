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
    /// A control plane of machines set up by kubeadm.
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
        /// Wanted number of machines; odd unless etcd is external.
        pub replicas: Option<i32>,
        /// Kubernetes version.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub version: String,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub machine_template: KubeadmControlPlaneMachineTemplate,
        /// How nodes are set up by kubeadm.
        pub kubeadm_config_spec: KubeadmConfigSpec,
        /// When and how machines are replaced.
        pub rollout: KubeadmControlPlaneRolloutSpec,
        /// What happens to unhealthy machines.
        pub remediation: KubeadmControlPlaneRemediationSpec,
        /// How machines are named.
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
        /// Further conditions a machine needs to count as ready.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// How machines are deleted.
        pub deletion: MachineDeletionSpec,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }

    /// When and how control plane machines are replaced.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRolloutSpec {
        /// Reasons to replace machines ahead of time.
        pub before: KubeadmControlPlaneRolloutBeforeSpec,
        /// Replace machines created before this time, once it has passed.
        pub after: Option<Time>,
        /// How machines are replaced.
        pub strategy: KubeadmControlPlaneRolloutStrategy,
    }

    /// Reasons to replace machines ahead of time.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRolloutBeforeSpec {
        /// Replace a machine this many days before its certificates expire.
        #[schemars(range(min = 7))]
        pub certificates_expiry_days: i32,
    }

    /// How control plane machines are replaced.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRolloutStrategy {
        /// The strategy.
        #[serde(rename = "type")]
        #[schemars(extend("x-required" = true))]
        pub kind: Option<KubeadmControlPlaneRolloutStrategyType>,
        /// Settings of a rolling update.
        pub rolling_update: KubeadmControlPlaneRolloutStrategyRollingUpdate,
    }

    /// Pace of a rolling update.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRolloutStrategyRollingUpdate {
        /// Machines above the replicas during a rollout: 1, or 0 to scale down first.
        pub max_surge: Option<IntOrString>,
    }

    /// How unhealthy control plane machines are replaced.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneRemediationSpec {
        /// How often a replacement that fails is tried again; without limit if absent.
        pub max_retry: Option<i32>,
        /// Least time between two tries.
        #[schemars(range(min = 0))]
        pub retry_period_seconds: Option<i32>,
        /// A failure after this time is a new one, not a retry; an hour if absent.
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
        /// Milestones on the way to being usable; contract with the providers.
        pub initialization: KubeadmControlPlaneInitializationStatus,
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
        /// Lowest Kubernetes version among the machines.
        #[schemars(length(min = 1, max = 256))]
        pub version: String,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// The last replacement of an unhealthy machine.
        pub last_remediation: LastRemediationStatus,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<KubeadmControlPlaneV1Beta1DeprecatedStatus>>,
    }

    /// Milestones of a control plane.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneInitializationStatus {
        /// The first API server takes requests.
        pub control_plane_initialized: Option<bool>,
    }

    /// The last replacement of an unhealthy machine.
    pub struct LastRemediationStatus {
        /// Name of the machine that was replaced.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub machine: String,
        /// When it was replaced.
        #[schemars(extend("x-required" = true))]
        pub time: Option<Time>,
        /// Which retry it was.
        #[schemars(range(min = 0), extend("x-required" = true))]
        pub retry_count: Option<i32>,
    }

    /// Status of a control plane under the v1beta1 contract.
    pub struct KubeadmControlPlaneV1Beta1DeprecatedStatus {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Reason of a terminal failure.
        pub failure_reason: String,
        /// What that error is.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Machines of the newest template.
        pub updated_replicas: i32,
        /// Machines that are ready.
        pub ready_replicas: i32,
        /// Machines still missing or not yet available.
        pub unavailable_replicas: i32,
    }
}

choice! {
    /// How control plane machines are replaced.
    pub enum KubeadmControlPlaneRolloutStrategyType {
        /// One at a time.
        RollingUpdate = "RollingUpdate",
    }
}

/// Keeps a KubeadmControlPlane until its machines are gone.
pub const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";

/// Default time after which a failure is a new one, not a retry.
pub const DEFAULT_MIN_HEALTHY_PERIOD_SECONDS: i32 = 3600;

/// Annotations of control planes and their machines.
pub mod annotation {
    /// CoreDNS is left alone.
    pub const SKIP_COREDNS: &str = "controlplane.cluster.x-k8s.io/skip-coredns";
    /// kube-proxy is left alone.
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
#[allow(missing_docs, reason = "the value is self-explanatory")]
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
#[allow(missing_docs, reason = "the value is self-explanatory")]
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
