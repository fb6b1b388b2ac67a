//! Control planes of machines set up by kubeadm.

use capstan_object::{IntOrString, ObjectMeta, Time, object};
use serde_json::{Value, json};

use super::bootstrap::KubeadmConfigSpec;
use super::core::{MachineNamingStrategy, TemplateMeta, V1Beta2Replicas};
use crate::controlplane::KubeadmControlPlaneRolloutStrategyType;
use crate::core::{MachineReadinessGate, MachineTaint, StatusVersion, V1Beta1Condition};
use crate::kubernetes::ObjectReference;
use crate::wire::wire;

object!(
    KubeadmControlPlane,
    "controlplane.cluster.x-k8s.io" / "v1beta1",
    "KubeadmControlPlane",
    "kubeadmcontrolplanes",
    Namespaced
);
object!(
    KubeadmControlPlaneTemplate,
    "controlplane.cluster.x-k8s.io" / "v1beta1",
    "KubeadmControlPlaneTemplate",
    "kubeadmcontrolplanetemplates",
    Namespaced
);

wire! {
    /// A control plane of machines set up by kubeadm.
    pub struct KubeadmControlPlane {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
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
        #[schemars(extend("x-required" = true))]
        pub kubeadm_config_spec: KubeadmConfigSpec,
        /// Reasons to replace machines ahead of time.
        pub rollout_before: Option<RolloutBefore>,
        /// Replace machines created before this time, once it has passed.
        pub rollout_after: Option<Time>,
        /// How machines are replaced.
        #[schemars(extend("x-default" = rolling_update()))]
        pub rollout_strategy: Option<RolloutStrategy>,
        /// How unhealthy machines are replaced.
        pub remediation_strategy: Option<ControlPlaneRemediationStrategy>,
        /// How machines are named.
        pub machine_naming_strategy: Option<MachineNamingStrategy>,
    }

    /// Template of the machines.
    pub struct KubeadmControlPlaneMachineTemplate {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Infrastructure object.
        #[schemars(extend("x-required" = true))]
        pub infrastructure_ref: ObjectReference,
        /// Further conditions a machine needs to count as ready.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// How long draining the node may take; 0 or absent waits without limit.
        pub node_drain_timeout: Option<String>,
        /// How long to wait for volumes to be detached; 0 or absent waits without limit.
        pub node_volume_detach_timeout: Option<String>,
        /// How long deleting the Node may be retried; 0 retries without limit.
        pub node_deletion_timeout: Option<String>,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }

    /// Reasons to replace machines ahead of time.
    pub struct RolloutBefore {
        /// Replace a machine this many days before its certificates expire.
        pub certificates_expiry_days: Option<i32>,
    }

    /// How control plane machines are replaced.
    pub struct RolloutStrategy {
        /// Which one.
        #[serde(rename = "type")]
        pub kind: Option<KubeadmControlPlaneRolloutStrategyType>,
        /// Settings of a rolling update.
        pub rolling_update: Option<RollingUpdate>,
    }

    /// Pace of a rolling update.
    pub struct RollingUpdate {
        /// Number or percentage of machines above the replicas during a rollout.
        pub max_surge: Option<IntOrString>,
    }

    /// How unhealthy control plane machines are replaced.
    pub struct ControlPlaneRemediationStrategy {
        /// How often a replacement that fails is tried again; without limit if absent.
        pub max_retry: Option<i32>,
        /// Least time between two tries.
        pub retry_period: String,
        /// A failure after this time is a new one, not a retry; an hour if absent.
        pub min_healthy_period: Option<String>,
    }

    /// Observed state of a control plane.
    pub struct KubeadmControlPlaneStatus {
        /// The label selector as text, for the scale subresource.
        #[schemars(length(min = 1, max = 4096))]
        pub selector: String,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Lowest Kubernetes version among the machines.
        #[schemars(length(min = 1, max = 256))]
        pub version: Option<String>,
        /// Machines of the newest template.
        pub updated_replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines still missing or not yet available.
        pub unavailable_replicas: Option<i32>,
        /// The first API server takes requests.
        pub initialized: Option<bool>,
        /// It is ready.
        pub ready: Option<bool>,
        /// Reason of a terminal failure.
        pub failure_reason: String,
        /// What that error is.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// The last replacement of an unhealthy machine.
        pub last_remediation: Option<LastRemediationStatus>,
        /// Kubernetes versions found, and how many machines have each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Status in the words of the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Replicas>,
    }

    /// The last replacement of an unhealthy machine.
    pub struct LastRemediationStatus {
        /// Name of the machine that was replaced.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub machine: String,
        /// When it was replaced.
        #[schemars(extend("x-required" = true))]
        pub timestamp: Option<Time>,
        /// Which retry it was.
        #[schemars(extend("x-required" = true))]
        pub retry_count: Option<i32>,
    }

    /// Template of KubeadmControlPlanes.
    pub struct KubeadmControlPlaneTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KubeadmControlPlaneTemplateSpec,
    }

    /// Template of KubeadmControlPlanes.
    pub struct KubeadmControlPlaneTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: KubeadmControlPlaneTemplateResource,
    }

    /// The template of a KubeadmControlPlane.
    pub struct KubeadmControlPlaneTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: KubeadmControlPlaneTemplateResourceSpec,
    }

    /// Desired state of a control plane in a topology.
    pub struct KubeadmControlPlaneTemplateResourceSpec {
        /// Template of the machines.
        pub machine_template: Option<KubeadmControlPlaneTemplateMachineTemplate>,
        /// How nodes are set up by kubeadm.
        #[schemars(extend("x-required" = true))]
        pub kubeadm_config_spec: KubeadmConfigSpec,
        /// Reasons to replace machines ahead of time.
        pub rollout_before: Option<RolloutBefore>,
        /// Replace machines created before this time, once it has passed.
        pub rollout_after: Option<Time>,
        /// How machines are replaced.
        #[schemars(extend("x-default" = rolling_update()))]
        pub rollout_strategy: Option<RolloutStrategy>,
        /// How unhealthy machines are replaced.
        pub remediation_strategy: Option<ControlPlaneRemediationStrategy>,
        /// How machines are named.
        pub machine_naming_strategy: Option<MachineNamingStrategy>,
    }

    /// Template of the machines.
    pub struct KubeadmControlPlaneTemplateMachineTemplate {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// How long draining the node may take; 0 or absent waits without limit.
        pub node_drain_timeout: Option<String>,
        /// How long to wait for volumes to be detached; 0 or absent waits without limit.
        pub node_volume_detach_timeout: Option<String>,
        /// How long deleting the Node may be retried; 0 retries without limit.
        pub node_deletion_timeout: Option<String>,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }
}

fn rolling_update() -> Value {
    json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } })
}
