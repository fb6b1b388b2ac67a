//! Defaults of services.

use serde_json::{Value, json};

use super::{Object, child, empty, set, text};

pub(super) fn service(object: &mut Object) {
    let spec = child(object, "spec");
    set(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let timeout =
                spec.get("sessionAffinityConfig").and_then(|c| c.pointer("/clientIP/timeoutSeconds"));
            if timeout.is_none_or(Value::is_null) {
                let config = json!({"clientIP": {"timeoutSeconds": 10800}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        _ => {}
    }
    set(spec, "type", "ClusterIP");
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(port) = port {
            set(port, "protocol", "TCP");
            if empty(port.get("targetPort")) {
                let number = port.get("port").cloned().unwrap_or(json!(0));
                port.insert("targetPort".to_owned(), number);
            }
        }
    }
    let kind = text(spec, "type").to_owned();
    let external = matches!(kind.as_str(), "LoadBalancer" | "NodePort")
        || kind == "ClusterIP" && !empty(spec.get("externalIPs"));
    if external {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "LoadBalancer" | "NodePort" | "ClusterIP") {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
        let ingress = object.get_mut("status").and_then(|s| s.pointer_mut("/loadBalancer/ingress"));
        for entry in ingress.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(entry) = entry
                && !text(entry, "ip").is_empty()
            {
                set(entry, "ipMode", "VIP");
            }
        }
    }
}
