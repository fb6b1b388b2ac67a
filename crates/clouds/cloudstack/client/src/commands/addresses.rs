//! Public addresses.

use std::net::IpAddr;

use serde::Serialize;

use super::{Owner, Scope, TagPair};
use crate::command::{jobs, lists};
use crate::id::{NetworkId, NoId, PublicIpAddressId, VpcId, ZoneId};
use crate::model::{AddressState, Done, PublicIpAddress};

/// Public addresses.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListPublicIpAddresses {
    /// The address with this id.
    pub id: Option<PublicIpAddressId>,
    /// This address.
    pub ipaddress: Option<IpAddr>,
    /// In this zone.
    pub zoneid: Option<ZoneId>,
    /// From this network.
    pub networkid: Option<NetworkId>,
    /// That serve this network.
    pub associatednetworkid: Option<NetworkId>,
    /// That serve this virtual private cloud.
    pub vpcid: Option<VpcId>,
    /// In this state.
    pub state: Option<AddressState>,
    /// False: free ones as well.
    pub allocatedonly: Option<bool>,
    /// False: those of shared networks.
    pub forvirtualnetwork: Option<bool>,
    /// With any of these tags.
    pub tags: Vec<TagPair>,
    /// Owner of the public IP addresses.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Takes an address. The first one that a fresh network takes is the one it hides behind, and goes only with it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AssociateIpAddress {
    /// This one, if it is free.
    pub ipaddress: Option<IpAddr>,
    /// For this network.
    pub networkid: Option<NetworkId>,
    /// For this virtual private cloud.
    pub vpcid: Option<VpcId>,
    /// In this zone.
    pub zoneid: Option<ZoneId>,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Gives an address back, with all rules on it.
#[derive(Debug, Clone, Serialize)]
pub struct DisassociateIpAddress {
    /// The address.
    pub id: PublicIpAddressId,
}

lists! { ListPublicIpAddresses: "listPublicIpAddresses" => "publicipaddress" PublicIpAddress; }
jobs! {
    AssociateIpAddress: "associateIpAddress" [PublicIpAddressId] => "ipaddress" PublicIpAddress;
    DisassociateIpAddress: "disassociateIpAddress" [NoId] => Done;
}
