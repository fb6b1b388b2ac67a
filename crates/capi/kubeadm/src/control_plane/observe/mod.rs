//! Reads what a decision about a control plane depends on.

mod certificate_expiry;
mod in_place;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::clone;
use capstan_capi_core::contract::{Lookup, contract_version, look_up};
use capstan_capi_core::in_place::Updater;
use capstan_capi_core::paused;
use capstan_capi_core::workload::Nodes;
use capstan_capi_types::bootstrap::{ExternalEtcd, KubeadmConfig};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::controlplane::kubeadm_control_plane::condition::MACHINE_ETCD_MEMBER_HEALTHY;
use capstan_capi_types::core::{Cluster, Machine, annotation, label};
use capstan_controller::{Health, ObjectRef, ObserveError, View, catalogue};
use capstan_object::{Conditions, Key, Object};

use self::workload::WorkloadQuery;
use super::etcd::{ClientCertificates, etcd_credentials};
use super::observed::{InPlace, Observed, ObservedMachine, Workload, cluster_of};
use super::{cluster_secret, installed};
use crate::certificates::{CertificateLocation, Keys, Purpose, locations_for_control_plane};

pub(super) async fn observe(
    control_plane: &Arc<KubeadmControlPlane>,
    view: &View,
    keys: &dyn Keys,
    nodes: &Nodes,
    client_certificates: &ClientCertificates,
    updater: Option<&dyn Updater>,
) -> Result<Observed, ObserveError> {
    let meta = &control_plane.metadata;
    let namespace = meta.namespace.as_str();
    let seed = keys
        .seed(&format!("{}/{}/{}", meta.namespace, meta.name, meta.uid))
        .map_err(|error| ObserveError::outside(catalogue::OBSERVE, error.to_string()))?;
    let mut seen = Observed {
        cluster: None,
        template: Lookup::NotReferenced,
        machines: Vec::new(),
        workers: Vec::new(),
        made: Vec::new(),
        certificates: BTreeMap::new(),
        kubeconfig: None,
        workload: Workload::NotAsked,
        health: Health::default(),
        seed,
        former_templates: BTreeMap::new(),
        in_place: InPlace::NotAsked,
    };
    let Some(key) = cluster_of(control_plane) else { return Ok(seen) };
    let Some(cluster) = view.get::<Cluster>(&key)? else { return Ok(seen) };
    seen.cluster = Some(cluster.clone());
    if meta.is_deleting() {
        client_certificates.forget(&key);
    }
    let spec = &control_plane.spec;
    seen.template = look_up(view, &spec.machine_template.spec.infrastructure_ref, namespace).await?;
    machines(&key, view, &mut seen).await?;
    made(control_plane, view, &mut seen).await?;

    let locations = locations_for_control_plane(&spec.kubeadm_config_spec.cluster_configuration);
    for CertificateLocation { purpose, .. } in locations {
        seen.certificates
            .extend(cluster_secret::read(view, &key, purpose).await?.map(|found| (purpose, found)));
    }
    seen.kubeconfig = cluster_secret::read(view, &key, Purpose::Kubeconfig).await?;
    seen.health = view.workloads().map(|workloads| workloads.health(&key)).unwrap_or_default();
    let owned = |machine: &Machine| machine.metadata.is_owned_by(&meta.uid);
    if seen.kubeconfig.is_some()
        && !meta.is_deleting()
        && seen.machines.iter().any(|seen| owned(&seen.machine))
    {
        seen.workload =
            observe_workload(control_plane, &key, view, nodes, client_certificates, &seen).await?;
        // Reading the workload cluster updates its health.
        seen.health = view.workloads().map(|workloads| workloads.health(&key)).unwrap_or_default();
    }
    let is_paused = paused::why(Some(&cluster), meta, KubeadmControlPlane::KIND.kind).is_some();
    if let Some(updater) = updater.filter(|_| !meta.is_deleting() && !is_paused) {
        in_place::ask(control_plane, &mut seen, updater, view).await?;
    }
    Ok(seen)
}

