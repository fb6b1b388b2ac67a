//! Condition types and reasons of the provider's objects; CAPO's.

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_types::core::condition::READY;
use capstan_controller::{Controller, Look};
use capstan_object::{Condition, ConditionStatus};

/// The credentials are accepted.
pub const AUTHENTICATED: &str = "OpenStackAuthenticationSucceeded";
/// On OpenStackClusters: the network has its subnet.
pub const NETWORK_READY: &str = "NetworkReady";
/// On OpenStackClusters: the router leads from the network to the external network.
pub const ROUTER_READY: &str = "RouterReady";
/// On OpenStackClusters: the managed security groups have their rules.
pub const GROUPS_READY: &str = "SecurityGroupsReady";
/// On OpenStackClusters: the endpoint leads to the control plane.
pub const ENDPOINT_READY: &str = "APIEndpointReady";
/// On OpenStackMachines and OpenStackServers: the server runs.
pub const INSTANCE_READY: &str = "InstanceReady";

/// On OpenStackServers: the floating IP that it claims from a pool leads to it.
pub const FLOATING_IP_READY: &str = "FloatingAddressFromPoolReady";
/// On OpenStackFloatingIPPools: claims get addresses.
pub const POOL_READY: &str = "OpenstackFloatingIPPoolReadyCondition";

/// Sets both conditions of a machine or a server, which differ in nothing.
pub(crate) fn set_instance<C: Controller>(
    look: &Look<C>,
    conditions: &mut Vec<Condition>,
    status: ConditionStatus,
    reason: &str,
    message: String,
) {
    for kind in [INSTANCE_READY, READY] {
        let state = ConditionState::new(status, reason, message.clone());
        set_state(look, conditions, kind, state, None);
    }
}

pub(crate) mod reason {
    pub const AUTHENTICATION_FAILED: &str = "OpenStackAuthenticationFailed";
    pub const NETWORK_FAILED: &str = "NetworkCreateFailed";
    pub const SUBNET_FAILED: &str = "SubnetCreateFailed";
    pub const ROUTER_FAILED: &str = "RouterCreateFailed";
    pub const GROUP_FAILED: &str = "SecurityGroupCreateFailed";
    pub const ENDPOINT_FAILED: &str = "APIEndpointConfigFailed";
    pub const WAITING_FOR_CLUSTER: &str = "WaitingForClusterInfrastructure";
    pub const WAITING_FOR_BOOT_DATA: &str = "WaitingForBootstrapData";
    pub const INVALID_SPEC: &str = "InvalidMachineSpec";
    pub const CREATE_FAILED: &str = "InstanceCreateFailed";
    pub const STATE_ERROR: &str = "InstanceStateError";
    pub const DELETED: &str = "InstanceDeleted";
    pub const NOT_READY: &str = "InstanceNotReady";
    pub const READY: &str = "Ready";
    pub const OPENSTACK_ERROR: &str = "OpenStackError";
    pub const NO_NETWORK: &str = "UnableToFindNetwork";
    pub const MAX_IPS: &str = "MaxIPsReached";
    pub const ADDRESSES_IN_USE: &str = "AddressesInUse";
    pub const WAITING_FOR_IPAM: &str = "WaitingForIPAMProvider";
    pub const FLOATING_IP_ERROR: &str = "FloatingIPError";
}
