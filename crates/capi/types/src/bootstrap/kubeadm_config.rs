//! `KubeadmConfig`: the bootstrap config of one machine.

use capstan_object::{Condition, ObjectMeta, object};

use super::cluster_configuration::ClusterConfiguration;
use super::discovery::KubeConfigAuthExec;
use super::host::{DiskSetup, File, IgnitionSpec, NTP, User};
use super::node_configuration::{InitConfiguration, JoinConfiguration, PullPolicy};
use crate::core::{Deprecated, V1Beta1Condition};
use crate::wire::{choice, wire};

object!(
    KubeadmConfig,
    "bootstrap.cluster.x-k8s.io" / "v1beta2",
    "KubeadmConfig",
    "kubeadmconfigs",
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
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmConfigSpec {
        /// kubeadm's configuration of the whole cluster, for the first control plane node.
        pub cluster_configuration: ClusterConfiguration,
        /// kubeadm's configuration of the first control plane node.
        pub init_configuration: InitConfiguration,
        /// kubeadm's configuration of a joining node.
        pub join_configuration: JoinConfiguration,
        /// Files to write.
        #[schemars(length(min = 1, max = 200), extend("x-kubernetes-list-type" = "atomic"))]
        pub files: Vec<File>,
        /// Partitions and file systems to create.
        pub disk_setup: DiskSetup,
        /// Mounts, in the format of fstab.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 100), inner(length(min = 1, max = 512))),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub mounts: Vec<Vec<String>>,
        /// Commands run early at every boot; cloud-init only.
        #[schemars(
            length(min = 1, max = 1000),
            inner(length(min = 1, max = 10240)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub boot_commands: Vec<String>,
        /// Commands before kubeadm.
        #[schemars(
            length(min = 1, max = 1000),
            inner(length(min = 1, max = 10240)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub pre_kubeadm_commands: Vec<String>,
        /// Commands after kubeadm.
        #[schemars(
            length(min = 1, max = 1000),
            inner(length(min = 1, max = 10240)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub post_kubeadm_commands: Vec<String>,
        /// Users to add.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub users: Vec<User>,
        /// NTP settings.
        pub ntp: NTP,
        /// Format of the boot data. Defaults to `cloud-config`.
        pub format: Option<Format>,
        /// kubeadm's log level.
        pub verbosity: Option<i32>,
        /// Settings for Ignition.
        pub ignition: IgnitionSpec,
    }

    /// Observed state of a KubeadmConfig.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmConfigStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Provisioning progress, as the Cluster API contract defines it.
        pub initialization: KubeadmConfigInitializationStatus,
        /// Secret with the bootstrap data.
        #[schemars(length(min = 1, max = 253))]
        pub data_secret_name: String,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<KubeadmConfigV1Beta1DeprecatedStatus>>,
    }

    /// Provisioning progress of boot data.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmConfigInitializationStatus {
        /// Whether the Secret with the boot data exists.
        pub data_secret_created: Option<bool>,
    }

    /// Status of a KubeadmConfig under the v1beta1 contract.
    pub struct KubeadmConfigV1Beta1DeprecatedStatus {
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Reason of a terminal failure.
        #[schemars(length(min = 1, max = 256))]
        pub failure_reason: String,
        /// Message of a terminal failure.
        #[schemars(length(min = 1, max = 10240))]
        pub failure_message: String,
    }
}

choice! {
    /// Format of boot data.
    pub enum Format {
        /// For cloud-init.
        CloudConfig = "cloud-config",
        /// For Ignition.
        Ignition = "ignition",
    }
}

/// Condition types of a KubeadmConfig, beside the [shared ones](crate::core::condition).
pub mod condition {
    pub const CERTIFICATES_AVAILABLE: &str = "CertificatesAvailable";
    pub const DATA_SECRET_AVAILABLE: &str = "DataSecretAvailable";
}

impl KubeadmConfigSpec {
    /// Sets defaults that earlier releases wrote, so that their absence is not a difference.
    pub fn set_earlier_defaults(&mut self) {
        self.format.get_or_insert(Format::CloudConfig);
        self.init_configuration.node_registration.image_pull_policy.get_or_insert(PullPolicy::IfNotPresent);
        self.join_configuration.node_registration.image_pull_policy.get_or_insert(PullPolicy::IfNotPresent);
        let exec = &mut self.join_configuration.discovery.file.kube_config.user.exec;
        if *exec != KubeConfigAuthExec::default() && exec.api_version.is_empty() {
            exec.api_version = "client.authentication.k8s.io/v1".to_owned();
        }
    }
}
