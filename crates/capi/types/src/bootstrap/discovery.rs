//! How a joining node finds and trusts the cluster.

use std::collections::BTreeMap;

use crate::wire::wire;

wire! {
    /// Discovery of the cluster by a joining node.
    #[schemars(extend("minProperties" = 1))]
    pub struct Discovery {
        /// Discovery by a bootstrap token.
        pub bootstrap_token: BootstrapTokenDiscovery,
        /// Discovery by a kubeconfig file.
        pub file: FileDiscovery,
        /// Token for the kubelet's TLS bootstrap, if it differs.
        #[schemars(length(min = 1, max = 512))]
        pub tls_bootstrap_token: String,
    }

    /// Discovery of the cluster by a bootstrap token.
    #[schemars(extend("minProperties" = 1))]
    pub struct BootstrapTokenDiscovery {
        /// Bootstrap token.
        #[schemars(length(min = 1, max = 512))]
        pub token: String,
        /// Endpoint of an API server.
        #[schemars(length(min = 1, max = 512))]
        pub api_server_endpoint: String,
        /// Hashes of acceptable certificate authorities.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
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
        pub kube_config: FileDiscoveryKubeConfig,
    }

    /// Contents of a kubeconfig file.
    pub struct FileDiscoveryKubeConfig {
        /// Connection to the cluster. Discovered if absent.
        pub cluster: KubeConfigCluster,
        /// Credentials of the user.
        #[schemars(extend("x-required" = true))]
        pub user: KubeConfigUser,
    }

    /// Connection to a cluster in a kubeconfig file.
    #[schemars(extend("minProperties" = 1))]
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
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeConfigUser {
        /// Auth provider plugin of the client.
        pub auth_provider: KubeConfigAuthProvider,
        /// Exec credential plugin.
        pub exec: KubeConfigAuthExec,
    }

    /// An auth provider plugin of the client.
    pub struct KubeConfigAuthProvider {
        /// Name of the plugin.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Settings of the plugin.
        pub config: BTreeMap<String, String>,
    }

    /// An exec credential plugin.
    pub struct KubeConfigAuthExec {
        /// Command of the plugin.
        #[schemars(length(min = 1, max = 1024), extend("x-required" = true))]
        pub command: String,
        /// Arguments of the command.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub args: Vec<String>,
        /// Environment variables in addition to those of the caller.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub env: Vec<KubeConfigAuthExecEnv>,
        /// API version of the plugin.
        #[schemars(length(min = 1, max = 512))]
        pub api_version: String,
        /// Whether the plugin gets cluster information.
        pub provide_cluster_info: Option<bool>,
    }

    /// An environment variable.
    pub struct KubeConfigAuthExecEnv {
        /// Name of the variable.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub name: String,
        /// Value of the variable.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub value: String,
    }
}
