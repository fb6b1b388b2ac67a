//! Networks and virtual private clouds.

use std::net::IpAddr;

use serde::Serialize;

use super::{Owner, Scope, TagPair};
use crate::command::{Stable, calls, jobs, lists};
use crate::id::{AclId, NetworkId, NetworkOfferingId, NoId, VpcId, VpcOfferingId, ZoneId};
use crate::model::{Done, GuestType, Network, NetworkAclList, NetworkAclRule, Vpc};

/// Networks, newest first.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListNetworks {
    /// The network with this id.
    pub id: Option<NetworkId>,
    /// Networks with this name, in any case.
    pub name: Option<String>,
    /// In this zone.
    pub zoneid: Option<ZoneId>,
    /// Shut off like this.
    pub r#type: Option<GuestType>,
    /// Tiers of this virtual private cloud.
    pub vpcid: Option<VpcId>,
    /// With any of these tags.
    pub tags: Vec<TagPair>,
    /// Owner of the networks.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Makes a network. Answers at once; names are not unique.
#[derive(Debug, Clone, Serialize)]
pub struct CreateNetwork {
    /// Name of the network.
    pub name: String,
    /// Description of the network.
    pub displaytext: Option<String>,
    /// Offering of the network.
    pub networkofferingid: NetworkOfferingId,
    /// Where.
    pub zoneid: ZoneId,
    /// Gateway, if not the server's choice.
    pub gateway: Option<IpAddr>,
    /// Netmask, if not the server's choice.
    pub netmask: Option<String>,
    /// Prefix length of a routed network, whose addresses are the server's choice.
    pub cidrsize: Option<u8>,
    /// The virtual private cloud that it becomes a tier of.
    pub vpcid: Option<VpcId>,
    /// The tier's access list.
    pub aclid: Option<AclId>,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Deletes a network with its addresses and rules. Fails while any machine of it is not expunged.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteNetwork {
    /// The network.
    pub id: NetworkId,
    /// Even if its devices do not answer; administrators only.
    pub forced: Option<bool>,
}

/// Restarts a network's router.
#[derive(Debug, Clone, Serialize)]
pub struct RestartNetwork {
    /// The network.
    pub id: NetworkId,
    /// Makes the router anew.
    pub cleanup: Option<bool>,
}

/// Virtual private clouds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListVpcs {
    /// The one with this id.
    pub id: Option<VpcId>,
    /// Those whose name contains this.
    pub name: Option<String>,
    /// In this zone.
    pub zoneid: Option<ZoneId>,
    /// Owner of the VPCs.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Makes a virtual private cloud.
#[derive(Debug, Clone, Serialize)]
pub struct CreateVpc {
    /// Name of the VPC.
    pub name: String,
    /// Description of the VPC.
    pub displaytext: String,
    /// CIDR of the VPC.
    pub cidr: Option<String>,
    /// Prefix length of a routed one, whose addresses are the server's choice.
    pub cidrsize: Option<u8>,
    /// Offering of the VPC.
    pub vpcofferingid: VpcOfferingId,
    /// Where.
    pub zoneid: ZoneId,
    /// False: do not start its router yet.
    pub start: Option<bool>,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Deletes a virtual private cloud without tiers.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteVpc {
    /// Id of the VPC.
    pub id: VpcId,
}

/// Access lists of tiers: the two that every cloud has, and those of a virtual private cloud.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListNetworkAclLists {
    /// The list with this id.
    pub id: Option<AclId>,
    /// Lists with this name.
    pub name: Option<String>,
    /// Those of this virtual private cloud, and the two that every cloud has.
    pub vpcid: Option<VpcId>,
}

impl Stable for ListNetworkAclLists {}

/// Rules of access lists, by their numbers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListNetworkAcls {
    /// Of this list.
    pub aclid: Option<AclId>,
    /// Owner of the network ACLs.
    #[serde(flatten)]
    pub scope: Scope,
}

lists! {
    ListNetworkAclLists: "listNetworkACLLists" => "networkacllist" NetworkAclList;
    ListNetworkAcls: "listNetworkACLs" => "networkacl" NetworkAclRule;
    ListNetworks: "listNetworks" => "network" Network;
    ListVpcs: "listVPCs" => "vpc" Vpc;
}
calls! { CreateNetwork: "createNetwork" => "network" Network; }
jobs! {
    DeleteNetwork: "deleteNetwork" [NoId] => Done;
    RestartNetwork: "restartNetwork" [NoId] => Done;
    CreateVpc: "createVPC" [VpcId] => "vpc" Vpc;
    DeleteVpc: "deleteVPC" [NoId] => Done;
}
