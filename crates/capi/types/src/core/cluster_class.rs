//! `ClusterClass`: templates, variables and patches that clusters of one kind share.

use std::collections::BTreeMap;

use capstan_object::{Condition, ObjectMeta, object};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::cluster::ClusterAvailabilityGate;
use super::common::{Deprecated, MachineTaint, TemplateMeta, V1Beta1Conditions};
use super::machine::{MachineDeletionSpec, MachineReadinessGate};
use super::machine_deployment::MachineDeploymentRolloutStrategy;
use super::machine_health_check::{MachineHealthCheckChecks, MachineHealthCheckRemediation};
use super::topology::{
    MachineDeploymentTopologyHealthCheckRemediation, MachineDeploymentTopologyMachineDeletionSpec,
};
use crate::schema::pattern;
use crate::wire::wire;

object!(ClusterClass, "cluster.x-k8s.io" / "v1beta2", "ClusterClass", "clusterclasses", Namespaced);

/// A schema of a variable: any JSON object, checked by admission. As upstream, rules of the variable itself have a default
/// reason, and rules of its fields have none.
pub(crate) fn variable_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            VALIDATIONS: {
                "type": "array",
                "description": "Rules that values obey.",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["rule"],
                "items": {
                    "type": "object",
                    "description": "A rule.",
                    "x-kubernetes-preserve-unknown-fields": true,
                    "required": ["rule"],
                    "properties": {
                        "rule": { "type": "string", "description": "Expression that is true of valid values." },
                        "reason": {
                            "type": "string",
                            "description": "Reason of the error when the rule is broken.",
                            "x-default": DEFAULT_REASON,
                        },
                    },
                },
            },
        },
    })
}

/// Rules in a schema.
pub(crate) const VALIDATIONS: &str = "x-kubernetes-validations";
/// Reason of a broken rule that names none.
pub(crate) const DEFAULT_REASON: &str = "FieldValueInvalid";

