//! `Cluster`: makes the Cluster API objects of a cluster what its manifests say, in phases.
//!
//! Owns: the cluster's finalizer and status; in `eksa-system` the Cluster of Cluster API and what belongs to it; in the
//! workload cluster the check of a new CNI. Reads: the datacenter and machine configs, those objects, the cloud until
//! machine configs were found valid, the workload cluster while its CNI is upgraded. Every object that it
//! makes is owned by the Cluster of Cluster API, so nothing is left when that is gone.

mod cni;
mod compare;
mod decide;
mod observe;
mod phases;
mod registry;
mod rotation;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_addons::cluster_resource_set::ConfigMapOutline;
use capstan_capi_types::addons::{ClusterResourceSet, ClusterResourceSetBinding};
use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{self, MachineDeployment, MachineHealthCheck};
use capstan_cloudstack_provider::Clouds;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachineTemplate};
use capstan_controller::{
    Caches, Change, Controller, Decision, Dial, GATHER, Look, ObserveError, Outcome, View, Watches,
};
use capstan_object::{Key, Object};
use capstan_provider_kit::{Secret, SecretOutline};
use parking_lot::Mutex;

pub use cni::{CniCall, CniSeen, Rollout, Running};
pub use observe::{Current, Observed};

use crate::cni::{Cni, Renderer};
use crate::names::{annotation, is_set, label};
use crate::release::Releases;
use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};

/// Settings of the controller.
#[derive(Clone, Default)]
pub struct Settings {
    pub releases: Releases,
    pub cni: Cni,
    pub renderer: Renderer,
}

/// The controller of clusters.
pub struct Clusters {
    clouds: Clouds,
    /// Checks whether anything answers at a cluster's endpoint before there is a cluster.
    dial: Arc<dyn Dial>,
    settings: Settings,
    /// Machine configs that were found valid, by cluster: what the answer was about.
    valid: Mutex<BTreeMap<Key, String>>,
    /// The operator's Secret with the credentials of registry mirrors, as it was read last.
    login: Mutex<Option<Arc<Secret>>>,
}

impl Clusters {
    pub fn new(clouds: Clouds, dial: Arc<dyn Dial>, settings: Settings) -> Self {
        Self { clouds, dial, settings, valid: Mutex::default(), login: Mutex::default() }
    }
}

/// Types of conditions.
pub mod condition {
    pub const READY: &str = "Ready";
    pub const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
    pub const CONTROL_PLANE_READY: &str = "ControlPlaneReady";
    pub const WORKERS_READY: &str = "WorkersReady";
    pub const CNI_CONFIGURED: &str = "DefaultCNIConfigured";
}

const CONDITIONS: [&str; 5] = [
    condition::READY,
    condition::CONTROL_PLANE_INITIALIZED,
    condition::CONTROL_PLANE_READY,
    condition::WORKERS_READY,
    condition::CNI_CONFIGURED,
];

/// Clusters by datacenter, and by machine config.
const BY_DATACENTER: &str = "datacenter";
pub(crate) const BY_MACHINE_CONFIG: &str = "machine-config";

/// Clusters by the operator's Secret that their registry mirrors need.
const BY_REGISTRY: &str = "registry";
/// Clusters by the address of their endpoint.
const BY_ADDRESS: &str = "address";

/// The address of a cluster's endpoint, without the port.
fn address(cluster: &Cluster) -> Option<&str> {
    let endpoint = cluster.spec.control_plane_configuration.endpoint.as_ref()?;
    Some(crate::endpoint::parse(&endpoint.host).ok()?.0)
}

/// The values of the index [`BY_MACHINE_CONFIG`].
pub(crate) fn machine_configs_of(cluster: &Cluster) -> Vec<String> {
    let namespace = cluster.metadata.namespace.as_str();
    let configs = cluster.machine_configs().into_iter();
    configs.map(|name| Key::new(namespace, name).to_string()).collect()
}

impl Controller for Clusters {
    const NAME: &'static str = "lifecycle-cluster";
    type Kind = Cluster;
    type Seen = Observed;
    type Call = CniCall;

