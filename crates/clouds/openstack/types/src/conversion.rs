//! v1beta1 into v1beta2 and back, without loss.
//!
//! What a version cannot say travels in an annotation on the object, in the words of the version that can. CAPO uses the
//! same annotation in both directions.

use capstan_capi_types::conversion::{ConversionError, without_loss};
use capstan_capi_types::core::annotation::CONVERSION_DATA;
use capstan_object::Object;
use serde_json::{Map, Value, json};

use crate::{GROUP, v1beta1, v1beta2};

type Step = fn(&mut Value);
type Read = fn(Value) -> serde_json::Result<Value>;

/// How v1beta1 of a kind differs from v1beta2.
struct Pair {
    kind: &'static str,
    up: Step,
    down: Step,
    read_v1beta1: Read,
    read_v1beta2: Read,
}

fn read<T: Object>(value: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value)?)
}

fn pair<Old: Object, New: Object>(up: Step, down: Step) -> Pair {
    Pair { kind: New::KIND.kind, up, down, read_v1beta1: read::<Old>, read_v1beta2: read::<New> }
}

fn all() -> [Pair; 4] {
    [
        pair::<v1beta1::OpenStackCluster, v1beta2::OpenStackCluster>(cluster_up, cluster_down),
        pair::<v1beta1::OpenStackClusterTemplate, v1beta2::OpenStackClusterTemplate>(
            |object| at(object, "/spec/template/spec", cluster_spec_up),
            |object| at(object, "/spec/template/spec", cluster_spec_down),
        ),
        pair::<v1beta1::OpenStackMachine, v1beta2::OpenStackMachine>(machine_up, machine_down),
        pair::<v1beta1::OpenStackMachineTemplate, v1beta2::OpenStackMachineTemplate>(
            |object| {
                at(object, "/spec/template/spec", machine_spec_up);
                at(object, "/status", conditions_up);
            },
            |object| {
                at(object, "/spec/template/spec", machine_spec_down);
                at(object, "/status", conditions_down);
            },
        ),
    ]
}

/// Whether a kind is one of those that are converted here.
pub fn knows(group: &str, kind: &str) -> bool {
    group == GROUP && all().iter().any(|pair| pair.kind == kind)
}

/// Groups and kinds that exist in several versions.
pub fn kinds() -> Vec<(&'static str, &'static str)> {
    all().iter().map(|pair| (GROUP, pair.kind)).collect()
}

/// The object in another version.
pub fn convert(object: Value, version: &str) -> Result<Value, ConversionError> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, from) = api_version.split_once('/').unwrap_or(("", &api_version));
    if from == version {
        return Ok(object);
    }
    let all = all();
    let known = all.iter().find(|pair| pair.kind == kind).filter(|_| group == GROUP);
    let Some(pair) = known else {
        return Err(unknown(&kind, from, version));
    };
    let rise = |mut body: Value| {
        (pair.up)(&mut body);
        shaped(pair, "v1beta2", (pair.read_v1beta2)(body))
    };
    let sink = |mut body: Value| {
        (pair.down)(&mut body);
        shaped(pair, "v1beta1", (pair.read_v1beta1)(body))
    };
    let object = without_false_ready(object);
    let mut converted = match (from, version) {
        ("v1beta1", "v1beta2") => without_loss(object, CONVERSION_DATA, CONVERSION_DATA, rise, sink)?,
        ("v1beta2", "v1beta1") => without_loss(object, CONVERSION_DATA, CONVERSION_DATA, sink, rise)?,
        _ => return Err(unknown(&kind, from, version)),
    };
    // Programs that follow the contract v1beta1 find the field whatever its value is.
    let has_ready = version == "v1beta1" && kind != "OpenStackMachineTemplate";
    if has_ready && let Some(Value::Object(status)) = converted.get_mut("status") {
        status.entry("ready").or_insert_with(|| false.into());
    }
    if let Value::Object(fields) = &mut converted {
        fields.insert("apiVersion".to_owned(), format!("{GROUP}/{version}").into());
        fields.insert("kind".to_owned(), kind.into());
    }
    Ok(converted)
}

/// A machine of v1beta1 that says that it is not ready says no more than one that says nothing.
fn without_false_ready(mut object: Value) -> Value {
    if object["kind"] == "OpenStackMachine"
        && let Some(Value::Object(status)) = object.get_mut("status")
        && status.get("ready") == Some(&Value::Bool(false))
    {
        status.remove("ready");
    }
    object
}

fn unknown(kind: &str, from: &str, to: &str) -> ConversionError {
    ConversionError::Unknown { kind: kind.to_owned(), from: from.to_owned(), to: to.to_owned() }
}

