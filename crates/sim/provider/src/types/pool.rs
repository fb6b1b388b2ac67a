//! `SimMachinePool` and its template.

use std::collections::BTreeMap;

use capstan_capi_types::core::TemplateMeta;
use capstan_capi_types::wire::wire;
use capstan_object::{Condition, ObjectMeta, object};
use capstan_provider_kit::InitializationStatus;

use super::machine::{SimMachineSpec, SimNodeInfo};

object!(
    SimMachinePool,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "SimMachinePool",
    "simmachinepools",
    Namespaced
);
object!(
    SimMachinePoolTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "SimMachinePoolTemplate",
    "simmachinepooltemplates",
    Namespaced
);

wire! {
    /// A pool of simulated machines. Changes of its template replace the machines one by one.
    pub struct SimMachinePool {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: SimMachinePoolSpec,
        /// Observed state.
        pub status: SimMachinePoolStatus,
    }

    /// Desired state of a pool of simulated machines.
    pub struct SimMachinePoolSpec {
        /// Provider ids of the machines; set by the provider.
        #[serde(rename = "providerIDList")]
        #[schemars(
            length(max = 10000),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub provider_id_list: Vec<String>,
        /// The machines. `providerID` cannot be set.
        pub template: SimMachineSpec,
    }

    /// Observed state of a pool of simulated machines.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimMachinePoolStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Initialization status; part of the provider contract.
        pub initialization: InitializationStatus,
        /// The pool was complete once; what controllers of Cluster API read of pools beside `initialization`.
        pub ready: Option<bool>,
        /// Number of machines; part of the provider contract.
        pub replicas: Option<i32>,
        /// Kind of the object of each machine; part of the provider contract.
        #[schemars(length(min = 1, max = 63))]
        pub infrastructure_machine_kind: String,
        /// Resources of a machine, as quantities; part of the contract with the cluster autoscaler.
        pub capacity: BTreeMap<String, String>,
        /// What a machine runs on; part of the contract with the cluster autoscaler.
        pub node_info: SimNodeInfo,
    }

    /// Template of SimMachinePools.
    pub struct SimMachinePoolTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: SimMachinePoolTemplateSpec,
    }

    /// Template of SimMachinePools.
    pub struct SimMachinePoolTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: SimMachinePoolTemplateResource,
    }

    /// The template of a SimMachinePool.
    pub struct SimMachinePoolTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        pub spec: SimMachinePoolSpec,
    }
}
