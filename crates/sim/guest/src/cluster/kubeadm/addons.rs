//! kube-proxy and CoreDNS, as kubeadm installs them.

use serde_json::{Value, json};

use super::super::release::Images;
use super::access;
use super::config::{config_map, dns_address, sign, yaml};

/// kube-proxy on every node.
pub(super) fn kube_proxy(configuration: &Value, server: &str) -> Vec<Value> {
    let labels = json!({"k8s-app": "kube-proxy"});
    let mount = |name: &str, path: &str, read_only: bool| {
        let mut mount = json!({"name": name, "mountPath": path});
        if read_only {
            mount["readOnly"] = true.into();
        }
        mount
    };
    let daemon_set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels}, "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": {
                "priorityClassName": "system-node-critical", "hostNetwork": true,
                "serviceAccountName": "kube-proxy", "nodeSelector": {"kubernetes.io/os": "linux"},
                "tolerations": [{"operator": "Exists"}],
                "containers": [{
                    "name": "kube-proxy", "image": Images::new(configuration).kubernetes("kube-proxy"),
                    "imagePullPolicy": "IfNotPresent",
                    "command": [
                        "/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf",
                        "--hostname-override=$(NODE_NAME)",
                    ],
                    "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                    "securityContext": {"privileged": true},
                    "volumeMounts": [
                        mount("kube-proxy", "/var/lib/kube-proxy", false),
                        mount("xtables-lock", "/run/xtables.lock", false),
                        mount("lib-modules", "/lib/modules", true),
                    ],
                }],
                "volumes": [
                    {"name": "kube-proxy", "configMap": {"name": "kube-proxy"}},
                    {"name": "xtables-lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}},
                    {"name": "lib-modules", "hostPath": {"path": "/lib/modules"}},
                ],
            }},
        },
    });
    let mut all = vec![
        service_account("kube-proxy"),
        access::service_account_binding("kubeadm:node-proxier", "system:node-proxier", "kube-proxy"),
        proxy_config(configuration, server),
        daemon_set,
    ];
    all.extend(access::readable_by_tokens("kube-proxy", "kube-proxy"));
    all
}

fn proxy_config(configuration: &Value, server: &str) -> Value {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "default", "cluster": {
            "certificate-authority": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "server": server,
        }}],
        "contexts": [{"name": "default", "context": {
            "cluster": "default", "namespace": "default", "user": "default",
        }}],
        "current-context": "default",
        "users": [{"name": "default", "user": {
            "tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        }}],
    });
    let proxy = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "bindAddress": "0.0.0.0", "mode": "",
        "clientConnection": {"kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf"},
        "clusterCIDR": configuration["networking"]["podSubnet"].as_str().unwrap_or_default(),
    });
    let data = json!({"kubeconfig.conf": yaml(&kubeconfig), "config.conf": yaml(&proxy)});
    let mut map = config_map("kube-system", "kube-proxy", data);
    map["metadata"]["labels"] = json!({"app": "kube-proxy"});
    sign(&mut map);
    map
}

/// CoreDNS: two replicas; they are pending until there is a CNI.
pub(super) fn coredns(configuration: &Value) -> Vec<Value> {
    if configuration["dns"]["disabled"] == true {
        return Vec::new();
    }
    let labels = json!({"k8s-app": "kube-dns"});
    let probe = |path: &str, port: &str| json!({"httpGet": {"path": path, "port": port, "scheme": "HTTP"}});
    let mut liveness = probe("/health", "liveness-probe");
    for (field, seconds) in
        [("initialDelaySeconds", 60), ("timeoutSeconds", 5), ("successThreshold", 1), ("failureThreshold", 5)]
    {
        liveness[field] = seconds.into();
    }
    let port = |name: &str, number: u16, protocol: &str| json!({"name": name, "containerPort": number, "protocol": protocol});
    let apart = json!({
        "weight": 100, "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": ["kube-dns"]}]},
        },
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": "kube-system", "labels": labels},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "priorityClassName": "system-cluster-critical", "serviceAccountName": "coredns",
                "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}},
                "tolerations": [
                    {"key": "CriticalAddonsOnly", "operator": "Exists"},
                    {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
                ],
                "nodeSelector": {"kubernetes.io/os": "linux"}, "dnsPolicy": "Default",
                "containers": [{
                    "name": "coredns", "image": Images::new(configuration).coredns(),
                    "imagePullPolicy": "IfNotPresent", "args": ["-conf", "/etc/coredns/Corefile"],
                    "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
                    "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": true}],
                    "ports": [
                        port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP"), port("metrics", 9153, "TCP"),
                        port("liveness-probe", 8080, "TCP"), port("readiness-probe", 8181, "TCP"),
                    ],
                    "livenessProbe": liveness, "readinessProbe": probe("/ready", "readiness-probe"),
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                        "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
                    },
                }],
                "volumes": [{"name": "config-volume", "configMap": {
                    "name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}],
                }}],
            }},
        },
    });
    vec![
        service_account("coredns"),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "system:coredns"},
            "rules": [
                {
                    "apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"],
                    "verbs": ["list", "watch"],
                },
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ],
        }),
        access::service_account_binding("system:coredns", "system:coredns", "coredns"),
        config_map("kube-system", "coredns", json!({"Corefile": corefile(configuration)})),
        deployment,
        dns_service(configuration),
    ]
}

fn dns_service(configuration: &Value) -> Value {
    let port = |name: &str, number: u16, protocol: &str| json!({"name": name, "port": number, "protocol": protocol, "targetPort": number});
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kube-dns", "namespace": "kube-system",
            "labels": {
                "k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS",
            },
            "annotations": {"prometheus.io/port": "9153", "prometheus.io/scrape": "true"},
        },
        "spec": {
            "clusterIP": dns_address(configuration), "selector": {"k8s-app": "kube-dns"},
            "ports": [port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP"), port("metrics", 9153, "TCP")],
        },
    })
}

/// kubeadm's Corefile. Upgrades of CoreDNS compare the text to detect user changes.
fn corefile(configuration: &Value) -> String {
    let domain = configuration["networking"]["dnsDomain"].as_str().unwrap_or("cluster.local");
    let block = |name: &str, lines: &[String]| {
        let inner: String = lines.iter().map(|line| format!("       {line}\n")).collect();
        format!("    {name} {{\n{inner}    }}\n")
    };
    let zones = "in-addr.arpa ip6.arpa";
    let mut text = String::from(".:53 {\n    errors\n");
    text += &block("health", &["lameduck 5s".to_owned()]);
    text += "    ready\n";
    let kubernetes = ["pods insecure".to_owned(), format!("fallthrough {zones}"), "ttl 30".to_owned()];
    text += &block(&format!("kubernetes {domain} {zones}"), &kubernetes);
    text += "    prometheus :9153\n";
    text += &block("forward . /etc/resolv.conf", &["max_concurrent 1000".to_owned()]);
    text += &block("cache 30", &[format!("disable success {domain}"), format!("disable denial {domain}")]);
    text + "    loop\n    reload\n    loadbalance\n}\n"
}

fn service_account(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"},
    })
}
