//! Clusters that machines form, as their clients see them.

mod etcd;
mod joining;
mod nodes;
mod ports;
mod workloads;

use capstan_controller::KindName;
use serde_json::{Value, json};

use crate::testing::kind;

fn node_kind() -> KindName {
    kind("", "Node", "nodes")
}

fn pod_kind() -> KindName {
    kind("", "Pod", "pods")
}

fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect()
}

/// A network plugin as a DaemonSet, in the shape that all of them have.
fn network_plugin() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "net", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "net"}}, "template": {
            "metadata": {"labels": {"app": "net"}},
            "spec": {
                "hostNetwork": true, "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "net", "image": "example.org/net:1"}],
                "volumes": [{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}],
            },
        }},
    })
}

fn deployment(name: &str, replicas: u32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }},
    })
}
