//! How a joining node finds and trusts the cluster.

use std::collections::BTreeMap;

use crate::wire::wire;

wire! {
    /// How a joining node finds and trusts the cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct Discovery {
        /// By a token.
        pub bootstrap_token: BootstrapTokenDiscovery,
        /// By a kubeconfig file.
        pub file: FileDiscovery,
        /// Token for the kubelet's TLS bootstrap, if it differs.
        #[schemars(length(min = 1, max = 512))]
        pub tls_bootstrap_token: String,
    }

    /// Finds the cluster by a token.
    #[schemars(extend("minProperties" = 1))]
    pub struct BootstrapTokenDiscovery {
        /// The token.
        #[schemars(length(min = 1, max = 512))]
        pub token: String,
        /// Address of an API server.
        #[schemars(length(min = 1, max = 512))]
        pub api_server_endpoint: String,
        /// Hashes of acceptable certificate authorities.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
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
        pub kube_config: FileDiscoveryKubeConfig,
    }

    /// Contents of a kubeconfig file.
    pub struct FileDiscoveryKubeConfig {
        /// How to reach the cluster; found out if absent.
        pub cluster: KubeConfigCluster,
        /// How to authenticate.
        #[schemars(extend("x-required" = true))]
        pub user: KubeConfigUser,
    }

    /// How a kubeconfig file reaches a cluster.
    #[schemars(extend("minProperties" = 1))]
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
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeConfigUser {
        /// By a plug-in of the client.
        pub auth_provider: KubeConfigAuthProvider,
        /// By a program.
        pub exec: KubeConfigAuthExec,
    }

    /// A client's authentication plug-in.
    pub struct KubeConfigAuthProvider {
        /// Name of the plug-in.
        #[schemars(length(min = 1, max = 256), extend("x-required" = true))]
        pub name: String,
        /// Its settings.
        pub config: BTreeMap<String, String>,
    }

    /// A program that gives credentials.
    pub struct KubeConfigAuthExec {
        /// The program.
        #[schemars(length(min = 1, max = 1024), extend("x-required" = true))]
        pub command: String,
        /// Its arguments.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub args: Vec<String>,
        /// Its environment, beside that of the caller.
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
        /// Value.
        #[schemars(length(min = 1, max = 512), extend("x-required" = true))]
        pub value: String,
    }
}