wire! {
    /// A template for clusters.
    pub struct ClusterClass {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: ClusterClassSpec,
        /// Observed state.
        pub status: ClusterClassStatus,
    }

    /// Desired state of a ClusterClass.
    pub struct ClusterClassSpec {
        /// Additional conditions that must be met for clusters to be available.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub availability_gates: Vec<ClusterAvailabilityGate>,
        /// Infrastructure of the cluster.
        #[schemars(extend("x-required" = true))]
        pub infrastructure: InfrastructureClass,
        /// Settings of the control plane.
        #[schemars(extend("x-required" = true))]
        pub control_plane: ControlPlaneClass,
        /// Settings of the workers.
        pub workers: WorkersClass,
        /// Variables that clusters set and patches use.
        #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
        pub variables: Vec<ClusterClassVariable>,
        /// Patches of the templates, in order.
        #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
        pub patches: Vec<ClusterClassPatch>,
        /// Settings of upgrade planning.
        pub upgrade: ClusterClassUpgrade,
        /// Kubernetes versions that clusters may have, oldest first; upgrades pass through them.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub kubernetes_versions: Vec<String>,
    }

    /// Infrastructure of clusters.
    pub struct InfrastructureClass {
        /// Template of the infrastructure cluster.
        #[schemars(extend("x-required" = true))]
        pub template_ref: ClusterClassTemplateReference,
        /// Naming of the object.
        pub naming: ClassNamingSpec,
    }

    /// Control planes of clusters.
    pub struct ControlPlaneClass {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Template of the control plane.
        #[schemars(extend("x-required" = true))]
        pub template_ref: ClusterClassTemplateReference,
        /// Infrastructure of the control plane's machines.
        pub machine_infrastructure: ClassTemplate,
        /// Health check of the machines.
        pub health_check: ControlPlaneClassHealthCheck,
        /// Naming of the object.
        pub naming: ClassNamingSpec,
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
    }

    /// Health check of control planes.
    #[schemars(extend("minProperties" = 1))]
    pub struct ControlPlaneClassHealthCheck {
        /// Checks that make a machine unhealthy.
        pub checks: MachineHealthCheckChecks,
        /// Remediation of unhealthy machines.
        pub remediation: MachineHealthCheckRemediation,
    }

    /// Naming of an object.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClassNamingSpec {
        /// Template of the name.
        #[schemars(length(min = 1, max = 1024))]
        pub template: String,
    }

    /// Reference to a template.
    pub struct ClassTemplate {
        /// Reference to the template.
        #[schemars(extend("x-required" = true))]
        pub template_ref: ClusterClassTemplateReference,
    }

    /// Reference to a template in the namespace of the class.
    pub struct ClusterClassTemplateReference {
        /// Kind of the template.
        #[schemars(length(min = 1, max = 63), regex(pattern = pattern::KIND), extend("x-required" = true))]
        pub kind: String,
        /// Name of the template.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
        /// API group and version of the template.
        #[schemars(
            length(min = 1, max = 317),
            regex(pattern = pattern::API_VERSION),
            extend("x-required" = true)
        )]
        pub api_version: String,
    }

    /// Classes of workers.
    #[schemars(extend("minProperties" = 1))]
    pub struct WorkersClass {
        /// Classes of MachineDeployments.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"])
        )]
        pub machine_deployments: Vec<MachineDeploymentClass>,
        /// Classes of MachinePools.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"])
        )]
        pub machine_pools: Vec<MachinePoolClass>,
    }

    /// A class of MachineDeployments.
    pub struct MachineDeploymentClass {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Name of the class.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub class: String,
        /// Template of the bootstrap configurations.
        #[schemars(extend("x-required" = true))]
        pub bootstrap: ClassTemplate,
        /// Template of the infrastructure machines.
        #[schemars(extend("x-required" = true))]
        pub infrastructure: ClassTemplate,
        /// Health check of the machines.
        pub health_check: MachineDeploymentClassHealthCheck,
        /// Failure domain for the machines.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: String,
        /// Naming of the MachineDeployment.
        pub naming: ClassNamingSpec,
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
        /// Strategy of rollouts.
        pub rollout: MachineDeploymentClassRolloutSpec,
    }

    /// Health check of a class of MachineDeployments.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentClassHealthCheck {
        /// Checks that make a machine unhealthy.
        pub checks: MachineHealthCheckChecks,
        /// Remediation of unhealthy machines.
        pub remediation: MachineDeploymentTopologyHealthCheckRemediation,
    }

    /// Settings of rollouts of a class of MachineDeployments.
    #[schemars(extend("minProperties" = 1))]
    pub struct MachineDeploymentClassRolloutSpec {
        /// Strategy of rollouts.
        pub strategy: MachineDeploymentRolloutStrategy,
    }

    /// A class of MachinePools.
    pub struct MachinePoolClass {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Name of the class.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub class: String,
        /// Template of the bootstrap configuration.
        #[schemars(extend("x-required" = true))]
        pub bootstrap: ClassTemplate,
        /// Template of the infrastructure machine pool.
        #[schemars(extend("x-required" = true))]
        pub infrastructure: ClassTemplate,
        /// Failure domains to use.
        #[schemars(
            length(max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub failure_domains: Vec<String>,
        /// Naming of the MachinePool.
        pub naming: ClassNamingSpec,
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
    }

    /// A variable of a class.
    pub struct ClusterClassVariable {
        /// Name of the variable.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Whether clusters must set it.
        #[schemars(extend("x-required" = true))]
        pub required: Option<bool>,
        /// No longer used.
        #[serde(rename = "deprecatedV1Beta1Metadata")]
        pub deprecated_v1beta1_metadata: TemplateMeta,
        /// Schema of the variable.
        #[schemars(extend("x-required" = true))]
        pub schema: VariableSchema,
    }

    /// Schema of a variable.
    pub struct VariableSchema {
        /// Structural schema of the values.
        #[serde(rename = "openAPIV3Schema")]
        #[schemars(schema_with = "variable_schema", extend("x-required" = true))]
        pub open_api_v3_schema: Value,
    }

    /// A patch of templates.
    pub struct ClusterClassPatch {
        /// Name of the patch.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Description of the purpose.
        #[schemars(length(min = 1, max = 1024))]
        pub description: String,
        /// Go template; the patch is enabled if it renders to `true`.
        #[schemars(length(min = 1, max = 256))]
        pub enabled_if: String,
        /// Changes of the selected templates, in order.
        #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub definitions: Vec<PatchDefinition>,
        /// Runtime extension that generates the patch.
        pub external: Option<ExternalPatchDefinition>,
    }

    /// Changes of the selected templates.
    pub struct PatchDefinition {
        /// Selector of the templates.
        #[schemars(extend("x-required" = true))]
        pub selector: PatchSelector,
        /// JSON patches, in order.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-required" = true, "x-kubernetes-list-type" = "atomic")
        )]
        pub json_patches: Vec<JsonPatch>,
    }

    /// Selects templates.
    pub struct PatchSelector {
        /// API group and version of the templates.
        #[schemars(
            length(min = 1, max = 317),
            regex(pattern = pattern::API_VERSION),
            extend("x-required" = true)
        )]
        pub api_version: String,
        /// Kind of the templates.
        #[schemars(length(min = 1, max = 63), regex(pattern = pattern::KIND), extend("x-required" = true))]
        pub kind: String,
        /// Use of the templates in a class.
        #[schemars(extend("x-required" = true))]
        pub match_resources: PatchSelectorMatch,
    }

    /// Use of a template in a class.
    #[schemars(extend("minProperties" = 1))]
    pub struct PatchSelectorMatch {
        /// Matches templates of the control plane and its machines.
        pub control_plane: Option<bool>,
        /// Matches the template of the infrastructure cluster.
        pub infrastructure_cluster: Option<bool>,
        /// Matches templates of these classes of MachineDeployments.
        pub machine_deployment_class: Option<PatchSelectorMatchClass>,
        /// Matches templates of these classes of MachinePools.
        pub machine_pool_class: Option<PatchSelectorMatchClass>,
    }

    /// Selects classes of workers.
    pub struct PatchSelectorMatchClass {
        /// Names of the classes. `*` alone, at the start or at the end of a name is a wildcard.
        #[schemars(
            length(max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub names: Vec<String>,
    }

    /// A JSON patch (RFC 6902).
    pub struct JsonPatch {
        /// Operation: `add`, `replace` or `remove`.
        #[schemars(extend("x-required" = true, "enum" = ["add", "replace", "remove"]))]
        pub op: String,
        /// Path in the template, below `/spec`.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub path: String,
        /// Value of the operation.
        pub value: Option<Value>,
        /// Source of the value.
        pub value_from: Option<JsonPatchValue>,
    }

    /// Source of the value of a JSON patch.
    pub struct JsonPatchValue {
        /// Path of a variable or of a field of a variable.
        #[schemars(length(min = 1, max = 256))]
        pub variable: String,
        /// Go template that renders to YAML.
        #[schemars(length(min = 1, max = 10240))]
        pub template: String,
    }

    /// A patch that runtime extensions generate.
    pub struct ExternalPatchDefinition {
        /// Extension that generates patches.
        #[schemars(length(min = 1, max = 512))]
        pub generate_patches_extension: String,
        /// Extension that validates the patched templates.
        #[schemars(length(min = 1, max = 512))]
        pub validate_topology_extension: String,
        /// Extension that declares variables.
        #[schemars(length(min = 1, max = 512))]
        pub discover_variables_extension: String,
        /// Settings for the extensions.
        pub settings: BTreeMap<String, String>,
    }

    /// Settings of upgrade planning.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterClassUpgrade {
        /// Runtime extension that plans upgrades.
        pub external: ClusterClassUpgradeExternal,
    }

    /// Runtime extension that plans upgrades.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterClassUpgradeExternal {
        /// Name of the extension.
        #[schemars(length(min = 1, max = 512))]
        pub generate_upgrade_plan_extension: String,
    }

    /// Observed state of a ClusterClass.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterClassStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Variables with all their definitions.
        #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
        pub variables: Vec<ClusterClassStatusVariable>,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<V1Beta1Conditions>>,
    }

    /// A variable with its definitions.
    pub struct ClusterClassStatusVariable {
        /// Name of the variable.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Whether definitions of the variable conflict.
        pub definitions_conflict: Option<bool>,
        /// Definitions of the variable.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-required" = true, "x-kubernetes-list-type" = "atomic")
        )]
        pub definitions: Vec<ClusterClassStatusVariableDefinition>,
    }

    /// A definition of a variable.
    pub struct ClusterClassStatusVariableDefinition {
        /// Origin of the definition: `inline`, or the name of a patch.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub from: String,
        /// Whether clusters must set it.
        #[schemars(extend("x-required" = true))]
        pub required: Option<bool>,
        /// No longer used.
        #[serde(rename = "deprecatedV1Beta1Metadata")]
        pub deprecated_v1beta1_metadata: TemplateMeta,
        /// Schema of the variable.
        #[schemars(extend("x-required" = true))]
        pub schema: VariableSchema,
    }
}

