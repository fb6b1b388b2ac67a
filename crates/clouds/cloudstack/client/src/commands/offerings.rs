//! What can be ordered.

use serde::Serialize;

use crate::Stable;
use crate::command::lists;
use crate::id::{DiskOfferingId, NetworkOfferingId, ProjectId, ServiceOfferingId, VpcOfferingId, ZoneId};
use crate::model::{DiskOffering, GuestType, NetworkOffering, ServiceOffering, VpcOffering};

/// Offerings of processors and memory.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListServiceOfferings {
    /// The offering with this id.
    pub id: Option<ServiceOfferingId>,
    /// The offering with this name, in any case.
    pub name: Option<String>,
    /// Offered in this zone.
    pub zoneid: Option<ZoneId>,
    /// Offered to this project.
    pub projectid: Option<ProjectId>,
}

/// Offerings of data disks.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListDiskOfferings {
    /// The offering with this id.
    pub id: Option<DiskOfferingId>,
    /// The offering with this name, in any case.
    pub name: Option<String>,
    /// Offered in this zone.
    pub zoneid: Option<ZoneId>,
    /// Offered to this project.
    pub projectid: Option<ProjectId>,
}

/// Kinds of networks.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListNetworkOfferings {
    /// The offering with this id.
    pub id: Option<NetworkOfferingId>,
    /// Offerings whose name contains this.
    pub name: Option<String>,
    /// `Enabled`, ….
    pub state: Option<String>,
    /// How networks are shut off.
    pub guestiptype: Option<GuestType>,
    /// For tiers of virtual private clouds.
    pub forvpc: Option<bool>,
    /// Offered in this zone.
    pub zoneid: Option<ZoneId>,
}

/// Kinds of virtual private clouds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListVpcOfferings {
    /// The offering with this id.
    pub id: Option<VpcOfferingId>,
    /// Offerings whose name contains this.
    pub name: Option<String>,
    /// `Enabled`, ….
    pub state: Option<String>,
    /// Offered in this zone.
    pub zoneid: Option<ZoneId>,
}

lists! {
    ListServiceOfferings: "listServiceOfferings" => "serviceoffering" ServiceOffering;
    ListDiskOfferings: "listDiskOfferings" => "diskoffering" DiskOffering;
    ListNetworkOfferings: "listNetworkOfferings" => "networkoffering" NetworkOffering;
    ListVpcOfferings: "listVPCOfferings" => "vpcoffering" VpcOffering;
}
impl Stable for ListServiceOfferings {}
impl Stable for ListDiskOfferings {}
impl Stable for ListNetworkOfferings {}
impl Stable for ListVpcOfferings {}