fn shaped(
    pair: &Pair,
    version: &'static str,
    read: serde_json::Result<Value>,
) -> Result<Value, ConversionError> {
    read.map_err(|source| ConversionError::Shape { kind: pair.kind.to_owned(), version, source })
}

/// Applies a step to the map at a path, if there is one.
fn at(object: &mut Value, path: &str, step: fn(&mut Map<String, Value>)) {
    if let Some(Value::Object(fields)) = object.pointer_mut(path) {
        step(fields);
    }
}

/// Applies a step to every map of the list at a path.
fn each(object: &mut Value, path: &str, step: fn(&mut Map<String, Value>)) {
    if let Some(Value::Array(list)) = object.pointer_mut(path) {
        list.iter_mut().filter_map(Value::as_object_mut).for_each(step);
    }
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

/// A switch whose meaning was turned round.
fn invert(fields: &mut Map<String, Value>, from: &str, to: &str) {
    match fields.remove(from) {
        Some(Value::Bool(value)) => {
            fields.insert(to.to_owned(), (!value).into());
        }
        // Kept, so that decoding rejects it with its name.
        Some(other) if !other.is_null() => {
            fields.insert(to.to_owned(), other);
        }
        _ => {}
    }
}

/// Moves fields into a map below, which is made if there is one to move.
fn gather(fields: &mut Map<String, Value>, into: &str, names: &[(&str, &str)]) {
    let mut inside = Map::new();
    for (from, to) in names {
        if let Some(value) = fields.remove(*from) {
            inside.insert((*to).to_owned(), value);
        }
    }
    if !inside.is_empty() {
        fields.insert(into.to_owned(), Value::Object(inside));
    }
}

/// The way back of [`gather`].
fn scatter(fields: &mut Map<String, Value>, from: &str, names: &[(&str, &str)]) {
    let Some(Value::Object(mut inside)) = fields.remove(from) else { return };
    for (to, name) in names {
        if let Some(value) = inside.remove(*name) {
            fields.insert((*to).to_owned(), value);
        }
    }
}

/// Names in v1beta1 and below `apiServer` in v1beta2.
const API_SERVER: &[(&str, &str)] = &[
    ("apiServerPort", "port"),
    ("apiServerFixedIP", "fixedIP"),
    ("apiServerFloatingIP", "floatingIP"),
    ("enableFloatingIP", "enableFloatingIP"),
    ("apiServerLoadBalancer", "managedLoadBalancer"),
];
/// Names in v1beta1 and below `managedNetwork` in v1beta2.
const MANAGED_NETWORK: &[(&str, &str)] =
    &[("networkMTU", "mtu"), ("enablePortSecurity", "enablePortSecurity")];
/// Names in v1beta1 and below `managedRouter` in v1beta2.
const MANAGED_ROUTER: &[(&str, &str)] = &[("externalRouterIPs", "externalIPs")];

fn cluster_spec_up(spec: &mut Map<String, Value>) {
    invert(spec, "disableAPIServerFloatingIP", "enableFloatingIP");
    gather(spec, "apiServer", API_SERVER);
    invert(spec, "disablePortSecurity", "enablePortSecurity");
    gather(spec, "managedNetwork", MANAGED_NETWORK);
    if spec.get("externalRouterIPs").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        spec.remove("externalRouterIPs");
    }
    gather(spec, "managedRouter", MANAGED_ROUTER);
    invert(spec, "disableExternalNetwork", "enableExternalNetwork");
    if let Some(Value::Object(groups)) = spec.get_mut("managedSecurityGroups") {
        rename(groups, "allNodesSecurityGroupRules", "clusterNodesSecurityGroupRules");
    }
    if let Some(bastion) = spec.get_mut("bastion") {
        at(bastion, "/spec", machine_spec_up);
    }
}

fn cluster_spec_down(spec: &mut Map<String, Value>) {
    scatter(spec, "apiServer", API_SERVER);
    invert(spec, "enableFloatingIP", "disableAPIServerFloatingIP");
    scatter(spec, "managedNetwork", MANAGED_NETWORK);
    invert(spec, "enablePortSecurity", "disablePortSecurity");
    scatter(spec, "managedRouter", MANAGED_ROUTER);
    invert(spec, "enableExternalNetwork", "disableExternalNetwork");
    if let Some(Value::Object(groups)) = spec.get_mut("managedSecurityGroups") {
        rename(groups, "clusterNodesSecurityGroupRules", "allNodesSecurityGroupRules");
    }
    if let Some(bastion) = spec.get_mut("bastion") {
        at(bastion, "/spec", machine_spec_down);
    }
}

