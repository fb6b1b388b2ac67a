//! What the server keeps parsed of each stored object: enough to select, own and route it without
//! looking into its bytes again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::object::OwnerRef;

/// The parsed head of a stored object.
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
    /// Schema epoch under which the bytes are known to be pruned and defaulted; 0: unknown.
    settled_epoch: AtomicU64,
    /// The last rendering that differs from the stored bytes.
    rendering: ArcSwapOption<Rendering>,
}

/// An object in another version, or as a newer schema defaults and prunes it.
#[derive(Debug)]
pub struct Rendering {
    /// Version rendered.
    pub version: Box<str>,
    /// Schema epoch rendered under.
    pub epoch: u64,
    /// The result.
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
        // Everything stored was checked on its way in; should a head not parse, the object is still
        // served, only selectors will not find it.
        let head: Head = serde_json::from_slice(value).unwrap_or_default();
        let meta: MetaHead =
            head.metadata.and_then(|m| serde_json::from_str(m.get()).ok()).unwrap_or_default();
        Self {
            api_version: head.api_version.into(),
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
            settled_epoch: AtomicU64::new(0),
            rendering: ArcSwapOption::empty(),
        }
    }
}

impl Digest {
    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|at| &*self.labels[at].1)
    }

    /// Notes that the stored bytes need no further pruning or defaulting under `epoch`.
    pub fn settle(&self, epoch: u64) {
        self.settled_epoch.store(epoch, Ordering::Relaxed);
    }

    /// Whether the stored bytes may be served as they are under `epoch`.
    pub fn is_settled(&self, epoch: u64) -> bool {
        self.settled_epoch.load(Ordering::Relaxed) == epoch
    }

    /// The cached rendering in `version` under `epoch`.
    pub fn rendering(&self, version: &str, epoch: u64) -> Option<Bytes> {
        let cached = self.rendering.load();
        cached.as_ref().filter(|r| &*r.version == version && r.epoch == epoch).map(|r| r.bytes.clone())
    }

    /// Caches a rendering.
    pub fn set_rendering(&self, version: &str, epoch: u64, bytes: Bytes) {
        self.rendering.store(Some(Arc::new(Rendering { version: version.into(), epoch, bytes })));
    }
}
