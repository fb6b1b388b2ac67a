//! Expected objects in the versions of ours, and the normal form in which both are compared.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::conversion::Converter;
use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_capi_types::v1beta1;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachineTemplate};
use capstan_object::{Object, to_value};
use regex::Regex;
use serde_json::{Map, Value};

/// Kinds whose names end with a number that grows.
const TEMPLATES: [&str; 2] = ["CloudStackMachineTemplate", "KubeadmConfigTemplate"];

/// The documents of a text that are objects, without null fields: they are empty texts and absent values in Go.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let mut objects: Vec<Value> = documents.into_iter().filter(Value::is_object).collect();
    objects.iter_mut().for_each(without_nulls);
    Ok(objects)
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// What a type keeps of an object.
pub fn read<T: Object>(value: &Value) -> Result<Value> {
    Ok(to_value(&T::deserialize(value)?)?)
}

/// Paths and values that are not in what a type kept. Values that say nothing do not count.
pub fn lost(given: &Value, kept: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    missing("", given, kept, &mut found);
    found
}

fn missing(path: &str, given: &Value, kept: &Value, found: &mut Vec<(String, Value)>) {
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => {
            for (name, value) in given {
                let kept = kept.get(name).unwrap_or(&Value::Null);
                missing(&format!("{path}/{name}"), value, kept, found);
            }
        }
        (Value::Array(given), Value::Array(kept)) => {
            for (at, value) in given.iter().enumerate() {
                missing(&format!("{path}/{at}"), value, kept.get(at).unwrap_or(&Value::Null), found);
            }
        }
        (given, Value::Null) if !says_nothing(given) => found.push((path.to_owned(), given.clone())),
        _ => {}
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(fields) => fields.values().all(says_nothing),
    }
}

/// Expected objects of a file, in the versions of ours, and what no type of ours knows: object, path and value.
pub struct Expected {
    pub objects: Vec<Value>,
    pub unknown: Vec<(String, String, Value)>,
}

/// Reads the objects of a file.
pub fn expected(text: &str) -> Result<Expected> {
    let mut objects = documents(text)?;
    name_templates(&mut objects);
    let mut unknown = Vec::new();
    for object in &mut objects {
        let (version, kind) = (text_of(&object["apiVersion"]), text_of(&object["kind"]));
        let keep: fn(&Value) -> Result<Value> = match (version.as_str(), kind.as_str()) {
            ("cluster.x-k8s.io/v1beta1", "Cluster") => read::<v1beta1::core::Cluster>,
            ("cluster.x-k8s.io/v1beta2", "Cluster") => read::<Cluster>,
            ("cluster.x-k8s.io/v1beta1", "MachineDeployment") => read::<v1beta1::core::MachineDeployment>,
            ("cluster.x-k8s.io/v1beta2", "MachineDeployment") => read::<MachineDeployment>,
            ("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate") => {
                read::<v1beta1::bootstrap::KubeadmConfigTemplate>
            }
            ("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate") => read::<KubeadmConfigTemplate>,
            ("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane") => {
                read::<v1beta1::controlplane::KubeadmControlPlane>
            }
            ("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane") => read::<KubeadmControlPlane>,
            ("infrastructure.cluster.x-k8s.io/v1beta3", "CloudStackCluster") => read::<CloudStackCluster>,
            ("infrastructure.cluster.x-k8s.io/v1beta3", "CloudStackMachineTemplate") => {
                read::<CloudStackMachineTemplate>
            }
            // Kinds that we do not have; the comparison reports them.
            _ => continue,
        };
        let kept = keep(object).with_context(|| format!("{version} {kind}"))?;
        let name = key(object);
        unknown.extend(lost(object, &kept).into_iter().map(|(path, value)| (name.clone(), path, value)));
        *object = match version.ends_with("/v1beta1") {
            true => Converter::default().convert(object.take(), "v1beta2")?,
            false => kept,
        };
    }
    Ok(Expected { objects, unknown })
}

