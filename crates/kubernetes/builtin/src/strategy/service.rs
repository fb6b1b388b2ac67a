//! Services: IP families of a single-stack IPv4 cluster, and fields that a change of type clears.

use serde_json::{Value, json};

use super::{Object, at, child};

/// Sets what the allocator of a single-stack IPv4 cluster sets, except the address.
pub(super) fn prepare_create(service: &mut Object) {
    let spec = child(service, "spec");
    if let Some(address) =
        spec.get("clusterIP").filter(|a| a.as_str().is_some_and(|t| !t.is_empty())).cloned()
    {
        spec.entry("clusterIPs").or_insert_with(|| json!([address]));
    }
    if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
        return;
    }
    let headless_without_selector = spec.get("clusterIP").and_then(Value::as_str) == Some("None")
        && spec.get("selector").is_none_or(|s| s.as_object().is_none_or(|m| m.is_empty()));
    let default = if headless_without_selector { "RequireDualStack" } else { "SingleStack" };
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!(default));
    if spec.get("ipFamilies").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let families = if headless_without_selector { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
        spec.insert("ipFamilies".to_owned(), families);
    }
}

fn needs_cluster_ip(service: &Object) -> bool {
    matches!(kind(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn needs_node_port(service: &Object) -> bool {
    kind(service) == "NodePort"
        || kind(service) == "LoadBalancer"
            && at(service, "/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
}

fn needs_health_check(service: &Object) -> bool {
    kind(service) == "LoadBalancer"
        && at(service, "/spec/externalTrafficPolicy").and_then(Value::as_str) == Some("Local")
}

fn kind(service: &Object) -> &str {
    at(service, "/spec/type").and_then(Value::as_str).unwrap_or_default()
}

fn node_ports(service: &Object) -> Vec<&Value> {
    let ports = at(service, "/spec/ports").and_then(Value::as_array);
    let mut out: Vec<&Value> = ports.into_iter().flatten().filter_map(|p| p.get("nodePort")).collect();
    out.sort_by_key(|p| p.as_i64());
    out
}

fn external(service: &Object) -> bool {
    matches!(kind(service), "LoadBalancer" | "NodePort")
        || kind(service) == "ClusterIP" && at(service, "/spec/externalIPs").is_some()
}

/// Clears fields that no longer apply and that the request did not change, and restores omitted addresses, which are
/// immutable.
pub(super) fn prepare_update(new: &mut Object, old: &Object) {
    let same = |new: &Object, pointer: &str| at(new, pointer) == at(old, pointer);
    let clear = |new: &mut Object, key: &str| {
        child(new, "spec").remove(key);
    };
    patch_allocated(new, old);
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        if same(new, "/spec/clusterIP") && same(new, "/spec/clusterIPs") {
            clear(new, "clusterIP");
            clear(new, "clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if same(new, &format!("/spec/{key}")) {
                clear(new, key);
            }
        }
    }
    if needs_node_port(old) && !needs_node_port(new) && node_ports(new) == node_ports(old) {
        for port in child(new, "spec").get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(port) = port {
                port.remove("nodePort");
            }
        }
    }
    if kind(old) == "LoadBalancer" && kind(new) != "LoadBalancer" {
        for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(new, &format!("/spec/{key}")) {
                clear(new, key);
            }
        }
    }
    if needs_health_check(old) && !needs_health_check(new) && same(new, "/spec/healthCheckNodePort") {
        clear(new, "healthCheckNodePort");
    }
    if needs_cluster_ip(old) && !needs_cluster_ip(new) && same(new, "/spec/internalTrafficPolicy") {
        clear(new, "internalTrafficPolicy");
    }
    if external(old) && !external(new) && same(new, "/spec/externalTrafficPolicy") {
        clear(new, "externalTrafficPolicy");
    }
    if kind(new) != "LoadBalancer"
        && let Some(Value::Object(status)) = new.get_mut("status")
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}

/// A client that never read the service may omit what the server allocated.
fn patch_allocated(new: &mut Object, old: &Object) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            let pointer = format!("/spec/{key}");
            let empty = match at(new, &pointer) {
                None | Some(Value::Null) => true,
                Some(Value::String(s)) => s.is_empty(),
                Some(Value::Array(a)) => a.is_empty(),
                Some(_) => false,
            };
            if empty && let Some(value) = at(old, &pointer).cloned() {
                child(new, "spec").insert(key.to_owned(), value);
            }
        }
    }
    if needs_node_port(old) && needs_node_port(new) {
        let before = at(old, "/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
        let taken: Vec<Value> = node_ports(new).into_iter().cloned().collect();
        for port in child(new, "spec").get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            let twin = before
                .iter()
                .find(|o| o.get("port") == port.get("port") && o.get("protocol") == port.get("protocol"));
            if let (Some(number), Value::Object(port)) = (twin.and_then(|t| t.get("nodePort")), port)
                && !taken.contains(number)
            {
                port.entry("nodePort").or_insert_with(|| number.clone());
            }
        }
    }
}
