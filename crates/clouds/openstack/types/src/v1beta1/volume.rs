//! Disks of servers.

use capstan_capi_types::wire::record;

use super::{BlockDeviceVolume, VolumeAvailabilityZone};

record! {
    /// A volume that a server boots from.
    pub struct RootVolume {
        required {
            /// Its size in GiB.
            #[serde(rename = "sizeGiB")]
            #[schemars(schema_with = "crate::schema::integer", extend("minimum" = 1))]
            pub size_gib: i64,
        }
        optional {
            /// Its type.
            #[serde(rename = "type")]
            pub kind: String,
            /// The availability zone.
            pub availability_zone: Option<VolumeAvailabilityZone>,
        }
    }

    /// Where a disk is kept.
    pub struct BlockDeviceStorage {
        required {
            /// `Local`: on the host. `Volume`: in Cinder.
            #[serde(rename = "type")]
            pub kind: String,
        }
        optional {
            /// Properties of the volume.
            pub volume: Option<BlockDeviceVolume>,
        }
    }

    /// A disk beside the root disk.
    pub struct AdditionalBlockDevice {
        required {
            /// Its name, which is its tag in Nova too. `root` is taken.
            pub name: String,
            /// Its size in GiB.
            #[serde(rename = "sizeGiB")]
            #[schemars(schema_with = "crate::schema::integer", extend("minimum" = 1))]
            pub size_gib: i64,
            /// Where the disk is kept.
            pub storage: BlockDeviceStorage,
        }
    }
}
