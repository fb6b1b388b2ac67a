//! Cinder: volumes.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Body, Call, Client};
use crate::compute::{AvailabilityZone, Server};
use crate::error::Error;
use crate::id::Id;
use crate::image::Image;
use crate::loose::{Time, Truth, model, request, words};
use crate::microversion::{Microversion, Wanted};
use crate::resource::{Create, Delete, List, Resource, Update, item, with_body};
use crate::service::Service;

words! {
    /// What a volume is doing.
    pub enum VolumeStatus {
        /// It is being made.
        Creating = "creating",
        /// An image is written to it.
        Downloading = "downloading",
        /// It can be attached.
        Available = "available",
        /// Somebody is about to attach it.
        Reserved = "reserved",
        /// It is being attached.
        Attaching = "attaching",
        /// It is attached.
        InUse = "in-use",
        /// It is being detached.
        Detaching = "detaching",
        /// It grows.
        Extending = "extending",
        /// It goes.
        Deleting = "deleting",
        /// It failed.
        Error = "error",
        /// It failed to go.
        ErrorDeleting = "error_deleting",
    }
}

model! {
    /// A volume.
    pub struct Volume {
        /// Id of the volume.
        pub id: Id<Volume>,
        /// Its name, which other volumes may have too.
        pub name: String,
        /// Description of the volume.
        pub description: String,
        /// What it is doing.
        pub status: VolumeStatus,
        /// GiB.
        pub size: u64,
        /// Its type, by name.
        pub volume_type: Option<String>,
        /// Where it is.
        pub availability_zone: String,
        /// A server can boot from it.
        pub bootable: Truth,
        /// Several servers may have it.
        pub multiattach: bool,
        /// Keys and values of its owner.
        pub metadata: BTreeMap<String, String>,
        /// Who has it.
        pub attachments: Vec<Attachment>,
        /// Whose it is.
        #[serde(rename = "os-vol-tenant-attr:tenant_id")]
        pub tenant_id: String,
        /// When it was made.
        pub created_at: Option<Time>,
    }

    /// Who has a volume.
    pub struct Attachment {
        /// Id of the attachment.
        pub attachment_id: String,
        /// The server.
        pub server_id: Id<Server>,
        /// Where the server sees it.
        pub device: Option<String>,
    }

    /// A kind of volume.
    pub struct VolumeType {
        /// Id of the volume type.
        pub id: Id<VolumeType>,
        /// Its name, unique in a cloud.
        pub name: String,
        /// Everybody may use it.
        pub is_public: bool,
        /// Settings; empty for those who may not see them.
        pub extra_specs: BTreeMap<String, String>,
    }

    /// How much of Cinder a project may have, and has.
    pub struct VolumeLimits {
        /// Volumes; -1 is without a limit.
        #[serde(rename = "maxTotalVolumes")]
        pub max_volumes: i64,
        /// Volumes it has.
        #[serde(rename = "totalVolumesUsed")]
        pub volumes_used: i64,
        /// GiB; -1 is without a limit.
        #[serde(rename = "maxTotalVolumeGigabytes")]
        pub max_gigabytes: i64,
        /// GiB it has.
        #[serde(rename = "totalGigabytesUsed")]
        pub gigabytes_used: i64,
    }

    /// A state of a volume that can be gone back to.
    pub struct Snapshot {
        /// Id of the snapshot.
        pub id: Id<Snapshot>,
        /// Its name, which other snapshots may have too.
        pub name: String,
        /// Volume of the snapshot.
        pub volume_id: Id<Volume>,
        /// What it is doing.
        pub status: String,
        /// GiB.
        pub size: u64,
        /// Keys and values of its owner.
        pub metadata: BTreeMap<String, String>,
    }
}

