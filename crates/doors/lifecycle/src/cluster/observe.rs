//! Reads what a decision about a cluster depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_addons::cluster_resource_set::ConfigMapOutline;
use capstan_capi_types::addons::{
    ClusterResourceSet, ClusterResourceSetBinding, ClusterResourceSetResourceKind as ResourceKind,
};
use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{self, MachineDeployment, MachineHealthCheck};
use capstan_cloudstack_provider::CloudError;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachineTemplate};
use capstan_controller::{ObserveError, View};
use capstan_object::{Key, Object, ObjectMeta};
use capstan_provider_kit::{Secret, SecretOutline};

use super::{BY_ADDRESS, Clusters, CniSeen, cni, registry};
use crate::cloud::{self, OpenZone, secret_of};
use crate::endpoint;
use crate::names::{self, SYSTEM_NAMESPACE, annotation, label};
use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};
use crate::version;

/// Observed state beside the cluster.
#[derive(Debug, Default)]
pub struct Observed {
    pub datacenter: Option<Arc<CloudStackDatacenterConfig>>,
    /// By name.
    pub machine_configs: BTreeMap<String, Arc<CloudStackMachineConfig>>,
    /// Who has the address of the endpoint, before there is a cluster.
    pub address_holder: Option<String>,
    /// What CloudStack lacks of the machine configs.
    pub machines: Option<CloudError>,
    /// The operator's Secret with the credentials of the registry mirror, if they are needed.
    pub registry: Option<Arc<Secret>>,
    pub current: Current,
    pub cni: CniSeen,
}

impl Observed {
    /// Sum of the generations of everything that the cluster refers to.
    pub(super) fn children_generation(&self) -> i64 {
        let configs = self.machine_configs.values().map(|it| it.metadata.generation);
        configs.chain(self.datacenter.iter().map(|it| it.metadata.generation)).sum()
    }
}

/// The objects of a cluster that exist.
#[derive(Debug, Default)]
pub struct Current {
    pub cluster: Option<Arc<core::Cluster>>,
    pub infrastructure: Option<Arc<CloudStackCluster>>,
    pub control_plane: Option<Arc<KubeadmControlPlane>>,
    /// By name, as are those below.
    pub machine_templates: BTreeMap<String, Arc<CloudStackMachineTemplate>>,
    pub bootstrap_templates: BTreeMap<String, Arc<KubeadmConfigTemplate>>,
    pub deployments: BTreeMap<String, Arc<MachineDeployment>>,
    pub health_checks: BTreeMap<String, Arc<MachineHealthCheck>>,
    pub cni: Option<Arc<ClusterResourceSet>>,
    /// The ConfigMaps and the Secret of the CNI, by name.
    pub cni_parts: BTreeMap<String, ObjectMeta>,
    pub applied: Option<Arc<ClusterResourceSetBinding>>,
    /// The Secret with containerd's configuration.
    pub registry: Option<ObjectMeta>,
}

/// How long somebody may take to answer at the endpoint.
const ANSWER: Duration = Duration::from_millis(500);
/// How long all questions about machine configs may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn observe(
    controller: &Clusters,
    cluster: &Arc<Cluster>,
    view: &View,
) -> Result<Observed, ObserveError> {
    let mut seen = Observed { current: current(cluster, view)?, ..Observed::default() };
    if cluster.metadata.is_deleting() {
        return Ok(seen);
    }
    let namespace = cluster.metadata.namespace.as_str();
    let datacenter = Key::new(namespace, cluster.spec.datacenter_ref.name.as_str());
    seen.datacenter = view.get::<CloudStackDatacenterConfig>(&datacenter)?;
    for name in cluster.machine_configs() {
        if let Some(config) = view.get::<CloudStackMachineConfig>(&Key::new(namespace, name))? {
            seen.machine_configs.insert(name.to_owned(), config);
        }
    }
    let Some(datacenter) = seen.datacenter.as_ref().filter(|it| it.is_valid()) else { return Ok(seen) };
    if seen.current.cluster.is_none() && !cluster.metadata.annotations.contains_key(annotation::SKIP_IP_CHECK)
    {
        seen.address_holder = address_holder(controller, cluster, datacenter, view).await?;
    }
    seen.machines = machines(controller, cluster, datacenter, &seen.machine_configs, view).await?;
    seen.registry = registry::observe(controller, cluster, view).await?;
    seen.cni = cni::observe(&controller.settings, cluster, &seen.current, view).await;
    Ok(seen)
}

fn current(cluster: &Cluster, view: &View) -> Result<Current, ObserveError> {
    let own = Key::new(SYSTEM_NAMESPACE, cluster.metadata.name.as_str());
    let add_on = Key::new(SYSTEM_NAMESPACE, names::cni(&cluster.metadata.name));
    let cni: Option<Arc<ClusterResourceSet>> = view.get(&add_on)?;
    let mut cni_parts = BTreeMap::new();
    if let Some(first) = view.get::<ConfigMapOutline>(&add_on)? {
        cni_parts.insert(first.metadata.name.clone(), first.metadata.clone());
    }
    for part in cni.iter().flat_map(|set| &set.spec.resources) {
        let key = Key::new(SYSTEM_NAMESPACE, part.name.as_str());
        let meta = match part.kind {
            Some(ResourceKind::Secret) => view.get::<SecretOutline>(&key)?.map(|it| it.metadata.clone()),
            _ => view.get::<ConfigMapOutline>(&key)?.map(|it| it.metadata.clone()),
        };
        cni_parts.extend(meta.map(|meta| (part.name.clone(), meta)));
    }
    Ok(Current {
        cluster: view.get(&own)?,
        infrastructure: view.get(&own)?,
        control_plane: view.get(&own)?,
        machine_templates: generated(cluster, view)?,
        bootstrap_templates: generated(cluster, view)?,
        deployments: generated(cluster, view)?,
        health_checks: generated(cluster, view)?,
        cni,
        cni_parts,
        applied: view.get(&own)?,
        registry: view
            .get::<SecretOutline>(&Key::new(SYSTEM_NAMESPACE, names::registry(&cluster.metadata.name)))?
            .map(|secret| secret.metadata.clone()),
    })
}

