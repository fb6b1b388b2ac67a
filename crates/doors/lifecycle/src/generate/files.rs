//! Files of control plane machines.

use capstan_capi_types::bootstrap::File;
use serde_json::{Value, json};

use crate::types::{Cluster, EtcdEncryption};

/// A file of root.
pub(super) fn file(path: &str, content: String) -> File {
    File { path: path.to_owned(), owner: "root:root".to_owned(), content, ..File::default() }
}

fn yaml(value: &Value) -> Result<String, String> {
    serde_saphyr::to_string(value).map_err(|error| error.to_string())
}

pub(super) const AUDIT_POLICY: &str = "/etc/kubernetes/audit-policy.yaml";
pub(super) const KUBE_VIP: &str = "/etc/kubernetes/manifests/kube-vip.yaml";
pub(super) const ENCRYPTION: &str = "/var/lib/kubeadm/encryption-config.yaml";
pub(super) const PATCHES: &str = "/etc/kubernetes/patches";

/// The audit policy: the user's, or one that records who changed what without contents of Secrets.
pub(super) fn audit_policy(cluster: &Cluster) -> Result<File, String> {
    let own = cluster.spec.control_plane_configuration.audit_policy_content.trim();
    let content = match own.is_empty() {
        false => format!("{own}\n"),
        true => yaml(&json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [
                {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version"]},
                {"level": "None", "users": ["system:kube-proxy"], "verbs": ["watch"]},
                {"level": "None", "resources": [{"group": "", "resources": ["events"]}]},
                {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
                {"level": "Metadata", "resources": [
                    {"group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"]},
                    {"group": "authentication.k8s.io"},
                ]},
                {"level": "Metadata", "verbs": ["get", "list", "watch"]},
                {"level": "Request"},
            ],
        }))?,
    };
    Ok(file(AUDIT_POLICY, content))
}

/// A static Pod that announces the address of the API server on the network.
pub(super) fn kube_vip(host: &str, port: u16, image: &str) -> Result<File, String> {
    let environment: Vec<Value> = [
        ("vip_arp", "true".to_owned()),
        ("port", port.to_string()),
        ("vip_cidr", "32".to_owned()),
        ("cp_enable", "true".to_owned()),
        ("cp_namespace", "kube-system".to_owned()),
        ("vip_ddns", "false".to_owned()),
        ("vip_leaderelection", "true".to_owned()),
        ("vip_leaseduration", "15".to_owned()),
        ("vip_renewdeadline", "10".to_owned()),
        ("vip_retryperiod", "2".to_owned()),
        ("address", host.to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| json!({"name": name, "value": value}))
    .collect();
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-vip", "namespace": "kube-system"},
        "spec": {
            "hostNetwork": true,
            "containers": [{
                "name": "kube-vip",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "args": ["manager"],
                "env": environment,
                "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
                "volumeMounts": [{"mountPath": "/etc/kubernetes/admin.conf", "name": "kubeconfig"}],
            }],
            "volumes": [{"hostPath": {"path": "/etc/kubernetes/admin.conf"}, "name": "kubeconfig"}],
        },
    });
    Ok(file(KUBE_VIP, yaml(&pod)?))
}

/// The encryption of resources by a KMS plug-in.
pub(super) fn encryption(entries: &[EtcdEncryption]) -> Result<Option<File>, String> {
    if entries.is_empty() {
        return Ok(None);
    }
    let resources: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let kms = entry.providers.iter().filter_map(|provider| provider.kms.as_ref());
            let mut providers: Vec<Value> = kms
                .map(|kms| {
                    json!({"kms": {
                        "apiVersion": "v1",
                        "name": kms.name,
                        "endpoint": kms.socket_listen_address,
                        "cachesize": kms.cachesize.unwrap_or(1000),
                        "timeout": kms.timeout.as_deref().unwrap_or("3s"),
                    }})
                })
                .collect();
            // What was stored before stays readable.
            providers.push(json!({"identity": {}}));
            json!({"resources": entry.resources, "providers": providers})
        })
        .collect();
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": resources,
    });
    Ok(Some(file(ENCRYPTION, yaml(&configuration)?)))
}

/// A patch of the kubelet's configuration, as kubeadm reads it.
pub(super) fn kubelet_patch(fields: &Value, resolv_conf: Option<&str>) -> Result<File, String> {
    let mut fields = fields.clone();
    if fields.get("tlsCipherSuites").is_none() {
        fields["tlsCipherSuites"] = json!([super::CIPHER_SUITE]);
    }
    if let Some(path) = resolv_conf.filter(|_| fields.get("resolvConf").is_none()) {
        fields["resolvConf"] = path.into();
    }
    let mut file = file(&format!("{PATCHES}/kubeletconfiguration0+strategic.yaml"), yaml(&fields)?);
    file.permissions = "0644".to_owned();
    Ok(file)
}