request! {
    /// A new volume.
    pub struct NewVolume {
        /// GiB.
        pub size: u64,
        /// Name of the volume.
        pub name: String,
        /// Description of the volume.
        pub description: Option<String>,
        /// Made from this image.
        #[serde(rename = "imageRef")]
        pub image: Option<Id<Image>>,
        /// Its type; the cloud's default if left out.
        pub volume_type: Option<String>,
        /// Where it is to be.
        pub availability_zone: Option<String>,
        /// Keys and values.
        pub metadata: BTreeMap<String, String>,
    }

    /// What can be changed of a volume.
    pub struct VolumeChange {
        /// Name of the volume.
        pub name: Option<String>,
        /// Description of the volume.
        pub description: Option<String>,
    }

    /// What volumes can be narrowed by.
    pub struct VolumeFilter {
        /// Name of the volume.
        pub name: Option<String>,
        /// What it is doing.
        pub status: Option<VolumeStatus>,
        /// Of all projects; without effect for others than administrators.
        pub all_tenants: Option<bool>,
    }

    /// What snapshots can be narrowed by.
    pub struct SnapshotFilter {
        /// Name of the snapshot.
        pub name: Option<String>,
        /// Volume of the snapshot.
        pub volume_id: Option<Id<Volume>>,
    }

    /// Types cannot be narrowed.
    pub struct VolumeTypeFilter {
    }
}

impl Resource for Volume {
    const SERVICE: Service = Service::BlockStorage;
    const PATH: &'static str = "volumes";
    const ONE: Option<&'static str> = Some("volume");
}

impl List for Volume {
    const LIST_PATH: &'static str = "volumes/detail";
    const MANY: &'static str = "volumes";
    type Filter = VolumeFilter;

    fn marker(&self) -> &str {
        self.id.as_str()
    }
}

impl Create for Volume {
    type New = NewVolume;
}

impl Update for Volume {
    type Change = VolumeChange;
}

impl Delete for Volume {}

impl Resource for Snapshot {
    const SERVICE: Service = Service::BlockStorage;
    const PATH: &'static str = "snapshots";
    const ONE: Option<&'static str> = Some("snapshot");
}

impl List for Snapshot {
    const LIST_PATH: &'static str = "snapshots/detail";
    const MANY: &'static str = "snapshots";
    type Filter = SnapshotFilter;

    fn marker(&self) -> &str {
        self.id.as_str()
    }
}

impl Delete for Snapshot {}

impl Resource for VolumeType {
    const SERVICE: Service = Service::BlockStorage;
    const PATH: &'static str = "types";
    const ONE: Option<&'static str> = Some("volume_type");
}

impl List for VolumeType {
    const MANY: &'static str = "volume_types";
    type Filter = VolumeTypeFilter;

    fn marker(&self) -> &str {
        self.id.as_str()
    }
}

#[derive(Deserialize)]
struct Limits {
    absolute: VolumeLimits,
}

impl Client {
    /// The availability zones of volumes, which need not be those of servers.
    pub async fn volume_zones(&self) -> Result<Vec<AvailabilityZone>, Error> {
        let call = Call::read(Service::BlockStorage, "os-availability-zone");
        self.read(&call, Some("availabilityZoneInfo")).await
    }

    /// How much of Cinder the project may have, and has.
    pub async fn volume_limits(&self) -> Result<VolumeLimits, Error> {
        let limits: Limits = self.read(&Call::read(Service::BlockStorage, "limits"), Some("limits")).await?;
        Ok(limits.absolute)
    }

    /// Makes a volume larger; one that is attached too.
    pub async fn extend_volume(&self, volume: &Id<Volume>, gigabytes: u64) -> Result<(), Error> {
        let path = format!("{}/action", item("volumes", volume));
        let call = Call::change(Service::BlockStorage, Method::POST, path, Body::None)
            .wanting(Some(Wanted::exactly(Microversion(3, 42))));
        self.checked_id(volume, &call)?;
        let action = json!({ "os-extend": { "new_size": gigabytes } });
        self.send(&with_body(call, None, &action)?).await.map(drop)
    }
}
