//! `spec.topology` of a Cluster.

use capstan_object::{IntOrString, Time};
use serde_json::Value;

use super::core::{MachineDeploymentStrategy, TemplateMeta, UnhealthyCondition, UnhealthyMachineCondition};
use crate::core::topology::ControlPlaneTopologyRolloutSpec;
use crate::core::{MachineReadinessGate, MachineTaint};
use crate::kubernetes::ObjectReference;
use crate::schema::pattern;
use crate::wire::wire;

wire! {
    /// Desired topology of a cluster with a ClusterClass.
    pub struct Topology {
        /// Reference to the ClusterClass.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub class: String,
        /// Namespace of the ClusterClass; the cluster's own if absent.
        #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_LABEL))]
        pub class_namespace: String,
        /// Kubernetes version of the whole cluster.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub version: String,
        /// No longer used.
        pub rollout_after: Option<Time>,
        /// Settings of the control plane.
        pub control_plane: ControlPlaneTopology,
        /// Settings of the workers.
        pub workers: Option<WorkersTopology>,
        /// Values of the ClusterClass's variables.
        #[schemars(
            length(max = 1000),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub variables: Vec<ClusterVariable>,
    }

    /// Control plane of a cluster with a ClusterClass.
    pub struct ControlPlaneTopology {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Settings of rollouts.
        pub rollout: ControlPlaneTopologyRolloutSpec,
        /// Health check of the machines.
        pub machine_health_check: Option<MachineHealthCheckTopology>,
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
        /// Additional conditions that must be met for a machine to be ready.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// Values of variables for this part of the topology.
        pub variables: Option<TopologyVariables>,
    }

    /// Health check of machines of a topology.
    pub struct MachineHealthCheckTopology {
        /// Whether this is enabled.
        pub enable: Option<bool>,
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

    /// Variables with values of their own.
    pub struct TopologyVariables {
        /// Variables whose values differ from the cluster's.
        #[schemars(
            length(max = 1000),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub overrides: Vec<ClusterVariable>,
    }

    /// Value of a variable.
    pub struct ClusterVariable {
        /// Name of the variable.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// No longer used.
        #[schemars(length(max = 256))]
        pub definition_from: String,
        /// Value, of the type the ClusterClass declares.
        #[schemars(extend("x-required" = true))]
        pub value: Value,
    }

    /// Workers of a cluster with a ClusterClass.
    pub struct WorkersTopology {
        /// MachineDeployments of the cluster.
        #[schemars(
            length(max = 2000),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub machine_deployments: Vec<MachineDeploymentTopology>,
        /// MachinePools of the cluster.
        #[schemars(
            length(max = 2000),
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
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub name: String,
        /// Failure domain for the machines.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: Option<String>,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Health check of the machines.
        pub machine_health_check: Option<MachineHealthCheckTopology>,
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
        /// Seconds that a machine must be ready to be available.
        pub min_ready_seconds: Option<i32>,
        /// Additional conditions that must be met for a machine to be ready.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub readiness_gates: Vec<MachineReadinessGate>,
        /// Settings of rollouts.
        pub rollout: ControlPlaneTopologyRolloutSpec,
        /// Strategy of rollouts.
        pub strategy: Option<MachineDeploymentStrategy>,
        /// Values of variables for this part of the topology.
        pub variables: Option<TopologyVariables>,
    }

    /// A pool of worker machines.
    pub struct MachinePoolTopology {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Class within the ClusterClass.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub class: String,
        /// Name of the pool, unique in the cluster.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub name: String,
        /// Failure domains to use.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub failure_domains: Vec<String>,
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
        /// Seconds that a machine must be ready to be available.
        pub min_ready_seconds: Option<i32>,
        /// Number of machines.
        pub replicas: Option<i32>,
        /// Values of variables for this part of the topology.
        pub variables: Option<TopologyVariables>,
    }
}
