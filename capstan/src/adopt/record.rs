//! What is recorded on imported objects, in annotations.

use anyhow::{Context, Result};
use capstan_capi_types::core::Cluster;
use capstan_capi_types::core::annotation::ADOPTION_LOCK;
use capstan_object::Key;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// On an imported Cluster: where it came from. Kept after the lock is gone, for a rollback.
pub const RECORD: &str = "capstan.dev/adoption";
/// On imported objects: namespace and name of the Cluster they were imported for.
pub const IMPORTED_FOR: &str = "capstan.dev/adopted-for";
/// On imported objects: `metadata.generation` in the source.
pub const GENERATION: &str = "capstan.dev/adopted-generation";

/// Where a cluster came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// `host:port` of the old management cluster; `None` if the source was an export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Number of Machines at the import.
    pub machines: usize,
}

impl Record {
    /// The record of a Cluster; `None` if it was not imported.
    pub fn of(cluster: &Cluster) -> Result<Option<Self>> {
        let Some(text) = cluster.metadata.annotations.get(RECORD) else { return Ok(None) };
        let record = serde_json::from_str(text);
        let unreadable = || format!("cluster {}: annotation {RECORD} is unreadable", cluster.metadata.name);
        record.map(Some).with_context(unreadable)
    }

    /// Locks a Cluster in its JSON form.
    pub fn lock(&self, cluster: &mut Value) -> Result<()> {
        cluster["metadata"]["annotations"][ADOPTION_LOCK] = "true".into();
        cluster["metadata"]["annotations"][RECORD] = serde_json::to_string(self)?.into();
        cluster["spec"]["paused"] = true.into();
        Ok(())
    }
}

pub fn is_locked(cluster: &Cluster) -> bool {
    cluster.metadata.annotations.contains_key(ADOPTION_LOCK)
}

/// Merge patch that locks a Cluster again.
pub fn locked() -> Value {
    json!({"metadata": {"annotations": {ADOPTION_LOCK: "true"}}, "spec": {"paused": true}})
}

/// Merge patches that unlock a Cluster, in order. Controllers watch `spec.paused`, so that has to change with the lock, even
/// if somebody has reset it before.
pub fn unlocking() -> [Value; 2] {
    let unlocked = json!({"metadata": {"annotations": {ADOPTION_LOCK: null}}, "spec": {"paused": null}});
    [json!({"spec": {"paused": true}}), unlocked]
}

/// Marks an object as imported for a cluster.
pub fn mark(object: &mut Value, cluster: &Key) {
    let generation = object["metadata"]["generation"].as_i64();
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[IMPORTED_FOR] = cluster.to_string().into();
    if let Some(generation) = generation {
        annotations[GENERATION] = generation.to_string().into();
    }
}

/// Whether an object was imported for a cluster.
pub fn is_marked(object: &Value, cluster: &Key) -> bool {
    object["metadata"]["annotations"][IMPORTED_FOR] == cluster.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_cluster_has_a_record() {
        let record = Record { server: Some("old:6443".to_owned()), machines: 2 };
        let mut object = json!({"metadata": {"name": "c", "annotations": {"mine": "1"}}, "spec": {}});
        record.lock(&mut object).expect("locked");
        let cluster: Cluster = serde_json::from_value(object).expect("a cluster");
        assert!(is_locked(&cluster) && cluster.spec.paused == Some(true));
        assert_eq!(Record::of(&cluster).expect("readable"), Some(record));
        assert_eq!(cluster.metadata.annotations.get("mine").map(String::as_str), Some("1"));
        assert_eq!(Record::of(&Cluster::default()).expect("none"), None);
    }

    #[test]
    fn a_mark_names_the_cluster_and_the_generation_of_the_source() {
        let mut object = json!({"metadata": {"name": "m", "generation": 7}});
        mark(&mut object, &Key::new("n", "c"));
        assert!(is_marked(&object, &Key::new("n", "c")) && !is_marked(&object, &Key::new("m", "c")));
        assert_eq!(object["metadata"]["annotations"][GENERATION], "7");
    }
}
