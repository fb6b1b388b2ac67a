//! What the Secrets of a cluster are for.

/// What a Secret of a cluster is for; its name is the cluster's with the purpose at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// Authority for the API server and its clients.
    ClusterCa,
    /// Authority for etcd and its clients.
    EtcdCa,
    /// Authority for the front proxy.
    FrontProxyCa,
    /// Pair that signs ServiceAccount tokens.
    ServiceAccount,
    /// The API server's client certificate for an etcd elsewhere; the user's.
    ApiServerEtcdClient,
    /// Kubeconfig of the administrator.
    Kubeconfig,
}

impl Purpose {
    /// What every control plane has: the certificates that are made if nobody gave them.
    pub const MADE: [Self; 4] = [Self::ClusterCa, Self::EtcdCa, Self::FrontProxyCa, Self::ServiceAccount];

    /// The end of the Secret's name.
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

    /// Name of the Secret of a cluster.
    pub fn secret_name(self, cluster: &str) -> String {
        format!("{cluster}-{}", self.suffix())
    }
}
