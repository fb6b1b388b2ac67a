//! Disks of servers.

use capstan_capi_types::wire::record;

use super::{BlockDeviceVolume, VolumeAvailabilityZone};

record! {
    /// A volume that a server boots from.
    pub struct RootVolume {
        required {
            /// Size of the volume in GiB.
            #[serde(rename = "sizeGiB")]
            #[schemars(schema_with = "crate::schema::integer", extend("minimum" = 1))]
            pub size_gib: i64,
        }
        optional {
            /// Type of the volume.
            #[serde(rename = "type")]
            pub kind: String,
            /// Availability zone of the volume.
            pub availability_zone: Option<VolumeAvailabilityZone>,
        }
    }

    /// Storage of a disk.
    pub struct BlockDeviceStorage {
        required {
            /// Type of the storage: `Local` for a disk of the host, `Volume` for a volume in Cinder.
            #[serde(rename = "type")]
            pub kind: String,
        }
        optional {
            /// Properties of the volume.
            pub volume: Option<BlockDeviceVolume>,
        }
    }

    /// An additional disk of a server.
    pub struct AdditionalBlockDevice {
        required {
            /// Name of the disk, also its tag in Nova. `root` is reserved.
            pub name: String,
            /// Size of the disk in GiB.
            #[serde(rename = "sizeGiB")]
            #[schemars(schema_with = "crate::schema::integer", extend("minimum" = 1))]
            pub size_gib: i64,
            /// Storage of the disk.
            pub storage: BlockDeviceStorage,
        }
    }
}
