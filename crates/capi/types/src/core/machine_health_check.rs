//! `MachineHealthCheck`: finds machines that need to be replaced.

use capstan_object::{Condition, ConditionStatus, IntOrString, LabelSelector, ObjectMeta, object};

use super::common::{Deprecated, V1Beta1Conditions};
use crate::schema::{pattern, rule};
use crate::wire::wire;

object!(
    MachineHealthCheck,
    "cluster.x-k8s.io" / "v1beta2",
    "MachineHealthCheck",
    "machinehealthchecks",
    Namespaced
);

wire! {
    /// Finds unhealthy machines and requests their remediation.
    pub struct MachineHealthCheck {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
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
        /// Checks that make a machine unhealthy.
        pub checks: MachineHealthCheckChecks,
        /// Remediation of unhealthy machines.
        pub remediation: MachineHealthCheckRemediation,
    }

    /// Checks that make a machine unhealthy.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineHealthCheckChecks {
        /// Timeout of a machine to get a Node. 0 disables the check.
        #[schemars(range(min = 0))]
        pub node_startup_timeout_seconds: Option<i32>,
        /// Conditions of the node, any of which makes the machine unhealthy.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub unhealthy_node_conditions: Vec<UnhealthyNodeCondition>,
        /// Conditions of the machine, any of which makes it unhealthy.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub unhealthy_machine_conditions: Vec<UnhealthyMachineCondition>,
    }

    /// A condition that makes a Node unhealthy after a timeout.
    pub struct UnhealthyNodeCondition {
        /// Type of the condition.
        #[serde(rename = "type")]
        #[schemars(length(min = 1), extend("x-required" = true))]
        pub kind: String,
        /// Status of the condition that is unhealthy.
        #[schemars(length(min = 1), extend("x-required" = true))]
        pub status: String,
        /// Time after which the status is unhealthy.
        #[schemars(range(min = 0), extend("x-required" = true))]
        pub timeout_seconds: Option<i32>,
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
        #[schemars(range(min = 0), extend("x-required" = true))]
        pub timeout_seconds: Option<i32>,
    }

    /// Remediation of unhealthy machines.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineHealthCheckRemediation {
        /// Conditions under which remediation is allowed. Defaults to always.
        pub trigger_if: MachineHealthCheckRemediationTriggerIf,
        /// Template of a request to an external remediation controller.
        pub template_ref: MachineHealthCheckRemediationTemplateReference,
    }

    /// Conditions under which remediation is allowed.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineHealthCheckRemediationTriggerIf {
        /// Remediation is allowed while at most this number or percentage of machines is unhealthy.
        pub unhealthy_less_than_or_equal_to: Option<IntOrString>,
        /// Remediation is allowed while the number of unhealthy machines is in this range, such as `[3-5]`.
        #[schemars(length(min = 1, max = 32), regex(pattern = pattern::RANGE))]
        pub unhealthy_in_range: String,
    }

    /// Reference to the template of a remediation request.
    pub struct MachineHealthCheckRemediationTemplateReference {
        /// Kind of the object.
        #[schemars(length(min = 1, max = 63), regex(pattern = pattern::KIND), extend("x-required" = true))]
        pub kind: String,
        /// Name of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
        /// API group and version of the object.
        #[schemars(
            length(min = 1, max = 317),
            regex(pattern = pattern::API_VERSION),
            extend("x-required" = true)
        )]
        pub api_version: String,
    }

    /// Observed state of a MachineHealthCheck.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineHealthCheckStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
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
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Names of the selected machines.
        #[schemars(
            length(max = 10000),
            inner(length(min = 1, max = 253)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub targets: Vec<String>,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<V1Beta1Conditions>>,
    }
}

/// Default timeout of a machine to get a Node.
pub const DEFAULT_NODE_STARTUP_TIMEOUT_SECONDS: i32 = 600;

/// Condition types of a MachineHealthCheck, beside the [shared ones](super::condition).
pub mod condition {
    pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
}

/// Reasons of a MachineHealthCheck's conditions, beside the [shared ones](super::reason).
pub mod reason {
    pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";
    pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
}
