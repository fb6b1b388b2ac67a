//! In-memory objects for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use super::ObjectSource;

type Bucket = (u64, BTreeMap<String, Arc<Value>>);

/// In-memory objects, with a revision per bucket.
#[derive(Default)]
pub(crate) struct Objects(RwLock<BTreeMap<String, Bucket>>);

impl Objects {
    pub(crate) fn put(&self, bucket: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let key = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        let mut all = self.0.write();
        let bucket = all.entry(bucket.to_owned()).or_default();
        bucket.0 += 1;
        bucket.1.insert(key, Arc::new(object));
    }

    pub(crate) fn delete(&self, bucket: &str, key: &str) {
        let mut all = self.0.write();
        let bucket = all.entry(bucket.to_owned()).or_default();
        bucket.0 += 1;
        bucket.1.remove(key);
    }
}

impl ObjectSource for Objects {
    fn get(&self, bucket: &str, key: &str) -> Option<Arc<Value>> {
        self.0.read().get(bucket)?.1.get(key).cloned()
    }

    fn list(&self, bucket: &str) -> Vec<Arc<Value>> {
        self.0.read().get(bucket).map(|b| b.1.values().cloned().collect()).unwrap_or_default()
    }

    fn bucket_revision(&self, bucket: &str) -> u64 {
        self.0.read().get(bucket).map_or(0, |b| b.0)
    }
}
