//! The kinds: `infrastructure.cluster.x-k8s.io/v1beta1`, which follows the contract v1beta2.

pub mod cluster;
pub mod machine;

pub use cluster::{Backend, KVMCluster, KVMClusterSpec, KVMClusterStatus, KVMNetwork};
pub use machine::{
    HostVolume, KVMImage, KVMMachine, KVMMachineSpec, KVMMachineStatus, KVMMachineTemplate,
    KVMMachineTemplateResource, KVMMachineTemplateSpec, NodeTaint, TaintEffect,
};

capstan_capi_types::wire::wire! {
    /// Milestones of infrastructure on a host.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMInitializationStatus {
        /// The infrastructure is there; contract with the core.
        pub provisioned: Option<bool>,
    }
}
