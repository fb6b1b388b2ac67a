//! The kinds: `infrastructure.cluster.x-k8s.io/v1beta1`, which follows the contract v1beta2.

pub mod cluster;
pub mod machine;

pub use cluster::{
    SimCluster, SimClusterSpec, SimClusterStatus, SimClusterTemplate, SimClusterTemplateResource,
    SimClusterTemplateSpec,
};
pub use machine::{
    Fault, FaultType, SimImage, SimMachine, SimMachineSpec, SimMachineStatus, SimMachineTemplate,
    SimMachineTemplateResource, SimMachineTemplateSpec,
};

capstan_capi_types::wire::wire! {
    /// Milestones of simulated infrastructure.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimInitializationStatus {
        /// The infrastructure is there; contract with the core.
        pub provisioned: Option<bool>,
    }
}
