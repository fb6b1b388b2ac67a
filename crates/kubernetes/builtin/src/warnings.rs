//! What upstream warns of in valid objects of built-in kinds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use crate::quantity::Quantity;

/// Warnings about an object that is created, or replaces `old`.
pub fn of(group: &str, kind: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    match (group, kind) {
        ("", "Secret") => secret(object),
        ("", "Service") => service(object),
        ("", "PersistentVolumeClaim") if annotated(object, CLAIM_CLASS) => vec![format!(
            "metadata.annotations[{CLAIM_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        )],
        ("networking.k8s.io", "Ingress") if old.is_none() && annotated(object, INGRESS_CLASS) => {
            vec![format!(
                "annotation \"{INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
            )]
        }
        ("discovery.k8s.io", "EndpointSlice") if object["addressType"] == "FQDN" => {
            vec!["spec.addressType: FQDN endpoints are deprecated".to_owned()]
        }
        _ => pod_template(group, kind)
            .filter(|path| {
                let spec = |object: &Value| object.pointer(&pointer(path)).cloned();
                old.is_none_or(|old| spec(old) != spec(object))
            })
            .map(|path| pod(object.pointer(&pointer(path)).unwrap_or(&Value::Null), path))
            .unwrap_or_default(),
    }
}

const CLAIM_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

fn annotated(object: &Value, key: &str) -> bool {
    !object["metadata"]["annotations"][key].is_null()
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

fn secret(secret: &Value) -> Vec<String> {
    if secret["type"] != "kubernetes.io/tls" {
        return Vec::new();
    }
    let has = |key: &str, ending: &str| {
        let bytes = BASE64.decode(secret["data"][key].as_str().unwrap_or_default()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().any(|line| line.starts_with("-----BEGIN ") && line.trim_end().ends_with(ending))
    };
    let missing = if !has("tls.crt", "CERTIFICATE-----") {
        "certificate"
    } else if !has("tls.key", "PRIVATE KEY-----") {
        "key"
    } else {
        return Vec::new();
    };
    vec![format!("tls: failed to find any PEM data in {missing} input")]
}

fn service(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let mut all = Vec::new();
    let mut warn = |text: &str| all.push(text.to_owned());
    let (hints, mode) = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode");
    if !service["metadata"]["annotations"][hints].is_null() {
        warn(&format!("annotation {hints} is deprecated, please use {mode} instead"));
    }
    let external_ips = spec["externalIPs"].as_array().is_some_and(|all| !all.is_empty());
    let named = |field: &str| spec[field].as_str().is_some_and(|text| !text.is_empty());
    let headless = spec["clusterIPs"] == serde_json::json!(["None"]);
    if headless {
        for (field, ignored) in [
            ("loadBalancerIP", named("loadBalancerIP")),
            ("externalIPs", external_ips),
            ("SessionAffinity", spec["sessionAffinity"] != "None"),
        ] {
            if ignored {
                warn(&format!("spec.{field} is ignored for headless services"));
            }
        }
    }
    let external_name = spec["type"] == "ExternalName";
    if external_ips && !headless && !external_name {
        warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    if external_ips && external_name {
        warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if named("externalName") && !external_name {
        warn("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if spec["trafficDistribution"] == "PreferClose" {
        warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
    all
}

/// Where a kind has the spec of its Pods.
fn pod_template(group: &str, kind: &str) -> Option<&'static str> {
    match (group, kind) {
        ("", "Pod") => Some("spec"),
        ("", "PodTemplate") => Some("template.spec"),
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet")
        | ("batch", "Job") => Some("spec.template.spec"),
        ("batch", "CronJob") => Some("spec.jobTemplate.spec.template.spec"),
        _ => None,
    }
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn pod(spec: &Value, path: &str) -> Vec<String> {
    let mut all = Vec::new();
    for field in ["initContainers", "containers"] {
        for (n, container) in list(spec, field).iter().enumerate() {
            self::container(container, &format!("{path}.{field}[{n}]"), &mut all);
        }
    }
    for (n, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if secret["name"].as_str().unwrap_or_default().is_empty() {
            all.push(format!("{path}.imagePullSecrets[{n}].name: invalid empty name \"\""));
        }
    }
    all
}

fn container(container: &Value, path: &str, all: &mut Vec<String>) {
    for kind in ["limits", "requests"] {
        for resource in ["memory", "ephemeral-storage"] {
            let given = container["resources"][kind][resource].as_str();
            if let Some(text) = given.filter(|text| is_fraction(text)) {
                all.push(format!(
                    "{path}.resources.{kind}[{resource}]: fractional byte value {text:?} is invalid, must be an integer"
                ));
            }
        }
    }
    let mut known = std::collections::HashMap::new();
    for (n, env) in list(container, "env").iter().enumerate() {
        let name = env["name"].as_str().unwrap_or_default();
        if known.insert(name, n).is_some() {
            all.push(format!(
                "{path}.env[{n}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
    let mut ports = std::collections::HashMap::new();
    for (n, port) in list(container, "ports").iter().enumerate() {
        let parts = ["containerPort", "protocol", "hostPort", "hostIP"].map(|part| port[part].to_string());
        if let Some(before) = ports.insert(parts, n) {
            all.push(format!("{path}.ports[{n}]: duplicate port definition with {path}.ports[{before}]"));
        }
    }
}

/// Whether a quantity is not a whole number.
fn is_fraction(text: &str) -> bool {
    text.ends_with(['m', 'u', 'n']) && Quantity::parse(text).is_ok_and(|quantity| !quantity.is_integer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn services_are_warned_of_what_is_ignored_or_deprecated() {
        let service = json!({"spec": {
            "clusterIPs": ["None"], "sessionAffinity": "ClientIP", "externalIPs": ["1.2.3.4"], "externalName": "x",
            "trafficDistribution": "PreferClose",
        }});
        assert_eq!(
            of("", "Service", &service, None),
            [
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
                "spec.externalName is ignored when spec.type is not \"ExternalName\"",
                "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
            ]
        );
    }

    #[test]
    fn warnings_name_the_place() {
        let tls = |crt: &str, key: &str| json!({"type": "kubernetes.io/tls", "data": {"tls.crt": BASE64.encode(crt), "tls.key": BASE64.encode(key)}});
        assert_eq!(
            of("", "Secret", &tls("x", "x"), None),
            ["tls: failed to find any PEM data in certificate input"]
        );
        let certificate = "-----BEGIN CERTIFICATE-----\nx";
        assert_eq!(
            of("", "Secret", &tls(certificate, "x"), None),
            ["tls: failed to find any PEM data in key input"]
        );
        let pod = json!({"spec": {"containers": [{
            "env": [{"name": "A"}, {"name": "A"}], "ports": [{"containerPort": 1}, {"containerPort": 1}],
            "resources": {"limits": {"memory": "100m"}},
        }]}});
        let all = of("", "Pod", &pod, None);
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(
            all[1].starts_with("spec.containers[0].env[1]: hides previous definition of \"A\""),
            "{all:?}"
        );
        assert_eq!(of("", "Pod", &pod, Some(&pod)), [""; 0], "only what changes is warned of");
    }
}