    fn watches(&self, watches: &mut Watches<Cluster>) {
        watches.index::<Cluster>(BY_DATACENTER, |cluster| {
            let key =
                Key::new(cluster.metadata.namespace.as_str(), cluster.spec.datacenter_ref.name.as_str());
            vec![key.to_string()]
        });
        watches.index::<Cluster>(BY_MACHINE_CONFIG, machine_configs_of);
        watches.index::<Cluster>(BY_ADDRESS, |cluster| {
            address(cluster).map(str::to_owned).into_iter().collect()
        });
        // Those with the keys are read, those of the CNI are the cluster's own.
        watches.index::<Cluster>(BY_REGISTRY, |cluster| {
            registry::mirror(cluster).map(|_| registry::credentials().to_string()).into_iter().collect()
        });
        watches.related_within::<SecretOutline>(GATHER, |change, caches| {
            let mut all = owner(change, caches);
            all.extend(users(caches, BY_REGISTRY, change));
            all
        });
        watches.related::<CloudStackDatacenterConfig>(|change, caches| users(caches, BY_DATACENTER, change));
        watches.related::<CloudStackMachineConfig>(|change, caches| users(caches, BY_MACHINE_CONFIG, change));
        watches.index_label::<MachineDeployment>(label::CLUSTER_NAME);
        watches.index_label::<MachineHealthCheck>(label::CLUSTER_NAME);
        watches.index_label::<CloudStackMachineTemplate>(label::CLUSTER_NAME);
        watches.index_label::<KubeadmConfigTemplate>(label::CLUSTER_NAME);
        watches.related_within::<core::Cluster>(GATHER, owner);
        watches.related_within::<CloudStackCluster>(GATHER, owner);
        watches.related_within::<KubeadmControlPlane>(GATHER, owner);
        watches.related_within::<MachineDeployment>(GATHER, owner);
        watches.related_within::<MachineHealthCheck>(GATHER, owner);
        watches.related_within::<CloudStackMachineTemplate>(GATHER, owner);
        watches.related_within::<KubeadmConfigTemplate>(GATHER, owner);
        watches.related_within::<ClusterResourceSet>(GATHER, owner);
        watches.related_within::<ConfigMapOutline>(GATHER, owner);
        // Bindings have no labels; they are named like the cluster.
        watches.related_within::<ClusterResourceSetBinding>(GATHER, |change, caches| {
            let cluster = caches.get::<core::Cluster>(&change.key).ok().flatten();
            cluster.iter().filter_map(|cluster| owner_of(&**cluster)).collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &CONDITIONS
    }

    fn paused(&self, object: &Cluster, _: &View) -> Result<Option<String>, ObserveError> {
        if !is_set(&object.metadata, annotation::PAUSED) {
            return Ok(None);
        }
        let paused = format!("it has the annotation {}", annotation::PAUSED);
        let allow = annotation::ALLOW_DELETE_WHEN_PAUSED;
        Ok(match (object.metadata.is_deleting(), is_set(&object.metadata, allow)) {
            (false, _) => Some(paused),
            (true, true) => None,
            (true, false) => {
                Some(format!("{paused}: to delete it, remove that, or add the annotation {allow}"))
            }
        })
    }

    async fn observe(&self, object: &Arc<Cluster>, view: &View) -> Result<Observed, ObserveError> {
        observe::observe(self, object, view).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(&self.settings, look)
    }

    async fn call(&self, call: &CniCall, object: &Arc<Cluster>, view: &View) -> Outcome {
        cni::run(&self.settings, call, object, view).await
    }

    fn gone(&self, key: &Key) {
        self.valid.lock().remove(key);
    }
}

/// The clusters that use a config.
fn users<T: Object>(caches: &Caches, index: &str, change: &Change<T>) -> Vec<Key> {
    let users = caches.of::<Cluster>().and_then(|cache| cache.indexed(index, &change.key.to_string()));
    users.unwrap_or_default().iter().map(|cluster| cluster.key()).collect()
}

/// The cluster that an object was generated for.
fn owner_of<T: Object>(object: &T) -> Option<Key> {
    let labels = &object.metadata().labels;
    let (namespace, name) = (labels.get(label::CLUSTER_NAMESPACE)?, labels.get(label::CLUSTER_NAME)?);
    Some(Key::new(namespace.as_str(), name.as_str()))
}

fn owner<T: Object>(change: &Change<T>, _: &Caches) -> Vec<Key> {
    change.both().filter_map(|object| owner_of(&**object)).collect()
}
