//! The objects that a manifest changes: each is sent as a dry run and compared with the stored one.

use anyhow::{Result, bail};
use capstan_controller::KindName;
use capstan_object::Key;
use capstan_view::Topology;
use serde::Serialize;
use serde_json::Value;

use crate::apply::{Applier, title};
use crate::change;
use crate::connection::{Management, is_unreachable};

/// Most fields shown per object.
const MOST: usize = 8;
/// Characters shown per value.
const LONGEST: usize = 60;
/// Metadata that the server sets.
const SERVER_FIELDS: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// `Kind/name`.
    pub object: String,
    #[serde(rename = "becomes")]
    pub kind: ChangeKind,
    /// Such as `spec.replicas: 1 → 3`.
    pub fields: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    Created,
    Changed,
    Deleted,
}

impl Change {
    pub fn deletion(kind: &KindName, key: &Key) -> Self {
        Self { object: format!("{}/{}", kind.kind, key.name), kind: ChangeKind::Deleted, fields: Vec::new() }
    }
}

/// The changes of a manifest; the error lists all objects that the server refuses.
pub async fn of(management: &Management, objects: &[Value]) -> Result<Vec<Change>> {
    let mut applier = Applier::new(&management.client, &management.namespace).dry();
    let mut changes = Vec::new();
    let mut refused = Vec::new();
    for object in objects {
        let after = match applier.apply(object).await {
            Ok(after) => after,
            // The server does not know the class as it will be. The copy checks the cluster after its class.
            Err(error)
                if !is_unreachable(&error) && comes_with_class(object, objects, &management.namespace) =>
            {
                let mut after = applier.current(object).await?.unwrap_or_default();
                overlay(&mut after, object);
                after
            }
            Err(error) => {
                refused.push(format!("{error:#}"));
                continue;
            }
        };
        match applier.current(object).await? {
            None => {
                changes.push(Change { object: title(object), kind: ChangeKind::Created, fields: Vec::new() })
            }
            Some(before) => {
                let fields = differences(&before, &after);
                if !fields.is_empty() {
                    changes.push(Change { object: title(object), kind: ChangeKind::Changed, fields });
                }
            }
        }
    }
    match refused.as_slice() {
        [] => Ok(changes),
        all => bail!("{}", all.join("\n")),
    }
}

/// Whether an object is a cluster whose class is in the same manifest.
fn comes_with_class(object: &Value, manifest: &[Value], namespace: &str) -> bool {
    let or_default = |place: &str| if place.is_empty() { namespace.to_owned() } else { place.to_owned() };
    let Some(topology) = Topology::of(object).filter(|_| object["kind"] == "Cluster") else { return false };
    manifest.iter().filter(|it| it["kind"] == "ClusterClass").any(|class| {
        let place = or_default(class["metadata"]["namespace"].as_str().unwrap_or_default());
        class["metadata"]["name"] == topology.class.as_str() && place == or_default(&topology.class_namespace)
    })
}

/// Sets the fields of a manifest; lists are replaced.
fn overlay(object: &mut Value, manifest: &Value) {
    match (object, manifest) {
        (Value::Object(fields), Value::Object(given)) => {
            for (name, value) in given {
                overlay(fields.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (object, given) => *object = given.clone(),
    }
}

pub async fn of_patches(management: &Management, patches: &[change::Change]) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for patch in patches {
        let key = Key::new(&management.namespace, &patch.name);
        let before: Value = match management.client.get_raw(&patch.kind, &key).await? {
            Some(found) => found.parse()?,
            None => bail!("{} {key} does not exist", patch.kind.kind),
        };
        let after = change::send(management, patch, true).await?;
        let fields = differences(&before, &after);
        if !fields.is_empty() {
            let object = format!("{}/{}", patch.kind.kind, patch.name);
            changes.push(Change { object, kind: ChangeKind::Changed, fields });
        }
    }
    Ok(changes)
}

/// Fields that differ, without status and server-set metadata.
pub fn differences(before: &Value, after: &Value) -> Vec<String> {
    let secret = after["kind"] == "Secret";
    let mut found = Vec::new();
    compare("", before, after, secret, &mut found);
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

fn compare(path: &str, before: &Value, after: &Value, secret: bool, found: &mut Vec<String>) {
    let skipped = path == "status"
        || path.strip_prefix("metadata.").is_some_and(|field| SERVER_FIELDS.contains(&field));
    if skipped || before == after {
        return;
    }
    if let (Value::Object(old), Value::Object(new)) = (before, after) {
        let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            compare(&inner, &before[key.as_str()], &after[key.as_str()], secret, found);
        }
        return;
    }
    let hidden = secret && (path.starts_with("data.") || path.starts_with("stringData."));
    found.push(match hidden {
        true => format!("{path} changes"),
        false => format!("{path}: {} → {}", shown(before), shown(after)),
    });
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "(unset)".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    capstan_view::clipped(&capstan_view::one_line(&text), LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_may_come_with_its_class() {
        let cluster = |class: Value| json!({"kind": "Cluster", "metadata": {"name": "c"}, "spec": {"topology": {"classRef": class}}});
        let class =
            |place: &str| json!({"kind": "ClusterClass", "metadata": {"name": "a", "namespace": place}});
        for (reference, manifest, expected) in [
            (json!({"name": "a"}), class("here"), true),
            (json!({"name": "a", "namespace": "there"}), class("there"), true),
            (json!({"name": "a", "namespace": "there"}), class("here"), false),
            (json!({"name": "b"}), class("here"), false),
        ] {
            assert_eq!(
                comes_with_class(&cluster(reference.clone()), &[manifest], "here"),
                expected,
                "{reference}"
            );
        }
        let mut object = json!({"spec": {"a": 1, "b": [1]}, "status": {}});
        overlay(&mut object, &json!({"spec": {"b": [2], "c": {"d": 3}}}));
        assert_eq!(object, json!({"spec": {"a": 1, "b": [2], "c": {"d": 3}}, "status": {}}));
    }

    #[test]
    fn differing_fields_are_listed_and_secrets_are_hidden() {
        let before = json!({"kind": "A", "metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "1"}},
            "spec": {"replicas": 1, "same": true}, "status": {"n": 1}});
        let after = json!({"kind": "A", "metadata": {"name": "a", "resourceVersion": "2", "labels": {"x": "2"}},
            "spec": {"replicas": 3, "same": true}, "status": {"n": 2}});
        assert_eq!(differences(&before, &after), ["metadata.labels.x: 1 → 2", "spec.replicas: 1 → 3"]);
        assert_eq!(differences(&before, &before), [""; 0]);
        let secret = |value: &str| json!({"kind": "Secret", "data": {"key": value}});
        assert_eq!(differences(&secret("b2xk"), &secret("bmV3")), ["data.key changes"]);
    }
}
