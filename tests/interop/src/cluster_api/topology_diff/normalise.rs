//! Removes from objects what differs between planes and runs: generated suffixes, uids, times, versions.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::roles::{Roles, text};

const OWNED: &str = "topology.cluster.x-k8s.io/owned";
/// Length of a generated suffix.
const SUFFIX: usize = 5;

/// Objects of a namespace in normal form, by kind and normal name. A name that is the same on the other side stays; in
/// any other the suffix gives way to the role, wherever it is mentioned.
pub fn normalised(objects: &[Value], own: &Roles, others: &Roles) -> BTreeMap<String, Value> {
    let mut names: Vec<(String, String)> = own
        .iter()
        .filter(|(role, named)| others.get(*role).is_none_or(|other| other.name != named.name))
        .map(|(role, named)| (named.name.clone(), token(&named.name, role)))
        .collect();
    let is_known = |name: &str| own.values().any(|named| named.name == name);
    let relevant: Vec<&Value> = objects.iter().filter(|object| is_relevant(object)).collect();
    for object in &relevant {
        let name = text(&object["metadata"]["name"]);
        if object["metadata"]["labels"][OWNED].is_string() && object["kind"] != "Cluster" && !is_known(&name)
        {
            names.push((name.clone(), token(&name, "unused")));
        }
    }
    // A name may be the beginning of another one.
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let owners: BTreeMap<String, String> = objects
        .iter()
        .map(|object| (text(&object["metadata"]["uid"]), text(&object["metadata"]["name"])))
        .collect();
    let mut unused: Vec<(String, Value)> = Vec::new();
    let mut normal = BTreeMap::new();
    for object in relevant {
        let mut object = parts(object, &owners);
        rename(&mut object, &names);
        let name = text(&object["metadata"]["name"]);
        let key = format!("{} {name}", text(&object["kind"]));
        if name.ends_with("<unused>") {
            unused.push((key, object));
        } else {
            normal.insert(key, object);
        }
    }
    unused.sort_by_key(|(key, object)| format!("{key} {object}"));
    for (at, (key, object)) in unused.into_iter().enumerate() {
        normal.insert(format!("{key} {at}"), object);
    }
    normal
}

/// Machines' own objects have the labels of the topology too, but are not part of it.
fn is_relevant(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    !owners.into_iter().any(|owner| owner["kind"] == "Machine" || owner["kind"] == "MachineSet")
}

fn token(name: &str, role: &str) -> String {
    let kept = name.len().saturating_sub(SUFFIX);
    format!("{}<{role}>", name.get(..kept).unwrap_or_default())
}

/// What is compared of an object.
fn parts(object: &Value, owners: &BTreeMap<String, String>) -> Value {
    let meta = &object["metadata"];
    let sorted = |value: &Value| {
        let mut items = value.as_array().cloned().unwrap_or_default();
        items.sort_by_key(ToString::to_string);
        Value::Array(items)
    };
    let mut references = meta["ownerReferences"].clone();
    for reference in references.as_array_mut().into_iter().flatten() {
        let uid = text(&reference["uid"]);
        reference["uid"] = owners.get(&uid).map_or("of nothing here", String::as_str).into();
    }
    let map = |value: &Value| Value::Object(value.as_object().cloned().unwrap_or_default());
    let mut normal = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {
            "name": meta["name"],
            "labels": map(&meta["labels"]),
            "annotations": map(&meta["annotations"]),
            "ownerReferences": sorted(&references),
            "finalizers": sorted(&meta["finalizers"]),
            "isBeingDeleted": meta["deletionTimestamp"].is_string(),
        },
        "spec": object["spec"],
    });
    let conditions: &[&str] = match object["kind"].as_str() {
        Some("Cluster") => &["TopologyReconciled"],
        Some("ClusterClass") => {
            normal["status"]["variables"] = object["status"]["variables"].clone();
            &["VariablesReady", "RefVersionsUpToDate"]
        }
        _ => &[],
    };
    if object["kind"] == "Cluster" {
        for part in ["controlPlane", "workers"] {
            normal["status"][part]["upgradePlan"] = object["status"][part]["upgradePlan"].clone();
        }
    }
    for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
        let kind = text(&condition["type"]);
        if conditions.contains(&kind.as_str()) {
            normal["status"]["conditions"][kind] = json!({
                "status": condition["status"], "reason": condition["reason"], "message": condition["message"],
            });
        }
    }
    normal
}

/// Replaces names in every text of a value.
fn rename(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (from, to) in names {
                if text.contains(from.as_str()) {
                    *text = text.replace(from.as_str(), to);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(fields) => {
            let renamed: Map<String, Value> = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    rename(&mut value, names);
                    (name, value)
                })
                .collect();
            *fields = renamed;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::roles;
    use super::*;

    fn objects(suffix: &str, uid: &str) -> Vec<Value> {
        let name = format!("one-{suffix}");
        vec![
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": {"name": "one", "uid": uid},
                "spec": {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": name}},
            }),
            json!({
                "kind": "KubeadmControlPlane",
                "metadata": {"name": name, "ownerReferences": [{"kind": "Cluster", "name": "one", "uid": uid}]},
                "spec": {"text": format!("about {name}.")},
            }),
        ]
    }

    #[test]
    fn names_are_equal_up_to_their_suffix_and_references_still_have_to_match() {
        let (theirs, ours) = (objects("abcde", "1"), objects("fghij", "2"));
        let (of_theirs, of_ours) = (roles::of(&theirs), roles::of(&ours));
        let left = normalised(&theirs, &of_theirs, &of_ours);
        assert_eq!(left, normalised(&ours, &of_ours, &of_theirs));
        assert_eq!(
            left["KubeadmControlPlane one-<one/control-plane>"]["spec"]["text"],
            "about one-<one/control-plane>."
        );
        let mut foreign = objects("fghij", "2");
        foreign[1]["metadata"]["ownerReferences"][0]["uid"] = "3".into();
        assert_ne!(left, normalised(&foreign, &of_ours, &of_theirs));
    }
}
