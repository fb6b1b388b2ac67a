//! Services before addresses and ports are allocated: what the client left out, and IP families.
//!
//! The cluster has one service range, of IPv4: what demands a second family is rejected, as in any single-stack
//! cluster.

use std::net::IpAddr;

use capstan_schema::field::{FieldError, FieldErrors};
use serde_json::{Map, Value, json};

pub use crate::validation::sloppy_ip;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICY: &str = "spec.ipFamilyPolicy";

/// Completes the fields of addresses, families and ports that follow from others or from the old object.
///
/// # Errors
/// The fields contradict each other, or need a family that the cluster does not have.
pub fn initialise(new: &mut Value, old: Option<&Value>) -> Result<(), FieldErrors> {
    if let Some(old) = old {
        restore_allocated(new, old);
    }
    align_cluster_ips(new, old);
    if kind(new) == "ExternalName" {
        return Ok(());
    }
    if old.is_some_and(|old| keeps_preferred_stack(new, old)) {
        return Ok(());
    }
    families(new, old)
}

/// Whether the Service has an address of its own, now or later.
pub fn is_headless(service: &Value) -> bool {
    texts(service, "clusterIPs").first() == Some(&"None")
}

/// Whether load balancers check the health of nodes on a port that the API server allocates.
pub fn needs_health_check(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && service["spec"]["externalTrafficPolicy"] == "Local"
}

