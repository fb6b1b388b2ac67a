//! Static Pods of the control plane. The kubelet runs them from files; the API has their mirror Pods.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::release::Images;
use super::decision::Decision;
use super::snapshot::{Machine, Snapshot, uid};

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for machine in snapshot.machines.iter().filter(|machine| machine.posts) {
        let (Some(configuration), Some(node)) =
            (&machine.control_plane, snapshot.get("Node", &machine.node.name))
        else {
            continue;
        };
        for component in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
            let name = format!("{component}-{}", machine.node.name);
            if snapshot.get("Pod", &format!("kube-system/{name}")).is_none() {
                out.create("kubelet", mirror(machine, configuration, component, node, &snapshot.stamp()));
            }
        }
    }
}

fn mirror(machine: &Machine, configuration: &Value, component: &str, node: &Value, seen: &str) -> Value {
    let address = machine.node.address.to_string();
    let images = Images::new(configuration);
    let image = if component == "etcd" { images.etcd() } else { images.kubernetes(component) };
    let (cpu, port) = match component {
        "etcd" => ("100m", 2381),
        "kube-apiserver" => ("250m", 6443),
        "kube-controller-manager" => ("200m", 10257),
        _ => ("100m", 10259),
    };
    let mut resources = json!({"requests": {"cpu": cpu}});
    if component == "etcd" {
        resources["requests"]["memory"] = "100Mi".into();
    }
    let spec = json!({
        "nodeName": machine.node.name, "hostNetwork": true, "priority": 2_000_001_000,
        "priorityClassName": "system-node-critical", "enableServiceLinks": true, "restartPolicy": "Always",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "tolerations": [{"effect": "NoExecute", "operator": "Exists"}],
        "containers": [{
            "name": component, "image": image, "imagePullPolicy": "IfNotPresent",
            "command": command(machine, configuration, component), "resources": resources,
            "ports": [{"name": "probe-port", "containerPort": port, "hostPort": port, "protocol": "TCP"}],
            "volumeMounts": mounts(component).iter().map(|(name, path, read_only)| {
                let mut mount = json!({"name": name, "mountPath": path});
                if *read_only {
                    mount["readOnly"] = true.into();
                }
                mount
            }).collect::<Vec<_>>(),
        }],
        "volumes": mounts(component).iter().map(|(name, path, _)| {
            json!({"name": name, "hostPath": {"path": path, "type": if path.ends_with(".conf") { "FileOrCreate" } else { "DirectoryOrCreate" }}})
        }).collect::<Vec<_>>(),
    });
    let hash: String =
        Sha256::digest(spec.to_string())[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let mut annotations = json!({
        "kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash,
        "kubernetes.io/config.seen": seen, "kubernetes.io/config.source": "file",
    });
    match component {
        "etcd" => {
            annotations["kubeadm.kubernetes.io/etcd.advertise-client-urls"] =
                format!("https://{address}:2379").into();
        }
        "kube-apiserver" => {
            annotations["kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"] =
                format!("{address}:6443").into();
        }
        _ => {}
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{component}-{}", machine.node.name), "namespace": "kube-system",
            "labels": {"component": component, "tier": "control-plane"}, "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": machine.node.name, "uid": uid(node), "controller": true,
            }],
        },
        "spec": spec,
    })
}

/// Name, path on the machine and in the container, read-only.
fn mounts(component: &str) -> &'static [(&'static str, &'static str, bool)] {
    match component {
        "etcd" => &[("etcd-data", "/var/lib/etcd", false), ("etcd-certs", "/etc/kubernetes/pki/etcd", false)],
        "kube-apiserver" => {
            &[("k8s-certs", "/etc/kubernetes/pki", true), ("ca-certs", "/etc/ssl/certs", true)]
        }
        "kube-controller-manager" => &[
            ("k8s-certs", "/etc/kubernetes/pki", true),
            ("ca-certs", "/etc/ssl/certs", true),
            ("kubeconfig", "/etc/kubernetes/controller-manager.conf", true),
        ],
        _ => &[("kubeconfig", "/etc/kubernetes/scheduler.conf", true)],
    }
}

/// The most relevant arguments, and those of the configuration.
fn command(machine: &Machine, configuration: &Value, component: &str) -> Vec<String> {
    let address = machine.node.address;
    let networking = &configuration["networking"];
    let services = networking["serviceSubnet"].as_str().unwrap_or("10.96.0.0/12");
    let name = &machine.node.name;
    let own: Vec<(&str, String)> = match component {
        "etcd" => vec![
            ("advertise-client-urls", format!("https://{address}:2379")),
            ("cert-file", "/etc/kubernetes/pki/etcd/server.crt".to_owned()),
            ("client-cert-auth", "true".to_owned()),
            ("data-dir", "/var/lib/etcd".to_owned()),
            ("initial-advertise-peer-urls", format!("https://{address}:2380")),
            ("key-file", "/etc/kubernetes/pki/etcd/server.key".to_owned()),
            ("listen-client-urls", format!("https://127.0.0.1:2379,https://{address}:2379")),
            ("listen-peer-urls", format!("https://{address}:2380")),
            ("name", name.clone()),
            ("trusted-ca-file", "/etc/kubernetes/pki/etcd/ca.crt".to_owned()),
        ],
        "kube-apiserver" => vec![
            ("advertise-address", address.to_string()),
            ("authorization-mode", "Node,RBAC".to_owned()),
            ("client-ca-file", "/etc/kubernetes/pki/ca.crt".to_owned()),
            ("enable-bootstrap-token-auth", "true".to_owned()),
            ("etcd-servers", "https://127.0.0.1:2379".to_owned()),
            ("secure-port", "6443".to_owned()),
            ("service-cluster-ip-range", services.to_owned()),
            ("tls-cert-file", "/etc/kubernetes/pki/apiserver.crt".to_owned()),
            ("tls-private-key-file", "/etc/kubernetes/pki/apiserver.key".to_owned()),
        ],
        "kube-controller-manager" => vec![
            ("authentication-kubeconfig", "/etc/kubernetes/controller-manager.conf".to_owned()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("cluster-signing-cert-file", "/etc/kubernetes/pki/ca.crt".to_owned()),
            ("kubeconfig", "/etc/kubernetes/controller-manager.conf".to_owned()),
            ("leader-elect", "true".to_owned()),
            ("use-service-account-credentials", "true".to_owned()),
        ],
        _ => vec![
            ("bind-address", "127.0.0.1".to_owned()),
            ("kubeconfig", "/etc/kubernetes/scheduler.conf".to_owned()),
            ("leader-elect", "true".to_owned()),
        ],
    };
    let given = match component {
        "etcd" => &configuration["etcd"]["local"]["extraArgs"],
        "kube-apiserver" => &configuration["apiServer"]["extraArgs"],
        "kube-controller-manager" => &configuration["controllerManager"]["extraArgs"],
        _ => &configuration["scheduler"]["extraArgs"],
    };
    let mut arguments: std::collections::BTreeMap<String, String> =
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    arguments.extend(extra(given));
    let arguments = arguments.into_iter().map(|(name, value)| format!("--{name}={value}"));
    std::iter::once(component.to_owned()).chain(arguments).collect()
}

/// Arguments as a list of names and values, or as a map in older configurations.
fn extra(given: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match given {
        Value::Array(all) => all
            .iter()
            .filter_map(|one| Some((one["name"].as_str()?.to_owned(), text(&one["value"]))))
            .collect(),
        Value::Object(all) => all.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        _ => Vec::new(),
    }
}
