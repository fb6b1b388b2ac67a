//! Reads what a decision about bootstrap data depends on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachinePool};
use capstan_controller::{ObserveError, View, catalogue};
use capstan_object::{Key, Object, OwnerReference};

use capstan_capi_core::contract::{ControlPlane, Lookup, look_up};

use super::lock;
use super::observed::{Observed, is_initialized};
use super::token::{self, TokenState};
use crate::bootstrap_data;
use crate::certificates::{CertificateLocation, Keys, locations_for_control_plane};
use capstan_capi_core::secret::{ConfigMap, Secret};

/// Who boots from a KubeadmConfig.
pub(super) struct ConfigOwner {
    /// The machine, or what a machine of the pool has in common with the others.
    pub machine: Arc<Machine>,
    pub pool: bool,
}

pub(super) fn owner_of(config: &KubeadmConfig, view: &View) -> Result<Option<ConfigOwner>, ObserveError> {
    fn named<T: Object>(config: &KubeadmConfig, view: &View) -> Result<Option<Arc<T>>, ObserveError> {
        let is_it = |owner: &&OwnerReference| owner.kind == T::KIND.kind && owner.group() == T::KIND.group;
        let Some(owner) = config.metadata.owner_references.iter().find(is_it) else { return Ok(None) };
        view.get::<T>(&Key::new(config.metadata.namespace.clone(), owner.name.clone()))
    }
    if let Some(machine) = named::<Machine>(config, view)? {
        return Ok(Some(ConfigOwner { machine, pool: false }));
    }
    let pool = named::<MachinePool>(config, view)?;
    Ok(pool.map(|pool| ConfigOwner { machine: Arc::new(machine_of_pool(&pool)), pool: true }))
}

/// What the machines of a pool have in common. It has a node once the first of them has.
pub(super) fn machine_of_pool(pool: &MachinePool) -> Machine {
    let mut machine = Machine {
        metadata: pool.metadata.clone(),
        spec: pool.spec.template.spec.clone(),
        ..Machine::default()
    };
    machine.spec.cluster_name = pool.spec.cluster_name.clone();
    if let Some(node) = pool.status.node_refs.first() {
        machine.status.node_ref.name = node.name.clone();
    }
    machine
}

pub(super) async fn observe(
    config: &Arc<KubeadmConfig>,
    view: &View,
    keys: &dyn Keys,
) -> Result<Observed, ObserveError> {
    let meta = &config.metadata;
    let seed = keys
        .seed(&format!("{}/{}/{}", meta.namespace, meta.name, meta.uid))
        .map_err(|error| ObserveError::outside(catalogue::OBSERVE, error.to_string()))?;
    let owner = owner_of(config, view)?;
    let mut seen = Observed {
        pool: owner.as_ref().is_some_and(|owner| owner.pool),
        machine: owner.map(|owner| owner.machine),
        cluster: None,
        lock: None,
        lock_holder_exists: false,
        data: None,
        certificates: BTreeMap::new(),
        sources: BTreeMap::new(),
        control_plane_version: None,
        token: TokenState::NotNeeded,
        seed,
    };
    let Some(machine) = seen.machine.clone() else { return Ok(seen) };
    let namespace = meta.namespace.as_str();
    let key = |name: &str| Key::new(namespace, name);
    seen.cluster = view.get::<Cluster>(&key(&machine.spec.cluster_name))?;
    let Some(cluster) = seen.cluster.clone() else { return Ok(seen) };
    seen.data = view.client().get::<Secret>(&meta.key()).await?;

    let made = config.status.initialization.data_secret_created == Some(true);
    let initialized = is_initialized(&cluster);
    // The data of a pool is rendered anew whenever its token or its configuration changes.
    if (!made || seen.pool) && cluster.status.initialization.infrastructure_provisioned == Some(true) {
        seen.lock = view.client().get::<ConfigMap>(&key(&lock::name(&cluster.metadata.name))).await?;
        if let Some(holder) = seen.lock.as_ref().and_then(lock::holder) {
            seen.lock_holder_exists = view.get::<Machine>(&key(&holder))?.is_some();
        }
        let locations = locations_for_control_plane(&config.spec.cluster_configuration);
        for CertificateLocation { purpose, .. } in locations {
            let name = purpose.secret_name(&cluster.metadata.name);
            if let Some(secret) = view.client().get::<Secret>(&key(&name)).await? {
                seen.certificates.insert(purpose, secret);
            }
        }
        for name in bootstrap_data::needed_secrets(&config.spec) {
            if let Some(secret) = view.client().get::<Secret>(&key(&name)).await? {
                seen.sources.insert(name, secret);
            }
        }
        let control_plane = &cluster.spec.control_plane_ref;
        if control_plane.kind == KubeadmControlPlane::KIND.kind {
            let control_plane = view.get::<KubeadmControlPlane>(&key(&control_plane.name))?;
            seen.control_plane_version =
                control_plane.map(|control_plane| control_plane.spec.version.clone());
        } else if let Lookup::Object(foreign) =
            look_up(view, control_plane, &cluster.metadata.namespace).await?
        {
            // A control plane without the field has no version that files could name.
            seen.control_plane_version = ControlPlane(&foreign).version().ok().flatten();
        }
    }
    if initialized && (seen.pool || machine.status.node_ref.name.is_empty()) {
        seen.token = token::observe(config, &cluster.metadata.key(), view).await?;
    }
    Ok(seen)
}
