//! Annotations of a request's audit event, collected while the request is admitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Most annotations of one request.
const MAX_ANNOTATIONS: usize = 256;

/// Annotations of one request. Clones share one map.
#[derive(Debug, Clone, Default)]
pub struct AuditAnnotations(Arc<Mutex<BTreeMap<String, String>>>);

impl AuditAnnotations {
    /// Adds an annotation. As upstream, the first value of a key stays.
    pub fn add(&self, key: impl Into<String>, value: impl Into<String>) {
        let mut all = self.0.lock();
        if all.len() < MAX_ANNOTATIONS {
            all.entry(key.into()).or_insert_with(|| value.into());
        }
    }

    /// Takes what was collected.
    pub fn take(&self) -> BTreeMap<String, String> {
        std::mem::take(&mut *self.0.lock())
    }
}
