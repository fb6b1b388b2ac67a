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
    /// Configuration of CloudStack instances.
    pub struct CloudStackMachineConfig {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackMachineConfigSpec,
        /// Observed state.
        pub status: CloudStackMachineConfigStatus,
    }

    /// Desired state of a CloudStackMachineConfig.
    pub struct CloudStackMachineConfigSpec {
        /// Template of the instances. Its name contains the Kubernetes version.
        #[schemars(extend("x-required" = true))]
        pub template: ResourceIdentifier,
        /// Service offering: CPUs and memory.
        #[schemars(extend("x-required" = true))]
        pub compute_offering: ResourceIdentifier,
        /// Data disk of the instances.
        pub disk_offering: Option<CloudStackDiskOffering>,
        /// Users to create on the machines; only the first is used.
        pub users: Vec<UserConfiguration>,
        /// Affinity of the machines: `pro`, `anti` or `no`.
        pub affinity: String,
        /// Ids of existing affinity groups.
        pub affinity_group_ids: Vec<String>,
        /// Details of the instances.
        pub user_custom_details: BTreeMap<String, String>,
        /// Directories that are moved to another disk, as a map of paths.
        pub symlinks: BTreeMap<String, String>,
    }

    /// A data disk.
    pub struct CloudStackDiskOffering {
        /// Id of the disk offering.
        pub id: String,
        /// Name of the disk offering.
        pub name: String,
        /// Size in gigabytes, for disk offerings of custom size.
        #[serde(rename = "customSizeInGB")]
        pub custom_size_in_gb: i64,
        /// Path where the disk is mounted.
        pub mount_path: String,
        /// Device of the disk.
        pub device: String,
        /// File system of the disk.
        pub filesystem: String,
        /// Label of the file system.
        pub label: String,
    }

    /// A user on machines.
    pub struct UserConfiguration {
        /// Name of the user.
        pub name: String,
        /// Authorized SSH public keys; only the first is used.
        pub ssh_authorized_keys: Vec<String>,
    }

    /// Observed state of a CloudStackMachineConfig.
    pub struct CloudStackMachineConfigStatus {
        /// Whether CloudStack has all resources that the spec references.
        pub spec_valid: Option<bool>,
        /// Message of the error, if any.
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
