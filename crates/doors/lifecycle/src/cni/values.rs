//! Values of charts that follow a cluster's settings. Pure.
//!
//! Those of Cilium are what EKS Anywhere sets, but for its images: a chart brings its own. Nodes' shares of the Pods'
//! addresses come from the controller manager, which has the cluster's range.

use serde_json::{Value, json};

use crate::types::Cluster;

/// Values of Cilium's chart. `helmValues` take the place of all others, as in EKS Anywhere.
pub(super) fn cilium(cluster: &Cluster) -> Value {
    let settings = cluster.cilium().cloned().unwrap_or_default();
    if let Some(own) = settings.helm_values.filter(Value::is_object) {
        return own;
    }
    let mut values = json!({
        "cni": {"chainingMode": "portmap"},
        "ipam": {"mode": "kubernetes"},
        "identityAllocationMode": "crd",
        "prometheus": {"enabled": true},
        "rollOutCiliumPods": true,
        "routingMode": "tunnel",
        "tunnelProtocol": "geneve",
        "operator": {
            "prometheus": {"enabled": true},
            "tolerations": [
                {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
                {"key": "node.cilium.io/agent-not-ready", "operator": "Exists"},
            ],
        },
        "envoy": {"enabled": false},
    });
    let spec = &cluster.spec;
    if spec.worker_node_group_configurations.is_empty() && spec.control_plane_configuration.count == 1 {
        values["operator"]["replicas"] = 1.into();
    }
    for (key, text) in [
        ("policyEnforcementMode", settings.policy_enforcement_mode),
        ("egressMasqueradeInterfaces", settings.egress_masquerade_interfaces),
    ] {
        if !text.is_empty() {
            values[key] = text.into();
        }
    }
    if let Some(exclusive) = settings.cni_exclusive {
        values["cni"]["exclusive"] = exclusive.into();
    }
    if settings.routing_mode == "direct" {
        values["routingMode"] = "native".into();
        values["autoDirectNodeRoutes"] = true.into();
        if let Some(fields) = values.as_object_mut() {
            fields.remove("tunnelProtocol");
        }
        for (key, range) in [
            ("ipv4NativeRoutingCIDR", settings.ipv4_native_routing_cidr),
            ("ipv6NativeRoutingCIDR", settings.ipv6_native_routing_cidr),
        ] {
            if !range.is_empty() {
                values[key] = range.into();
            }
        }
    }
    values
}

/// Values of the same chart with which it renders what checks a version on every node.
pub(super) fn preflight(mut values: Value) -> Value {
    let image = values.get("image").filter(|image| image.is_object()).cloned();
    put(&mut values, &["preflight", "enabled"], true.into());
    put(&mut values, &["preflight", "tolerations"], json!([{"operator": "Exists"}]));
    if let Some(image) = image {
        put(&mut values, &["preflight", "image"], image);
    }
    put(&mut values, &["agent"], false.into());
    put(&mut values, &["operator", "enabled"], false.into());
    values
}

/// Values of the same chart for an upgrade: it keeps the defaults of the minor version that runs.
pub(super) fn upgrading_from(mut values: Value, version: &str) -> Value {
    put(&mut values, &["upgradeCompatibility"], version.into());
    values
}

/// Values of the Tigera operator's chart.
pub(super) fn calico(cluster: &Cluster) -> Value {
    let pods = &cluster.spec.cluster_network.pods.cidr_blocks;
    let pools: Vec<Value> = pods.iter().map(|range| json!({"cidr": range})).collect();
    json!({"installation": {"cni": {"type": "Calico"}, "calicoNetwork": {"ipPools": pools}}})
}

/// With `policyEnforcementMode: always` nothing is reachable without a policy: this one is for the system's Pods.
pub(super) fn policy_of_system(cluster: &Cluster) -> Option<Value> {
    let settings = cluster.cilium()?;
    let mode = match &settings.helm_values {
        Some(own) => own["policyEnforcementMode"].as_str().unwrap_or_default(),
        None => &settings.policy_enforcement_mode,
    };
    (mode == "always").then(|| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "allow-all-kube-system", "namespace": "kube-system"},
            "spec": {
                "podSelector": {}, "ingress": [{}], "egress": [{}], "policyTypes": ["Ingress", "Egress"],
            },
        })
    })
}

/// The namespace of a release: `helm template` renders none.
pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Sets a value; what stands in the way is replaced.
fn put(values: &mut Value, path: &[&str], value: Value) {
    let mut at = values;
    for key in path {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[*key];
    }
    *at = value;
}
