//! Nova: servers, and what they are made of and placed by.

mod flavor;
mod keypair;
mod quota;
mod server;
mod server_group;
mod volume_attachment;

pub use flavor::{Flavor, FlavorFilter};
pub use keypair::{Keypair, KeypairFilter, NewKeypair};
pub use quota::{ComputeQuota, QuotaUse};
pub use server::{
    Address, BlockDevice, ConsoleOutput, DestinationType, Fault, Interface, NewServer, PortAttachment,
    SchedulerHints, Server, ServerChange, ServerFilter, ServerFlavor, ServerStatus, SourceType,
};
pub use server_group::{NewServerGroup, ServerGroup, ServerGroupFilter};
pub use volume_attachment::VolumeAttachment;

use crate::client::{Call, Client};
use crate::error::Error;
use crate::loose::model;
use crate::service::Service;

model! {
    /// A part of a cloud that fails alone.
    pub struct AvailabilityZone {
        /// Name of the availability zone.
        #[serde(rename = "zoneName")]
        pub name: String,
        /// State of the availability zone.
        #[serde(rename = "zoneState")]
        pub state: ZoneState,
    }

    /// Whether a zone can be used.
    pub struct ZoneState {
        /// It can.
        pub available: bool,
    }
}

impl Client {
    /// The availability zones of servers.
    pub async fn compute_zones(&self) -> Result<Vec<AvailabilityZone>, Error> {
        let call = Call::read(Service::Compute, "os-availability-zone");
        self.read(&call, Some("availabilityZoneInfo")).await
    }
}
