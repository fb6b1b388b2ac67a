//! `CloudStackMachineConfig`: what machines of a group are made of.

use std::collections::BTreeMap;

use capstan_capi_types::wire::wire;
use capstan_object::{Condition, ObjectMeta, object};

use super::ResourceIdentifier;

object!(
    CloudStackMachineConfig,
    "anywhere.eks.amazonaws.com" / "v1alpha1",
    "CloudStackMachineConfig",
    "cloudstackmachineconfigs",
    Namespaced
);

wire! {
    /// What machines are made of.
    pub struct CloudStackMachineConfig {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackMachineConfigSpec,
        /// Observed state.
        pub status: CloudStackMachineConfigStatus,
    }

    /// What machines are made of.
    pub struct CloudStackMachineConfigSpec {
        /// Image; its name contains the Kubernetes version.
        #[schemars(extend("x-required" = true))]
        pub template: ResourceIdentifier,
        /// Processors and memory.
        #[schemars(extend("x-required" = true))]
        pub compute_offering: ResourceIdentifier,
        /// A data disk.
        pub disk_offering: Option<CloudStackDiskOffering>,
        /// Users that are made on machines; the first one is used.
        pub users: Vec<UserConfiguration>,
        /// `pro`, `anti` or `no`.
        pub affinity: String,
        /// Affinity groups that exist.
        pub affinity_group_ids: Vec<String>,
        /// Settings of the virtual machines.
        pub user_custom_details: BTreeMap<String, String>,
        /// Folders that are moved to another disk: path to path.
        pub symlinks: BTreeMap<String, String>,
    }

    /// A data disk.
    pub struct CloudStackDiskOffering {
        /// Id of the offering.
        pub id: String,
        /// Name of the offering.
        pub name: String,
        /// Gigabytes, if the offering leaves that open.
        #[serde(rename = "customSizeInGB")]
        pub custom_size_in_gb: i64,
        /// Where it is mounted.
        pub mount_path: String,
        /// Its device.
        pub device: String,
        /// Its file system.
        pub filesystem: String,
        /// Label of the file system.
        pub label: String,
    }

    /// A user on machines.
    pub struct UserConfiguration {
        /// Name of the user.
        pub name: String,
        /// Public keys for SSH; the first one is used.
        pub ssh_authorized_keys: Vec<String>,
    }

    /// Observed state of a machine config.
    pub struct CloudStackMachineConfigStatus {
        /// CloudStack has everything that the spec names.
        pub spec_valid: Option<bool>,
        /// What is wrong, if something is.
        pub failure_message: Option<String>,
        /// The generation that this status is about.
        pub observed_generation: i64,
        /// Observed aspects, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
    }
}

impl CloudStackDiskOffering {
    pub fn is_named(&self) -> bool {
        !self.id.is_empty() || !self.name.is_empty()
    }
}