/// Whether ports of nodes are allocated where the client names none.
pub fn allocates_node_ports(service: &Value) -> bool {
    match kind(service) {
        "NodePort" => true,
        "LoadBalancer" => service["spec"]["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

pub fn kind(service: &Value) -> &str {
    service["spec"]["type"].as_str().unwrap_or_default()
}

/// The texts of a list in the spec.
pub fn texts<'a>(service: &'a Value, field: &str) -> Vec<&'a str> {
    service["spec"][field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn text<'a>(service: &'a Value, field: &str) -> &'a str {
    service["spec"][field].as_str().unwrap_or_default()
}

fn spec(service: &mut Value) -> Option<&mut Map<String, Value>> {
    service.get_mut("spec")?.as_object_mut()
}

fn set(service: &mut Value, field: &str, value: Value) {
    if let Some(spec) = spec(service) {
        spec.insert(field.to_owned(), value);
    }
}

fn has_cluster_ip(service: &Value) -> bool {
    matches!(kind(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

/// A client that sends its manifest again may omit what was allocated for it.
fn restore_allocated(new: &mut Value, old: &Value) {
    if has_cluster_ip(old) && has_cluster_ip(new) {
        if text(new, "clusterIP").is_empty() && !text(old, "clusterIP").is_empty() {
            set(new, "clusterIP", old["spec"]["clusterIP"].clone());
        }
        if texts(new, "clusterIPs").is_empty() && !texts(old, "clusterIPs").is_empty() {
            set(new, "clusterIPs", old["spec"]["clusterIPs"].clone());
        }
    }
    if allocates_node_ports(old) && allocates_node_ports(new) {
        restore_node_ports(new, old);
    }
    if needs_health_check(old)
        && needs_health_check(new)
        && new["spec"]["healthCheckNodePort"].as_i64().unwrap_or(0) == 0
        && !old["spec"]["healthCheckNodePort"].is_null()
    {
        set(new, "healthCheckNodePort", old["spec"]["healthCheckNodePort"].clone());
    }
}

/// Node ports of ports with the same name, unless another port uses them now.
fn restore_node_ports(new: &mut Value, old: &Value) {
    let ports = |service: &Value| service["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let number = |port: &Value| port["nodePort"].as_i64().filter(|number| *number != 0);
    let before = ports(old);
    let named: Vec<i64> = ports(new).iter().filter_map(number).collect();
    let used: Vec<i64> = before.iter().filter_map(number).filter(|number| named.contains(number)).collect();
    for port in new["spec"]["ports"].as_array_mut().into_iter().flatten() {
        let name = port["name"].as_str().unwrap_or_default();
        // Of two with one name the last counts.
        let twin = before.iter().rfind(|old| old["name"].as_str().unwrap_or_default() == name);
        if number(port).is_none()
            && let Some(number) = twin.and_then(number)
            && !used.contains(&number)
        {
            port["nodePort"] = number.into();
        }
    }
}

/// Clients may set the first address only, and older ones change only that.
fn align_cluster_ips(new: &mut Value, old: Option<&Value>) {
    let first = text(new, "clusterIP").to_owned();
    let Some(old) = old else {
        if !first.is_empty() && texts(new, "clusterIPs").is_empty() {
            set(new, "clusterIPs", json!([first]));
        }
        return;
    };
    let before = text(old, "clusterIP");
    if !texts(old, "clusterIPs").is_empty() && texts(new, "clusterIPs").is_empty() && before == first {
        set(new, "clusterIPs", old["spec"]["clusterIPs"].clone());
    }
    if before == first || texts(new, "clusterIPs") != texts(old, "clusterIPs") {
        return;
    }
    if !before.is_empty() && first.is_empty() {
        if let Some(spec) = spec(new) {
            spec.remove("clusterIPs");
        }
    } else {
        set(new, "clusterIPs", json!([first]));
    }
}

/// A Service that prefers two families keeps those it has until something about them changes.
fn keeps_preferred_stack(new: &Value, old: &Value) -> bool {
    let prefers = |service: &Value| text(service, "ipFamilyPolicy") == "PreferDualStack";
    let unset = old["spec"]["ipFamilyPolicy"].is_null();
    kind(new) == kind(old)
        && has_cluster_ip(new)
        && prefers(new)
        && (unset || prefers(old))
        && ["clusterIPs", "ipFamilies"].iter().all(|field| texts(new, field) == texts(old, field))
}

fn families(new: &mut Value, old: Option<&Value>) -> Result<(), FieldErrors> {
    let plain = text(new, "clusterIP") == "None"
        && new["spec"]["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    if new["spec"]["ipFamilyPolicy"].is_null() {
        let before = old.map(|old| &old["spec"]["ipFamilyPolicy"]).filter(|policy| !policy.is_null());
        let policy = match before {
            Some(policy) => policy.clone(),
            // Endpoints that somebody else maintains may be of any family.
            None if plain => json!("RequireDualStack"),
            None => json!("SingleStack"),
        };
        set(new, "ipFamilyPolicy", policy);
    }
    let contradictions = crate::validation::service_addresses(new, old);
    if !contradictions.is_empty() {
        return Err(contradictions);
    }
    let policy = text(new, "ipFamilyPolicy").to_owned();
    let mut errors = FieldErrors::default();
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(POLICY, policy.as_str(), detail));
    if let Some(old) = old {
        for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
            let (count, before) = (texts(new, field).len(), texts(old, field).len());
            if policy != "SingleStack" {
                if count > 0 && count < before {
                    refuse(&format!("must be 'SingleStack' to release the secondary {what}"));
                }
            } else if count > 1 && texts(new, field) == texts(old, field) {
                let first = texts(new, field)[0].to_owned();
                set(new, field, json!([first]));
            }
        }
    }
    if policy == "SingleStack" {
        for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if texts(new, field).len() == 2 {
                refuse(&format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                ));
            }
        }
    }
    infer_families(new, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut all: Vec<String> = texts(new, "ipFamilies").into_iter().map(str::to_owned).collect();
    if plain {
        if all.is_empty() {
            all.push(FAMILIES[0].to_owned());
        }
        if all.len() < 2 && policy != "SingleStack" {
            let other = if all[0] == FAMILIES[0] { FAMILIES[1] } else { FAMILIES[0] };
            all.push(other.to_owned());
        }
        set(new, "ipFamilies", json!(all));
        return Ok(());
    }
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(POLICY, policy.as_str(), detail));
    }
    for (index, family) in all.iter().enumerate().filter(|(_, family)| *family != FAMILIES[0]) {
        let field = format!("spec.ipFamilies[{index}]");
        errors.push(FieldError::invalid(field, family.as_str(), "not configured on this cluster"));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if all.is_empty() {
        set(new, "ipFamilies", json!([FAMILIES[0]]));
    }
    Ok(())
}

/// Addresses imply families.
fn infer_families(new: &mut Value, errors: &mut FieldErrors) {
    let mut all: Vec<String> = texts(new, "ipFamilies").into_iter().map(str::to_owned).collect();
    let given = all.len();
    for (index, ip) in texts(new, "clusterIPs").into_iter().enumerate() {
        if ip == "None" {
            break;
        }
        if index < all.len() {
            continue;
        }
        match sloppy_ip(ip) {
            Some(IpAddr::V4(_)) => all.push(FAMILIES[0].to_owned()),
            found => {
                let family = if found.is_some() { FAMILIES[1] } else { "unknown" };
                let detail = format!("{family} is not configured on this cluster");
                let field = format!("spec.clusterIPs[{index}]");
                errors.push(FieldError::invalid(field, new["spec"]["clusterIPs"].clone(), detail));
            }
        }
    }
    if all.len() > given {
        set(new, "ipFamilies", json!(all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: Value) -> Value {
        let mut spec = spec;
        if spec["type"].is_null() {
            spec["type"] = "ClusterIP".into();
        }
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec})
    }

    fn completed(spec: Value, old: Option<Value>) -> Result<Value, String> {
        let mut new = service(spec);
        initialise(&mut new, old.map(service).as_ref())
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        Ok(new["spec"].take())
    }

    #[test]
    fn a_service_gets_the_family_of_the_cluster() {
        let spec = completed(json!({}), None).unwrap();
        assert_eq!((&spec["ipFamilyPolicy"], &spec["ipFamilies"]), (&json!("SingleStack"), &json!(["IPv4"])));
        let spec = completed(json!({"clusterIP": "None"}), None).unwrap();
        assert_eq!(spec["clusterIPs"], json!(["None"]));
        assert_eq!(spec["ipFamilies"], json!(["IPv4", "IPv6"]), "anybody's endpoints");
        let spec = completed(json!({"clusterIP": "None", "selector": {"a": "b"}}), None).unwrap();
        assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
        let spec = completed(json!({"type": "ExternalName"}), None).unwrap();
        assert_eq!(spec, json!({"type": "ExternalName"}));
    }

    #[test]
    fn a_second_family_is_refused() {
        for (spec, message) in [
            (
                json!({"ipFamilyPolicy": "RequireDualStack"}),
                "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for \
                 dual-stack services",
            ),
            (
                json!({"ipFamilies": ["IPv6"]}),
                "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
            ),
            (
                json!({"clusterIP": "fd00::1"}),
                "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster",
            ),
            (
                json!({"ipFamilies": ["IPv4", "IPv6"]}),
                "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or \
                 'PreferDualStack' when multiple IP families are specified",
            ),
        ] {
            assert_eq!(completed(spec, None).unwrap_err(), message);
        }
        assert!(completed(json!({"ipFamilyPolicy": "PreferDualStack"}), None).is_ok());
    }

    #[test]
    fn what_was_allocated_is_restored() {
        let old = json!({"type": "NodePort", "clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "a", "port": 1, "nodePort": 30001}, {"name": "b", "port": 2, "nodePort": 30002}]});
        let new = json!({"type": "NodePort",
            "ports": [{"name": "a", "port": 7}, {"name": "c", "port": 8, "nodePort": 30002}, {"name": "b", "port": 2}]});
        let spec = completed(new, Some(old)).unwrap();
        assert_eq!((&spec["clusterIP"], &spec["clusterIPs"]), (&json!("10.0.0.5"), &json!(["10.0.0.5"])));
        let ports: Vec<_> =
            spec["ports"].as_array().unwrap().iter().map(|port| port["nodePort"].clone()).collect();
        assert_eq!(ports, [json!(30001), json!(30002), json!(null)]);
    }

    #[test]
    fn a_changed_first_address_changes_the_list() {
        let old =
            json!({"clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5"], "ipFamilyPolicy": "SingleStack"});
        let new = json!({"clusterIP": "10.0.0.6", "clusterIPs": ["10.0.0.5"]});
        assert_eq!(completed(new, Some(old)).unwrap()["clusterIPs"], json!(["10.0.0.6"]));
    }
}
