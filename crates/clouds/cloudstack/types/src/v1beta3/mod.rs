//! `v1beta3`: what is stored, and what controllers use.

mod affinity_group;
mod cluster;
mod cluster_template;
mod common;
mod failure_domain;
mod isolated_network;
mod machine;
mod machine_state_checker;
mod machine_template;

pub use affinity_group::{
    CloudStackAffinityGroup, CloudStackAffinityGroupSpec, CloudStackAffinityGroupStatus,
};
pub use cluster::{CloudStackCluster, CloudStackClusterSpec, CloudStackClusterStatus, FailureDomains};
pub use cluster_template::{
    CloudStackClusterTemplate, CloudStackClusterTemplateResource, CloudStackClusterTemplateSpec,
};
pub use common::{Address, Endpoint, Identifier, Initialization, SecretReference};
pub use failure_domain::{
    CloudStackFailureDomain, CloudStackFailureDomainSpec, CloudStackFailureDomainStatus, Network, Vpc, Zone,
};
pub use isolated_network::{
    CloudStackIsolatedNetwork, CloudStackIsolatedNetworkSpec, CloudStackIsolatedNetworkStatus,
};
pub use machine::{
    CloudStackMachine, CloudStackMachineSpec, CloudStackMachineStatus, DiskOffering, MachineNetwork,
};
pub use machine_state_checker::{
    CloudStackMachineStateChecker, CloudStackMachineStateCheckerSpec, CloudStackMachineStateCheckerStatus,
};
pub use machine_template::{
    CloudStackMachineTemplate, CloudStackMachineTemplateResource, CloudStackMachineTemplateSpec,
    CloudStackMachineTemplateStatus, MachineMeta, NodeInfo,
};
