//! Disks of servers.

use capstan_capi_types::wire::record;

use crate::schema::rule;

record! {
    /// A volume that a server boots from.
    pub struct RootVolume {
        required {
            /// Its size in GiB.
            #[serde(rename = "sizeGiB")]
            #[schemars(extend("minimum" = 1))]
            pub size_gib: i32,
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
            /// Its type.
            #[serde(rename = "type")]
            pub kind: String,
            /// The availability zone.
            pub availability_zone: Option<VolumeAvailabilityZone>,
        }
    }

    /// The availability zone of a volume.
    #[schemars(extend("x-kubernetes-validations" = [rule("!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)", "name is required when from is 'Name' or default")]))]
    pub struct VolumeAvailabilityZone {
        optional {
            /// `Name`: the zone is named here. `Machine`: it is the zone of the machine.
            #[schemars(extend("enum" = ["Name", "Machine"], "x-default" = "Name"))]
            pub from: String,
            /// Its name.
            #[schemars(extend("minLength" = 1, "pattern" = "^[^ ]+$"))]
            pub name: Option<String>,
        }
    }

    /// A disk beside the root disk.
    pub struct AdditionalBlockDevice {
        required {
            /// Its name, which is its tag in Nova too. `root` is taken.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Its size in GiB.
            #[serde(rename = "sizeGiB")]
            #[schemars(extend("minimum" = 1))]
            pub size_gib: i32,
            /// Where the disk is kept.
            pub storage: BlockDeviceStorage,
        }
    }
}
