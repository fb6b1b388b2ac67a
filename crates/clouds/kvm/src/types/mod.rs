//! The kinds: `infrastructure.cluster.x-k8s.io/v1beta1`, which follows the contract v1beta2.

pub mod cluster;
pub mod machine;

pub use cluster::{
    Backend, KVMCluster, KVMClusterSpec, KVMClusterStatus, KVMClusterTemplate, KVMClusterTemplateResource,
    KVMClusterTemplateSpec, KVMNetwork,
};
pub use machine::{
    HostVolume, KVMImage, KVMMachine, KVMMachineSpec, KVMMachineStatus, KVMMachineTemplate,
    KVMMachineTemplateResource, KVMMachineTemplateSpec, KVMMachineTemplateStatus, KVMNodeInfo, NodeTaint,
    TaintEffect,
};

capstan_provider_kit::infrastructure!(cluster KVMCluster);
capstan_provider_kit::infrastructure!(machine KVMMachine);
