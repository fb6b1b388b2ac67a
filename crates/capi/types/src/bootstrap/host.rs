//! What is done to the host beside kubeadm: files, users, time servers, disks, Ignition.

use crate::schema::rule;
use crate::wire::{choice, wire};

wire! {
    /// A file to write.
    pub struct File {
        /// Path of the file.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub path: String,
        /// Owner, `user:group`.
        #[schemars(length(min = 1, max = 256))]
        pub owner: String,
        /// Permissions, such as `0640`.
        #[schemars(length(min = 1, max = 16))]
        pub permissions: String,
        /// Encoding of `content`.
        pub encoding: Option<Encoding>,
        /// Whether the content is appended to an existing file.
        pub append: Option<bool>,
        /// Content of the file.
        #[schemars(length(min = 1, max = 10240))]
        pub content: String,
        /// Source of the content, instead of `content`.
        pub content_from: FileSource,
        /// Format of the content: `raw`, or a template.
        pub content_format: Option<FileContentFormat>,
    }

    /// Source of the content of a file.
    pub struct FileSource {
        /// Key of a Secret.
        #[schemars(extend("x-required" = true))]
        pub secret: SecretFileSource,
    }

    /// A key of a Secret in the same namespace.
    pub struct SecretFileSource {
        /// Name of the Secret.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub name: String,
        /// Key in the Secret.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub key: String,
    }

    /// A user to add.
    pub struct User {
        /// Name of the user.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Comment, such as the full name.
        #[schemars(length(min = 1, max = 256))]
        pub gecos: String,
        /// Additional groups.
        #[schemars(length(min = 1, max = 256))]
        pub groups: String,
        /// Home directory.
        #[schemars(length(min = 1, max = 256))]
        pub home_dir: String,
        /// Whether the account is inactive.
        pub inactive: Option<bool>,
        /// Login shell.
        #[schemars(length(min = 1, max = 256))]
        pub shell: String,
        /// Hashed password.
        #[schemars(length(min = 1, max = 256))]
        pub passwd: String,
        /// Source of the hashed password.
        pub passwd_from: PasswdSource,
        /// Primary group.
        #[schemars(length(min = 1, max = 256))]
        pub primary_group: String,
        /// Whether password login is disabled.
        pub lock_password: Option<bool>,
        /// Rule for sudoers.
        #[schemars(length(min = 1, max = 256))]
        pub sudo: String,
        /// Authorized SSH public keys.
        #[schemars(
            length(max = 100),
            inner(length(min = 1, max = 2048)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub ssh_authorized_keys: Vec<String>,
    }

    /// Source of a hashed password.
    pub struct PasswdSource {
        /// Key of a Secret.
        #[schemars(extend("x-required" = true))]
        pub secret: SecretFileSource,
    }

    /// NTP settings.
    #[schemars(extend("minProperties" = 1))]
    pub struct NTP {
        /// Addresses of the NTP servers.
        #[schemars(
            length(max = 100),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub servers: Vec<String>,
        /// Whether this is enabled.
        pub enabled: Option<bool>,
    }

    /// Partitions and file systems to create.
    #[schemars(extend("minProperties" = 1))]
    pub struct DiskSetup {
        /// Partitions to create.
        #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub partitions: Vec<Partition>,
        /// File systems to create.
        #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub filesystems: Vec<Filesystem>,
    }

    /// Partitioning of a disk.
    #[schemars(extend("x-kubernetes-validations" = [rule(
        "[has(self.layout),has(self.diskLayout)].filter(x,x==true).size() == 1",
        "exactly one of the fields in [layout diskLayout] must be set",
    )]))]
    pub struct Partition {
        /// Device name.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub device: String,
        /// Whether to create one partition over the whole disk.
        pub layout: Option<bool>,
        /// Whether existing data may be overwritten.
        pub overwrite: Option<bool>,
        /// Type of the partition table. Defaults to `mbr`.
        pub table_type: Option<PartitionTableType>,
        /// Partitions, in order.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub disk_layout: Vec<PartitionSpec>,
    }

    /// One partition.
    pub struct PartitionSpec {
        /// Percentage of the disk.
        #[schemars(range(min = 1, max = 100), extend("x-required" = true))]
        pub percentage: i32,
        /// Type of the partition, by name or GUID.
        #[schemars(
            length(min = 1, max = 36),
            extend("x-kubernetes-validations" = [rule(r"self.matches('^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')", "partitionType must be one of Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended or a full GPT partition GUID")])
        )]
        pub partition_type: String,
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
        pub partition: String,
        /// Whether existing data may be overwritten.
        pub overwrite: Option<bool>,
        /// Type of file system that may be replaced, for cloud-init on Azure.
        #[serde(rename = "replaceFS")]
        #[schemars(length(min = 1, max = 128))]
        pub replace_fs: String,
        /// Additional options of mkfs.
        #[schemars(
            length(max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub extra_opts: Vec<String>,
    }

    /// Settings for Ignition.
    #[schemars(extend("minProperties" = 1))]
    pub struct IgnitionSpec {
        /// Additional configuration for Ignition.
        pub container_linux_config: ContainerLinuxConfig,
    }

    /// Additional configuration for Ignition.
    #[schemars(extend("minProperties" = 1))]
    pub struct ContainerLinuxConfig {
        /// Container Linux configuration that is merged.
        #[schemars(length(min = 1, max = 32768))]
        pub additional_config: String,
        /// Whether warnings are errors.
        pub strict: Option<bool>,
    }
}

choice! {
    /// Encoding of content.
    pub enum Encoding {
        /// Base64.
        Base64 = "base64",
        /// Compressed with gzip.
        Gzip = "gzip",
        /// Compressed with gzip, then encoded in base64.
        GzipBase64 = "gzip+base64",
    }
}

choice! {
    /// Format of content.
    pub enum FileContentFormat {
        /// Content is written unchanged.
        Raw = "Raw",
        /// Content is a template that is rendered before it is written.
        Template = "Template",
    }
}

choice! {
    /// Type of a partition table.
    pub enum PartitionTableType {
        /// Master boot record.
        Mbr = "mbr",
        /// GUID partition table.
        Gpt = "gpt",
    }
}
