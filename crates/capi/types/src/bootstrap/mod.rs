//! `bootstrap.cluster.x-k8s.io/v1beta2`: boot data of machines set up by kubeadm.

pub mod cluster_configuration;
pub mod discovery;
pub mod host;
pub mod kubeadm_config;
pub mod kubeadm_config_template;
pub mod node_configuration;

pub use cluster_configuration::{
    APIServer, Arg, ClusterConfiguration, ControllerManager, DNS, EncryptionAlgorithmType, Etcd,
    ExternalEtcd, HostPathMount, LocalEtcd, Scheduler,
};
pub use discovery::{
    BootstrapTokenDiscovery, Discovery, FileDiscovery, FileDiscoveryKubeConfig, KubeConfigAuthExec,
    KubeConfigAuthExecEnv, KubeConfigAuthProvider, KubeConfigCluster, KubeConfigUser,
};
pub use host::{
    ContainerLinuxConfig, DiskSetup, Encoding, File, FileContentFormat, FileSource, Filesystem, IgnitionSpec,
    NTP, Partition, PartitionSpec, PartitionTableType, PasswdSource, SecretFileSource, User,
};
pub use kubeadm_config::{
    Format, KubeadmConfig, KubeadmConfigInitializationStatus, KubeadmConfigSpec, KubeadmConfigStatus,
    KubeadmConfigV1Beta1DeprecatedStatus,
};
pub use kubeadm_config_template::{
    KubeadmConfigTemplate, KubeadmConfigTemplateResource, KubeadmConfigTemplateSpec,
};
pub use node_configuration::{
    BootstrapToken, InitConfiguration, JoinConfiguration, JoinControlPlane, LocalEndpoint,
    NodeRegistrationOptions, Patches, PullPolicy, Timeouts,
};
