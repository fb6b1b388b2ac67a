//! v1beta1 and v1beta2 into v1beta3 and back, without loss.
//!
//! What a version cannot say travels in an annotation, CAPC's own where v1beta3 is the one that says more. CAPC asks
//! CloudStack for the id of a zone that a v1beta1 cluster names; here the failure domain is called by the zone's name
//! then, because a conversion must not depend on a cloud.

use capstan_capi_types::conversion::{ConversionError, without_loss};
use capstan_capi_types::core::annotation::CONVERSION_DATA;
use capstan_object::Object;
use serde_json::{Map, Value, json};

use crate::{GROUP, v1beta1, v1beta2, v1beta3};

/// The Secret with the credentials of v1beta1 clusters.
const GLOBAL_SECRET: &str = "global";

type Step = fn(&mut Value, &str);
type Read = fn(Value) -> serde_json::Result<Value>;

/// How an earlier version of a kind differs from v1beta3.
struct Earlier {
    kind: &'static str,
    version: &'static str,
    up: Step,
    down: Step,
    read_earlier: Read,
    read_stored: Read,
}

fn read<T: Object>(value: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value)?)
}

fn earlier<Old: Object, New: Object>(up: Step, down: Step) -> Earlier {
    let (kind, version) = (Old::KIND.kind, Old::KIND.version);
    Earlier { kind, version, up, down, read_earlier: read::<Old>, read_stored: read::<New> }
}

fn all() -> [Earlier; 13] {
    use v1beta3 as new;
    [
        earlier::<v1beta1::CloudStackCluster, new::CloudStackCluster>(zones_up, zones_down),
        earlier::<v1beta1::CloudStackMachine, new::CloudStackMachine>(machine_up, machine_down),
        earlier::<v1beta1::CloudStackMachineTemplate, new::CloudStackMachineTemplate>(
            template_up,
            template_down,
        ),
        earlier::<v1beta1::CloudStackIsolatedNetwork, new::CloudStackIsolatedNetwork>(same, same),
        earlier::<v1beta1::CloudStackAffinityGroup, new::CloudStackAffinityGroup>(same, same),
        earlier::<v1beta1::CloudStackMachineStateChecker, new::CloudStackMachineStateChecker>(same, same),
        earlier::<v1beta2::CloudStackMachineStateChecker, new::CloudStackMachineStateChecker>(same, same),
        earlier::<v1beta2::CloudStackCluster, new::CloudStackCluster>(same, domains_down),
        earlier::<v1beta2::CloudStackFailureDomain, new::CloudStackFailureDomain>(same, same),
        earlier::<v1beta2::CloudStackMachine, new::CloudStackMachine>(same, same),
        earlier::<v1beta2::CloudStackMachineTemplate, new::CloudStackMachineTemplate>(no_null, same),
        earlier::<v1beta2::CloudStackIsolatedNetwork, new::CloudStackIsolatedNetwork>(same, same),
        earlier::<v1beta2::CloudStackAffinityGroup, new::CloudStackAffinityGroup>(same, same),
    ]
}

/// Whether a kind is one of those that are converted here.
pub fn knows(group: &str, kind: &str) -> bool {
    group == GROUP && all().iter().any(|earlier| earlier.kind == kind)
}

