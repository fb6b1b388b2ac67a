//! kubeadm's configuration.

use std::collections::BTreeMap;

use capstan_object::Time;

use crate::bootstrap::{
    EncryptionAlgorithmType, HostPathMount, KubeConfigAuthExecEnv, KubeConfigAuthProvider, PullPolicy,
};
use crate::kubernetes::{EnvVar, Taint};
use crate::wire::wire;

wire! {
    /// kubeadm's configuration of the whole cluster.
    pub struct ClusterConfiguration {
        /// apiVersion of kubeadm's configuration.
        pub api_version: String,
        /// kind of kubeadm's configuration.
        pub kind: String,
        /// Settings of etcd.
        pub etcd: Etcd,
        /// Address ranges and domain of the cluster's network. Defaults to those of the Cluster.
        pub networking: Networking,
        /// Kubernetes version. Defaults to that of the machine.
        #[schemars(length(min = 1, max = 256))]
        pub kubernetes_version: String,
        /// Stable endpoint of the control plane. Defaults to the endpoint of the cluster.
        #[schemars(length(min = 1, max = 512))]
        pub control_plane_endpoint: String,
        /// Settings of the API server.
        pub api_server: APIServer,
        /// Settings of the controller manager.
        pub controller_manager: ControlPlaneComponent,
        /// Settings of the scheduler.
        pub scheduler: ControlPlaneComponent,
        /// Settings of CoreDNS.
        pub dns: DNS,
        /// Directory of the certificates.
        #[schemars(length(min = 1, max = 512))]
        pub certificates_dir: String,
        /// Registry and path that images are pulled from.
        #[schemars(length(min = 1, max = 512))]
        pub image_repository: String,
        /// kubeadm's feature gates.
        pub feature_gates: BTreeMap<String, bool>,
        /// Days that certificates are valid; 365 if absent.
        #[schemars(range(min = 1, max = 1095))]
        pub certificate_validity_period_days: Option<i32>,
        /// Days that certificate authorities are valid; 3650 if absent.
        #[schemars(range(min = 1, max = 36500))]
        pub ca_certificate_validity_period_days: Option<i32>,
        /// Algorithm of the keys.
        pub encryption_algorithm: Option<EncryptionAlgorithmType>,
        /// Name of the cluster.
        #[schemars(length(min = 1, max = 63))]
        pub cluster_name: String,
    }

    /// Settings of etcd, local or external.
    pub struct Etcd {
        /// Members run on the control plane nodes.
        pub local: Option<LocalEtcd>,
        /// An existing etcd cluster.
        pub external: Option<ExternalEtcd>,
    }

    /// etcd members on the control plane nodes.
    pub struct LocalEtcd {
        /// Registry and path that images are pulled from.
        #[schemars(length(min = 1, max = 512))]
        pub image_repository: String,
        /// Tag of the image.
        #[schemars(length(min = 1, max = 256))]
        pub image_tag: String,
        /// Directory of the data.
        #[schemars(length(min = 1, max = 512))]
        pub data_dir: String,
        /// Additional command line flags, with unique names.
        pub extra_args: BTreeMap<String, String>,
        /// Additional environment variables.
        #[schemars(length(max = 100))]
        pub extra_envs: Vec<EnvVar>,
        /// Additional subject alternative names of the server's certificate.
        #[serde(rename = "serverCertSANs")]
        #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
        pub server_cert_sans: Vec<String>,
        /// Additional subject alternative names of the peer certificate.
        #[serde(rename = "peerCertSANs")]
        #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
        pub peer_cert_sans: Vec<String>,
    }

    /// An existing etcd cluster.
    pub struct ExternalEtcd {
        /// Endpoints of the members.
        #[schemars(length(max = 50), inner(length(min = 1, max = 512)), extend("x-required" = true))]
        pub endpoints: Vec<String>,
        /// Path of the certificate authority.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub ca_file: String,
        /// Path of the client certificate.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub cert_file: String,
        /// Path of the client key.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub key_file: String,
    }

    /// Address ranges and domain of the cluster's network.
    pub struct Networking {
        /// CIDR of services.
        #[schemars(length(min = 1, max = 1024))]
        pub service_subnet: String,
        /// CIDR of pods.
        #[schemars(length(min = 1, max = 1024))]
        pub pod_subnet: String,
        /// Domain name of services.
        #[schemars(length(min = 1, max = 253))]
        pub dns_domain: String,
    }

    /// Settings of the API server.
    pub struct APIServer {
        /// Additional command line flags, with unique names.
        pub extra_args: BTreeMap<String, String>,
        /// Additional host path volumes.
        #[schemars(length(max = 100))]
        pub extra_volumes: Vec<HostPathMount>,
        /// Additional environment variables.
        #[schemars(length(max = 100))]
        pub extra_envs: Vec<EnvVar>,
        /// Additional subject alternative names of the API server's certificate.
        #[serde(rename = "certSANs")]
        #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
        pub cert_sans: Vec<String>,
        /// Timeout of the API server's startup.
        pub timeout_for_control_plane: Option<String>,
    }

    /// Settings of a control plane component.
    pub struct ControlPlaneComponent {
        /// Additional command line flags, with unique names.
        pub extra_args: BTreeMap<String, String>,
        /// Additional host path volumes.
        #[schemars(length(max = 100))]
        pub extra_volumes: Vec<HostPathMount>,
        /// Additional environment variables.
        #[schemars(length(max = 100))]
        pub extra_envs: Vec<EnvVar>,
    }

    /// The CoreDNS image.
    pub struct DNS {
        /// Registry and path that images are pulled from.
        #[schemars(length(min = 1, max = 512))]
        pub image_repository: String,
        /// Tag of the image.
        #[schemars(length(min = 1, max = 256))]
        pub image_tag: String,
    }

    /// kubeadm's `InitConfiguration`, for the first node.
    pub struct InitConfiguration {
        /// apiVersion of kubeadm's configuration.
        pub api_version: String,
        /// kind of kubeadm's configuration.
        pub kind: String,
        /// Bootstrap tokens to create.
        #[schemars(length(max = 100))]
        pub bootstrap_tokens: Vec<BootstrapToken>,
        /// Registration of the node.
        pub node_registration: NodeRegistrationOptions,
        /// Address on which this node's API server listens.
        #[serde(rename = "localAPIEndpoint")]
        pub local_api_endpoint: LocalEndpoint,
        /// Phases of kubeadm to skip.
        #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
        pub skip_phases: Vec<String>,
        /// Patches of the manifests that kubeadm writes.
        pub patches: Option<Patches>,
    }

    /// A bootstrap token of joining nodes.
    pub struct BootstrapToken {
        /// Token, in the form `abcdef.0123456789abcdef`.
        #[schemars(extend("x-required" = true))]
        pub token: String,
        /// Description of the purpose.
        #[schemars(length(min = 1, max = 512))]
        pub description: String,
        /// Lifetime of the token.
        pub ttl: Option<String>,
        /// Expiry of the token. Mutually exclusive with `ttlSeconds`.
        pub expires: Option<Time>,
        /// Usages of the token.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub usages: Vec<String>,
        /// Groups of the token's user.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub groups: Vec<String>,
    }

    /// Registration of a node.
    pub struct NodeRegistrationOptions {
        /// Name of the node. Defaults to the host name.
        #[schemars(length(min = 1, max = 253))]
        pub name: String,
        /// Socket of the container runtime.
        #[schemars(length(min = 1, max = 512))]
        pub cri_socket: String,
        /// Initial taints of the node. Defaults to those of kubeadm; an empty list means none.
        #[schemars(length(max = 100))]
        pub taints: Vec<Taint>,
        /// Extra arguments of the kubelet, with unique names.
        pub kubelet_extra_args: BTreeMap<String, String>,
        /// Preflight errors that are reported as warnings.
        #[schemars(length(max = 50), inner(length(min = 1, max = 512)))]
        pub ignore_preflight_errors: Vec<String>,
        /// Pull policy of images.
        pub image_pull_policy: Option<PullPolicy>,
        /// Whether images are pulled one after another.
        pub image_pull_serial: Option<bool>,
    }

    /// Address on which a node's API server listens.
    pub struct LocalEndpoint {
        /// IP address that the API server advertises.
        #[schemars(length(min = 1, max = 39))]
        pub advertise_address: String,
        /// Port that the API server listens on.
        pub bind_port: Option<i32>,
    }

    /// Location of the patches.
    pub struct Patches {
        /// Directory with files named `target[suffix][+patchtype].extension`.
        #[schemars(length(min = 1, max = 512))]
        pub directory: String,
    }

    /// kubeadm's `JoinConfiguration`.
    pub struct JoinConfiguration {
        /// apiVersion of kubeadm's configuration.
        pub api_version: String,
        /// kind of kubeadm's configuration.
        pub kind: String,
        /// Registration of the node.
        pub node_registration: NodeRegistrationOptions,
        /// Path of the cluster's certificate authority.
        #[schemars(length(min = 1, max = 512))]
        pub ca_cert_path: String,
        /// Discovery of the cluster.
        pub discovery: Discovery,
        /// Settings of a joining control plane node.
        pub control_plane: Option<JoinControlPlane>,
        /// Phases of kubeadm to skip.
        #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
        pub skip_phases: Vec<String>,
        /// Patches of the manifests that kubeadm writes.
        pub patches: Option<Patches>,
    }

    /// Settings of a joining control plane node.
    pub struct JoinControlPlane {
        /// Address on which this node's API server listens.
        #[serde(rename = "localAPIEndpoint")]
        pub local_api_endpoint: LocalEndpoint,
    }

    /// Discovery of the cluster by a joining node.
    pub struct Discovery {
        /// Discovery by a bootstrap token.
        pub bootstrap_token: Option<BootstrapTokenDiscovery>,
        /// Discovery by a kubeconfig file.
        pub file: Option<FileDiscovery>,
        /// Token for the kubelet's TLS bootstrap, if it differs.
        #[schemars(length(min = 1, max = 512))]
        pub tls_bootstrap_token: String,
        /// Timeout of the discovery.
        pub timeout: Option<String>,
    }

    /// Discovery of the cluster by a bootstrap token.
    pub struct BootstrapTokenDiscovery {
        /// Bootstrap token.
        #[schemars(length(min = 1, max = 512))]
        pub token: String,
        /// Endpoint of an API server.
        #[schemars(length(min = 1, max = 512))]
        pub api_server_endpoint: String,
        /// Hashes of acceptable certificate authorities.
        #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
        pub ca_cert_hashes: Vec<String>,
        /// Whether verification of the certificate authority is skipped.
        #[serde(rename = "unsafeSkipCAVerification")]
        pub unsafe_skip_ca_verification: Option<bool>,
    }

    /// Discovery of the cluster by a kubeconfig file.
    pub struct FileDiscovery {
        /// Path or URL of the file.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub kube_config_path: String,
        /// Content of the file, if it is inline.
        pub kube_config: Option<FileDiscoveryKubeConfig>,
    }

    /// Contents of a kubeconfig file.
    pub struct FileDiscoveryKubeConfig {
        /// Connection to the cluster. Discovered if absent.
        pub cluster: Option<KubeConfigCluster>,
        /// Credentials of the user.
        #[schemars(extend("x-required" = true))]
        pub user: KubeConfigUser,
    }

    /// Connection to a cluster in a kubeconfig file.
    pub struct KubeConfigCluster {
        /// Address of the API server.
        #[schemars(length(min = 1, max = 512))]
        pub server: String,
        /// Name expected in the server's certificate.
        #[schemars(length(min = 1, max = 512))]
        pub tls_server_name: String,
        /// Whether verification of the server is skipped.
        #[serde(rename = "insecureSkipTLSVerify")]
        pub insecure_skip_tls_verify: Option<bool>,
        /// Certificate authority, PEM in base64.
        #[schemars(length(min = 1, max = 51200), extend("format" = "byte"))]
        pub certificate_authority_data: String,
        /// URL of the proxy.
        #[serde(rename = "proxyURL")]
        #[schemars(length(min = 1, max = 512))]
        pub proxy_url: String,
    }

    /// Credentials in a kubeconfig file.
    pub struct KubeConfigUser {
        /// Auth provider plugin of the client.
        pub auth_provider: Option<KubeConfigAuthProvider>,
        /// Exec credential plugin.
        pub exec: Option<KubeConfigAuthExec>,
    }

    /// An exec credential plugin.
    pub struct KubeConfigAuthExec {
        /// Command of the plugin.
        #[schemars(length(min = 1, max = 1024), extend("x-required" = true))]
        pub command: String,
        /// Arguments of the command.
        #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
        pub args: Vec<String>,
        /// Environment variables in addition to those of the caller.
        #[schemars(length(max = 100))]
        pub env: Vec<KubeConfigAuthExecEnv>,
        /// API version of the plugin.
        #[schemars(length(min = 1, max = 512))]
        pub api_version: String,
        /// Whether the plugin gets cluster information.
        pub provide_cluster_info: Option<bool>,
    }
}
