//! Clusters and machines.

use std::collections::BTreeMap;

use capstan_object::{Condition, ConditionStatus, IntOrString, LabelSelector, ObjectMeta, Time, object};

use super::topology::Topology;
use crate::core::{
    ClusterAvailabilityGate, ClusterPhase, ClusterReplicas, MachineAddress, MachineDeletionStatus,
    MachineDeploymentPhase, MachineDeploymentRolloutStrategyType, MachinePhase, MachinePoolPhase,
    MachineReadinessGate, MachineSetDeletionOrder, MachineTaint, StatusVersion, V1Beta1Condition,
};
use crate::kubernetes::{NodeSystemInfo, ObjectReference};
use crate::schema::{pattern, rule};
use crate::wire::wire;

object!(Cluster, "cluster.x-k8s.io" / "v1beta1", "Cluster", "clusters", Namespaced);
object!(Machine, "cluster.x-k8s.io" / "v1beta1", "Machine", "machines", Namespaced);
object!(MachineSet, "cluster.x-k8s.io" / "v1beta1", "MachineSet", "machinesets", Namespaced);
object!(MachinePool, "cluster.x-k8s.io" / "v1beta1", "MachinePool", "machinepools", Namespaced);
object!(
    MachineDeployment,
    "cluster.x-k8s.io" / "v1beta1",
    "MachineDeployment",
    "machinedeployments",
    Namespaced
);
object!(
    MachineHealthCheck,
    "cluster.x-k8s.io" / "v1beta1",
    "MachineHealthCheck",
    "machinehealthchecks",
    Namespaced
);

