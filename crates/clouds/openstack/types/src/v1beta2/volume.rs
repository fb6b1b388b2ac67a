//! Disks of servers.

use capstan_capi_types::wire::record;

use crate::schema::rule;

record! {
    /// A volume that a server boots from.
    pub struct RootVolume {
        required {
            /// Size of the volume in GiB.
            #[serde(rename = "sizeGiB")]
            #[schemars(extend("minimum" = 1))]
            pub size_gib: i32,
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
            #[schemars(extend("enum" = ["Local", "Volume"]))]
            pub kind: String,
        }
        optional {
            /// Properties of the volume.
            pub volume: Option<BlockDeviceVolume>,
        }
    }

    /// Properties of a volume.
    pub struct BlockDeviceVolume {
        optional {
            /// Type of the volume.
            #[serde(rename = "type")]
            pub kind: String,
            /// Availability zone of the volume.
            pub availability_zone: Option<VolumeAvailabilityZone>,
        }
    }

    /// The availability zone of a volume.
    #[schemars(extend("x-kubernetes-validations" = [rule("!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)", "name is required when from is 'Name' or default")]))]
    pub struct VolumeAvailabilityZone {
        optional {
            /// Source of the zone: `Name` for the field `name`, `Machine` for the zone of the machine.
            #[schemars(extend("enum" = ["Name", "Machine"], "x-default" = "Name"))]
            pub from: String,
            /// Name of the availability zone.
            #[schemars(extend("minLength" = 1, "pattern" = "^[^ ]+$"))]
            pub name: Option<String>,
        }
    }

    /// An additional disk of a server.
    pub struct AdditionalBlockDevice {
        required {
            /// Name of the disk, also its tag in Nova. `root` is reserved.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Size of the disk in GiB.
            #[serde(rename = "sizeGiB")]
            #[schemars(extend("minimum" = 1))]
            pub size_gib: i32,
            /// Storage of the disk.
            pub storage: BlockDeviceStorage,
        }
    }
}
