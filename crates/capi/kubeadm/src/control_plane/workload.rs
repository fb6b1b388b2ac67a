//! What is read of a workload cluster: its control plane's nodes and static pods, its etcd, and what kubeadm and its
//! add-ons left there.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::workload::{Node, NodeError, Nodes};
use capstan_controller::{ApiError, Client, Health, KindName, View};
use capstan_object::{Key, ObjectMeta, Scope, object};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::etcd::{self, Credentials, Etcd, EtcdSeen};
use super::expiry;
use capstan_capi_core::secret::ConfigMap;

/// Namespace of everything that kubeadm installs.
pub(super) const NAMESPACE: &str = "kube-system";
/// The label of control plane nodes, and the key of the taint they have.
pub(super) const CONTROL_PLANE_ROLE: &str = "node-role.kubernetes.io/control-plane";
/// Where kubeadm keeps its configuration.
const KUBEADM_CONFIG: &str = "kubeadm-config";
/// Name of CoreDNS's Deployment and of its ConfigMap.
pub(super) const COREDNS: &str = "coredns";
/// Name of kube-proxy's DaemonSet and of its container.
pub(super) const KUBE_PROXY: &str = "kube-proxy";

/// The components that kubeadm runs as static pods.
pub(super) const COMPONENTS: [&str; 4] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"];

/// Name of a component's static pod on a node.
pub(super) fn pod_name(component: &str, node: &str) -> String {
    format!("{component}-{node}")
}

/// What is known of the workload cluster.
#[derive(Debug, Default)]
pub enum Workload {
    /// There is nothing to reach yet.
    #[default]
    NotAsked,
    /// It does not answer, and why.
    Unreachable(String),
    /// It answers.
    Reached(Box<Inside>),
}

impl Workload {
    /// What was seen of it, if it answers.
    pub fn inside(&self) -> Option<&Inside> {
        match self {
            Self::Reached(inside) => Some(inside),
            _ => None,
        }
    }
}

/// What was seen of a workload cluster.
#[derive(Debug, Default)]
pub struct Inside {
    /// Nodes of the control plane, by name: those with its label, and those of its machines.
    pub nodes: BTreeMap<String, Arc<Node>>,
    /// Static pods of the control plane by name; one that cannot be read is an error.
    pub pods: BTreeMap<String, Result<StaticPod, String>>,
    /// etcd.
    pub etcd: EtcdSeen,
    /// kubeadm's configuration.
    pub kubeadm_config: Option<ConfigMap>,
    /// kube-proxy's DaemonSet.
    pub kube_proxy: Option<Value>,
    /// CoreDNS's Deployment.
    pub coredns: Option<Value>,
    /// CoreDNS's configuration.
    pub coredns_config: Option<ConfigMap>,
    /// Names of the bindings that kubeadm makes and that exist.
    pub bindings: Vec<String>,
    /// When certificates of nodes expire, where that was asked and shown.
    pub expiries: BTreeMap<String, Timestamp>,
}

object!(StaticPod, "" / "v1", "Pod", "pods", Namespaced);

/// A static pod, as far as its health shows in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StaticPod {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What the kubelet reports.
    pub status: PodStatus,
}

/// What is reported about a pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Stage of life.
    pub phase: String,
    /// Conditions.
    pub conditions: Vec<PodCondition>,
    /// Containers.
    pub container_statuses: Vec<ContainerStatus>,
}

/// A condition of a pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    /// Aspect.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

/// How a container fares.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Now.
    pub state: ContainerState,
    /// Before its last start.
    pub last_state: ContainerState,
}

/// What a container does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It waits to be started.
    pub waiting: Option<ContainerEvent>,
    /// It came to its end.
    pub terminated: Option<ContainerEvent>,
}

/// Why a container waits or ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerEvent {
    /// One word.
    pub reason: String,
    /// How it ended.
    pub exit_code: i32,
}

impl PodStatus {
    /// A condition holds.
    pub fn is(&self, kind: &str) -> bool {
        self.conditions.iter().any(|condition| condition.kind == kind && condition.status == "True")
    }
}

/// What is asked of the workload cluster.
pub(super) struct Question<'a> {
    pub cluster: &'a Key,
    /// The control plane takes requests: everything is asked, not only whether it does.
    pub initialized: bool,
    /// Nodes of the machines.
    pub nodes: Vec<String>,
    /// Nodes whose member of etcd may be asked, the healthiest first; empty if etcd runs elsewhere.
    pub etcd_nodes: Vec<String>,
    /// What lets us speak with etcd, or why there is nothing.
    pub credentials: Result<Credentials, String>,
    /// Bindings that kubeadm makes.
    pub bindings: &'a [&'a str],
    /// Nodes whose API servers' certificates are to be looked at, and the ports of those.
    pub expiries: Vec<(String, u16)>,
}

