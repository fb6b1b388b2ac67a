//! What a decision about an OpenStackServer is based on.

use std::time::Duration;

use capstan_openstack_client::block_storage::Volume;
use capstan_openstack_client::compute::{Server, ServerStatus};
use capstan_openstack_client::network::{Port, Trunk};
use capstan_openstack_types::v1alpha1::ResolvedServerSpec;
use capstan_provider_kit::{BootData, BootDataError};

use super::address_pairs::PairsState;
use super::floating_ip::FloatingIpState;
use crate::error::CloudError;
use crate::project::LOOK_AGAIN;

/// Observed state besides the OpenStackServer.
#[derive(Debug)]
pub struct Seen {
    pub cloud: Result<ServerState, CloudError>,
    /// Allowed address pairs of the ports; `None` if nothing says so.
    pub pairs: Option<PairsState>,
    /// The boot data; `None` while no server is to be created, or if it has none.
    pub boot_data: Option<Result<BootData, BootDataError>>,
}

/// The server's things in the cloud.
#[derive(Debug, Default)]
pub struct ServerState {
    /// Until lists are read again.
    pub next_round: Option<Duration>,
    /// Ids for the filters of the spec; `None` while they are not needed.
    pub resolved: Option<Result<ResolvedServerSpec, CloudError>>,
    /// The ports of the spec, in its order.
    pub ports: Vec<Option<Port>>,
    /// Its trunks. Once they can be deleted, with the sub-ports that they carry now.
    pub trunks: Vec<Trunk>,
    /// Ports that were taken from a trunk to be deleted with it, and are still there.
    pub sub_ports: Vec<String>,
    /// Its volumes; empty while there is a server.
    pub volumes: Vec<Volume>,
    pub server: Option<Server>,
    /// Its claim of a floating IP, if it needs one.
    pub floating_ip: Option<FloatingIpState>,
}

impl ServerState {
    /// When something that is not expected to change is looked at again.
    pub(super) fn look_again(&self) -> Duration {
        self.next_round.unwrap_or(LOOK_AGAIN)
    }
}

/// Something about the server changes by itself.
pub(super) fn is_pending(server: &Server) -> bool {
    server.task_state.is_some()
        || matches!(
            server.status,
            ServerStatus::Build | ServerStatus::Rebuild | ServerStatus::Reboot | ServerStatus::HardReboot
        )
}
