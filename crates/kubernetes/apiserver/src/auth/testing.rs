//! In-memory objects for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use serde_json::Value;

use super::{ObjectSource, StoredEntry};

/// Revision of the last change, and the objects with theirs.
type Bucket = (u64, BTreeMap<Arc<str>, (u64, Arc<Value>)>);

/// In-memory objects, with a revision per bucket.
#[derive(Default)]
pub(crate) struct Objects {
    buckets: RwLock<BTreeMap<String, Bucket>>,
    parsed: AtomicUsize,
}

impl Objects {
    pub(crate) fn put(&self, bucket: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let key = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        let mut all = self.buckets.write();
        let bucket = all.entry(bucket.to_owned()).or_default();
        bucket.0 += 1;
        bucket.1.insert(key.into(), (bucket.0, Arc::new(object)));
    }

    /// Number of objects that visitors have parsed.
    pub(crate) fn parsed(&self) -> usize {
        self.parsed.load(Ordering::Relaxed)
    }

    pub(crate) fn delete(&self, bucket: &str, key: &str) {
        let mut all = self.buckets.write();
        let bucket = all.entry(bucket.to_owned()).or_default();
        bucket.0 += 1;
        bucket.1.remove(key);
    }
}

impl ObjectSource for Objects {
    fn get(&self, bucket: &str, key: &str) -> Option<Arc<Value>> {
        self.buckets.read().get(bucket)?.1.get(key).map(|(_, object)| object.clone())
    }

    fn list(&self, bucket: &str) -> Vec<Arc<Value>> {
        let all = self.buckets.read();
        all.get(bucket).map(|b| b.1.values().map(|(_, object)| object.clone()).collect()).unwrap_or_default()
    }

    fn visit(&self, bucket: &str, visit: &mut dyn FnMut(StoredEntry<'_>)) {
        let all = self.buckets.read();
        for (key, (revision, object)) in all.get(bucket).iter().flat_map(|bucket| &bucket.1) {
            let parse = || {
                self.parsed.fetch_add(1, Ordering::Relaxed);
                Some(object.clone())
            };
            visit(StoredEntry { key, revision: *revision, parse: &parse });
        }
    }

    fn bucket_revision(&self, bucket: &str) -> u64 {
        self.buckets.read().get(bucket).map_or(0, |b| b.0)
    }
}
