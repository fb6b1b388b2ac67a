//! Labels, annotations and fields that follow from another object, kept up to date without touching those of others.
//!
//! The propagated keys are recorded on the object, so that keys that are no longer desired are removed, whichever
//! field manager wrote them, and those of others stay.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_types::controlplane::kubeadm_control_plane::annotation::PRE_TERMINATE_HOOK_CLEANUP;
use capstan_capi_types::core::{annotation, label};
use capstan_object::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The propagated keys, without those that are always present.
pub const RECORD: &str = "capstan.dev/propagated";

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    labels: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    annotations: BTreeSet<String>,
}

/// Labels and annotations that an object should have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Propagated {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

impl Propagated {
    /// The keys to record: all but our own.
    fn record(&self) -> Record {
        let others = |keys: &BTreeMap<String, String>| {
            keys.keys().filter(|key| !is_own(key)).cloned().collect::<BTreeSet<_>>()
        };
        Record { labels: others(&self.labels), annotations: others(&self.annotations) }
    }

    /// Sets everything on a new object.
    pub fn write(&self, meta: &mut ObjectMeta) {
        meta.labels.extend(self.labels.clone());
        meta.annotations.extend(self.annotations.clone());
        if let Some(text) = text(&self.record()) {
            meta.annotations.insert(RECORD.to_owned(), text);
        }
    }

    /// The merge patch of `metadata` that adds the desired keys and removes previously propagated ones; `None` if
    /// there is no change. `dropped` names further annotations to remove.
    pub fn change(&self, meta: &ObjectMeta, dropped: &[&str]) -> Option<Value> {
        let before: Record =
            meta.annotations.get(RECORD).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let record = self.record();
        let mut annotations = self.annotations.clone();
        annotations.extend(text(&record).map(|text| (RECORD.to_owned(), text)));
        let mut gone: BTreeSet<&str> = before.annotations.iter().map(String::as_str).collect();
        gone.extend(dropped);
        gone.insert(RECORD);
        let labels = differences(&meta.labels, &self.labels, before.labels.iter().map(String::as_str));
        let annotations = differences(&meta.annotations, &annotations, gone.into_iter());
        let mut change = Map::new();
        for (name, differences) in [("labels", labels), ("annotations", annotations)] {
            if !differences.is_empty() {
                change.insert(name.to_owned(), Value::Object(differences));
            }
        }
        Some(Value::Object(change))
            .filter(|change| change.as_object().is_some_and(|change| !change.is_empty()))
    }
}

/// Keys that are always present, or that their controller removes itself.
fn is_own(key: &str) -> bool {
    const OWN: &[&str] = &[
        label::CLUSTER_NAME,
        label::DEPLOYMENT_NAME,
        label::SET_NAME,
        label::POOL_NAME,
        label::CONTROL_PLANE,
        label::CONTROL_PLANE_NAME,
        label::MACHINE_TEMPLATE_HASH,
        annotation::REVISION,
        annotation::DESIRED_REPLICAS,
        annotation::MAX_REPLICAS,
        annotation::DISABLE_MACHINE_CREATE,
        annotation::MOVE_MACHINES_TO,
        annotation::RECEIVE_MACHINES_FROM,
        annotation::ACKNOWLEDGED_MOVE,
        annotation::CLONED_FROM_NAME,
        annotation::CLONED_FROM_GROUP_KIND,
        PRE_TERMINATE_HOOK_CLEANUP,
    ];
    OWN.contains(&key)
}

fn text(record: &Record) -> Option<String> {
    if *record == Record::default() { None } else { serde_json::to_string(record).ok() }
}

fn differences<'a>(
    current: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    gone: impl Iterator<Item = &'a str>,
) -> Map<String, Value> {
    let changed = wanted.iter().filter(|(key, value)| current.get(*key) != Some(*value));
    let mut differences: Map<String, Value> =
        changed.map(|(key, value)| (key.clone(), Value::String(value.clone()))).collect();
    for key in gone.filter(|key| !wanted.contains_key(*key) && current.contains_key(*key)) {
        differences.insert(key.to_owned(), Value::Null);
    }
    differences
}

/// The merge patch from one value to another; `None` if they are equal.
pub fn merge_difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return Some(to.clone()) };
    let mut difference = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        difference.insert(key.clone(), Value::Null);
    }
    for (key, wanted) in to {
        if let Some(change) =
            from.get(key).map_or_else(|| Some(wanted.clone()), |had| merge_difference(had, wanted))
        {
            difference.insert(key.clone(), change);
        }
    }
    Some(Value::Object(difference))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn wanted(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Propagated {
        Propagated { labels: map(labels), annotations: map(annotations) }
    }

    #[test]
    fn stale_propagated_keys_are_removed_and_foreign_ones_stay() {
        let mut meta = ObjectMeta::default();
        wanted(&[("a", "1"), ("b", "2")], &[("c", "3")]).write(&mut meta);
        meta.labels.insert("theirs".to_owned(), "x".to_owned());
        assert_eq!(wanted(&[("a", "1"), ("b", "2")], &[("c", "3")]).change(&meta, &[]), None);
        assert_eq!(
            wanted(&[("a", "9")], &[]).change(&meta, &[]),
            Some(json!({
                "labels": {"a": "9", "b": null},
                "annotations": {"c": null, RECORD: r#"{"labels":["a"]}"#},
            }))
        );
    }

    #[test]
    fn objects_with_only_our_own_labels_have_no_record() {
        let mut meta = ObjectMeta::default();
        wanted(&[("cluster.x-k8s.io/cluster-name", "c")], &[]).write(&mut meta);
        assert!(meta.annotations.is_empty());
    }

    #[test]
    fn a_merge_patch_removes_missing_keys() {
        assert_eq!(
            merge_difference(&json!({"a": 1, "b": {"c": 1, "d": 2}}), &json!({"b": {"c": 2}, "e": [1]})),
            Some(json!({"a": null, "b": {"c": 2, "d": null}, "e": [1]}))
        );
        assert_eq!(merge_difference(&json!({"a": [1]}), &json!({"a": [1]})), None);
    }
}
