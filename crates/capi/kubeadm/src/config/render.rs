//! Renders kubeadm's documents from our kinds.

use capstan_capi_types::bootstrap::{Arg, InitConfiguration, JoinConfiguration, KubeadmConfigSpec, Timeouts};
use capstan_capi_types::core::Cluster;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::KubeadmApi;
use crate::{Error, yaml};

type Fields = Map<String, Value>;

/// `ClusterConfiguration`, completed from the Cluster and the machine's version.
pub fn cluster_configuration(
    spec: &KubeadmConfigSpec,
    cluster: &Cluster,
    version: &str,
) -> Result<String, Error> {
    let api = KubeadmApi::of(version)?;
    let mut out = fields(&spec.cluster_configuration)?;
    for component in ["apiServer", "controllerManager", "scheduler"] {
        if let Some(Value::Object(component)) = out.get_mut(component) {
            rewrite_flags(component, "extraArgs", api);
        }
    }
    if let Some(Value::Object(local)) = out.get_mut("etcd").and_then(|etcd| etcd.get_mut("local")) {
        rewrite_flags(local, "extraArgs", api);
    }
    for (days, period) in [
        ("certificateValidityPeriodDays", "certificateValidityPeriod"),
        ("caCertificateValidityPeriodDays", "caCertificateValidityPeriod"),
    ] {
        let days = out.remove(days).and_then(|days| days.as_i64());
        if let (Some(days), KubeadmApi::V1Beta4) = (days, api) {
            out.insert(period.to_owned(), go_duration(days * 24 * 3600).into());
        }
    }
    if api == KubeadmApi::V1Beta3 {
        out.remove("encryptionAlgorithm");
        // In v1beta4 this is a timeout of the node.
        if let Some(seconds) = spec.init_configuration.timeouts.control_plane_component_health_check_seconds {
            let server = out.entry("apiServer").or_insert_with(|| json!({}));
            server["timeoutForControlPlane"] = go_duration(seconds.into()).into();
        }
    }

    let endpoint = &cluster.spec.control_plane_endpoint;
    if spec.cluster_configuration.control_plane_endpoint.is_empty() && endpoint.is_valid() {
        out.insert("controlPlaneEndpoint".to_owned(), endpoint.to_string().into());
    }
    out.insert("clusterName".to_owned(), cluster.metadata.name.clone().into());
    out.insert("kubernetesVersion".to_owned(), version.into());
    let network = &cluster.spec.cluster_network;
    let networking = [
        ("dnsDomain", network.service_domain.clone()),
        ("serviceSubnet", network.services.cidr_blocks.join(",")),
        ("podSubnet", network.pods.cidr_blocks.join(",")),
    ];
    let networking: Fields = networking
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    if !networking.is_empty() {
        out.insert("networking".to_owned(), networking.into());
    }
    Ok(document(out, api, "ClusterConfiguration"))
}

pub fn init_configuration(config: &InitConfiguration, version: &str) -> Result<String, Error> {
    let api = KubeadmApi::of(version)?;
    let mut out = fields(config)?;
    rewrite_node(&mut out, api);
    rewrite_timeouts(&mut out, &config.timeouts, api);
    if let Some(Value::Array(tokens)) = out.get_mut("bootstrapTokens") {
        for token in tokens.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(seconds) = token.remove("ttlSeconds").and_then(|seconds| seconds.as_i64()) {
                token.insert("ttl".to_owned(), go_duration(seconds).into());
            }
        }
    }
    Ok(document(out, api, "InitConfiguration"))
}

pub fn join_configuration(config: &JoinConfiguration, version: &str) -> Result<String, Error> {
    let api = KubeadmApi::of(version)?;
    let mut out = fields(config)?;
    rewrite_node(&mut out, api);
    rewrite_timeouts(&mut out, &config.timeouts, api);
    let discovery = out.entry("discovery").or_insert_with(|| json!({}));
    if let Some(file) = discovery.get_mut("file").and_then(Value::as_object_mut) {
        // Not a kubeadm field: kubeadm reads the file that is written from it.
        file.remove("kubeConfig");
    }
    if let (KubeadmApi::V1Beta3, Some(seconds)) = (api, config.timeouts.tls_bootstrap_seconds) {
        discovery["timeout"] = go_duration(seconds.into()).into();
    }
    Ok(document(out, api, "JoinConfiguration"))
}

fn fields(config: &impl Serialize) -> Result<Fields, Error> {
    match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Error::Encoding("the kubeadm configuration")),
    }
}

fn document(mut out: Fields, api: KubeadmApi, kind: &str) -> String {
    out.insert("apiVersion".to_owned(), api.api_version().into());
    out.insert("kind".to_owned(), kind.into());
    yaml::document(&Value::Object(out))
}

fn rewrite_node(out: &mut Fields, api: KubeadmApi) {
    if let Some(Value::Object(node)) = out.get_mut("nodeRegistration") {
        rewrite_flags(node, "kubeletExtraArgs", api);
        if api == KubeadmApi::V1Beta3 {
            node.remove("imagePullSerial");
        }
    }
}

/// Flags as a list (v1beta4) or as a map in which the last of a name wins (v1beta3, which has no `extraEnvs`).
fn rewrite_flags(component: &mut Fields, name: &str, api: KubeadmApi) {
    if api == KubeadmApi::V1Beta3 {
        component.remove("extraEnvs");
    }
    let Some(flags) = component.remove(name) else { return };
    let flags: Vec<Arg> = serde_json::from_value(flags).unwrap_or_default();
    let value = |flag: &Arg| flag.value.clone().unwrap_or_default();
    let rewritten = match api {
        KubeadmApi::V1Beta3 => {
            flags.iter().map(|flag| (flag.name.clone(), value(flag).into())).collect::<Fields>().into()
        }
        KubeadmApi::V1Beta4 => {
            flags.iter().map(|flag| json!({"name": flag.name, "value": value(flag)})).collect::<Value>()
        }
    };
    component.insert(name.to_owned(), rewritten);
}

fn rewrite_timeouts(out: &mut Fields, timeouts: &Timeouts, api: KubeadmApi) {
    out.remove("timeouts");
    if api == KubeadmApi::V1Beta3 {
        return;
    }
    let durations: Fields = [
        ("controlPlaneComponentHealthCheck", timeouts.control_plane_component_health_check_seconds),
        ("kubeletHealthCheck", timeouts.kubelet_health_check_seconds),
        ("kubernetesAPICall", timeouts.kubernetes_api_call_seconds),
        ("etcdAPICall", timeouts.etcd_api_call_seconds),
        ("tlsBootstrap", timeouts.tls_bootstrap_seconds),
        ("discovery", timeouts.discovery_seconds),
    ]
    .into_iter()
    .filter_map(|(name, seconds)| Some((name.to_owned(), go_duration(seconds?.into()).into())))
    .collect();
    if !durations.is_empty() {
        out.insert("timeouts".to_owned(), durations.into());
    }
}

/// Formats seconds as a Go duration: `1h0m30s`.
pub(super) fn go_duration(seconds: i64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}