/// Origin of variables that the class itself defines.
pub const DEFINED_INLINE: &str = "inline";

/// Condition types of a ClusterClass, beside the [shared ones](super::condition).
pub mod condition {
    pub const VARIABLES_READY: &str = "VariablesReady";
    pub const REF_VERSIONS_UP_TO_DATE: &str = "RefVersionsUpToDate";
}

/// Reasons of a ClusterClass's conditions, beside the [shared ones](super::reason).
pub mod reason {
    pub const VARIABLES_READY: &str = "VariablesReady";
    pub const VARIABLE_DISCOVERY_FAILED: &str = "VariableDiscoveryFailed";
    pub const REF_VERSIONS_UP_TO_DATE: &str = "RefVersionsUpToDate";
    pub const REF_VERSIONS_NOT_UP_TO_DATE: &str = "RefVersionsNotUpToDate";
}

impl ClusterClassTemplateReference {
    pub fn is_defined(&self) -> bool {
        *self != Self::default()
    }

    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

impl ClusterClassSpec {
    /// Every template that the class names, with the path of the field.
    pub fn templates(&self) -> Vec<(String, &ClusterClassTemplateReference)> {
        let mut all = vec![
            ("spec.infrastructure".to_owned(), &self.infrastructure.template_ref),
            ("spec.controlPlane".to_owned(), &self.control_plane.template_ref),
        ];
        let machines = &self.control_plane.machine_infrastructure.template_ref;
        if machines.is_defined() {
            all.push(("spec.controlPlane.machineInfrastructure".to_owned(), machines));
        }
        for (at, class) in self.workers.machine_deployments.iter().enumerate() {
            let path = format!("spec.workers.machineDeployments[{at}].template");
            all.push((format!("{path}.bootstrap"), &class.bootstrap.template_ref));
            all.push((format!("{path}.infrastructure"), &class.infrastructure.template_ref));
        }
        for (at, class) in self.workers.machine_pools.iter().enumerate() {
            let path = format!("spec.workers.machinePools[{at}].template");
            all.push((format!("{path}.bootstrap"), &class.bootstrap.template_ref));
            all.push((format!("{path}.infrastructure"), &class.infrastructure.template_ref));
        }
        all
    }
}