wire! {
    /// A Kubernetes cluster, managed through its objects here.
    pub struct Cluster {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: ClusterSpec,
        /// Observed state.
        pub status: ClusterStatus,
    }

    /// Desired state of a cluster.
    pub struct ClusterSpec {
        /// Whether reconciliation of the cluster and its objects is paused.
        pub paused: Option<bool>,
        /// Address ranges and domain of the cluster's network.
        pub cluster_network: Option<ClusterNetwork>,
        /// Endpoint of the cluster's API server.
        pub control_plane_endpoint: APIEndpoint,
        /// Object that provides the control plane.
        pub control_plane_ref: Option<ObjectReference>,
        /// Object that provides the cluster's infrastructure.
        pub infrastructure_ref: Option<ObjectReference>,
        /// Topology of a cluster with a ClusterClass.
        pub topology: Option<Topology>,
        /// Additional conditions that must be met for the cluster to be available.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub availability_gates: Vec<ClusterAvailabilityGate>,
    }

    /// Address ranges and domain of the cluster's network.
    pub struct ClusterNetwork {
        /// Port the API servers listen on.
        pub api_server_port: Option<i32>,
        /// Address ranges of services.
        pub services: Option<NetworkRanges>,
        /// Address ranges of pods.
        pub pods: Option<NetworkRanges>,
        /// Domain name of services.
        #[schemars(length(min = 1, max = 253))]
        pub service_domain: String,
    }

    /// Address ranges.
    pub struct NetworkRanges {
        /// Ranges in CIDR notation.
        #[schemars(length(max = 100), inner(length(min = 1, max = 43)), extend("x-required" = true))]
        pub cidr_blocks: Vec<String>,
    }

    /// Host and port of an API server.
    pub struct APIEndpoint {
        /// Host name or IP address.
        #[schemars(length(max = 512))]
        pub host: String,
        /// Port.
        pub port: Option<i32>,
    }

    /// Observed state of a cluster.
    pub struct ClusterStatus {
        /// Failure domains that the infrastructure provider reports.
        pub failure_domains: BTreeMap<String, FailureDomainSpec>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Lifecycle phase, for display only: evaluate the conditions instead.
        pub phase: Option<ClusterPhase>,
        /// Whether the infrastructure is provisioned.
        pub infrastructure_ready: Option<bool>,
        /// Whether the control plane accepts requests.
        pub control_plane_ready: Option<bool>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<ClusterV1Beta2Status>,
    }

    /// A failure domain of the infrastructure.
    pub struct FailureDomainSpec {
        /// Whether control plane machines may be placed in the failure domain.
        pub control_plane: Option<bool>,
        /// Attributes reported by the infrastructure.
        pub attributes: BTreeMap<String, String>,
    }

    /// Status of a cluster under the v1beta2 contract.
    pub struct ClusterV1Beta2Status {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Replica counts of the control plane.
        pub control_plane: Option<ClusterReplicas>,
        /// Replica counts of the workers.
        pub workers: Option<ClusterReplicas>,
    }

    /// A machine that hosts a Node of a cluster.
    pub struct Machine {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
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
        pub infrastructure_ref: ObjectReference,
        /// Kubernetes version of the node.
        #[schemars(length(min = 1, max = 256))]
        pub version: Option<String>,
        /// Provider id of the machine, equal to that of its Node.
        #[serde(rename = "providerID")]
        #[schemars(length(min = 1, max = 512))]
        pub provider_id: Option<String>,
        /// Failure domain the machine is placed in.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: Option<String>,
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
        pub config_ref: Option<ObjectReference>,
        /// Name of the Secret with the boot data; set by the provider or by the user.
        #[schemars(length(min = 0, max = 253))]
        pub data_secret_name: Option<String>,
    }

    /// Observed state of a machine.
    pub struct MachineStatus {
        /// Reference to the Node of the machine.
        pub node_ref: Option<ObjectReference>,
        /// The node's system information.
        pub node_info: Option<NodeSystemInfo>,
        /// When the phase last changed.
        pub last_updated: Option<Time>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Addresses of the machine.
        pub addresses: Vec<MachineAddress>,
        /// Lifecycle phase, for display only: evaluate the conditions instead.
        #[schemars(extend("enum" = OLD_PHASES))]
        pub phase: Option<MachinePhase>,
        /// When the first certificate of a control plane machine expires.
        pub certificates_expiry_date: Option<Time>,
        /// Whether the boot data is available.
        pub bootstrap_ready: Option<bool>,
        /// Whether the infrastructure is provisioned.
        pub infrastructure_ready: Option<bool>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Progress of the deletion.
        pub deletion: Option<MachineDeletionStatus>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Conditions>,
    }

    /// Status under the v1beta2 contract, where that is conditions alone.
    pub struct V1Beta2Conditions {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
    }

    /// Maintains a number of machines of one template.
    pub struct MachineSet {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: MachineSetSpec,
        /// Observed state.
        pub status: MachineSetStatus,
    }

    /// Desired state of a MachineSet.
    pub struct MachineSetSpec {
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub cluster_name: String,
        /// Desired number of machines.
        pub replicas: Option<i32>,
        /// Seconds that a machine must be ready to be available.
        pub min_ready_seconds: Option<i32>,
        /// Order in which machines are deleted when scaling down.
        pub delete_policy: Option<MachineSetDeletionOrder>,
        /// Label selector of the machines.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Template of the machines.
        pub template: MachineTemplateSpec,
        /// Naming of the machines.
        pub machine_naming_strategy: Option<MachineNamingStrategy>,
    }

    /// Template of the machines.
    pub struct MachineTemplateSpec {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state of each machine.
        pub spec: MachineSpec,
    }

    /// Naming of the machines.
    pub struct MachineNamingStrategy {
        /// Go template of the names, with the variables `.cluster.name`, `.random` and the owner's `.name`.
        #[schemars(length(min = 1, max = 256))]
        pub template: String,
    }

    /// Observed state of a MachineSet.
    pub struct MachineSetStatus {
        /// The label selector as text, for the scale subresource.
        #[schemars(length(min = 1, max = 4096))]
        pub selector: String,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Machines that have all labels of the template.
        pub fully_labeled_replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: Option<i32>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Kubernetes versions of the machines, with the number of machines of each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Replicas>,
    }

    /// Status under the v1beta2 contract: conditions and counts.
    pub struct V1Beta2Replicas {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: Option<i32>,
        /// Machines that are up to date.
        pub up_to_date_replicas: Option<i32>,
    }

    /// A group of machines of one template, replaced by a rollout when the template changes.
    pub struct MachineDeployment {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
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
        /// Machines that were created before this time are replaced once it has passed.
        pub rollout_after: Option<Time>,
        /// Label selector of the MachineSets and machines.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub template: MachineTemplateSpec,
        /// Strategy of rollouts.
        pub strategy: Option<MachineDeploymentStrategy>,
        /// Naming of the machines.
        pub machine_naming_strategy: Option<MachineNamingStrategy>,
        /// Seconds that a machine must be ready to be available.
        pub min_ready_seconds: Option<i32>,
        /// No longer used.
        pub revision_history_limit: Option<i32>,
        /// Whether rollouts are paused.
        pub paused: Option<bool>,
        /// No longer used.
        pub progress_deadline_seconds: Option<i32>,
    }

    /// Strategy of rollouts of a MachineDeployment.
    pub struct MachineDeploymentStrategy {
        /// Type of the strategy.
        #[serde(rename = "type")]
        pub kind: Option<MachineDeploymentRolloutStrategyType>,
        /// Settings of a rolling update.
        pub rolling_update: Option<MachineRollingUpdateDeployment>,
        /// Limits of the remediation of unhealthy machines.
        pub remediation: Option<RemediationStrategy>,
    }

    /// Settings of a rolling update.
    pub struct MachineRollingUpdateDeployment {
        /// Maximum number or percentage of replicas that may be unavailable during a rollout.
        pub max_unavailable: Option<IntOrString>,
        /// Maximum number or percentage of machines above the desired replicas during a rollout.
        pub max_surge: Option<IntOrString>,
        /// Order in which machines are deleted when scaling down.
        pub delete_policy: Option<MachineSetDeletionOrder>,
    }

    /// Limits of the remediation of unhealthy machines.
    pub struct RemediationStrategy {
        /// Maximum number or percentage of machines under remediation at a time.
        pub max_in_flight: Option<IntOrString>,
    }

    /// Observed state of a MachineDeployment.
    pub struct MachineDeploymentStatus {
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// The label selector as text, for the scale subresource.
        #[schemars(length(min = 1, max = 4096))]
        pub selector: String,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Machines of the latest template.
        pub updated_replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: Option<i32>,
        /// Machines that are missing or not available.
        pub unavailable_replicas: Option<i32>,
        /// Lifecycle phase, for display only: evaluate the conditions instead.
        pub phase: Option<MachineDeploymentPhase>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Kubernetes versions of the machines, with the number of machines of each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Replicas>,
    }

    /// A group of machines that the infrastructure provider manages.
    pub struct MachinePool {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
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
        /// Seconds that a machine must be ready to be available.
        pub min_ready_seconds: Option<i32>,
        /// Provider ids of the machines. Set by the infrastructure provider.
        #[serde(rename = "providerIDList")]
        #[schemars(length(max = 10000), inner(length(min = 1, max = 512)))]
        pub provider_id_list: Vec<String>,
        /// Failure domains the machines are spread over.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub failure_domains: Vec<String>,
    }

    /// Observed state of a MachinePool.
    pub struct MachinePoolStatus {
        /// References to the Nodes of the machines.
        #[schemars(length(max = 10000))]
        pub node_refs: Vec<ObjectReference>,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that are available: ready for at least `minReadySeconds`.
        pub available_replicas: Option<i32>,
        /// Machines that are missing or not available.
        pub unavailable_replicas: Option<i32>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Lifecycle phase, for display only: evaluate the conditions instead.
        pub phase: Option<MachinePoolPhase>,
        /// Whether the boot data is available.
        pub bootstrap_ready: Option<bool>,
        /// Whether the infrastructure is provisioned.
        pub infrastructure_ready: Option<bool>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Kubernetes versions of the machines, with the number of machines of each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Replicas>,
    }

    /// Finds unhealthy machines and requests their remediation.
    pub struct MachineHealthCheck {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: MachineHealthCheckSpec,
        /// Observed state.
        pub status: MachineHealthCheckStatus,
    }

    /// Desired state of a MachineHealthCheck.
    pub struct MachineHealthCheckSpec {
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub cluster_name: String,
        /// Label selector of the machines to check.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Conditions of the node, any of which makes the machine unhealthy.
        #[schemars(length(max = 100))]
        pub unhealthy_conditions: Vec<UnhealthyCondition>,
        /// Conditions of the machine, any of which makes it unhealthy.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub unhealthy_machine_conditions: Vec<UnhealthyMachineCondition>,
        /// Remediation is allowed while at most this number or percentage of machines is unhealthy.
        pub max_unhealthy: Option<IntOrString>,
        /// Remediation is allowed while the number of unhealthy machines is in this range, such as `[3-5]`.
        #[schemars(length(min = 1, max = 32), regex(pattern = pattern::RANGE))]
        pub unhealthy_range: Option<String>,
        /// Timeout of a machine to get a Node. 0 disables the check.
        pub node_startup_timeout: Option<String>,
        /// Template of a request to an external remediation controller.
        pub remediation_template: Option<ObjectReference>,
    }

    /// A condition that makes a Node unhealthy after a timeout.
    pub struct UnhealthyCondition {
        /// Type of the condition.
        #[serde(rename = "type")]
        #[schemars(length(min = 1), extend("x-required" = true))]
        pub kind: String,
        /// Status of the condition that is unhealthy.
        #[schemars(length(min = 1), extend("x-required" = true))]
        pub status: String,
        /// Time after which the status is unhealthy.
        #[schemars(extend("x-required" = true))]
        pub timeout: String,
    }

    /// A condition that makes a machine unhealthy after a timeout.
    pub struct UnhealthyMachineCondition {
        /// Type of the condition.
        #[serde(rename = "type")]
        #[schemars(
            length(min = 1, max = 316),
            regex(pattern = pattern::CONDITION_TYPE),
            extend("x-required" = true, "x-kubernetes-validations" = [rule(r"!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])", "type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated")])
        )]
        pub kind: String,
        /// Status of the condition that is unhealthy.
        #[schemars(extend("x-required" = true))]
        pub status: Option<ConditionStatus>,
        /// Time after which the status is unhealthy.
        #[schemars(extend("x-required" = true))]
        pub timeout: String,
    }

    /// Observed state of a MachineHealthCheck.
    pub struct MachineHealthCheckStatus {
        /// Number of selected machines.
        #[schemars(range(min = 0))]
        pub expected_machines: Option<i32>,
        /// Number of selected machines that are healthy.
        #[schemars(range(min = 0))]
        pub current_healthy: Option<i32>,
        /// Number of additional remediations that are allowed.
        #[schemars(range(min = 0))]
        pub remediations_allowed: Option<i32>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Names of the selected machines.
        #[schemars(length(max = 10000), inner(length(min = 1, max = 253)))]
        pub targets: Vec<String>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Conditions>,
    }

    /// Labels and annotations of objects created from a template.
    pub struct TemplateMeta {
        /// Labels of the objects.
        pub labels: BTreeMap<String, String>,
        /// Annotations of the objects.
        pub annotations: BTreeMap<String, String>,
    }
}

/// Without updates in place, which v1beta1 does not know.
const OLD_PHASES: [MachinePhase; 8] = [
    MachinePhase::Pending,
    MachinePhase::Provisioning,
    MachinePhase::Provisioned,
    MachinePhase::Running,
    MachinePhase::Deleting,
    MachinePhase::Deleted,
    MachinePhase::Failed,
    MachinePhase::Unknown,
];
