//! Reads a workload cluster.

use capstan_capi_core::workload::{NodeError, Nodes};
use capstan_controller::{Client, KindName, View};
use capstan_object::Key;
use serde_json::Value;

use super::certificate_expiry;
use crate::control_plane::etcd::{Credentials, Etcd};
use crate::control_plane::installed::{
    COMPONENTS, CONTROL_PLANE_ROLE, COREDNS, KUBE_PROXY, KUBEADM_CONFIG, NAMESPACE, binding_kind,
    deployment_kind, kube_proxy_kind, pod_name,
};
use crate::control_plane::observed::{EtcdSeen, Inside, StaticPod, Workload};
use crate::control_plane::workload_client::{words, workloads};

/// What to read of the workload cluster.
pub(super) struct Question<'a> {
    pub cluster: &'a Key,
    /// Before initialization only kubeadm's ConfigMap is read.
    pub initialized: bool,
    pub nodes: Vec<String>,
    /// Nodes whose etcd member may be asked, healthy ones first; empty with external etcd.
    pub etcd_nodes: Vec<String>,
    /// Credentials for etcd, or why there are none.
    pub credentials: Result<Credentials, String>,
    pub bindings: &'a [&'a str],
    /// Nodes whose serving certificate is read, and the port of their API server.
    pub expiries: Vec<(String, u16)>,
}

/// Reads the workload cluster. Errors of single objects are part of the result.
pub(super) async fn look(question: &Question<'_>, view: &View, nodes: &Nodes) -> Workload {
    match ask(question, view, nodes).await {
        Ok(inside) => Workload::Reached(Box::new(inside)),
        Err(why) => Workload::Unreachable(why),
    }
}

async fn ask(question: &Question<'_>, view: &View, nodes: &Nodes) -> Result<Inside, String> {
    let cluster = question.cluster;
    let workloads = workloads(view)?;
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
    inside.expiries = certificate_expiry::look(workloads, cluster, &asked).await;
    Ok(inside)
}

async fn raw(client: &Client, kind: &KindName, name: &str) -> Result<Option<Value>, String> {
    let reply = client.get_raw(kind, &Key::new(NAMESPACE, name)).await.map_err(words)?;
    reply.map(|reply| reply.parse()).transpose().map_err(words)
}

fn node_words(error: NodeError) -> String {
    error.to_string()
}