/// Some tests generate workers without names of templates. They get the first name of their only deployment's.
fn name_templates(objects: &mut [Value]) {
    let deployments: Vec<String> = objects
        .iter()
        .filter(|object| object["kind"] == "MachineDeployment")
        .map(|object| format!("{}-1", text_of(&object["metadata"]["name"])))
        .collect();
    let [first] = deployments.as_slice() else { return };
    for object in objects {
        if object["kind"] == "MachineDeployment" {
            for place in ["/spec/template/spec/bootstrap/configRef", "/spec/template/spec/infrastructureRef"]
            {
                if let Some(Value::Object(reference)) = object.pointer_mut(place) {
                    reference.entry("name").or_insert_with(|| first.as_str().into());
                }
            }
        } else if let Some(Value::Object(meta)) = object.get_mut("metadata") {
            meta.entry("name").or_insert_with(|| first.as_str().into());
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Kind and name without a number.
fn key(object: &Value) -> String {
    let (kind, name) = (text_of(&object["kind"]), text_of(&object["metadata"]["name"]));
    match TEMPLATES.contains(&kind.as_str()) {
        true => format!("{kind} {}", stem(&name)),
        false => format!("{kind} {name}"),
    }
}

/// The name of a template without its number. Releases that named them by time had one more word in it.
fn stem(name: &str) -> String {
    static NUMBER: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(-template)?-(\d+|original)$").ok());
    NUMBER.as_ref().map_or_else(|| name.to_owned(), |number| number.replace(name, "").into_owned())
}

/// Objects with the defaults of Cluster API's webhooks, in normal form, by kind and name.
pub fn normal(objects: &[Value]) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for object in objects {
        let mut object = object.clone();
        let (version, kind) = (text_of(&object["apiVersion"]), text_of(&object["kind"]));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let rules = capstan_capi_types::admission::rules(group, &kind)
            .or_else(|| capstan_cloudstack_types::admission::rules(group, &kind));
        if let Some(rules) = rules {
            (rules.default)(&mut object, None).with_context(|| key(&object))?;
        }
        let name = key(&object);
        all.insert(name, normal_value("", object).unwrap_or_default());
    }
    Ok(all)
}

/// Lists of named things become maps, so that their order does not count; files are read as what they contain; template
/// names lose their number. `None` for a value that says nothing. An empty list of taints does: it stands for no taints
/// instead of kubeadm's. So does an empty label.
fn normal_value(field: &str, value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(items) if field == "taints" && items.is_empty() => Some("none".into()),
        Value::Array(items) => {
            if let Some(named) = by_name(&items) {
                return normal_value(field, Value::Object(named));
            }
            let items: Vec<Value> =
                items.into_iter().map(|item| normal_value("", item).unwrap_or_default()).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(mut fields) => {
            fields.remove("creationTimestamp");
            let is_template =
                fields.get("kind").is_some_and(|kind| TEMPLATES.iter().any(|known| kind == known));
            if is_template && let Some(Value::String(name)) = fields.get_mut("name") {
                *name = stem(name);
            }
            if is_template
                && let Some(Value::String(name)) =
                    fields.get_mut("metadata").and_then(|it| it.get_mut("name"))
            {
                *name = stem(name);
            }
            if fields.contains_key("path")
                && let Some(Value::String(text)) = fields.get_mut("content")
            {
                let content = content(text);
                fields.insert("content".to_owned(), content);
            }
            if field == "annotations" {
                fields.retain(|name, _| {
                    !name.starts_with("conversion.cluster.x-k8s.io/")
                        && name != "cluster.x-k8s.io/conversion-data"
                });
            }
            let marks = ["labels", "annotations", "matchLabels"].contains(&field);
            let fields: Map<String, Value> = fields
                .into_iter()
                .filter_map(|(name, value)| match value {
                    Value::String(_) if marks => Some((name, value)),
                    value => Some((name.clone(), normal_value(&name, value)?)),
                })
                .collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        other => Some(other),
    }
}

/// The items by name or path, if each has one of its own. Flags and variables are their values.
fn by_name(items: &[Value]) -> Option<Map<String, Value>> {
    let mut named = Map::new();
    for item in items {
        let fields = item.as_object()?;
        let name = ["name", "path"].iter().find_map(|field| fields.get(*field)?.as_str())?;
        let is_setting =
            fields.contains_key("name") && fields.keys().all(|key| key == "name" || key == "value");
        let value = match is_setting {
            true => fields.get("value").cloned().unwrap_or_default(),
            false => item.clone(),
        };
        if named.insert(name.to_owned(), value).is_some() {
            return None;
        }
    }
    (!named.is_empty()).then_some(named)
}

/// The content of a file: an object if it is YAML of one, else its lines without spaces at their ends.
fn content(text: &str) -> Value {
    match serde_saphyr::from_str::<Value>(text) {
        Ok(value) if value.is_object() => value,
        _ => {
            let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
            lines.join("\n").into()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_numbers_and_layout_do_not_count_and_values_do() {
        let object = |number: &str, args: Value, content: &str| {
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": "KubeadmConfigTemplate",
                "metadata": {"name": format!("test-md-0-{number}"), "creationTimestamp": null, "labels": {"role": ""}},
                "spec": {"files": [{"path": "/a", "content": content}], "args": args, "taints": [], "empty": ""},
            })
        };
        let args = json!([{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]);
        let turned = json!([{"name": "b", "value": "2"}, {"name": "a", "value": "1"}]);
        let one = normal(&[object("template-1234567890000", args.clone(), "x: {y: [1]}\n")]).unwrap();
        assert_eq!(one, normal(&[object("1", turned, "x:\n  y:\n  - 1\n")]).unwrap());
        assert_eq!(one["KubeadmConfigTemplate test-md-0"]["spec"]["taints"], "none");
        assert_eq!(one["KubeadmConfigTemplate test-md-0"]["metadata"]["labels"], json!({"role": ""}));
        for other in [object("1", args.clone(), "x: {y: [2]}\n"), object("1", json!([]), "x: {y: [1]}\n")] {
            assert_ne!(one, normal(&[other]).unwrap());
        }
    }

    #[test]
    fn what_no_type_of_ours_knows_is_reported() {
        let text = "\
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: test, namespace: a}
spec: {managedExternalEtcdRef: {kind: EtcdadmCluster, name: test-etcd}, paused: false}
";
        let found = expected(text).unwrap();
        let places: Vec<&str> = found.unknown.iter().map(|(_, path, _)| path.as_str()).collect();
        assert_eq!(places, ["/spec/managedExternalEtcdRef"]);
        assert_eq!(found.objects[0]["apiVersion"], "cluster.x-k8s.io/v1beta2");
    }

    #[test]
    fn templates_without_names_are_named_after_their_deployment() {
        let text = "\
kind: KubeadmConfigTemplate
metadata: {name: , namespace: a}
---
kind: MachineDeployment
metadata: {name: test-md-0}
spec: {template: {spec: {infrastructureRef: {kind: CloudStackMachineTemplate, name: }}}}
";
        let mut objects = documents(text).unwrap();
        name_templates(&mut objects);
        assert_eq!(objects[0]["metadata"]["name"], "test-md-0-1");
        assert_eq!(objects[1]["spec"]["template"]["spec"]["infrastructureRef"]["name"], "test-md-0-1");
    }
}
