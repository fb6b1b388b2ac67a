//! The Node of a machine, as its kubelet and kubeadm write it.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::snapshot::Machine;
use crate::request::NodeRequest;

/// The kubelet's message without a CNI.
pub(super) const NO_NETWORK: &str = "container runtime network not ready: NetworkReady=false \
    reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";

/// On Nodes that a cloud controller manager has not initialized yet.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// `--node-ip`, for the cloud controller manager.
const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The Node as the kubelet registers it.
pub(super) fn registered(machine: &Machine) -> Value {
    let node = &*machine.node;
    let mut labels = Map::new();
    for (key, value) in [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", &node.name),
        ("kubernetes.io/os", "linux"),
    ] {
        labels.insert(key.to_owned(), value.into());
    }
    if machine.control_plane.is_some() {
        labels.insert(CONTROL_PLANE.to_owned(), "".into());
        labels.insert("node.kubernetes.io/exclude-from-external-load-balancers".to_owned(), "".into());
    }
    labels.extend(node.labels.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
    let mut taints = match &node.taints {
        Some(taints) => taints.clone(),
        None if machine.control_plane.is_some() => {
            vec![json!({"key": CONTROL_PLANE, "effect": "NoSchedule"})]
        }
        None => Vec::new(),
    };
    if node.external.is_some() {
        taints.push(json!({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}));
    }
    // Kubelets register with this taint; the node controller removes it when the Node is Ready.
    taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
    let mut spec = json!({"taints": taints});
    if let Some(id) = &node.provider_id {
        spec["providerID"] = id.as_str().into();
    }
    let mut annotations = json!({
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    });
    let node_ip = node.external.and_then(|external| external.node_ip);
    if let Some(address) = node_ip.filter(|address| !address.is_unspecified()) {
        annotations[PROVIDED_IP] = address.to_string().into();
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node.name, "labels": labels, "annotations": annotations},
        "spec": spec,
        // With the Node, so that it never replaces what a cloud controller manager has written since.
        "status": {"addresses": addresses(node)},
    })
}

/// Addresses as the kubelet reports them while a Node has none.
fn addresses(node: &NodeRequest) -> Value {
    let internal = match node.external {
        None => Some(node.address),
        Some(external) => external.node_ip.map(|ip| if ip.is_unspecified() { node.address } else { ip }),
    };
    let internal = internal.map(|address| json!({"type": "InternalIP", "address": address.to_string()}));
    internal.into_iter().chain([json!({"type": "Hostname", "address": node.name})]).collect()
}

/// The addresses of a Node that is registered: those of a cloud controller manager take precedence.
pub(super) fn current_addresses(machine: &Machine, node: &Value) -> Value {
    let held = &node["status"]["addresses"];
    match machine.node.external.is_some() && held.as_array().is_some_and(|held| !held.is_empty()) {
        true => held.clone(),
        false => addresses(&machine.node),
    }
}

/// The static part of a Node's status.
pub(super) fn static_status(machine: &Machine) -> Value {
    let node = &*machine.node;
    let resources = |memory_kib: u64| {
        json!({
            "cpu": machine.size.cpus.to_string(), "memory": format!("{memory_kib}Ki"), "pods": "110",
            "ephemeral-storage": "20Gi", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
        })
    };
    let memory = machine.size.memory_mib * 1024;
    let id = identity(&machine.vm);
    json!({
        "capacity": resources(memory),
        // The kubelet reserves 100 MiB for the system.
        "allocatable": resources(memory.saturating_sub(100 * 1024)),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "osImage": "Ubuntu 24.04.3 LTS",
            "kernelVersion": "6.8.0-87-generic", "containerRuntimeVersion": "containerd://2.1.4",
            "kubeletVersion": node.kubelet_version, "kubeProxyVersion": "",
            "machineID": id.replace('-', ""), "systemUUID": id, "bootID": identity(&format!("{}/boot", machine.vm)),
        },
    })
}

/// A stable id in the form of a UUID.
fn identity(of: &str) -> String {
    let hash: String = Sha256::digest(of)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..]];
    parts.join("-")
}
