//! What a decision about bootstrap data is based on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::cluster::condition::CONTROL_PLANE_INITIALIZED;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_object::Conditions;

use super::token::TokenState;
use crate::certificates::{Purpose, Seed};
use capstan_capi_core::secret::{ConfigMap, Secret};

/// Observed state besides the KubeadmConfig.
#[derive(Debug)]
pub struct Observed {
    /// The machine that owns the KubeadmConfig; of a pool, a machine of its template.
    pub machine: Option<Arc<Machine>>,
    /// A MachinePool owns the KubeadmConfig: its data is kept usable for as long as the pool exists.
    pub pool: bool,
    pub cluster: Option<Arc<Cluster>>,
    /// The lock for `kubeadm init`.
    pub lock: Option<ConfigMap>,
    pub lock_holder_exists: bool,
    /// The Secret with the bootstrap data.
    pub data: Option<Secret>,
    /// Existing certificate Secrets of the cluster.
    pub certificates: BTreeMap<Purpose, Secret>,
    /// Existing Secrets that files and passwords refer to, by name.
    pub sources: BTreeMap<String, Secret>,
    pub control_plane_version: Option<String>,
    /// State of the bootstrap token in the workload cluster.
    pub token: TokenState,
    /// Randomness for generated keys and tokens.
    pub seed: Seed,
}

/// The control plane accepts requests.
pub(super) fn is_initialized(cluster: &Cluster) -> bool {
    cluster.status.conditions.is_condition_true(CONTROL_PLANE_INITIALIZED)
}
