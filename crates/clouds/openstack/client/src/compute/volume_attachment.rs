//! Volumes of a server.

use http::Method;
use serde_json::json;

use super::server::Server;
use crate::block_storage::Volume;
use crate::client::{Body, Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::loose::model;
use crate::microversion::{Microversion, Wanted};
use crate::resource::{Deletion, item, with_body};
use crate::service::Service;

model! {
    /// A volume at a server.
    pub struct VolumeAttachment {
        /// The volume.
        #[serde(rename = "volumeId")]
        pub volume_id: Id<Volume>,
        /// The server.
        #[serde(rename = "serverId")]
        pub server_id: Id<Server>,
        /// Where the server sees it, as Nova believes.
        pub device: Option<String>,
        /// What the metadata calls it.
        pub tag: Option<String>,
        /// It goes with the server.
        pub delete_on_termination: Option<bool>,
    }
}

const VERSIONS: Option<Wanted> = Some(Wanted::between(Microversion(2, 1), Microversion(2, 89)));

impl Client {
    /// The volumes of a server.
    pub async fn volume_attachments(&self, server: &Id<Server>) -> Result<Vec<VolumeAttachment>, Error> {
        let call = Call::read(Service::Compute, path(server)).wanting(VERSIONS);
        self.checked_id(server, &call)?;
        self.read(&call, Some("volumeAttachments")).await
    }

    /// Attaches a volume. The volume is reserved at once and in use a while later.
    pub async fn attach_volume(
        &self,
        server: &Id<Server>,
        volume: &Id<Volume>,
    ) -> Result<VolumeAttachment, Error> {
        let call = Call::change(Service::Compute, Method::POST, path(server), Body::None).wanting(VERSIONS);
        self.checked_id(server, &call)?;
        let call = with_body(call, Some("volumeAttachment"), &json!({ "volumeId": volume }))?;
        self.read(&call, Some("volumeAttachment")).await
    }

    /// Detaches a volume. A second request while the first is carried out is refused with 400.
    pub async fn detach_volume(&self, server: &Id<Server>, volume: &Id<Volume>) -> Result<Deletion, Error> {
        let path = item(&path(server), volume);
        let call = Call::change(Service::Compute, Method::DELETE, path, Body::None);
        self.checked_id(server, &call)?;
        self.checked_id(volume, &call)?;
        self.remove(&call).await
    }
}

fn path(server: &Id<Server>) -> String {
    format!("{}/os-volume_attachments", item("servers", server))
}
