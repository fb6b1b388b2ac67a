//! `spec.topology` of a Cluster: its shape when it is with a ClusterClass.

use capstan_object::{IntOrString, Key, Time};
use serde_json::Value;

use super::common::{MachineTaint, TemplateMeta};
use super::machine::{MachineDeletionSpec, MachineReadinessGate};
use super::machine_deployment::MachineDeploymentRolloutSpec;
use super::machine_health_check::{
    MachineHealthCheckChecks, MachineHealthCheckRemediation, MachineHealthCheckRemediationTemplateReference,
    MachineHealthCheckRemediationTriggerIf,
};
use super::machine_set::MachineSetDeletionOrder;
use crate::schema::pattern;
use crate::wire::wire;

wire! {
    /// Desired topology of a cluster with a ClusterClass.
    pub struct Topology {
        /// Reference to the ClusterClass.
        #[schemars(extend("x-required" = true))]
        pub class_ref: ClusterClassRef,
        /// Kubernetes version of the whole cluster.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub version: String,
        /// Settings of the control plane.
        pub control_plane: ControlPlaneTopology,
        /// Settings of the workers.
        pub workers: WorkersTopology,
        /// Values of the ClusterClass's variables.
        #[schemars(
            length(min = 1, max = 1000),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub variables: Vec<ClusterVariable>,
    }

    /// Reference to a ClusterClass.
    pub struct ClusterClassRef {
        /// Name of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
        /// Namespace of the ClusterClass; the cluster's own if absent.
        #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_LABEL))]
        pub namespace: String,
    }

    /// Control plane of a cluster with a ClusterClass.
    #[schemars(extend("minProperties" = 1))]
    pub struct ControlPlaneTopology {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Settings of rollouts.
        pub rollout: ControlPlaneTopologyRolloutSpec,
        /// Health check and remediation.
        pub health_check: ControlPlaneTopologyHealthCheck,
        /// Settings of the deletion of machines.
        pub deletion: MachineDeletionSpec,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
        /// Additional conditions that must be met for a machine to be ready.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// Values of variables for this part of the topology.
        pub variables: TopologyVariables,
    }

    /// Settings of rollouts of the control plane.
    #[schemars(extend("minProperties" = 1))]
    pub struct ControlPlaneTopologyRolloutSpec {
        /// Machines that were created before this time are replaced once it has passed.
        pub after: Option<Time>,
    }

    /// Health check of the control plane.
    #[schemars(extend("minProperties" = 1))]
    pub struct ControlPlaneTopologyHealthCheck {
        /// Whether this is enabled.
        pub enabled: Option<bool>,
        /// Checks that make a machine unhealthy.
        pub checks: MachineHealthCheckChecks,
        /// Remediation of unhealthy machines.
        pub remediation: MachineHealthCheckRemediation,
    }

    /// Workers of a cluster with a ClusterClass.
    #[schemars(extend("minProperties" = 1))]
    pub struct WorkersTopology {
        /// MachineDeployments of the cluster.
        #[schemars(
            length(min = 1, max = 2000),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub machine_deployments: Vec<MachineDeploymentTopology>,
        /// MachinePools of the cluster.
        #[schemars(
            length(min = 1, max = 2000),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub machine_pools: Vec<MachinePoolTopology>,
    }

    /// A MachineDeployment of a topology.
    pub struct MachineDeploymentTopology {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Class within the ClusterClass.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub class: String,
        /// Name of the MachineDeployment in the topology, unique in the cluster.
        #[schemars(
            length(min = 1, max = 63),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
        /// Failure domain for the machines.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: String,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Health check and remediation.
        pub health_check: MachineDeploymentTopologyHealthCheck,
        /// Settings of the deletion of machines.
        pub deletion: MachineDeploymentTopologyMachineDeletionSpec,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
        /// Seconds that a machine must be ready to be available.
        #[schemars(range(min = 0))]
        pub min_ready_seconds: Option<i32>,
        /// Additional conditions that must be met for a machine to be ready.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// Settings of rollouts.
        pub rollout: MachineDeploymentRolloutSpec,
        /// Values of variables for this part of the topology.
        pub variables: TopologyVariables,
    }

    /// Health check of a MachineDeployment of a topology.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentTopologyHealthCheck {
        /// Whether this is enabled.
        pub enabled: Option<bool>,
        /// Checks that make a machine unhealthy.
        pub checks: MachineHealthCheckChecks,
        /// Remediation of unhealthy machines.
        pub remediation: MachineDeploymentTopologyHealthCheckRemediation,
    }

    /// Remediation of unhealthy machines of a MachineDeployment.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentTopologyHealthCheckRemediation {
        /// Maximum number or percentage of machines under remediation at a time.
        pub max_in_flight: Option<IntOrString>,
        /// Conditions under which remediation is allowed. Defaults to always.
        pub trigger_if: MachineHealthCheckRemediationTriggerIf,
        /// Template of a request to an external remediation controller.
        pub template_ref: MachineHealthCheckRemediationTemplateReference,
    }

    /// How machines of a group are deleted.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentTopologyMachineDeletionSpec {
        /// Order in which machines are deleted when scaling down.
        pub order: Option<MachineSetDeletionOrder>,
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

    /// A pool of worker machines.
    pub struct MachinePoolTopology {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Class within the ClusterClass.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub class: String,
        /// Name of the pool, unique in the cluster.
        #[schemars(
            length(min = 1, max = 63),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
        /// Failure domains to use.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub failure_domains: Vec<String>,
        /// Settings of the deletion of machines.
        pub deletion: MachineDeletionSpec,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
        /// Seconds that a machine must be ready to be available.
        #[schemars(range(min = 0))]
        pub min_ready_seconds: Option<i32>,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Values of variables for this part of the topology.
        pub variables: TopologyVariables,
    }

    /// Value of a variable.
    pub struct ClusterVariable {
        /// Name of the variable.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Value, of the type the ClusterClass declares.
        #[schemars(extend("x-required" = true))]
        pub value: Value,
    }

    /// Variables with values of their own.
    #[schemars(extend("minProperties" = 1))]
    pub struct TopologyVariables {
        /// Variables whose values differ from the cluster's.
        #[schemars(
            length(min = 1, max = 1000),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub overrides: Vec<ClusterVariable>,
    }
}

impl ClusterClassRef {
    /// The class that a cluster of this namespace refers to; none without a name.
    pub fn key(&self, namespace: &str) -> Option<Key> {
        let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
        (!self.name.is_empty()).then(|| Key::new(namespace, self.name.as_str()))
    }
}

impl ControlPlaneTopologyHealthCheck {
    /// The topology has a health check of its own: one that it only enables is the class's.
    pub fn is_defined(&self) -> bool {
        self.checks != Default::default() || self.remediation != Default::default()
    }
}

impl MachineDeploymentTopologyHealthCheck {
    /// See [`ControlPlaneTopologyHealthCheck::is_defined`].
    pub fn is_defined(&self) -> bool {
        self.checks != Default::default() || self.remediation != Default::default()
    }
}
