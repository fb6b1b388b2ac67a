//! Boot data of machines set up by kubeadm.

use capstan_object::{ObjectMeta, object};

use super::core::{TemplateMeta, V1Beta2Conditions};
use super::kubeadm::{ClusterConfiguration, InitConfiguration, JoinConfiguration};
use crate::bootstrap::{File, Format, PartitionSpec, PartitionTableType, PasswdSource};
use crate::core::V1Beta1Condition;
use crate::wire::wire;

object!(
    KubeadmConfig,
    "bootstrap.cluster.x-k8s.io" / "v1beta1",
    "KubeadmConfig",
    "kubeadmconfigs",
    Namespaced
);
object!(
    KubeadmConfigTemplate,
    "bootstrap.cluster.x-k8s.io" / "v1beta1",
    "KubeadmConfigTemplate",
    "kubeadmconfigtemplates",
    Namespaced
);

wire! {
    /// Generates the boot data of a machine for kubeadm.
    pub struct KubeadmConfig {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KubeadmConfigSpec,
        /// Observed state.
        pub status: KubeadmConfigStatus,
    }

    /// Desired state of a KubeadmConfig.
    pub struct KubeadmConfigSpec {
        /// kubeadm's configuration of the whole cluster, for the first control plane node.
        pub cluster_configuration: Option<ClusterConfiguration>,
        /// kubeadm's configuration of the first control plane node.
        pub init_configuration: Option<InitConfiguration>,
        /// kubeadm's configuration of a joining node.
        pub join_configuration: Option<JoinConfiguration>,
        /// Files to write.
        #[schemars(length(max = 200))]
        pub files: Vec<File>,
        /// Partitions and file systems to create.
        pub disk_setup: Option<DiskSetup>,
        /// Mounts, in the format of fstab.
        #[schemars(length(max = 100), inner(inner(length(min = 1, max = 512))))]
        pub mounts: Vec<Vec<String>>,
        /// Commands run early at every boot; cloud-init only.
        #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
        pub boot_commands: Vec<String>,
        /// Commands before kubeadm.
        #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
        pub pre_kubeadm_commands: Vec<String>,
        /// Commands after kubeadm.
        #[schemars(length(max = 1000), inner(length(min = 1, max = 10240)))]
        pub post_kubeadm_commands: Vec<String>,
        /// Users to add.
        #[schemars(length(max = 100))]
        pub users: Vec<User>,
        /// NTP settings.
        pub ntp: Option<NTP>,
        /// Format of the boot data. Defaults to `cloud-config`.
        pub format: Option<Format>,
        /// kubeadm's log level.
        pub verbosity: Option<i32>,
        /// No longer used.
        pub use_experimental_retry_join: Option<bool>,
        /// Settings for Ignition.
        pub ignition: Option<IgnitionSpec>,
    }

    /// Partitions and file systems to create.
    pub struct DiskSetup {
        /// Partitions to create.
        #[schemars(length(max = 100))]
        pub partitions: Vec<Partition>,
        /// File systems to create.
        #[schemars(length(max = 100))]
        pub filesystems: Vec<Filesystem>,
    }

    /// Partitioning of a disk.
    pub struct Partition {
        /// Device name.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub device: String,
        /// Whether to create one partition over the whole disk.
        #[schemars(extend("x-required" = true))]
        pub layout: Option<bool>,
        /// Whether existing data may be overwritten.
        pub overwrite: Option<bool>,
        /// Type of the partition table. Defaults to `mbr`.
        pub table_type: Option<PartitionTableType>,
        /// Partitions, in order.
        #[schemars(length(min = 1, max = 100))]
        pub disk_layout: Vec<PartitionSpec>,
    }

    /// A file system to create.
    pub struct Filesystem {
        /// Device name.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub device: String,
        /// Type of the file system.
        #[schemars(length(min = 1, max = 128), extend("x-required" = true))]
        pub filesystem: String,
        /// Label of the file system.
        #[schemars(length(min = 1, max = 512))]
        pub label: String,
        /// Partition: a number, `auto`, `any` or `none`.
        #[schemars(length(min = 1, max = 128))]
        pub partition: Option<String>,
        /// Whether existing data may be overwritten.
        pub overwrite: Option<bool>,
        /// Type of file system that may be replaced, for cloud-init on Azure.
        #[serde(rename = "replaceFS")]
        #[schemars(length(min = 1, max = 128))]
        pub replace_fs: Option<String>,
        /// Additional options of mkfs.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub extra_opts: Vec<String>,
    }

    /// A user to add.
    pub struct User {
        /// Name of the user.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Comment, such as the full name.
        #[schemars(length(min = 1, max = 256))]
        pub gecos: Option<String>,
        /// Additional groups.
        #[schemars(length(min = 1, max = 256))]
        pub groups: Option<String>,
        /// Home directory.
        #[schemars(length(min = 1, max = 256))]
        pub home_dir: Option<String>,
        /// Whether the account is inactive.
        pub inactive: Option<bool>,
        /// Login shell.
        #[schemars(length(min = 1, max = 256))]
        pub shell: Option<String>,
        /// Hashed password.
        #[schemars(length(min = 1, max = 256))]
        pub passwd: Option<String>,
        /// Source of the hashed password.
        pub passwd_from: Option<PasswdSource>,
        /// Primary group.
        #[schemars(length(min = 1, max = 256))]
        pub primary_group: Option<String>,
        /// Whether password login is disabled.
        pub lock_password: Option<bool>,
        /// Rule for sudoers.
        #[schemars(length(min = 1, max = 256))]
        pub sudo: Option<String>,
        /// Authorized SSH public keys.
        #[schemars(length(max = 100), inner(length(min = 1, max = 2048)))]
        pub ssh_authorized_keys: Vec<String>,
    }

    /// NTP settings.
    pub struct NTP {
        /// Addresses of the NTP servers.
        #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
        pub servers: Vec<String>,
        /// Whether this is enabled.
        pub enabled: Option<bool>,
    }

    /// Settings for Ignition.
    pub struct IgnitionSpec {
        /// Additional configuration for Ignition.
        pub container_linux_config: Option<ContainerLinuxConfig>,
    }

    /// Additional configuration for Ignition.
    pub struct ContainerLinuxConfig {
        /// Container Linux configuration that is merged.
        #[schemars(length(min = 1, max = 32768))]
        pub additional_config: String,
        /// Whether warnings are errors.
        pub strict: Option<bool>,
    }

    /// Observed state of a KubeadmConfig.
    pub struct KubeadmConfigStatus {
        /// Whether the object is ready.
        pub ready: Option<bool>,
        /// Secret with the bootstrap data.
        #[schemars(length(min = 1, max = 253))]
        pub data_secret_name: Option<String>,
        /// Reason of a terminal failure.
        #[schemars(length(min = 1, max = 256))]
        pub failure_reason: String,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: String,
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Conditions>,
    }

    /// Template of KubeadmConfigs.
    pub struct KubeadmConfigTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KubeadmConfigTemplateSpec,
    }

    /// Template of KubeadmConfigs.
    pub struct KubeadmConfigTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: KubeadmConfigTemplateResource,
    }

    /// The template of a KubeadmConfig.
    pub struct KubeadmConfigTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        pub spec: KubeadmConfigSpec,
    }
}
