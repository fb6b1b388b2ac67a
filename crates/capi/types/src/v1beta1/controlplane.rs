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
    /// A control plane of machines that kubeadm sets up.
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
        /// Desired number of machines; odd unless etcd is external.
        pub replicas: Option<i32>,
        /// Kubernetes version.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub version: String,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub machine_template: KubeadmControlPlaneMachineTemplate,
        /// kubeadm configuration of the nodes.
        #[schemars(extend("x-required" = true))]
        pub kubeadm_config_spec: KubeadmConfigSpec,
        /// Conditions that trigger a rollout ahead of time.
        pub rollout_before: Option<RolloutBefore>,
        /// Machines that were created before this time are replaced once it has passed.
        pub rollout_after: Option<Time>,
        /// Strategy of rollouts.
        #[schemars(extend("x-default" = rolling_update()))]
        pub rollout_strategy: Option<RolloutStrategy>,
        /// Remediation of unhealthy machines.
        pub remediation_strategy: Option<ControlPlaneRemediationStrategy>,
        /// Naming of the machines.
        pub machine_naming_strategy: Option<MachineNamingStrategy>,
    }

    /// Template of the machines.
    pub struct KubeadmControlPlaneMachineTemplate {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Infrastructure object.
        #[schemars(extend("x-required" = true))]
        pub infrastructure_ref: ObjectReference,
        /// Additional conditions that must be met for a machine to be ready.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// Timeout of draining the Node. 0 or absent means no timeout.
        pub node_drain_timeout: Option<String>,
        /// Timeout of waiting for volumes to be detached. 0 or absent means no timeout.
        pub node_volume_detach_timeout: Option<String>,
        /// Timeout of deleting the Node. 0 means no timeout.
        pub node_deletion_timeout: Option<String>,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }

    /// Conditions that trigger a rollout ahead of time.
    pub struct RolloutBefore {
        /// Machines are replaced this many days before their certificates expire.
        pub certificates_expiry_days: Option<i32>,
    }

    /// Strategy of rollouts of control plane machines.
    pub struct RolloutStrategy {
        /// Type of the strategy.
        #[serde(rename = "type")]
        pub kind: Option<KubeadmControlPlaneRolloutStrategyType>,
        /// Settings of a rolling update.
        pub rolling_update: Option<RollingUpdate>,
    }

    /// Settings of a rolling update.
    pub struct RollingUpdate {
        /// Maximum number or percentage of machines above the desired replicas during a rollout.
        pub max_surge: Option<IntOrString>,
    }

    /// Remediation of unhealthy control plane machines.
    pub struct ControlPlaneRemediationStrategy {
        /// Maximum number of retries of a failed replacement. Defaults to no limit.
        pub max_retry: Option<i32>,
        /// Minimum time between retries.
        pub retry_period: String,
        /// Time after which a failure counts as a new one instead of a retry. Defaults to one hour.
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
        /// Machines of the latest template.
        pub updated_replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that are missing or not available.
        pub unavailable_replicas: Option<i32>,
        /// Whether the first API server is available.
        pub initialized: Option<bool>,
        /// Whether the object is ready.
        pub ready: Option<bool>,
        /// Reason of a terminal failure.
        pub failure_reason: String,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Last remediation of an unhealthy machine.
        pub last_remediation: Option<LastRemediationStatus>,
        /// Kubernetes versions of the machines, with the number of machines of each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Replicas>,
    }

    /// Last remediation of an unhealthy machine.
    pub struct LastRemediationStatus {
        /// Name of the machine that was replaced.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub machine: String,
        /// Time of the remediation.
        #[schemars(extend("x-required" = true))]
        pub timestamp: Option<Time>,
        /// Number of the retry.
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
        /// kubeadm configuration of the nodes.
        #[schemars(extend("x-required" = true))]
        pub kubeadm_config_spec: KubeadmConfigSpec,
        /// Conditions that trigger a rollout ahead of time.
        pub rollout_before: Option<RolloutBefore>,
        /// Machines that were created before this time are replaced once it has passed.
        pub rollout_after: Option<Time>,
        /// Strategy of rollouts.
        #[schemars(extend("x-default" = rolling_update()))]
        pub rollout_strategy: Option<RolloutStrategy>,
        /// Remediation of unhealthy machines.
        pub remediation_strategy: Option<ControlPlaneRemediationStrategy>,
        /// Naming of the machines.
        pub machine_naming_strategy: Option<MachineNamingStrategy>,
    }

    /// Template of the machines.
    pub struct KubeadmControlPlaneTemplateMachineTemplate {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Timeout of draining the Node. 0 or absent means no timeout.
        pub node_drain_timeout: Option<String>,
        /// Timeout of waiting for volumes to be detached. 0 or absent means no timeout.
        pub node_volume_detach_timeout: Option<String>,
        /// Timeout of deleting the Node. 0 means no timeout.
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
