//! The version of releases before 0.15 of CAPO, which most manifests are written in.

mod bastion;
mod cluster;
mod cluster_template;
mod endpoint;
mod machine;
mod machine_template;
mod network;
mod port;
mod reference;
mod security;
mod volume;

pub use bastion::{Bastion, BastionStatus};
pub use cluster::{OpenStackCluster, OpenStackClusterSpec, OpenStackClusterStatus};
pub use cluster_template::{
    OpenStackClusterTemplate, OpenStackClusterTemplateResource, OpenStackClusterTemplateSpec,
};
pub use endpoint::{APIServerLoadBalancer, APIServerLoadBalancerMonitor, LoadBalancer};
pub use machine::{
    MachineResources, OpenStackMachine, OpenStackMachineSpec, OpenStackMachineStatus, ResolvedMachineSpec,
    SchedulerHintAdditionalProperty, SchedulerHintAdditionalValue, ServerMetadata,
};
pub use machine_template::{
    OpenStackMachineTemplate, OpenStackMachineTemplateResource, OpenStackMachineTemplateSpec,
    OpenStackMachineTemplateStatus,
};
pub use network::{
    AllocationPool, ExternalRouterIPParam, NetworkStatus, NetworkStatusWithSubnets, Router, Subnet,
    SubnetSpec,
};
pub use port::{AddressPair, FixedIP, PortOpts, PortStatus, ResolvedPortSpec, ValueSpec};
pub use reference::{ImageParam, OpenStackIdentityReference, ResourceReference, SubnetFilter, SubnetParam};
pub use security::{ManagedSecurityGroups, SecurityGroupRuleSpec, SecurityGroupStatus};
pub use volume::{AdditionalBlockDevice, BlockDeviceStorage, RootVolume};

// As in v1beta2.
pub use crate::v1beta2::{
    BindingProfile, BlockDeviceVolume, ClusterInitialization, ImageFilter, MachineInitialization,
    NetworkFilter, NetworkParam, NodeInfo, ResolvedFixedIP, RouterFilter, RouterParam, SecurityGroupFilter,
    SecurityGroupParam, ServerGroupFilter, ServerGroupParam, VolumeAvailabilityZone,
};