/// Groups and kinds that exist in several versions.
pub fn kinds() -> Vec<(&'static str, &'static str)> {
    let mut kinds: Vec<_> = all().iter().map(|earlier| (GROUP, earlier.kind)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// The object in another version.
pub fn convert(object: Value, version: &str) -> Result<Value, ConversionError> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (_, from) = api_version.split_once('/').unwrap_or(("", &api_version));
    match (from, version) {
        _ if from == version => Ok(object),
        (_, "v1beta3") => between(object, &kind, from, version),
        ("v1beta3", _) => between(object, &kind, from, version),
        _ => convert(between(object, &kind, from, "v1beta3")?, version),
    }
}

fn between(object: Value, kind: &str, from: &str, to: &str) -> Result<Value, ConversionError> {
    let up = to == "v1beta3";
    let other = if up { from } else { to };
    let all = all();
    let known = all.iter().find(|earlier| (earlier.kind, earlier.version) == (kind, other));
    let Some(earlier) = known.filter(|_| api_group(&object) == GROUP) else {
        return Err(ConversionError::Unknown {
            kind: kind.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        });
    };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let rise = |mut body: Value| {
        (earlier.up)(&mut body, &namespace);
        shaped(earlier, "v1beta3", (earlier.read_stored)(body))
    };
    let sink = |mut body: Value| {
        (earlier.down)(&mut body, &namespace);
        shaped(earlier, earlier.version, (earlier.read_earlier)(body))
    };
    let earlier_data = format!("conversion.{GROUP}/{other}-data");
    let mut converted = match up {
        true => without_loss(object, CONVERSION_DATA, &earlier_data, rise, sink)?,
        false => without_loss(object, &earlier_data, CONVERSION_DATA, sink, rise)?,
    };
    if let Value::Object(fields) = &mut converted {
        fields.insert("apiVersion".to_owned(), format!("{GROUP}/{to}").into());
        fields.insert("kind".to_owned(), kind.into());
    }
    Ok(converted)
}

fn api_group(object: &Value) -> &str {
    object["apiVersion"].as_str().and_then(|text| text.split_once('/')).map_or("", |(group, _)| group)
}

fn shaped(
    earlier: &Earlier,
    version: &'static str,
    read: serde_json::Result<Value>,
) -> Result<Value, ConversionError> {
    read.map_err(|source| ConversionError::Shape { kind: earlier.kind.to_owned(), version, source })
}

/// Nothing moved: reading it as the other version's type is enough.
fn same(_: &mut Value, _: &str) {}

/// v1beta2 allows `metadata: null` in templates.
fn no_null(object: &mut Value, _: &str) {
    if let Some(Value::Object(template)) = object.pointer_mut("/spec/template") {
        template.retain(|_, value| !value.is_null());
    }
}

/// The contract v1beta1 has failure domains by name.
fn domains_down(object: &mut Value, _: &str) {
    let Some(Value::Array(list)) = object["status"].get("failureDomains").cloned() else { return };
    let map: Map<String, Value> = list
        .into_iter()
        .filter_map(|mut domain| {
            let name = domain.as_object_mut()?.remove("name")?;
            Some((name.as_str()?.to_owned(), domain))
        })
        .collect();
    object["status"]["failureDomains"] = Value::Object(map);
}

fn rename(object: &mut Value, path: &str, from: &str, to: &str) {
    if let Some(Value::Object(fields)) = object.pointer_mut(path)
        && let Some(value) = fields.remove(from)
    {
        fields.insert(to.to_owned(), value);
    }
}

fn machine_up(object: &mut Value, _: &str) {
    rename(object, "/spec", "affinitygroupids", "affinityGroupIDs");
    rename(object, "/spec", "cloudstackaffinityref", "cloudstackAffinityRef");
}

fn machine_down(object: &mut Value, _: &str) {
    rename(object, "/spec", "affinityGroupIDs", "affinitygroupids");
    rename(object, "/spec", "cloudstackAffinityRef", "cloudstackaffinityref");
}

fn template_up(object: &mut Value, namespace: &str) {
    if let Some(template) = object.pointer_mut("/spec/template") {
        machine_up(template, namespace);
    }
}

fn template_down(object: &mut Value, namespace: &str) {
    if let Some(template) = object.pointer_mut("/spec/template") {
        machine_down(template, namespace);
    }
}

/// One failure domain per zone, called by the zone's id, with the keys that v1beta1 takes by convention.
fn zones_up(object: &mut Value, namespace: &str) {
    let spec = object["spec"].take();
    let domains: Vec<Value> = spec["zones"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|zone| {
            let id = zone["id"].as_str().unwrap_or_default();
            let name = match id {
                "" => dns_name(zone["name"].as_str().unwrap_or_default()),
                id => id.to_owned(),
            };
            let mut domain = json!({
                "name": name,
                "zone": zone,
                "acsEndpoint": { "name": GLOBAL_SECRET, "namespace": namespace },
            });
            for key in ["account", "domain"] {
                if let Some(value) = spec.get(key) {
                    domain[key] = value.clone();
                }
            }
            domain
        })
        .collect();
    object["spec"] = json!({
        "failureDomains": domains,
        "controlPlaneEndpoint": spec["controlPlaneEndpoint"],
    });
    drop_null(object, "controlPlaneEndpoint");
}

/// The zones of all failure domains, with the account of the first.
fn zones_down(object: &mut Value, namespace: &str) {
    domains_down(object, namespace);
    let spec = object["spec"].take();
    let domains = spec["failureDomains"].as_array().cloned().unwrap_or_default();
    let mut earlier = json!({
        "zones": domains.iter().map(|domain| domain["zone"].clone()).collect::<Vec<_>>(),
        "controlPlaneEndpoint": spec["controlPlaneEndpoint"],
    });
    for key in ["account", "domain"] {
        if let Some(value) = domains.first().and_then(|domain| domain.get(key)) {
            earlier[key] = value.clone();
        }
    }
    object["spec"] = earlier;
    drop_null(object, "controlPlaneEndpoint");
}

fn drop_null(object: &mut Value, key: &str) {
    if let Some(Value::Object(spec)) = object.get_mut("spec")
        && spec.get(key).is_some_and(Value::is_null)
    {
        spec.remove(key);
    }
}

/// The name of a zone as a failure domain can have it.
fn dns_name(zone: &str) -> String {
    let name: String = zone
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' { c } else { '-' })
        .collect();
    name.trim_matches(['-', '.']).to_owned()
}
