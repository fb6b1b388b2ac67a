//! Reads a workload cluster.

use capstan_capi_core::workload::{NodeError, Nodes};
use capstan_controller::{Client, KindName, View, off_worker};
use capstan_object::Key;
use serde_json::Value;

use super::certificate_expiry;
use crate::control_plane::etcd::{Credentials, Etcd};
use crate::control_plane::installed::{
    COMPONENTS, CONTROL_PLANE_ROLE, COREDNS, KUBE_PROXY, KUBEADM_CONFIG, NAMESPACE, binding_kind,
    deployment_kind, kube_proxy_kind, pod_name,
};
use crate::control_plane::observed::{EtcdState, StaticPod, Workload, WorkloadState};
use crate::control_plane::workload_client::{error_chain, workloads};

/// What to read of the workload cluster.
pub(super) struct WorkloadQuery<'a> {
    pub cluster: &'a Key,
    /// Before initialization only kubeadm's ConfigMap is read.
    pub initialized: bool,
    pub nodes: Vec<String>,
    /// Nodes whose etcd member may be asked, healthy ones first; empty with external etcd.
    pub etcd_nodes: Vec<String>,
    /// Credentials for etcd, or why there are none.
    pub credentials: Result<Credentials, String>,
    /// ClusterRoleBindings to look for, if any are needed.
    pub bindings: Option<&'a [&'a str]>,
    /// Nodes whose serving certificate is read, and the port of their API server.
    pub expiries: Vec<(String, u16)>,
}

/// Reads the workload cluster. Errors of single objects are part of the result.
pub(super) async fn read(query: &WorkloadQuery<'_>, view: &View, nodes: &Nodes) -> Workload {
    match read_all(query, view, nodes).await {
        Ok(reached) => Workload::Reached(Box::new(reached)),
        Err(why) => Workload::Unreachable(why),
    }
}

async fn read_all(query: &WorkloadQuery<'_>, view: &View, nodes: &Nodes) -> Result<WorkloadState, String> {
    let cluster = query.cluster;
    let workloads = workloads(view)?;
    let client = workloads.client(cluster).await.map_err(|error| error.to_string())?;
    let mut reached = WorkloadState {
        kubeadm_config: client.get(&Key::new(NAMESPACE, KUBEADM_CONFIG)).await.map_err(error_chain)?,
        ..WorkloadState::default()
    };
    if !query.initialized {
        return Ok(reached);
    }
    for node in nodes.labelled(view, cluster, CONTROL_PLANE_ROLE).await.map_err(|error| error.to_string())? {
        reached.nodes.insert(node.metadata.name.clone(), node);
    }
    for name in &query.nodes {
        if !reached.nodes.contains_key(name)
            && let Some(node) = nodes.by_name(view, cluster, name).await.map_err(node_words)?
        {
            reached.nodes.insert(name.clone(), node);
        }
        if !reached.nodes.contains_key(name) {
            continue;
        }
        for component in COMPONENTS {
            let pod = pod_name(component, name);
            match client.get::<StaticPod>(&Key::new(NAMESPACE, pod.as_str())).await {
                Ok(Some(found)) => drop(reached.pods.insert(pod, Ok(found))),
                Ok(None) => {}
                Err(error) => drop(reached.pods.insert(pod, Err(error_chain(error)))),
            }
        }
    }
    let asked: Vec<String> =
        query.etcd_nodes.iter().filter(|name| reached.nodes.contains_key(*name)).cloned().collect();
    if !asked.is_empty() {
        reached.etcd = match &query.credentials {
            Ok(credentials) => {
                let etcd = Etcd { workloads, cluster, credentials: credentials.clone() };
                off_worker(etcd.look(&asked)).await.unwrap_or_else(EtcdState::Failed)
            }
            Err(why) => EtcdState::Failed(why.clone()),
        };
    }
    reached.kube_proxy = raw(&client, &kube_proxy_kind(), KUBE_PROXY).await?;
    reached.coredns = raw(&client, &deployment_kind(), COREDNS).await?;
    if reached.coredns.is_some() {
        reached.coredns_config = client.get(&Key::new(NAMESPACE, COREDNS)).await.map_err(error_chain)?;
    }
    if let Some(needed) = query.bindings {
        let mut existing = Vec::new();
        for name in needed {
            let found = client.get_raw(&binding_kind(), &Key::new("", *name)).await.map_err(error_chain)?;
            existing.extend(found.map(|_| (*name).to_owned()));
        }
        reached.bindings = Some(existing);
    }
    let ready = |(node, _): &&(String, u16)| {
        let pod = reached.pods.get(&pod_name("kube-apiserver", node));
        matches!(pod, Some(Ok(pod)) if pod.status.is("Ready"))
    };
    let asked: Vec<(String, u16)> = query.expiries.iter().filter(ready).cloned().collect();
    reached.expiries = certificate_expiry::read(workloads, cluster, &asked).await;
    Ok(reached)
}

async fn raw(client: &Client, kind: &KindName, name: &str) -> Result<Option<Value>, String> {
    let reply = client.get_raw(kind, &Key::new(NAMESPACE, name)).await.map_err(error_chain)?;
    reply.map(|reply| reply.parse()).transpose().map_err(error_chain)
}

fn node_words(error: NodeError) -> String {
    error.to_string()
}