fn machine_spec_up(spec: &mut Map<String, Value>) {
    let (id, name) = (spec.remove("flavorID"), spec.remove("flavor"));
    // An id beats a name, as in CAPO.
    let flavor = match (id, name) {
        (Some(id), _) => Some(json!({ "id": id })),
        (None, Some(name)) => Some(json!({ "filter": { "name": name } })),
        (None, None) => None,
    };
    if let Some(flavor) = flavor {
        spec.insert("flavor".to_owned(), flavor);
    }
    if let Some(ports) = spec.get_mut("ports") {
        each(ports, "", port_up);
    }
}

fn machine_spec_down(spec: &mut Map<String, Value>) {
    if let Some(flavor) = spec.remove("flavor") {
        let text = |path: &str| flavor.pointer(path).filter(|text| **text != json!("")).cloned();
        if let Some(id) = text("/id") {
            spec.insert("flavorID".to_owned(), id);
        } else if let Some(name) = text("/filter/name") {
            spec.insert("flavor".to_owned(), name);
        }
    }
    if let Some(ports) = spec.get_mut("ports") {
        each(ports, "", port_down);
    }
}

/// Ports of a machine as the OpenStackServer of the machine has them, which keeps to v1beta1.
pub fn server_ports(ports: &[v1beta2::PortOpts]) -> serde_json::Result<Vec<v1beta1::PortOpts>> {
    let mut ports = serde_json::to_value(ports)?;
    each(&mut ports, "", port_down);
    serde_json::from_value(ports)
}

fn port_up(port: &mut Map<String, Value>) {
    invert(port, "disablePortSecurity", "enablePortSecurity");
}

fn port_down(port: &mut Map<String, Value>) {
    invert(port, "enablePortSecurity", "disablePortSecurity");
}

fn cluster_up(object: &mut Value) {
    at(object, "/spec", cluster_spec_up);
    each(object, "/status/bastion/resolved/ports", port_up);
    at(object, "/status", |status| {
        conditions_up(status);
        rename(status, "apiServerLoadBalancer", "apiServerManagedLoadBalancer");
        if let Some(Value::Object(domains)) = status.remove("failureDomains") {
            let list: Vec<Value> = domains
                .into_iter()
                .map(|(name, mut domain)| {
                    domain["name"] = name.into();
                    domain
                })
                .collect();
            status.insert("failureDomains".to_owned(), list.into());
        }
    });
}

fn cluster_down(object: &mut Value) {
    at(object, "/spec", cluster_spec_down);
    each(object, "/status/bastion/resolved/ports", port_down);
    at(object, "/status", |status| {
        ready_down(status);
        conditions_down(status);
        rename(status, "apiServerManagedLoadBalancer", "apiServerLoadBalancer");
        if let Some(Value::Array(domains)) = status.remove("failureDomains") {
            let map: Map<String, Value> = domains
                .into_iter()
                .filter_map(|mut domain| {
                    let name = domain.as_object_mut()?.remove("name")?;
                    Some((name.as_str()?.to_owned(), domain))
                })
                .collect();
            status.insert("failureDomains".to_owned(), Value::Object(map));
        }
    });
}

fn machine_up(object: &mut Value) {
    at(object, "/spec", machine_spec_up);
    each(object, "/status/resolved/ports", port_up);
    at(object, "/status", conditions_up);
}

fn machine_down(object: &mut Value) {
    at(object, "/spec", machine_spec_down);
    each(object, "/status/resolved/ports", port_down);
    at(object, "/status", |status| {
        ready_down(status);
        conditions_down(status);
    });
}

/// v1beta1 leaves the reason of a true condition out; v1beta2 does not accept a condition without one.
fn conditions_up(status: &mut Map<String, Value>) {
    for condition in conditions(status) {
        let kind = condition.get("type").cloned().unwrap_or_default();
        let reason = condition.entry("reason").or_insert_with(|| "".into());
        if *reason == "" {
            *reason = kind;
        }
    }
}

fn conditions_down(status: &mut Map<String, Value>) {
    for condition in conditions(status) {
        if condition.get("status") == Some(&json!("True")) && condition.get("reason") == condition.get("type")
        {
            condition.remove("reason");
        }
    }
}

fn conditions(status: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let list = status.get_mut("conditions").and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// v1beta1 says in a field what v1beta2 says in a condition.
fn ready_down(status: &mut Map<String, Value>) {
    let ready = conditions(status).any(|condition| {
        condition.get("type") == Some(&json!("Ready")) && condition.get("status") == Some(&json!("True"))
    });
    status.insert("ready".to_owned(), ready.into());
}
