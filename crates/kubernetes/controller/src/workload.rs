//! The clusters that are managed, as controllers reach them.

use capstan_object::Key;
pub use capstan_streams::Stream;
use futures::future::BoxFuture;

use crate::code::catalogue;
use crate::{Client, ObserveError};

/// Why a workload cluster cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WorkloadError {
    /// It has no kubeconfig yet.
    #[error("cluster {0} has no kubeconfig yet")]
    NoKubeconfig(Key),
    /// The kubeconfig is invalid.
    #[error("the kubeconfig of cluster {cluster} cannot be used: {why}")]
    BadKubeconfig { cluster: Key, why: String },
    /// It does not answer.
    #[error("cluster {cluster} does not answer: {why}")]
    Unreachable { cluster: Key, why: String },
}

impl From<WorkloadError> for ObserveError {
    fn from(error: WorkloadError) -> Self {
        Self::outside(catalogue::WORKLOAD_UNREACHABLE, error.to_string())
    }
}

/// The annotation of a cluster that does not answer any more: why the last probe failed. Its conditions have Cluster API's
/// text, which has no room for it.
pub const UNREACHABLE: &str = "capstan.dev/unreachable";

/// How the last probes of a workload cluster went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// The last successful probe.
    pub last_success: Option<jiff::Timestamp>,
    /// Failed probes since.
    pub failures: u32,
    /// Why the last probe failed, if it did; at most a few hundred bytes.
    pub error: Option<String>,
}

/// Reaches workload clusters: one client per cluster, from its kubeconfig Secret, cached and probed.
pub trait Workloads: Send + Sync {
    /// A client of a cluster. An error if the cluster does not answer: callers do not wait for a dead cluster.
    fn client<'a>(&'a self, cluster: &'a Key) -> BoxFuture<'a, Result<Client, WorkloadError>>;

    /// A stream to a port of a Pod, through the API server's port-forward.
    fn port_forward<'a>(
        &'a self,
        cluster: &'a Key,
        pod: &'a Key,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, WorkloadError>>;

    fn health(&self, cluster: &Key) -> Health;

    /// Drops the connection of a cluster that is gone.
    fn forget(&self, cluster: &Key);
}
