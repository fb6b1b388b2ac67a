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
        /// The cluster's etcd.
        pub etcd: Etcd,
        /// Addresses inside the cluster; the cluster's own if absent.
        pub networking: Networking,
        /// Kubernetes version; that of the machine if absent.
        #[schemars(length(min = 1, max = 256))]
        pub kubernetes_version: String,
        /// Stable address of the control plane; the cluster's own endpoint if absent.
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

    /// The cluster's etcd: on its own nodes, or elsewhere.
    pub struct Etcd {
        /// Members on the control plane nodes.
        pub local: Option<LocalEtcd>,
        /// An etcd that already exists.
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
        /// Further command line flags, each name once.
        pub extra_args: BTreeMap<String, String>,
        /// Further environment variables.
        #[schemars(length(max = 100))]
        pub extra_envs: Vec<EnvVar>,
        /// Further names in the server's certificate.
        #[serde(rename = "serverCertSANs")]
        #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
        pub server_cert_sans: Vec<String>,
        /// Further names in the peer certificate.
        #[serde(rename = "peerCertSANs")]
        #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
        pub peer_cert_sans: Vec<String>,
    }

    /// An etcd that already exists.
    pub struct ExternalEtcd {
        /// Addresses of its members.
        #[schemars(length(max = 50), inner(length(min = 1, max = 512)), extend("x-required" = true))]
        pub endpoints: Vec<String>,
        /// File of its certificate authority.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub ca_file: String,
        /// File of the client certificate.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub cert_file: String,
        /// File of the client key.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub key_file: String,
    }

    /// Addresses inside the cluster.
    pub struct Networking {
        /// Range of services.
        #[schemars(length(min = 1, max = 1024))]
        pub service_subnet: String,
        /// Range of pods.
        #[schemars(length(min = 1, max = 1024))]
        pub pod_subnet: String,
        /// Domain name of services.
        #[schemars(length(min = 1, max = 253))]
        pub dns_domain: String,
    }

    /// Settings of the API server.
    pub struct APIServer {
        /// Further command line flags, each name once.
        pub extra_args: BTreeMap<String, String>,
        /// Further directories of the host to mount.
        #[schemars(length(max = 100))]
        pub extra_volumes: Vec<HostPathMount>,
        /// Further environment variables.
        #[schemars(length(max = 100))]
        pub extra_envs: Vec<EnvVar>,
        /// Further names in the API server's certificate.
        #[serde(rename = "certSANs")]
        #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
        pub cert_sans: Vec<String>,
        /// How long to wait for the API server.
        pub timeout_for_control_plane: Option<String>,
    }

    /// Settings of a control plane component.
    pub struct ControlPlaneComponent {
        /// Further command line flags, each name once.
        pub extra_args: BTreeMap<String, String>,
        /// Further directories of the host to mount.
        #[schemars(length(max = 100))]
        pub extra_volumes: Vec<HostPathMount>,
        /// Further environment variables.
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
        /// How the node presents itself to the cluster.
        pub node_registration: NodeRegistrationOptions,
        /// Address on which this node's API server listens.
        #[serde(rename = "localAPIEndpoint")]
        pub local_api_endpoint: LocalEndpoint,
        /// Phases of kubeadm to leave out.
        #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
        pub skip_phases: Vec<String>,
        /// Patches for what kubeadm writes.
        pub patches: Option<Patches>,
    }

    /// A token with which nodes join.
    pub struct BootstrapToken {
        /// The token, `abcdef.0123456789abcdef`.
        #[schemars(extend("x-required" = true))]
        pub token: String,
        /// What it is for.
        #[schemars(length(min = 1, max = 512))]
        pub description: String,
        /// Lifetime.
        pub ttl: Option<String>,
        /// When it expires; excludes `ttlSeconds`.
        pub expires: Option<Time>,
        /// What it may be used for.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub usages: Vec<String>,
        /// Groups that its bearer is in.
        #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
        pub groups: Vec<String>,
    }

    /// How a node presents itself to the cluster.
    pub struct NodeRegistrationOptions {
        /// Name of the node; the host's name if absent.
        #[schemars(length(min = 1, max = 253))]
        pub name: String,
        /// Socket of the container runtime.
        #[schemars(length(min = 1, max = 512))]
        pub cri_socket: String,
        /// Initial taints; an empty list for none, absent for kubeadm's default.
        #[schemars(length(max = 100))]
        pub taints: Vec<Taint>,
        /// Extra arguments of the kubelet, with unique names.
        pub kubelet_extra_args: BTreeMap<String, String>,
        /// Preflight errors that only warn.
        #[schemars(length(max = 50), inner(length(min = 1, max = 512)))]
        pub ignore_preflight_errors: Vec<String>,
        /// When images are pulled.
        pub image_pull_policy: Option<PullPolicy>,
        /// Whether images are pulled one after another.
        pub image_pull_serial: Option<bool>,
    }

    /// Address on which a node's API server listens.
    pub struct LocalEndpoint {
        /// Address it advertises.
        #[schemars(length(min = 1, max = 39))]
        pub advertise_address: String,
        /// Port it listens on.
        pub bind_port: Option<i32>,
    }

    /// Where patches are.
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
        /// How the node presents itself to the cluster.
        pub node_registration: NodeRegistrationOptions,
        /// File of the cluster's certificate authority.
        #[schemars(length(min = 1, max = 512))]
        pub ca_cert_path: String,
        /// How the cluster is found and trusted.
        pub discovery: Discovery,
        /// Joins as a control plane node.
        pub control_plane: Option<JoinControlPlane>,
        /// Phases of kubeadm to leave out.
        #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
        pub skip_phases: Vec<String>,
        /// Patches for what kubeadm writes.
        pub patches: Option<Patches>,
    }

    /// Settings of a joining control plane node.
    pub struct JoinControlPlane {
        /// Address on which this node's API server listens.
        #[serde(rename = "localAPIEndpoint")]
        pub local_api_endpoint: LocalEndpoint,
    }

    /// How a joining node finds and trusts the cluster.
    pub struct Discovery {
        /// By a token.
        pub bootstrap_token: Option<BootstrapTokenDiscovery>,
        /// By a kubeconfig file.
        pub file: Option<FileDiscovery>,
        /// Token for the kubelet's TLS bootstrap, if it differs.
        #[schemars(length(min = 1, max = 512))]
        pub tls_bootstrap_token: String,
        /// How long finding the cluster may take.
        pub timeout: Option<String>,
    }

    /// Finds the cluster by a token.
    pub struct BootstrapTokenDiscovery {
        /// The token.
        #[schemars(length(min = 1, max = 512))]
        pub token: String,
        /// Address of an API server.
        #[schemars(length(min = 1, max = 512))]
        pub api_server_endpoint: String,
        /// Hashes of acceptable certificate authorities.
        #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
        pub ca_cert_hashes: Vec<String>,
        /// Trusts any certificate authority.
        #[serde(rename = "unsafeSkipCAVerification")]
        pub unsafe_skip_ca_verification: Option<bool>,
    }

    /// Finds the cluster by a kubeconfig file.
    pub struct FileDiscovery {
        /// Path or URL of the file.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub kube_config_path: String,
        /// Content of the file, if it is inline.
        pub kube_config: Option<FileDiscoveryKubeConfig>,
    }

    /// Contents of a kubeconfig file.
    pub struct FileDiscoveryKubeConfig {
        /// How to reach the cluster; found out if absent.
        pub cluster: Option<KubeConfigCluster>,
        /// How to authenticate.
        #[schemars(extend("x-required" = true))]
        pub user: KubeConfigUser,
    }

    /// How a kubeconfig file reaches a cluster.
    pub struct KubeConfigCluster {
        /// Address of the API server.
        #[schemars(length(min = 1, max = 512))]
        pub server: String,
        /// Name expected in the server's certificate.
        #[schemars(length(min = 1, max = 512))]
        pub tls_server_name: String,
        /// Trusts any server.
        #[serde(rename = "insecureSkipTLSVerify")]
        pub insecure_skip_tls_verify: Option<bool>,
        /// Certificate authority, PEM in base64.
        #[schemars(length(min = 1, max = 51200), extend("format" = "byte"))]
        pub certificate_authority_data: String,
        /// Proxy to go through.
        #[serde(rename = "proxyURL")]
        #[schemars(length(min = 1, max = 512))]
        pub proxy_url: String,
    }

    /// How a kubeconfig file authenticates.
    pub struct KubeConfigUser {
        /// By a plug-in of the client.
        pub auth_provider: Option<KubeConfigAuthProvider>,
        /// By a program.
        pub exec: Option<KubeConfigAuthExec>,
    }

    /// A program that gives credentials.
    pub struct KubeConfigAuthExec {
        /// The program.
        #[schemars(length(min = 1, max = 1024), extend("x-required" = true))]
        pub command: String,
        /// Its arguments.
        #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
        pub args: Vec<String>,
        /// Its environment, beside that of the caller.
        #[schemars(length(max = 100))]
        pub env: Vec<KubeConfigAuthExecEnv>,
        /// API version of the plugin.
        #[schemars(length(min = 1, max = 512))]
        pub api_version: String,
        /// Whether the plugin gets cluster information.
        pub provide_cluster_info: Option<bool>,
    }
}
