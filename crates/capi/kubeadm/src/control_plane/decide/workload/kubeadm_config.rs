//! kubeadm's ClusterConfiguration in the workload cluster, which joining machines read.

use capstan_capi_types::bootstrap::ClusterConfiguration;
use serde_json::{Map, Value, json};

use crate::config;
use crate::control_plane::desired_machine::{self as desired, LOCAL_MODE};
use crate::control_plane::observed::ControlPlaneState;
use crate::{Error, yaml};
use capstan_capi_core::secret::ConfigMap;

pub(super) const CLUSTER_CONFIGURATION: &str = "ClusterConfiguration";
const V1BETA4: &str = "kubeadm.k8s.io/v1beta4";
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
    if merged.get("apiVersion") != wanted.get("apiVersion") && wanted["apiVersion"] == V1BETA4 {
        convert_to_v1beta4(&mut merged);
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

/// Rewrites a configuration that the control plane does not manage for the version of kubeadm that reads it next:
/// maps of arguments become lists, and the timeout of the API server is no longer part of it.
fn convert_to_v1beta4(config: &mut Map<String, Value>) {
    config.insert("apiVersion".to_owned(), V1BETA4.into());
    if let Some(Value::Object(server)) = config.get_mut("apiServer") {
        server.remove("timeoutForControlPlane");
    }
    let components = ["/apiServer", "/controllerManager", "/scheduler", "/etcd/local"];
    let mut whole = Value::Object(std::mem::take(config));
    for component in components {
        let Some(arguments) = whole.pointer_mut(&format!("{component}/extraArgs")) else { continue };
        if let Value::Object(map) = arguments {
            *arguments = map.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        }
    }
    if let Value::Object(whole) = whole {
        *config = whole;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane::fixture::{control_plane, machine, plane};

    #[test]
    fn a_configuration_that_is_not_managed_is_converted_for_the_next_version() {
        let text = "apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
kubernetesVersion: v1.30.0
clusterName: theirs
apiServer: {extraArgs: {audit-log-path: /a, v: '2'}, timeoutForControlPlane: 4m0s}
etcd: {local: {dataDir: /e, extraArgs: {quota: '1'}}}
";
        let mut found = ConfigMap::default();
        found.data.insert(CLUSTER_CONFIGURATION.to_owned(), text.to_owned());
        let mut plane = plane(control_plane(3, ""), vec![machine(1)]);
        let own = std::sync::Arc::make_mut(&mut plane.control_plane);
        own.spec.kubeadm_config_spec.cluster_configuration = ClusterConfiguration::default();
        let changed = change(&plane, &found).expect("readable").expect("a change");
        let changed: Value = serde_saphyr::from_str(&changed).expect("YAML");
        assert_eq!(changed["apiVersion"], V1BETA4);
        assert_eq!(
            changed["apiServer"],
            json!({"extraArgs": [{"name": "audit-log-path", "value": "/a"}, {"name": "v", "value": "2"}]})
        );
        assert_eq!(changed["etcd"]["local"]["extraArgs"], json!([{"name": "quota", "value": "1"}]));
        assert_eq!(changed["clusterName"], "theirs");
        found.data.insert(CLUSTER_CONFIGURATION.to_owned(), yaml::document(&changed));
        assert_eq!(change(&plane, &found), Ok(None));
    }
}
