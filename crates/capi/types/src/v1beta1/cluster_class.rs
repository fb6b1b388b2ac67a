//! `ClusterClass`.

use std::collections::BTreeMap;

use capstan_object::{Condition, IntOrString, ObjectMeta, object};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::core::{MachineDeploymentStrategy, TemplateMeta, UnhealthyCondition, UnhealthyMachineCondition};
use crate::core::cluster_class::{ClassNamingSpec, ClusterClassUpgrade, PatchDefinition, variable_schema};
use crate::core::{ClusterAvailabilityGate, MachineReadinessGate, MachineTaint, V1Beta1Condition};
use crate::kubernetes::ObjectReference;
use crate::schema::pattern;
use crate::wire::wire;

object!(ClusterClass, "cluster.x-k8s.io" / "v1beta1", "ClusterClass", "clusterclasses", Namespaced);

/// The schema of a type of v1beta2 without what v1beta2 added: patterns, lower bounds of lists and objects, kinds of
/// lists.
fn relaxed<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    fn relax(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                let described = fields.contains_key("type");
                for added in ["minItems", "minProperties", "pattern", "x-kubernetes-list-type"] {
                    if described {
                        fields.remove(added);
                    }
                }
                fields.values_mut().for_each(relax);
            }
            Value::Array(items) => items.iter_mut().for_each(relax),
            _ => {}
        }
    }
    let mut schema = T::json_schema(generator).to_value();
    relax(&mut schema);
    schema.try_into().unwrap_or_default()
}

fn naming(generator: &mut SchemaGenerator) -> Schema {
    relaxed::<ClassNamingSpec>(generator)
}

fn definitions(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = relaxed::<Vec<PatchDefinition>>(generator);
    schema.insert("maxItems".to_owned(), 100.into());
    for (field, longest) in [("apiVersion", 512), ("kind", 256)] {
        let path = format!("/items/properties/selector/properties/{field}/maxLength");
        if let Some(length) = schema.pointer_mut(&path) {
            *length = longest.into();
        }
    }
    schema
}

wire! {
    /// A template for clusters.
    pub struct ClusterClass {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: ClusterClassSpec,
        /// Observed state.
        pub status: ClusterClassStatus,
    }

    /// Desired state of a ClusterClass.
    pub struct ClusterClassSpec {
        /// Additional conditions that must be met for clusters to be available.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
        )]
        pub availability_gates: Vec<ClusterAvailabilityGate>,
        /// Template of the infrastructure cluster.
        pub infrastructure: LocalObjectTemplate,
        /// Naming of the infrastructure cluster.
        #[schemars(schema_with = "naming")]
        pub infrastructure_naming_strategy: Option<ClassNamingSpec>,
        /// Settings of the control plane.
        pub control_plane: ControlPlaneClass,
        /// Settings of the workers.
        pub workers: WorkersClass,
        /// Variables that clusters set and patches use.
        #[schemars(length(max = 1000))]
        pub variables: Vec<ClusterClassVariable>,
        /// Patches of the templates, in order.
        #[schemars(length(max = 1000))]
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

    /// Reference to a template.
    pub struct LocalObjectTemplate {
        /// Reference to the template.
        #[schemars(extend("x-required" = true))]
        pub r#ref: Option<ObjectReference>,
    }

    /// Control planes of clusters.
    pub struct ControlPlaneClass {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Reference to the template.
        #[schemars(extend("x-required" = true))]
        pub r#ref: Option<ObjectReference>,
        /// Infrastructure of the control plane's machines.
        pub machine_infrastructure: Option<LocalObjectTemplate>,
        /// Health check of the machines.
        pub machine_health_check: Option<MachineHealthCheckClass>,
        /// Naming of the object.
        #[schemars(schema_with = "naming")]
        pub naming_strategy: Option<ClassNamingSpec>,
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
    }

    /// Health check of machines of a class.
    pub struct MachineHealthCheckClass {
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

    /// Classes of workers.
    pub struct WorkersClass {
        /// Classes of MachineDeployments.
        #[schemars(
            length(max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"])
        )]
        pub machine_deployments: Vec<MachineDeploymentClass>,
        /// Classes of MachinePools.
        #[schemars(
            length(max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"])
        )]
        pub machine_pools: Vec<MachinePoolClass>,
    }

    /// A class of MachineDeployments.
    pub struct MachineDeploymentClass {
        /// Name of the class.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub class: String,
        /// Templates of the machines.
        #[schemars(extend("x-required" = true))]
        pub template: WorkerClassTemplate,
        /// Health check of the machines.
        pub machine_health_check: Option<MachineHealthCheckClass>,
        /// Failure domain for the machines.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: Option<String>,
        /// Naming of the MachineDeployment.
        #[schemars(schema_with = "naming")]
        pub naming_strategy: Option<ClassNamingSpec>,
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
        /// Strategy of rollouts.
        pub strategy: Option<MachineDeploymentStrategy>,
    }

    /// Templates of workers.
    pub struct WorkerClassTemplate {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Template of the bootstrap configurations.
        #[schemars(extend("x-required" = true))]
        pub bootstrap: LocalObjectTemplate,
        /// Template of the infrastructure.
        #[schemars(extend("x-required" = true))]
        pub infrastructure: LocalObjectTemplate,
    }

    /// A class of MachinePools.
    pub struct MachinePoolClass {
        /// Name of the class.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub class: String,
        /// Templates of the pool.
        #[schemars(extend("x-required" = true))]
        pub template: WorkerClassTemplate,
        /// Failure domains to use.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub failure_domains: Vec<String>,
        /// Naming of the MachinePool.
        #[schemars(schema_with = "naming")]
        pub naming_strategy: Option<ClassNamingSpec>,
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
        pub metadata: TemplateMeta,
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
        pub enabled_if: Option<String>,
        /// Changes of the selected templates, in order.
        #[schemars(schema_with = "definitions")]
        pub definitions: Vec<PatchDefinition>,
        /// Runtime extension that generates the patch.
        pub external: Option<ExternalPatchDefinition>,
    }

    /// A patch that runtime extensions generate.
    pub struct ExternalPatchDefinition {
        /// Extension that generates patches.
        #[schemars(length(min = 1, max = 512))]
        pub generate_extension: Option<String>,
        /// Extension that validates the patched templates.
        #[schemars(length(min = 1, max = 512))]
        pub validate_extension: Option<String>,
        /// Extension that declares variables.
        #[schemars(length(min = 1, max = 512))]
        pub discover_variables_extension: Option<String>,
        /// Settings for the extensions.
        pub settings: BTreeMap<String, String>,
    }

    /// Observed state of a ClusterClass.
    pub struct ClusterClassStatus {
        /// Variables with all their definitions.
        #[schemars(length(max = 1000))]
        pub variables: Vec<ClusterClassStatusVariable>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Generation of the object that this status describes.
        pub observed_generation: i64,
        /// Fields of the v1beta2 contract.
        pub v1beta2: Option<ClusterClassV1Beta2Status>,
    }

    /// Status under the v1beta2 contract.
    pub struct ClusterClassV1Beta2Status {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
    }

    /// A variable with its definitions.
    pub struct ClusterClassStatusVariable {
        /// Name of the variable.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Whether definitions of the variable conflict.
        pub definitions_conflict: Option<bool>,
        /// Definitions of the variable.
        #[schemars(length(max = 100), extend("x-required" = true))]
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
        pub metadata: TemplateMeta,
        /// Schema of the variable.
        #[schemars(extend("x-required" = true))]
        pub schema: VariableSchema,
    }
}
