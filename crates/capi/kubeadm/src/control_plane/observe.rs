//! What a decision about a control plane depends on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::clone;
use capstan_capi_core::contract::{Found, InfrastructureMachine, contract_version, look_up};
use capstan_capi_core::names::label_value;
use capstan_capi_core::workload::{Node, Nodes};
use capstan_capi_types::bootstrap::{ExternalEtcd, KubeadmConfig};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::controlplane::kubeadm_control_plane::condition::MACHINE_ETCD_MEMBER_HEALTHY;
use capstan_capi_types::core::{Cluster, Machine, annotation, label};
use capstan_controller::{Health, ObjectRef, ObserveError, View, catalogue};
use capstan_object::{Conditions, Key, Object, ObjectMeta, OwnerReference};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::etcd::Credentials;
use super::workload::{self, Question, Workload};
use super::{Member, Origin, expiry, upkeep};
use crate::Error;
use crate::certificates::{KeyPair, Keys, Place, Purpose, Seed, places_for_control_plane};
use capstan_capi_core::secret::Secret;

/// A machine with what it is made of.
#[derive(Debug, Clone)]
pub struct MachineSeen {
    /// The machine.
    pub machine: Arc<Machine>,
    /// What it boots from.
    pub config: Option<Arc<KubeadmConfig>>,
    /// What provides it.
    pub infrastructure: Found,
}

impl MachineSeen {
    /// As decisions about control planes see it, where these are its cluster's nodes.
    pub(super) fn member(&self, nodes: &BTreeMap<String, Arc<Node>>) -> Member {
        let origin = self.infrastructure.object().and_then(|object| {
            let said = |key: &str| object.metadata.annotations.get(key).cloned();
            Some(Origin {
                name: said(annotation::CLONED_FROM_NAME)?,
                group_kind: said(annotation::CLONED_FROM_GROUP_KIND)?,
            })
        });
        let config = self.config.as_ref().map(|config| config.spec.clone());
        Member { machine: self.machine.clone(), config, origin, node: self.node(nodes) }
    }

    /// The node a machine has become. Its etcd may have joined before the Machine says so, and who takes the machine
    /// away then would leave that member behind.
    fn node(&self, nodes: &BTreeMap<String, Arc<Node>>) -> String {
        let said = &self.machine.status.node_ref.name;
        if !said.is_empty() {
            return said.clone();
        }
        let provided = || {
            let object = self.infrastructure.object()?;
            InfrastructureMachine(object).provider_id().ok().flatten()
        };
        let id = Some(self.machine.spec.provider_id.clone()).filter(|id| !id.is_empty()).or_else(provided);
        let Some(id) = id.filter(|id| !id.is_empty()) else { return String::new() };
        let mut found = nodes.values().filter(|node| node.spec.provider_id == id);
        match (found.next(), found.next()) {
            (Some(node), None) => node.metadata.name.clone(),
            _ => String::new(),
        }
    }
}

/// What was seen beside the KubeadmControlPlane.
#[derive(Debug)]
pub struct Seen {
    /// Its cluster.
    pub cluster: Option<Arc<Cluster>>,
    /// The template of infrastructure machines.
    pub template: Found,
    /// Machines of the cluster's control plane, whoever owns them, in order of their names.
    pub machines: Vec<MachineSeen>,
    /// Names of all other machines of the cluster.
    pub workers: Vec<String>,
    /// What was made for machines of this control plane, by its label, whether or not there is such a machine.
    pub made: Vec<(ObjectRef, ObjectMeta)>,
    /// The cluster's certificates, as far as they exist.
    pub certificates: BTreeMap<Purpose, Secret>,
    /// The kubeconfig of the administrator.
    pub kubeconfig: Option<Secret>,
    /// The workload cluster.
    pub workload: Workload,
    /// How the workload cluster answered lately.
    pub health: Health,
    /// Randomness for what is made.
    pub seed: Seed,
}

/// The cluster that owns a control plane, which core has written there.
pub(super) fn cluster_of(control_plane: &KubeadmControlPlane) -> Option<Key> {
    let is_cluster =
        |owner: &&OwnerReference| owner.kind == Cluster::KIND.kind && owner.group() == Cluster::KIND.group;
    let owner = control_plane.metadata.owner_references.iter().find(is_cluster)?;
    Some(Key::new(control_plane.metadata.namespace.as_str(), owner.name.as_str()))
}

pub(super) async fn observe(
    control_plane: &Arc<KubeadmControlPlane>,
    view: &View,
    keys: &dyn Keys,
    nodes: &Nodes,
    passes: &Passes,
) -> Result<Seen, ObserveError> {
    let meta = &control_plane.metadata;
    let namespace = meta.namespace.as_str();
    let seed = keys
        .seed(&format!("{}/{}/{}", meta.namespace, meta.name, meta.uid))
        .map_err(|error| ObserveError::outside(catalogue::OBSERVE, error.to_string()))?;
    let mut seen = Seen {
        cluster: None,
        template: Found::NotReferenced,
        machines: Vec::new(),
        workers: Vec::new(),
        made: Vec::new(),
        certificates: BTreeMap::new(),
        kubeconfig: None,
        workload: Workload::NotAsked,
        health: Health::default(),
        seed,
    };
    let Some(key) = cluster_of(control_plane) else { return Ok(seen) };
    let Some(cluster) = view.get::<Cluster>(&key)? else { return Ok(seen) };
    seen.cluster = Some(cluster.clone());
    if meta.is_deleting() {
        passes.forget(&key);
    }
    let spec = &control_plane.spec;
    seen.template = look_up(view, &spec.machine_template.spec.infrastructure_ref, namespace).await?;
    machines(&key, view, &mut seen).await?;
    made(control_plane, view, &mut seen).await?;

    let places = places_for_control_plane(&spec.kubeadm_config_spec.cluster_configuration);
    for Place { purpose, .. } in places {
        seen.certificates.extend(secret(view, &key, purpose).await?.map(|found| (purpose, found)));
    }
    seen.kubeconfig = secret(view, &key, Purpose::Kubeconfig).await?;
    seen.health = view.workloads().map(|workloads| workloads.health(&key)).unwrap_or_default();
    let owned = |machine: &Machine| machine.metadata.is_owned_by(&meta.uid);
    if seen.kubeconfig.is_some()
        && !meta.is_deleting()
        && seen.machines.iter().any(|seen| owned(&seen.machine))
    {
        seen.workload = look_inside(control_plane, &key, view, nodes, passes, &seen).await?;
        // The look itself is a probe.
        seen.health = view.workloads().map(|workloads| workloads.health(&key)).unwrap_or_default();
    }
    Ok(seen)
}

