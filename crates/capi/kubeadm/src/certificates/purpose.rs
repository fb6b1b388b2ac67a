//! Purposes of a cluster's Secrets.

/// Purpose of a cluster Secret; the Secret is named `<cluster>-<suffix>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// CA of the API server and its clients.
    ClusterCa,
    /// CA of etcd and its clients.
    EtcdCa,
    FrontProxyCa,
    /// Key pair that signs ServiceAccount tokens.
    ServiceAccount,
    /// The API server's client certificate for an external etcd; provided by the user.
    ApiServerEtcdClient,
    /// Admin kubeconfig.
    Kubeconfig,
}

impl Purpose {
    /// Certificates that are generated unless the user provides them.
    pub const MADE: [Self; 4] = [Self::ClusterCa, Self::EtcdCa, Self::FrontProxyCa, Self::ServiceAccount];

    pub const fn suffix(self) -> &'static str {
        match self {
            Self::ClusterCa => "ca",
            Self::EtcdCa => "etcd",
            Self::FrontProxyCa => "proxy",
            Self::ServiceAccount => "sa",
            Self::ApiServerEtcdClient => "apiserver-etcd-client",
            Self::Kubeconfig => "kubeconfig",
        }
    }

    pub fn secret_name(self, cluster: &str) -> String {
        format!("{cluster}-{}", self.suffix())
    }
}
