//! The kinds: `infrastructure.cluster.x-k8s.io/v1beta1`, which follows the contract v1beta2.

pub mod cluster;
pub mod machine;
pub mod pool;

pub use cluster::{
    SimCluster, SimClusterSpec, SimClusterStatus, SimClusterTemplate, SimClusterTemplateResource,
    SimClusterTemplateSpec,
};
pub use machine::{
    Fault, FaultType, SimImage, SimMachine, SimMachineSpec, SimMachineStatus, SimMachineTemplate,
    SimMachineTemplateResource, SimMachineTemplateSpec, SimMachineTemplateStatus, SimNodeInfo,
};
pub use pool::{
    SimMachinePool, SimMachinePoolSpec, SimMachinePoolStatus, SimMachinePoolTemplate,
    SimMachinePoolTemplateResource, SimMachinePoolTemplateSpec,
};

capstan_provider_kit::infrastructure!(cluster SimCluster);
capstan_provider_kit::infrastructure!(machine SimMachine);
capstan_provider_kit::infrastructure!(SimMachinePool);