async fn secret(view: &View, cluster: &Key, purpose: Purpose) -> Result<Option<Secret>, ObserveError> {
    let key = Key::new(cluster.namespace.as_str(), purpose.secret_name(&cluster.name));
    Ok(view.client().get::<Secret>(&key).await?)
}

async fn machines(cluster: &Key, view: &View, seen: &mut Seen) -> Result<(), ObserveError> {
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
        seen.machines.push(MachineSeen { machine, config, infrastructure });
    }
    Ok(())
}

/// What carries the label of this control plane, of the kinds that machines are made of.
async fn made(control_plane: &KubeadmControlPlane, view: &View, seen: &mut Seen) -> Result<(), ObserveError> {
    let namespace = control_plane.metadata.namespace.as_str();
    let value = label_value(&control_plane.metadata.name);
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

async fn look_inside(
    control_plane: &KubeadmControlPlane,
    cluster: &Key,
    view: &View,
    nodes: &Nodes,
    passes: &Passes,
    seen: &Seen,
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
        credentials = etcd_credentials(cluster, view, &seen.seed, passes).await?;
    }
    let outdated = named.iter().any(|machine| machine.spec.version != control_plane.spec.version);
    let undated = seen.machines.iter().filter(|seen| !seen.machine.metadata.is_deleting());
    let expiries = undated.filter_map(|seen| {
        let (config, node) = (seen.config.as_ref()?, &seen.machine.status.node_ref.name);
        let dated = config.metadata.annotations.contains_key(annotation::CERTIFICATES_EXPIRY);
        (initialized && !dated && !node.is_empty()).then(|| (node.clone(), expiry::port(&config.spec)))
    });
    let question = Question {
        expiries: expiries.collect(),
        cluster,
        initialized,
        nodes: named.iter().map(node).collect(),
        etcd_nodes,
        credentials,
        bindings: if outdated { upkeep::bindings(&control_plane.spec.version) } else { &[] },
    };
    Ok(workload::look(&question, view, nodes).await)
}

/// What lets us speak with a cluster's etcd, or why there is nothing.
pub(super) async fn etcd_credentials(
    cluster: &Key,
    view: &View,
    seed: &Seed,
    passes: &Passes,
) -> Result<Result<Credentials, String>, ObserveError> {
    let Some(found) = secret(view, cluster, Purpose::EtcdCa).await? else {
        return Ok(Err("the certificate of etcd's authority is missing".to_owned()));
    };
    let authority = match KeyPair::from_secret(&found) {
        Ok(authority) => authority,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let client = match authority.key.is_empty() {
        true => secret(view, cluster, Purpose::ApiServerEtcdClient).await?,
        false => None,
    };
    let client = client.as_ref().map(KeyPair::from_secret).transpose();
    let made = client.and_then(|client| {
        let pass = passes.of(cluster, &found.metadata, view.now(), || {
            Credentials::pass(&authority, client.as_ref(), seed, view.now())
        })?;
        Credentials::new(&authority, &pass, view.now())
    });
    Ok(made.map_err(|error| error.to_string()))
}

/// How long a certificate for etcd is used again; it is valid for twice as long.
const PASS_FOR: SignedDuration = SignedDuration::from_hours(12);

/// The certificates that etcd was last shown, by cluster: making one costs more than the question it is for.
#[derive(Default)]
pub(super) struct Passes(Mutex<BTreeMap<Key, Pass>>);

struct Pass {
    /// Of the Secret with the authority, which may have been replaced.
    authority: (String, String),
    made: Timestamp,
    pair: KeyPair,
}

impl Passes {
    /// The last certificate if it is still good, or a new one.
    fn of(
        &self,
        cluster: &Key,
        authority: &ObjectMeta,
        now: Timestamp,
        make: impl FnOnce() -> Result<KeyPair, Error>,
    ) -> Result<KeyPair, Error> {
        let authority = (authority.uid.clone(), authority.resource_version.clone());
        if let Some(pass) = self.0.lock().get(cluster) {
            let age = now.duration_since(pass.made);
            if pass.authority == authority && !age.is_negative() && age < PASS_FOR {
                return Ok(pass.pair.clone());
            }
        }
        let pair = make()?;
        self.0.lock().insert(cluster.clone(), Pass { authority, made: now, pair: pair.clone() });
        Ok(pair)
    }

    /// A cluster is gone.
    pub(super) fn forget(&self, cluster: &Key) {
        self.0.lock().remove(cluster);
    }
}
