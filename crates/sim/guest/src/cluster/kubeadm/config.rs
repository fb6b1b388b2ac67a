//! ConfigMaps with the configuration of a cluster.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::access;

/// Name of the public ConfigMap for discovery.
pub(in crate::cluster) const CLUSTER_INFO: &str = "cluster-info";

/// Default service network.
const DEFAULT_SERVICES: u32 = u32::from_be_bytes([10, 96, 0, 0]);

/// URL of the API server: the cluster's endpoint, or its first machine.
pub(super) fn server(configuration: &Value, first: Ipv4Addr) -> String {
    let endpoint = configuration["controlPlaneEndpoint"].as_str().filter(|endpoint| !endpoint.is_empty());
    match endpoint {
        Some(endpoint) if endpoint.contains(':') => format!("https://{endpoint}"),
        Some(host) => format!("https://{host}:6443"),
        None => format!("https://{first}:6443"),
    }
}

/// `kubeadm-config` and its readers.
pub(super) fn kubeadm_config(configuration: &Value) -> Vec<Value> {
    let data = json!({"ClusterConfiguration": yaml(configuration)});
    let mut all = vec![config_map("kube-system", "kubeadm-config", data)];
    all.extend(access::readable_by_nodes("kubeadm:nodes-kubeadm-config", "kubeadm-config"));
    all
}

/// `kubelet-config` and its readers.
pub(super) fn kubelet_config(configuration: &Value) -> Vec<Value> {
    let networking = &configuration["networking"];
    let zero = "0s";
    let kubelet = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"cacheTTL": zero, "enabled": true},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {
            "mode": "Webhook", "webhook": {"cacheAuthorizedTTL": zero, "cacheUnauthorizedTTL": zero},
        },
        "cgroupDriver": "systemd",
        "clusterDNS": [dns_address(configuration)],
        "clusterDomain": networking["dnsDomain"].as_str().unwrap_or("cluster.local"),
        "healthzBindAddress": "127.0.0.1", "healthzPort": 10248,
        "rotateCertificates": true, "staticPodPath": "/etc/kubernetes/manifests",
    });
    let mut map = config_map("kube-system", "kubelet-config", json!({"kubelet": yaml(&kubelet)}));
    sign(&mut map);
    let mut all = vec![map];
    all.extend(access::readable_by_nodes("kubeadm:kubelet-config", "kubelet-config"));
    all
}

/// `cluster-info`, not signed yet, readable by anyone.
pub(super) fn cluster_info(server: &str, ca: &str) -> Vec<Value> {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "", "cluster": {
            "certificate-authority-data": STANDARD.encode(ca), "server": server,
        }}],
        "contexts": null, "current-context": "", "users": null,
    });
    let data = json!({"kubeconfig": yaml(&kubeconfig)});
    let mut all = vec![config_map("kube-public", CLUSTER_INFO, data)];
    all.extend(access::readable_by_anybody("kubeadm:bootstrap-signer-clusterinfo", CLUSTER_INFO));
    all
}

/// Objects that the API server creates itself: its Service and the system priority classes.
pub(super) fn api_server(configuration: &Value) -> Vec<Value> {
    let address = service_address(configuration, 1);
    let class = |name: &str, value: u32, what: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": format!("Used for system critical pods that {what}."),
        })
    };
    vec![
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": address, "clusterIPs": [address], "type": "ClusterIP",
                "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
            },
        }),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "must run in the cluster, but can be moved to another node if necessary",
        ),
        class("system-node-critical", 2_000_001_000, "must not be moved from their current node"),
    ]
}

/// DNS has the tenth address of the service network.
pub(super) fn dns_address(configuration: &Value) -> String {
    service_address(configuration, 10)
}

/// The nth address of the service network.
pub(in crate::cluster) fn service_address(configuration: &Value, number: u32) -> String {
    let subnets = configuration["networking"]["serviceSubnet"].as_str().unwrap_or_default();
    let first = subnets.split(',').next().and_then(|subnet| subnet.split('/').next());
    match first.and_then(|address| address.trim().parse().ok()) {
        Some(IpAddr::V6(network)) => {
            Ipv6Addr::from(u128::from(network).wrapping_add(u128::from(number))).to_string()
        }
        Some(IpAddr::V4(network)) => Ipv4Addr::from(u32::from(network).wrapping_add(number)).to_string(),
        None => Ipv4Addr::from(DEFAULT_SERVICES + number).to_string(),
    }
}

pub(super) fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data,
    })
}

/// Records a hash of a component's configuration, with which kubeadm detects user changes.
pub(super) fn sign(map: &mut Value) {
    let mut hash = Sha256::new();
    // Keys are in order: serde_json's map is sorted here.
    for value in map["data"].as_object().into_iter().flat_map(|data| data.values()) {
        hash.update(value.as_str().unwrap_or_default());
    }
    let sum: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    map["metadata"]["annotations"]["kubeadm.kubernetes.io/component-config.hash"] =
        format!("sha256:{sum}").into();
}

/// YAML as kubeadm stores it; falls back to JSON, which is valid YAML.
pub(super) fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_has_the_tenth_address_of_the_service_network() {
        for (subnet, address) in
            [("10.96.0.0/12", "10.96.0.10"), ("10.128.0.0/12,fd00::/108", "10.128.0.10"), ("", "10.96.0.10")]
        {
            assert_eq!(dns_address(&json!({"networking": {"serviceSubnet": subnet}})), address);
        }
    }

    #[test]
    fn a_configuration_survives_a_round_trip_through_yaml() {
        let configuration = json!({
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kubernetesVersion": "v1.36.0",
            "apiServer": {"certSANs": ["a", "10.0.0.1"], "extraArgs": [{"name": "v", "value": "2"}]},
            "networking": {"podSubnet": "192.168.0.0/16"}, "featureGates": {"X": true}, "empty": {},
        });
        let read: Value = serde_saphyr::from_str(&yaml(&configuration)).unwrap();
        assert_eq!(read, configuration);
    }
}
