//! What a decision about bootstrap data depends on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::cluster::condition::CONTROL_PLANE_INITIALIZED;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_object::Conditions;

use super::token::TokenState;
use crate::certificates::{Purpose, Seed};
use crate::secret::{ConfigMap, Secret};

/// What was seen beside the KubeadmConfig.
#[derive(Debug)]
pub struct Seen {
    /// The machine that boots from it.
    pub machine: Option<Arc<Machine>>,
    /// The machine's cluster.
    pub cluster: Option<Arc<Cluster>>,
    /// Who becomes the first node.
    pub lock: Option<ConfigMap>,
    /// The machine that holds the lock still exists.
    pub lock_holder_exists: bool,
    /// The Secret with the boot data.
    pub data: Option<Secret>,
    /// The cluster's certificates, as far as they exist.
    pub certificates: BTreeMap<Purpose, Secret>,
    /// Secrets that files and passwords come from, as far as they exist.
    pub sources: BTreeMap<String, Secret>,
    /// Version of the control plane, if it is known.
    pub control_plane_version: Option<String>,
    /// The bootstrap token in the workload cluster.
    pub token: TokenState,
    /// The administrator's kubeconfig exists, or is not ours to make.
    pub has_kubeconfig: bool,
    /// Randomness for what is made.
    pub seed: Seed,
}

/// The control plane takes requests.
pub(super) fn is_initialized(cluster: &Cluster) -> bool {
    cluster.status.conditions.is_condition_true(CONTROL_PLANE_INITIALIZED)
}
