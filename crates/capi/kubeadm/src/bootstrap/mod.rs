//! The KubeadmConfig controller: creates the bootstrap data of one machine, or of the machines of one pool.
//!
//! Owns: KubeadmConfigs; the Secret of the same name with the data; the Secrets with certificates of
//! clusters without control plane provider; the ConfigMap that locks `kubeadm init` to one machine; bootstrap
//! tokens in workload clusters.
//! Reads: Machines, MachinePools, Clusters, control planes, the Secrets that files and passwords refer to.
//!
//! ```text
//! infrastructure? ─▶ data exists? ─▶ first node: lock, certificates, data
//!                         │              └▶ joining: certificates, discovery, token (spec first, then workload), data
//!                         └▶ token extended until the node has joined; of a pool, replaced before it expires, with the data
//! ```
//!
//! A token is written to the spec before it is created in the workload cluster: after a crash in between the same
//! token is created, and none is leaked.

mod decide;
mod lock;
mod observe;
mod observed;
mod status;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::conditions::v1beta1;
use capstan_capi_core::paused;
use capstan_capi_types::bootstrap::kubeadm_config::condition;
use capstan_capi_types::bootstrap::{EncryptionAlgorithmType, KubeadmConfig};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, ContractVersionedObjectReference, Machine, MachinePool, label};
use capstan_controller::{Caches, Controller, Decision, Look, ObserveError, Outcome, View, Watches};
use capstan_object::{Key, Object};

use crate::certificates::Keys;

pub use decide::decide;
pub use observed::Observed;
pub use token::{TokenCall, TokenState};

/// Error codes of this controller.
pub mod code {
    capstan_controller::codes! {
        TOKEN = "E-KUBEADM-TOKEN", Cluster,
            "a bootstrap token cannot be created in the workload cluster",
            "check that the cluster is reachable and accepts Secrets in kube-system";
    }
}

pub struct BootstrapController {
    settings: Settings,
    keys: Arc<dyn Keys>,
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// Lifetime of a bootstrap token.
    pub token_ttl: Duration,
    /// Key algorithm if the configuration sets none.
    pub default_algorithm: EncryptionAlgorithmType,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token_ttl: Duration::from_secs(15 * 60),
            default_algorithm: EncryptionAlgorithmType::EcdsaP256,
        }
    }
}

impl BootstrapController {
    pub fn new(settings: Settings, keys: Arc<dyn Keys>) -> Self {
        Self { settings, keys }
    }
}

/// How v1beta1 conditions derive from ours.
const V1BETA1: v1beta1::Table = v1beta1::Table {
    rows: &[
        v1beta1::same("CertificatesAvailable", &[condition::CERTIFICATES_AVAILABLE]),
        v1beta1::same("DataSecretAvailable", &[condition::DATA_SECRET_AVAILABLE]),
    ],
    ready: &["DataSecretAvailable", "CertificatesAvailable"],
};

impl Controller for BootstrapController {
    const NAME: &'static str = "kubeadmconfig";
    type Kind = KubeadmConfig;
    type Seen = Observed;
    type Call = TokenCall;

    fn watches(&self, watches: &mut Watches<KubeadmConfig>) {
        watches.index_label::<Machine>(label::CLUSTER_NAME);
        watches.read::<KubeadmControlPlane>();
        watches.related::<Machine>(|change, _| match (&change.old, &change.new) {
            (Some(old), Some(new)) if relevant_of_machine(old) == relevant_of_machine(new) => Vec::new(),
            _ => change.both().filter_map(config_of).collect(),
        });
        watches.index_label::<MachinePool>(label::CLUSTER_NAME);
        watches.related::<MachinePool>(|change, _| match (&change.old, &change.new) {
            (Some(old), Some(new)) if relevant_of_pool(old) == relevant_of_pool(new) => Vec::new(),
            _ => change.both().filter_map(config_of_pool).collect(),
        });
        watches.related::<Cluster>(|change, caches| match (&change.old, &change.new) {
            (Some(old), Some(new)) if relevant_of_cluster(old) == relevant_of_cluster(new) => Vec::new(),
            _ => change.latest().map(|cluster| configs_of(cluster, caches)).unwrap_or_default(),
        });
    }

    fn conditions(&self) -> &[&'static str] {
        status::OWNED
    }

    fn paused(&self, object: &KubeadmConfig, view: &View) -> Result<Option<String>, ObserveError> {
        let Some(owner) = observe::owner_of(object, view)? else { return Ok(None) };
        let machine = owner.machine;
        let key = Key::new(machine.metadata.namespace.clone(), machine.spec.cluster_name.clone());
        let cluster = view.get::<Cluster>(&key)?;
        Ok(cluster.and_then(|cluster| paused::of_cluster(&cluster)).map(str::to_owned))
    }

    async fn observe(&self, object: &Arc<KubeadmConfig>, view: &View) -> Result<Observed, ObserveError> {
        observe::observe(object, view, self.keys.as_ref()).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = decide(&self.settings, look);
        let status = &mut decision.object.status;
        v1beta1::write(&status.conditions, &V1BETA1, &mut status.deprecated, |old| &mut old.conditions);
        decision
    }

    async fn call(&self, call: &TokenCall, object: &Arc<KubeadmConfig>, view: &View) -> Outcome {
        token::make(call, object, view).await
    }
}

/// The parts of a Machine that trigger a reconcile.
fn relevant_of_machine(machine: &Machine) -> impl PartialEq {
    (&machine.spec, &machine.metadata.labels, machine.metadata.is_deleting(), &machine.status.node_ref)
}

/// The parts of a MachinePool that trigger a reconcile.
fn relevant_of_pool(pool: &MachinePool) -> impl PartialEq {
    (&pool.spec.template, pool.metadata.is_deleting(), pool.status.node_refs.is_empty())
}

/// The parts of a Cluster that trigger a reconcile.
fn relevant_of_cluster(cluster: &Cluster) -> impl PartialEq {
    (
        &cluster.spec,
        cluster.metadata.is_deleting(),
        cluster.status.initialization.infrastructure_provisioned,
        observed::is_initialized(cluster),
    )
}

/// The KubeadmConfig that a machine boots from, if it uses one.
fn config_of(machine: &Arc<Machine>) -> Option<Key> {
    named_config(&machine.spec.bootstrap.config_ref, &machine.metadata.namespace)
}

/// The KubeadmConfig that the machines of a pool boot from, if they use one.
fn config_of_pool(pool: &Arc<MachinePool>) -> Option<Key> {
    named_config(&pool.spec.template.spec.bootstrap.config_ref, &pool.metadata.namespace)
}

fn named_config(reference: &ContractVersionedObjectReference, namespace: &str) -> Option<Key> {
    let ours = reference.kind == KubeadmConfig::KIND.kind && reference.api_group == KubeadmConfig::KIND.group;
    ours.then(|| Key::new(namespace, reference.name.clone()))
}

fn configs_of(cluster: &Arc<Cluster>, caches: &Caches) -> Vec<Key> {
    let meta = &cluster.metadata;
    let machines = caches
        .of::<Machine>()
        .and_then(|machines| machines.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name));
    let pools = caches
        .of::<MachinePool>()
        .and_then(|pools| pools.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name));
    let machines = machines.unwrap_or_default();
    let configs = machines.iter().filter_map(config_of);
    configs.chain(pools.unwrap_or_default().iter().filter_map(config_of_pool)).collect()
}
