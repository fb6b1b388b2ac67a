//! kubeadm's ClusterConfiguration in the workload cluster, which joining machines read.

use capstan_capi_types::bootstrap::ClusterConfiguration;
use serde_json::{Value, json};

use crate::config;
use crate::control_plane::decide::desired_machine::{self as desired, LOCAL_MODE};
use crate::control_plane::observed::ControlPlaneState;
use crate::{Error, yaml};
use capstan_capi_core::secret::ConfigMap;

pub(super) const CLUSTER_CONFIGURATION: &str = "ClusterConfiguration";
/// Fields that the control plane manages.
const MANAGED: &[&str] = &[
    "apiVersion",
    "apiServer",
    "controllerManager",
    "scheduler",
    "featureGates",
    "certificateValidityPeriod",
    "encryptionAlgorithm",
];

/// The desired ClusterConfiguration for joining machines; `None` if it is up to date. Fields that the control plane
/// does not manage are kept.
pub(super) fn change(plane: &ControlPlaneState, found: &ConfigMap) -> Result<Option<String>, Error> {
    let unreadable = Error::Encoding("ClusterConfiguration in ConfigMap kubeadm-config");
    let text = found.data.get(CLUSTER_CONFIGURATION).ok_or(unreadable.clone())?;
    let current: Value = serde_saphyr::from_str(text).map_err(|_| unreadable.clone())?;
    let own = &plane.control_plane.spec;
    let spec = desired::with_gates(own.kubeadm_config_spec.clone(), &own.version);
    let rendered = config::cluster_configuration(&spec, &plane.cluster, &own.version)?;
    let wanted: Value = serde_saphyr::from_str(&rendered).map_err(|_| unreadable.clone())?;
    let mut merged = current.as_object().cloned().ok_or(unreadable)?;
    let version = wanted["kubernetesVersion"].clone();
    if own.kubeadm_config_spec.cluster_configuration != ClusterConfiguration::default() {
        for field in MANAGED {
            match wanted.get(field) {
                Some(value) => drop(merged.insert((*field).to_owned(), value.clone())),
                // kubeadm treats an absent and an empty object the same.
                None if merged.get(*field).is_some_and(|value| *value == json!({})) => {}
                None => drop(merged.remove(*field)),
            }
        }
        if let Some(repository) = wanted.get("imageRepository") {
            merged.insert("imageRepository".to_owned(), repository.clone());
        }
        let mut etcd = wanted.get("etcd").cloned().unwrap_or_else(|| json!({}));
        if plane.manages_etcd()
            && etcd.pointer("/local/dataDir").is_none()
            && let Some(directory) = current.pointer("/etcd/local/dataDir")
        {
            etcd["local"]["dataDir"] = directory.clone();
        }
        if etcd != json!({}) {
            merged.insert("etcd".to_owned(), etcd);
        }
    }
    // The gate that we added is removed for versions that do not have it.
    let known = wanted.pointer(&format!("/featureGates/{LOCAL_MODE}")).is_some();
    if let Some(Value::Object(gates)) = merged.get_mut("featureGates").filter(|_| !known) {
        gates.remove(LOCAL_MODE);
        if gates.is_empty() {
            merged.remove("featureGates");
        }
    }
    merged.insert("kubernetesVersion".to_owned(), version);
    let merged = Value::Object(merged);
    Ok((merged != current).then(|| yaml::document(&merged)))
}

/// The patch that sets the desired CoreDNS image in kubeadm's configuration; `None` if it is set.
pub(super) fn dns_change(plane: &ControlPlaneState, found: &ConfigMap) -> Option<Value> {
    let mut config: Value = serde_saphyr::from_str(found.data.get(CLUSTER_CONFIGURATION)?).ok()?;
    let wanted = &plane.control_plane.spec.kubeadm_config_spec.cluster_configuration.dns;
    let mut dns = json!({});
    for (field, value) in [("imageRepository", &wanted.image_repository), ("imageTag", &wanted.image_tag)] {
        if !value.is_empty() {
            dns[field] = value.clone().into();
        }
    }
    if config.get("dns").unwrap_or(&json!({})) == &dns {
        return None;
    }
    config["dns"] = dns;
    Some(json!({
        "metadata": {"resourceVersion": found.metadata.resource_version},
        "data": {CLUSTER_CONFIGURATION: yaml::document(&config)},
    }))
}
