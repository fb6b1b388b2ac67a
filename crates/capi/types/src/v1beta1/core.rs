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
        /// Stops every controller from acting on the cluster and what belongs to it.
        pub paused: Option<bool>,
        /// Addresses inside the cluster.
        pub cluster_network: Option<ClusterNetwork>,
        /// Where the cluster's API server is reached.
        pub control_plane_endpoint: APIEndpoint,
        /// Object that provides the control plane.
        pub control_plane_ref: Option<ObjectReference>,
        /// Object that provides the cluster's infrastructure.
        pub infrastructure_ref: Option<ObjectReference>,
        /// A cluster with a ClusterClass.
        pub topology: Option<Topology>,
        /// Further conditions the cluster needs to count as available.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub availability_gates: Vec<ClusterAvailabilityGate>,
    }

    /// Addresses inside the cluster.
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
        /// Name or address.
        #[schemars(length(max = 512))]
        pub host: String,
        /// Port.
        pub port: Option<i32>,
    }

    /// Observed state of a cluster.
    pub struct ClusterStatus {
        /// Failure domains the infrastructure offers.
        pub failure_domains: BTreeMap<String, FailureDomainSpec>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// What that error is.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Lifecycle phase, for humans; programs should read the conditions.
        pub phase: Option<ClusterPhase>,
        /// The infrastructure is there.
        pub infrastructure_ready: Option<bool>,
        /// The control plane takes requests.
        pub control_plane_ready: Option<bool>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Status in the words of the v1beta2 contract.
        pub v1beta2: Option<ClusterV1Beta2Status>,
    }

    /// A part of the infrastructure that fails by itself.
    pub struct FailureDomainSpec {
        /// Whether control plane machines may be placed there.
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
        /// Counts of control plane machines.
        pub control_plane: Option<ClusterReplicas>,
        /// Counts of worker machines.
        pub workers: Option<ClusterReplicas>,
    }

    /// A machine that becomes a node of a cluster.
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
        /// Identity of the machine at its provider, equal to that of the node.
        #[serde(rename = "providerID")]
        #[schemars(length(min = 1, max = 512))]
        pub provider_id: Option<String>,
        /// Failure domain the machine is placed in.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: Option<String>,
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
        /// Taints for the node.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }

    /// Source of a machine's boot data.
    pub struct Bootstrap {
        /// The bootstrap config.
        pub config_ref: Option<ObjectReference>,
        /// Name of the Secret with the boot data; set by the provider or by the user.
        #[schemars(length(min = 0, max = 253))]
        pub data_secret_name: Option<String>,
    }

    /// Observed state of a machine.
    pub struct MachineStatus {
        /// Node that the machine became.
        pub node_ref: Option<ObjectReference>,
        /// The node's system information.
        pub node_info: Option<NodeSystemInfo>,
        /// When the phase last changed.
        pub last_updated: Option<Time>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// What that error is.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Addresses of the machine.
        pub addresses: Vec<MachineAddress>,
        /// Lifecycle phase, for humans; programs should read the conditions.
        #[schemars(extend("enum" = OLD_PHASES))]
        pub phase: Option<MachinePhase>,
        /// When the first certificate of a control plane machine expires.
        pub certificates_expiry_date: Option<Time>,
        /// The boot data is there.
        pub bootstrap_ready: Option<bool>,
        /// The infrastructure is there.
        pub infrastructure_ready: Option<bool>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// How far deletion got.
        pub deletion: Option<MachineDeletionStatus>,
        /// Status in the words of the v1beta2 contract.
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

    /// Keeps a number of equal machines.
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
        /// Wanted number of machines.
        pub replicas: Option<i32>,
        /// How long a machine must stay ready before it counts as available.
        pub min_ready_seconds: Option<i32>,
        /// Which machines go first when scaling down.
        pub delete_policy: Option<MachineSetDeletionOrder>,
        /// Labels of the machines that belong to it.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Template of the machines.
        pub template: MachineTemplateSpec,
        /// How machines are named.
        pub machine_naming_strategy: Option<MachineNamingStrategy>,
    }

    /// Template of the machines.
    pub struct MachineTemplateSpec {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state of each machine.
        pub spec: MachineSpec,
    }

    /// How machines are named.
    pub struct MachineNamingStrategy {
        /// Go template of the names; knows `.cluster.name`, `.random` and the owner's `.name`.
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
        /// Machines that carry every label of the template.
        pub fully_labeled_replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that have been ready long enough to count.
        pub available_replicas: Option<i32>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// What that error is.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Kubernetes versions found, and how many machines have each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Status in the words of the v1beta2 contract.
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
        /// Machines that have been ready long enough to count.
        pub available_replicas: Option<i32>,
        /// Machines that are up to date.
        pub up_to_date_replicas: Option<i32>,
    }

    /// A group of machines of one template, replaced step by step when the template changes.
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
        /// Wanted number of machines.
        pub replicas: Option<i32>,
        /// Replace machines created before this time, once it has passed.
        pub rollout_after: Option<Time>,
        /// Labels of the MachineSets and machines that belong to it.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub template: MachineTemplateSpec,
        /// How machines are replaced.
        pub strategy: Option<MachineDeploymentStrategy>,
        /// How machines are named.
        pub machine_naming_strategy: Option<MachineNamingStrategy>,
        /// How long a machine must stay ready before it counts as available.
        pub min_ready_seconds: Option<i32>,
        /// No longer used.
        pub revision_history_limit: Option<i32>,
        /// Stops rollouts.
        pub paused: Option<bool>,
        /// No longer used.
        pub progress_deadline_seconds: Option<i32>,
    }

    /// How machines of a deployment are replaced.
    pub struct MachineDeploymentStrategy {
        /// Which one.
        #[serde(rename = "type")]
        pub kind: Option<MachineDeploymentRolloutStrategyType>,
        /// Settings of a rolling update.
        pub rolling_update: Option<MachineRollingUpdateDeployment>,
        /// How fast unhealthy machines are replaced.
        pub remediation: Option<RemediationStrategy>,
    }

    /// Pace of a rolling update.
    pub struct MachineRollingUpdateDeployment {
        /// Number or percentage of replicas that may be unavailable during a rollout.
        pub max_unavailable: Option<IntOrString>,
        /// Number or percentage of machines above the replicas during a rollout.
        pub max_surge: Option<IntOrString>,
        /// Which machines go first when scaling down.
        pub delete_policy: Option<MachineSetDeletionOrder>,
    }

    /// How fast unhealthy machines are replaced.
    pub struct RemediationStrategy {
        /// How many, or which share, may be under remediation at a time.
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
        /// Machines of the newest template.
        pub updated_replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that have been ready long enough to count.
        pub available_replicas: Option<i32>,
        /// Machines still missing or not yet available.
        pub unavailable_replicas: Option<i32>,
        /// Lifecycle phase, for humans; programs should read the conditions.
        pub phase: Option<MachineDeploymentPhase>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Kubernetes versions found, and how many machines have each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Status in the words of the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Replicas>,
    }

    /// Machines that their infrastructure keeps as one group.
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
        /// Wanted number of machines.
        pub replicas: Option<i32>,
        /// Template of the machines.
        #[schemars(extend("x-required" = true))]
        pub template: MachineTemplateSpec,
        /// How long a machine must stay ready before it counts as available.
        pub min_ready_seconds: Option<i32>,
        /// Identities of the machines at their provider; filled in by it.
        #[serde(rename = "providerIDList")]
        #[schemars(length(max = 10000), inner(length(min = 1, max = 512)))]
        pub provider_id_list: Vec<String>,
        /// Failure domains the machines are spread over.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub failure_domains: Vec<String>,
    }

    /// Observed state of a MachinePool.
    pub struct MachinePoolStatus {
        /// Nodes that the machines became.
        #[schemars(length(max = 10000))]
        pub node_refs: Vec<ObjectReference>,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Machines that are ready.
        pub ready_replicas: Option<i32>,
        /// Machines that have been ready long enough to count.
        pub available_replicas: Option<i32>,
        /// Machines still missing or not yet available.
        pub unavailable_replicas: Option<i32>,
        /// Reason of a terminal failure.
        pub failure_reason: Option<String>,
        /// What that error is.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: Option<String>,
        /// Lifecycle phase, for humans; programs should read the conditions.
        pub phase: Option<MachinePoolPhase>,
        /// The boot data is there.
        pub bootstrap_ready: Option<bool>,
        /// The infrastructure is there.
        pub infrastructure_ready: Option<bool>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Kubernetes versions found, and how many machines have each.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
        )]
        pub versions: Vec<StatusVersion>,
        /// Status in the words of the v1beta2 contract.
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

    /// Which machines are checked, and how.
    pub struct MachineHealthCheckSpec {
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub cluster_name: String,
        /// Labels of the machines that are checked.
        #[schemars(extend("x-required" = true))]
        pub selector: LabelSelector,
        /// Conditions of the node, any of which makes the machine unhealthy.
        #[schemars(length(max = 100))]
        pub unhealthy_conditions: Vec<UnhealthyCondition>,
        /// Conditions of the machine, any of which makes it unhealthy.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub unhealthy_machine_conditions: Vec<UnhealthyMachineCondition>,
        /// Remediate only while at most this many, or this share, are unhealthy.
        pub max_unhealthy: Option<IntOrString>,
        /// Remediate only while the number of unhealthy machines lies in this range, such as `[3-5]`.
        #[schemars(length(min = 1, max = 32), regex(pattern = pattern::RANGE))]
        pub unhealthy_range: Option<String>,
        /// How long a machine may take to get a node; 0 disables the check.
        pub node_startup_timeout: Option<String>,
        /// Template of a request to a remediation of another kind.
        pub remediation_template: Option<ObjectReference>,
    }

    /// A condition of a node that must not last.
    pub struct UnhealthyCondition {
        /// Type of the condition.
        #[serde(rename = "type")]
        #[schemars(length(min = 1), extend("x-required" = true))]
        pub kind: String,
        /// The bad status.
        #[schemars(length(min = 1), extend("x-required" = true))]
        pub status: String,
        /// How long it may last.
        #[schemars(extend("x-required" = true))]
        pub timeout: String,
    }

    /// A condition of a machine that must not last.
    pub struct UnhealthyMachineCondition {
        /// Type of the condition.
        #[serde(rename = "type")]
        #[schemars(
            length(min = 1, max = 316),
            regex(pattern = pattern::CONDITION_TYPE),
            extend("x-required" = true, "x-kubernetes-validations" = [rule(r"!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])", "type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated")])
        )]
        pub kind: String,
        /// The bad status.
        #[schemars(extend("x-required" = true))]
        pub status: Option<ConditionStatus>,
        /// How long it may last.
        #[schemars(extend("x-required" = true))]
        pub timeout: String,
    }

    /// Observed state of the checked machines.
    pub struct MachineHealthCheckStatus {
        /// Machines selected.
        #[schemars(range(min = 0))]
        pub expected_machines: Option<i32>,
        /// Healthy ones among them.
        #[schemars(range(min = 0))]
        pub current_healthy: Option<i32>,
        /// How many more may be remediated.
        #[schemars(range(min = 0))]
        pub remediations_allowed: Option<i32>,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Names of the machines selected.
        #[schemars(length(max = 10000), inner(length(min = 1, max = 253)))]
        pub targets: Vec<String>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Status in the words of the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Conditions>,
    }

    /// Labels and annotations of objects created from a template.
    pub struct TemplateMeta {
        /// Labels.
        pub labels: BTreeMap<String, String>,
        /// Annotations.
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