/// Asks. An error is that the cluster does not answer; what cannot be read of one that does is among the answers.
pub(super) async fn look(question: &Question<'_>, view: &View, nodes: &Nodes) -> Workload {
    match ask(question, view, nodes).await {
        Ok(inside) => Workload::Reached(Box::new(inside)),
        Err(why) => Workload::Unreachable(why),
    }
}

async fn ask(question: &Question<'_>, view: &View, nodes: &Nodes) -> Result<Inside, String> {
    let cluster = question.cluster;
    let workloads = etcd::workloads(view)?;
    let client = workloads.client(cluster).await.map_err(|error| error.to_string())?;
    let mut inside = Inside {
        kubeadm_config: client.get(&Key::new(NAMESPACE, KUBEADM_CONFIG)).await.map_err(words)?,
        ..Inside::default()
    };
    if !question.initialized {
        return Ok(inside);
    }
    for node in nodes.labelled(view, cluster, CONTROL_PLANE_ROLE).await.map_err(|error| error.to_string())? {
        inside.nodes.insert(node.metadata.name.clone(), node);
    }
    for name in &question.nodes {
        if !inside.nodes.contains_key(name)
            && let Some(node) = nodes.by_name(view, cluster, name).await.map_err(node_words)?
        {
            inside.nodes.insert(name.clone(), node);
        }
        if !inside.nodes.contains_key(name) {
            continue;
        }
        for component in COMPONENTS {
            let pod = pod_name(component, name);
            match client.get::<StaticPod>(&Key::new(NAMESPACE, pod.as_str())).await {
                Ok(Some(found)) => drop(inside.pods.insert(pod, Ok(found))),
                Ok(None) => {}
                Err(error) => drop(inside.pods.insert(pod, Err(words(error)))),
            }
        }
    }
    let asked: Vec<String> =
        question.etcd_nodes.iter().filter(|name| inside.nodes.contains_key(*name)).cloned().collect();
    if !asked.is_empty() {
        inside.etcd = match &question.credentials {
            Ok(credentials) => {
                let etcd = Etcd { workloads, cluster, credentials: credentials.clone() };
                etcd.look(&asked).await.unwrap_or_else(EtcdSeen::Failed)
            }
            Err(why) => EtcdSeen::Failed(why.clone()),
        };
    }
    inside.kube_proxy = raw(&client, &kube_proxy_kind(), KUBE_PROXY).await?;
    inside.coredns = raw(&client, &deployment_kind(), COREDNS).await?;
    if inside.coredns.is_some() {
        inside.coredns_config = client.get(&Key::new(NAMESPACE, COREDNS)).await.map_err(words)?;
    }
    for name in question.bindings {
        if client.get_raw(&binding_kind(), &Key::new("", *name)).await.map_err(words)?.is_some() {
            inside.bindings.push((*name).to_owned());
        }
    }
    let ready = |(node, _): &&(String, u16)| {
        let pod = inside.pods.get(&pod_name("kube-apiserver", node));
        matches!(pod, Some(Ok(pod)) if pod.status.is("Ready"))
    };
    let asked: Vec<(String, u16)> = question.expiries.iter().filter(ready).cloned().collect();
    inside.expiries = expiry::look(workloads, cluster, &asked).await;
    Ok(inside)
}

async fn raw(client: &Client, kind: &KindName, name: &str) -> Result<Option<Value>, String> {
    let reply = client.get_raw(kind, &Key::new(NAMESPACE, name)).await.map_err(words)?;
    reply.map(|reply| reply.parse()).transpose().map_err(words)
}

pub(super) fn config_map_kind() -> KindName {
    KindName::of::<ConfigMap>()
}

pub(super) fn kube_proxy_kind() -> KindName {
    KindName::namespaced("apps", "v1", "DaemonSet", "daemonsets")
}

pub(super) fn deployment_kind() -> KindName {
    KindName::namespaced("apps", "v1", "Deployment", "deployments")
}

pub(super) fn binding_kind() -> KindName {
    let group = "rbac.authorization.k8s.io";
    KindName {
        scope: Scope::Cluster,
        ..KindName::namespaced(group, "v1", "ClusterRoleBinding", "clusterrolebindings")
    }
}

/// Why the cluster seems silent, for conditions.
pub(super) fn last_heard(health: &Health) -> String {
    match health.last_success {
        Some(at) => format!("Last successful probe at {}", capstan_object::Time::new(at)),
        None => String::new(),
    }
}

pub(super) fn words(error: ApiError) -> String {
    let cause = std::error::Error::source(&error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

fn node_words(error: NodeError) -> String {
    error.to_string()
}
