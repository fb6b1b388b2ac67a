//! The digest of a stored object: what is needed to select and route it and to find its owners without parsing its
//! bytes again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::object::OwnerRef;

#[derive(Debug, Default)]
pub struct Digest {
    /// `apiVersion` the object is stored in.
    pub api_version: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`, sorted.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// `metadata.ownerReferences`.
    pub owners: Box<[OwnerRef]>,
    /// `metadata.finalizers`.
    pub finalizers: Box<[Box<str>]>,
    /// `metadata.deletionTimestamp` is set.
    pub terminating: bool,
    /// Schema epoch for which the bytes are pruned and defaulted; 0 if unknown.
    current_epoch: AtomicU64,
    /// The last rendering that differs from the stored bytes.
    rendering: ArcSwapOption<Rendering>,
}

/// An object in another version, or as a newer schema defaults and prunes it.
#[derive(Debug)]
pub struct Rendering {
    pub version: Box<str>,
    pub epoch: u64,
    pub bytes: Bytes,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Head<'a> {
    api_version: String,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct MetaHead {
    uid: String,
    labels: Option<std::collections::BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerHead>>,
    finalizers: Option<Vec<String>>,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct OwnerHead {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    block_owner_deletion: Option<bool>,
}

impl capstan_store::Digest for Digest {
    fn of(_bucket: &str, _key: &str, value: &Bytes) -> Self {
        // Stored objects were validated. If one cannot be parsed, it is still served, but selectors do not find it.
        let head: Head = serde_json::from_slice(value).unwrap_or_default();
        let meta = head.metadata.and_then(|m| serde_json::from_str(m.get()).ok()).unwrap_or_default();
        Self::new(head.api_version.into(), meta)
    }
}

impl Digest {
    /// The digest of an object that is about to be stored.
    pub fn of_object(object: &Value) -> Self {
        let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let meta = object.get("metadata").and_then(|meta| MetaHead::deserialize(meta).ok());
        Self::new(api_version.into(), meta.unwrap_or_default())
    }

    fn new(api_version: Box<str>, meta: MetaHead) -> Self {
        Self {
            api_version,
            uid: meta.uid.into(),
            labels: meta
                .labels
                .unwrap_or_default()
                .into_iter()
                .map(|(k, v)| (k.into_boxed_str(), v.into_boxed_str()))
                .collect(),
            owners: meta
                .owner_references
                .unwrap_or_default()
                .into_iter()
                .map(|o| OwnerRef {
                    api_version: o.api_version,
                    kind: o.kind,
                    name: o.name,
                    uid: o.uid,
                    block: o.block_owner_deletion.unwrap_or(false),
                })
                .collect(),
            finalizers: meta.finalizers.unwrap_or_default().into_iter().map(String::into_boxed_str).collect(),
            terminating: meta.deletion_timestamp.is_some(),
            current_epoch: AtomicU64::new(0),
            rendering: ArcSwapOption::empty(),
        }
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|at| &*self.labels[at].1)
    }

    /// Records that the stored bytes need no pruning or defaulting for `epoch`.
    pub fn mark_current(&self, epoch: u64) {
        self.current_epoch.store(epoch, Ordering::Relaxed);
    }

    /// Whether the stored bytes can be served unchanged for `epoch`.
    pub fn is_current(&self, epoch: u64) -> bool {
        self.current_epoch.load(Ordering::Relaxed) == epoch
    }

    /// The cached rendering in `version` for `epoch`.
    pub fn rendering(&self, version: &str, epoch: u64) -> Option<Bytes> {
        let cached = self.rendering.load();
        cached.as_ref().filter(|r| &*r.version == version && r.epoch == epoch).map(|r| r.bytes.clone())
    }

    pub fn set_rendering(&self, version: &str, epoch: u64, bytes: Bytes) {
        self.rendering.store(Some(Arc::new(Rendering { version: version.into(), epoch, bytes })));
    }
}

#[cfg(test)]
mod tests {
    use capstan_store::Digest as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_digest_of_an_object_is_that_of_its_text() {
        for object in [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"metadata": "{}"},
                "metadata": {"name": "a", "uid": "u", "labels": {"b": "2", "a": "1"}, "finalizers": ["f"],
                    "deletionTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"fieldsV1": {"f:data": {}}}],
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "o",
                        "controller": true, "blockOwnerDeletion": true}]}}),
            json!({"apiVersion": "v1", "metadata": {"labels": null, "finalizers": null, "ownerReferences": null}}),
            json!({"apiVersion": "v1", "metadata": {"uid": "u", "labels": {"a": 1}}}),
            json!({"apiVersion": "v1", "metadata": null}),
            json!({"apiVersion": "v1"}),
            json!({}),
        ] {
            let text = Bytes::from(object.to_string());
            let (of_text, of_object) = (Digest::of("b", "k", &text), Digest::of_object(&object));
            assert_eq!(format!("{of_object:?}"), format!("{of_text:?}"), "{object}");
        }
    }
}