async fn machines(cluster: &Key, view: &View, seen: &mut Observed) -> Result<(), ObserveError> {
    let namespace = cluster.namespace.as_str();
    for machine in view.labelled::<Machine>(namespace, label::CLUSTER_NAME, &cluster.name)? {
        if !machine.metadata.labels.contains_key(label::CONTROL_PLANE) {
            seen.workers.push(machine.metadata.name.clone());
            continue;
        }
        let reference = &machine.spec.bootstrap.config_ref;
        let config = if reference.kind == KubeadmConfig::KIND.kind {
            view.get::<KubeadmConfig>(&Key::new(namespace, reference.name.as_str()))?
        } else {
            None
        };
        let infrastructure = look_up(view, &machine.spec.infrastructure_ref, namespace).await?;
        seen.machines.push(ObservedMachine { machine, config, infrastructure });
    }
    Ok(())
}

/// KubeadmConfigs and infrastructure machines with the label of this control plane.
async fn made(
    control_plane: &KubeadmControlPlane,
    view: &View,
    seen: &mut Observed,
) -> Result<(), ObserveError> {
    let namespace = control_plane.metadata.namespace.as_str();
    let value = label::value(&control_plane.metadata.name);
    for config in view.labelled::<KubeadmConfig>(namespace, label::CONTROL_PLANE_NAME, &value)? {
        seen.made.push((ObjectRef::to(config.as_ref()), config.metadata.clone()));
    }
    let Some(template) = seen.template.object() else { return Ok(()) };
    let Some(kind) = contract_version(view, clone::kind_of(template))? else { return Ok(()) };
    for object in view.external_labelled(&kind, namespace, label::CONTROL_PLANE_NAME, &value).await? {
        let metadata = object.metadata().clone();
        seen.made.push((ObjectRef::new(kind.clone(), metadata.key()), metadata));
    }
    Ok(())
}

async fn observe_workload(
    control_plane: &KubeadmControlPlane,
    cluster: &Key,
    view: &View,
    nodes: &Nodes,
    client_certificates: &ClientCertificates,
    seen: &Observed,
) -> Result<Workload, ObserveError> {
    let initialized = control_plane.status.initialization.control_plane_initialized == Some(true);
    let own: Vec<&Machine> = seen
        .machines
        .iter()
        .map(|seen| seen.machine.as_ref())
        .filter(|machine| machine.metadata.is_owned_by(&control_plane.metadata.uid))
        .collect();
    if initialized {
        for machine in own.iter().filter(|machine| !machine.spec.provider_id.is_empty()) {
            let (id, key) = (&machine.spec.provider_id, control_plane.key());
            nodes.wake_on::<KubeadmControlPlane>(cluster, id, &key, &view.wake());
        }
    }
    // All machines, not only those with a node: one that never joined is outdated once its version is taken back.
    let outdated = own.iter().any(|machine| machine.spec.version != control_plane.spec.version);
    let node = |machine: &&Machine| machine.status.node_ref.name.clone();
    let named: Vec<&Machine> = own.into_iter().filter(|machine| !node(machine).is_empty()).collect();
    let etcd = &control_plane.spec.kubeadm_config_spec.cluster_configuration.etcd;
    let mut etcd_nodes = Vec::new();
    let mut credentials = Err("etcd runs elsewhere".to_owned());
    if initialized && etcd.external == ExternalEtcd::default() {
        let mut asked: Vec<&Machine> =
            named.iter().copied().filter(|machine| !machine.metadata.is_deleting()).collect();
        asked
            .sort_by_key(|machine| !machine.status.conditions.is_condition_true(MACHINE_ETCD_MEMBER_HEALTHY));
        etcd_nodes = asked.iter().map(node).collect();
        credentials = etcd_credentials(cluster, view, &seen.seed, client_certificates).await?;
    }
    let undated = seen.machines.iter().filter(|seen| !seen.machine.metadata.is_deleting());
    let expiries = undated.filter_map(|seen| {
        let (config, node) = (seen.config.as_ref()?, &seen.machine.status.node_ref.name);
        let dated = config.metadata.annotations.contains_key(annotation::CERTIFICATES_EXPIRY);
        (initialized && !dated && !node.is_empty())
            .then(|| (node.clone(), certificate_expiry::port(&config.spec)))
    });
    let query = WorkloadQuery {
        expiries: expiries.collect(),
        cluster,
        initialized,
        nodes: named.iter().map(node).collect(),
        etcd_nodes,
        credentials,
        bindings: outdated.then(|| installed::bindings(&control_plane.spec.version)),
    };
    Ok(workload::read(&query, view, nodes).await)
}
