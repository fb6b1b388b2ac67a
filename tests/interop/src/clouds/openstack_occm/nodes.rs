//! The Nodes of the workload cluster beside the servers that they are.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use capstan_openstack_client::compute::{Server, ServerFilter};
use serde_json::{Value, json};

use crate::api::Api;
use crate::bed::openstack::OpenStack;

/// On Nodes until the controller manager has initialized them.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// Region of the cloud that has the cluster.
const REGION: &str = "RegionOne";

pub async fn list(workload: &Api) -> Result<Vec<Value>> {
    let list = workload.get("/api/v1/nodes").await?.success()?;
    Ok(list["items"].as_array().context("no items")?.clone())
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub fn is_control_plane(node: &Value) -> bool {
    node["metadata"]["labels"].get("node-role.kubernetes.io/control-plane").is_some()
}

/// The address of a Node in the cluster's network.
pub fn internal_address(node: &Value) -> Option<&str> {
    let mut addresses = node["status"]["addresses"].as_array()?.iter();
    addresses.find(|address| address["type"] == "InternalIP")?["address"].as_str()
}

fn is_initialized(node: &Value) -> bool {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    !taints.any(|taint| taint["key"] == UNINITIALIZED)
}

/// Fails unless the kubelets have left everything to the controller manager that they leave to it in life.
pub fn ensure_uninitialized(nodes: &[Value]) -> Result<()> {
    for node in nodes {
        let name = name(node);
        ensure!(!is_initialized(node), "{name} has no taint {UNINITIALIZED}");
        let addresses = &node["status"]["addresses"];
        ensure!(
            *addresses == json!([{"type": "Hostname", "address": name}]),
            "{name} has addresses: {addresses}"
        );
        let id = node["spec"]["providerID"].as_str();
        ensure!(id.is_some() == is_control_plane(node), "{name} has the provider id {id:?}");
    }
    Ok(())
}

/// Whether so many Nodes are there, and all of them initialized.
pub async fn initialized(workload: &Api, count: usize) -> Result<Option<Vec<Value>>> {
    let nodes = list(workload).await?;
    Ok((nodes.len() == count && nodes.iter().all(is_initialized)).then_some(nodes))
}

/// Fails unless provider id, addresses and labels of the Nodes are those of the servers.
pub async fn ensure_like_servers(nodes: &[Value], cloud: &OpenStack) -> Result<()> {
    let servers = cloud.client()?.list::<Server>(&ServerFilter::default()).await?;
    let servers: BTreeMap<&str, &Server> =
        servers.iter().map(|server| (server.name.as_str(), server)).collect();
    for node in nodes {
        let name = name(node);
        let server = servers.get(name).with_context(|| format!("Nova has no server {name}"))?;
        let id = format!("openstack:///{}", server.id);
        ensure!(node["spec"]["providerID"] == id.as_str(), "{name} is {}, not {id}", node["spec"]);
        let held: Vec<&str> =
            server.addresses.values().flatten().map(|address| address.addr.as_str()).collect();
        let address = internal_address(node).with_context(|| format!("{name} has no address"))?;
        ensure!(held == [address], "{name} has address {address}, the server {held:?}");
        let labels = &node["metadata"]["labels"];
        let flavor = server.flavor.original_name.as_str();
        for (label, value) in [
            ("topology.kubernetes.io/zone", server.availability_zone.as_str()),
            ("topology.kubernetes.io/region", REGION),
            ("node.kubernetes.io/instance-type", flavor),
        ] {
            ensure!(labels[label] == value, "{name}: {label} is {}, not {value}", labels[label]);
        }
    }
    Ok(())
}
