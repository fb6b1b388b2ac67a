//! The version that is stored and that controllers use.

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
pub use cluster::{ClusterInitialization, OpenStackCluster, OpenStackClusterSpec, OpenStackClusterStatus};
pub use cluster_template::{
    OpenStackClusterTemplate, OpenStackClusterTemplateResource, OpenStackClusterTemplateSpec,
};
pub use endpoint::{APIServer, APIServerLoadBalancer, APIServerLoadBalancerMonitor, LoadBalancer};
pub use machine::{
    MachineInitialization, MachineResources, OpenStackMachine, OpenStackMachineSpec, OpenStackMachineStatus,
    ResolvedMachineSpec, SchedulerHintAdditionalProperty, SchedulerHintAdditionalValue, ServerMetadata,
};
pub use machine_template::{
    NodeInfo, OpenStackMachineTemplate, OpenStackMachineTemplateResource, OpenStackMachineTemplateSpec,
    OpenStackMachineTemplateStatus,
};
pub use network::{
    AllocationPool, ExternalRouterIPParam, ManagedNetwork, ManagedRouter, NetworkStatus,
    NetworkStatusWithSubnets, Router, Subnet, SubnetSpec,
};
pub use port::{
    AddressPair, BindingProfile, FixedIP, PortOpts, PortStatus, ResolvedFixedIP, ResolvedPortSpec, ValueSpec,
};
pub use reference::{
    FlavorFilter, FlavorParam, ImageFilter, ImageParam, NetworkFilter, NetworkParam,
    OpenStackIdentityReference, ResourceReference, RouterFilter, RouterParam, SecurityGroupFilter,
    SecurityGroupParam, ServerGroupFilter, ServerGroupParam, SubnetFilter, SubnetParam,
};
pub use security::{ManagedSecurityGroups, SecurityGroupRuleSpec, SecurityGroupStatus};
pub use volume::{
    AdditionalBlockDevice, BlockDeviceStorage, BlockDeviceVolume, RootVolume, VolumeAvailabilityZone,
};
