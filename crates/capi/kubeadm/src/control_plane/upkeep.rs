//! What kubeadm installed in the workload cluster, kept as the control plane wants it.

use capstan_capi_types::bootstrap::ClusterConfiguration;
use capstan_capi_types::controlplane::kubeadm_control_plane::annotation;
use serde_json::{Value, json};

use super::call::Installed;
use super::decide::Turn;
use super::desired::LOCAL_MODE;
use super::workload::KUBE_PROXY;
use super::{ControlPlaneCall, Plane, coredns, desired};
use crate::config::{self, kubernetes_version};
use crate::{Error, yaml};
use capstan_capi_core::secret::ConfigMap;

/// Key of the configuration in kubeadm's ConfigMap.
const CLUSTER_CONFIGURATION: &str = "ClusterConfiguration";
/// What of it the control plane says.
const MANAGED: &[&str] = &[
    "apiVersion",
    "apiServer",
    "controllerManager",
    "scheduler",
    "featureGates",
    "certificateValidityPeriod",
    "encryptionAlgorithm",
];

/// The group of kubeadm's own administrators, and its binding.
const CLUSTER_ADMINS: &str = "kubeadm:cluster-admins";
/// The binding by which API servers may speak with kubelets.
const KUBELET_CLIENT: &str = "kubeadm:apiserver-kubelet-client";

/// Bindings that the kubeadm of a version, or of the next ones, relies on. Machines of the old version did not make
/// them.
pub(super) fn bindings(version: &str) -> &'static [&'static str] {
    match kubernetes_version(version) {
        // From then on every cluster has been made or upgraded with them.
        Ok(version) if (version.major, version.minor) >= (1, 38) => &[],
        _ => &[CLUSTER_ADMINS, KUBELET_CLIENT],
    }
}

/// A binding as kubeadm makes it.
pub(super) fn binding(name: &str) -> Value {
    let (role, kind, subject) = if name == KUBELET_CLIENT {
        ("system:kubelet-api-admin", "User", "kube-apiserver-kubelet-client")
    } else {
        ("cluster-admin", "Group", CLUSTER_ADMINS)
    };
    let group = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": kind, "name": subject}],
    })
}

/// Before machines of another version or configuration join: what they rely on, and what they read.
pub(super) fn before_roll_out(turn: &mut Turn<'_>, plane: &Plane) {
    let Some(inside) = turn.look.seen.workload.inside() else { return };
    if plane.machines.iter().any(|member| member.machine.spec.version != plane.control_plane.spec.version) {
        for name in bindings(&plane.control_plane.spec.version) {
            if !inside.bindings.iter().any(|known| known == name) {
                turn.decision.call(ControlPlaneCall::Bind { name: (*name).to_owned() });
            }
        }
    }
    if let Some(found) = &inside.kubeadm_config {
        match kubeadm_config(plane, found) {
            Ok(Some(text)) => {
                let change = json!({
                    "metadata": {"resourceVersion": found.metadata.resource_version},
                    "data": {CLUSTER_CONFIGURATION: text},
                });
                turn.decision.call(ControlPlaneCall::Change { what: Installed::KubeadmConfig, change });
            }
            Ok(None) => {}
            Err(error) => turn.wait("KubeadmConfigUnreadable", error.to_string()),
        }
    }
}

/// kubeadm's configuration of the cluster as machines that join should read it; `None` if it is so. What the control
/// plane does not say is left as it is.
fn kubeadm_config(plane: &Plane, found: &ConfigMap) -> Result<Option<String>, Error> {
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
                // Nothing said and nothing at all are the same to kubeadm.
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
    // Of gates nobody wrote, the one that we add goes with the versions that know it.
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

/// Once all machines are as wanted: the images of what kubeadm installed beside them.
pub(super) fn add_ons(turn: &mut Turn<'_>, plane: &Plane) {
    let Some(inside) = turn.look.seen.workload.inside().filter(|_| plane.is_initialized()) else { return };
    let annotations = &plane.control_plane.metadata.annotations;
    if !annotations.contains_key(annotation::SKIP_KUBE_PROXY)
        && let Some(change) = inside.kube_proxy.as_ref().and_then(|found| kube_proxy(plane, found))
    {
        turn.decision.call(ControlPlaneCall::Change { what: Installed::KubeProxy, change });
    }
    if annotations.contains_key(annotation::SKIP_COREDNS) {
        return;
    }
    match coredns::next(plane, inside) {
        Ok(Some(call)) => {
            if let Some(change) = inside.kubeadm_config.as_ref().and_then(|found| dns(plane, found)) {
                turn.decision.call(ControlPlaneCall::Change { what: Installed::KubeadmConfig, change });
            }
            turn.decision.call(call);
        }
        Ok(None) => {}
        Err(error) => turn.wait("CoreDNSHeld", format!("CoreDNS is not upgraded: {error}")),
    }
}

/// The change by which kubeadm's configuration names the image of CoreDNS that is wanted; `None` if it does.
fn dns(plane: &Plane, found: &ConfigMap) -> Option<Value> {
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

fn kube_proxy(plane: &Plane, found: &Value) -> Option<Value> {
    let spec = &plane.control_plane.spec;
    let image = Image::parse(container(found, KUBE_PROXY)?["image"].as_str()?);
    let repository = match spec.kubeadm_config_spec.cluster_configuration.image_repository.as_str() {
        "" => image.repository,
        repository => repository.trim_end_matches('/'),
    };
    let tag = spec.version.replace('+', "_");
    with_image(found, KUBE_PROXY, &Image { repository, tag: Some(&tag), ..image })
}

fn containers(found: &Value) -> &[Value] {
    let containers = found.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    containers.map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn container<'a>(found: &'a Value, name: &str) -> Option<&'a Value> {
    containers(found).iter().find(|container| container["name"] == name)
}

/// The change that gives a container another image; `None` if it has it. Lists are merged as a whole, which the
/// version guards.
pub(super) fn with_image(found: &Value, name: &str, image: &Image<'_>) -> Option<Value> {
    let image = image.to_string();
    if container(found, name)?["image"] == image {
        return None;
    }
    let mut all = containers(found).to_vec();
    for container in all.iter_mut().filter(|container| container["name"] == name) {
        container["image"] = image.clone().into();
    }
    Some(json!({
        "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
        "spec": {"template": {"spec": {"containers": all}}},
    }))
}

/// An image by its parts. A digest is left out: it would pin what is about to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Image<'a> {
    /// Registry and path.
    pub repository: &'a str,
    /// Last part of the path.
    pub name: &'a str,
    pub tag: Option<&'a str>,
}

impl<'a> Image<'a> {
    pub fn parse(text: &'a str) -> Self {
        let text = text.split_once('@').map_or(text, |(text, _)| text);
        let (repository, rest) = text.rsplit_once('/').unwrap_or(("", text));
        let (name, tag) = match rest.split_once(':') {
            Some((name, tag)) => (name, Some(tag)),
            None => (rest, None),
        };
        Self { repository, name, tag }
    }
}

impl std::fmt::Display for Image<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.repository.is_empty() {
            write!(f, "{}/", self.repository)?;
        }
        f.write_str(self.name)?;
        self.tag.map_or(Ok(()), |tag| write!(f, ":{tag}"))
    }
}