/// The objects of a kind that were generated for a cluster.
fn generated<T: Object>(cluster: &Cluster, view: &View) -> Result<BTreeMap<String, Arc<T>>, ObserveError> {
    let all = view.labelled::<T>(SYSTEM_NAMESPACE, label::CLUSTER_NAME, &cluster.metadata.name)?;
    let own = all.into_iter().filter(|object| super::owner_of(&**object) == Some(cluster.key()));
    Ok(own.map(|object| (object.metadata().name.clone(), object)).collect())
}

/// Who has the address of the endpoint: another cluster, a virtual machine, or whoever answers there.
async fn address_holder(
    controller: &Clusters,
    cluster: &Cluster,
    datacenter: &CloudStackDatacenterConfig,
    view: &View,
) -> Result<Option<String>, ObserveError> {
    let endpoint = cluster.spec.control_plane_configuration.endpoint.as_ref();
    let Some(Ok((host, port))) = endpoint.map(|endpoint| endpoint::parse(&endpoint.host)) else {
        return Ok(None);
    };
    let clusters = view.list::<core::Cluster>("")?;
    let taken = clusters.iter().find(|other| other.spec.control_plane_endpoint.host == host);
    if let Some(other) = taken {
        return Ok(Some(format!("cluster {}", other.key())));
    }
    // Of clusters that ask for the same address the oldest gets it.
    let age = |cluster: &Cluster| (cluster.metadata.creation_timestamp, cluster.metadata.key());
    let others = view.indexed::<Cluster>(BY_ADDRESS, host)?;
    if let Some(other) = others.iter().find(|other| age(other) < age(cluster)) {
        return Ok(Some(format!("cluster {}", other.metadata.key())));
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        for zone in datacenter.spec.zones() {
            // What cannot be asked is reported with the machine configs.
            let Ok(open) = OpenZone::open(&controller.clouds, &zone, view).await else { continue };
            if let Ok(Some(machine)) = open.holder(address).await {
                return Ok(Some(format!("virtual machine {machine}")));
            }
        }
    }
    Ok(match tokio::time::timeout(ANSWER, controller.dial.dial(host, port)).await {
        Ok(Ok(_)) => Some(format!("a server that answers on port {port}")),
        Ok(Err(error)) if is_answer(&error) => Some(format!("a host that refuses port {port}")),
        _ => None,
    })
}

/// Only a host that is there refuses a connection.
fn is_answer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset)
}

/// What CloudStack lacks of the machine configs; asked once for every state of what the answer depends on.
async fn machines(
    controller: &Clusters,
    cluster: &Cluster,
    datacenter: &CloudStackDatacenterConfig,
    configs: &BTreeMap<String, Arc<CloudStackMachineConfig>>,
    view: &View,
) -> Result<Option<CloudError>, ObserveError> {
    let versions = versions(cluster);
    let zones = datacenter.spec.zones();
    let mut state = format!("{} {versions:?}", datacenter.metadata.generation);
    for (name, config) in configs {
        state.push_str(&format!(" {name}={}/{}", config.metadata.uid, config.metadata.generation));
    }
    for zone in &zones {
        let secret = view.get::<SecretOutline>(&secret_of(zone))?;
        state.push_str(&format!(
            " {}",
            secret.map(|it| it.metadata.resource_version.clone()).unwrap_or_default()
        ));
    }
    if controller.valid.lock().get(&cluster.key()) == Some(&state) {
        return Ok(None);
    }
    let asked = async {
        for zone in &zones {
            let open = OpenZone::open(&controller.clouds, zone, view).await?;
            for (name, config) in configs {
                let minors: Vec<u32> =
                    versions.iter().filter(|(of, _)| of == name).map(|(_, minor)| *minor).collect();
                open.machines(&config.spec, &minors).await.map_err(|mut error| {
                    error.message =
                        format!("CloudStackMachineConfig {name} in zone {}: {}", open.name(), error.message);
                    error
                })?;
            }
        }
        Ok(())
    };
    match cloud::within(PATIENCE, asked).await {
        Ok(()) => {
            controller.valid.lock().insert(cluster.key(), state);
            Ok(None)
        }
        Err(error) => Ok(Some(error)),
    }
}

/// Names of machine configs with the minor versions that their templates must have.
fn versions(cluster: &Cluster) -> BTreeSet<(String, u32)> {
    let spec = &cluster.spec;
    let workers = spec.worker_node_group_configurations.iter();
    let workers = workers.map(|group| (group.machine_group_ref.as_ref(), cluster.version_of(group)));
    let control_plane =
        (spec.control_plane_configuration.machine_group_ref.as_ref(), spec.kubernetes_version.as_str());
    workers
        .chain([control_plane])
        .filter_map(|(config, version)| Some((config?.name.clone(), version::minor(version).ok()?)))
        .collect()
}
