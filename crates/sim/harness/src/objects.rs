//! The objects as the store holds them, for checkers.

use capstan_apiserver::{Digest, Server};
use capstan_controller::KindName;
use capstan_object::Key;
use capstan_store::Store;
use serde_json::Value;

/// What the API server holds right now, past all caches.
#[derive(Clone)]
pub struct Objects(pub(crate) Store<Digest>);

impl Objects {
    /// The objects of any server of this process, such as one of a workload cluster.
    pub fn of(server: &Server) -> Self {
        Self(server.store().clone())
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.0.revision()
    }

    /// An object in the version it is stored in.
    pub fn get(&self, kind: &KindName, key: &Key) -> Option<Value> {
        let entry = self.0.get(&bucket(kind), &place(key))?;
        serde_json::from_slice(&entry.value).ok()
    }

    /// All objects of a kind, in order of their keys.
    pub fn list(&self, kind: &KindName) -> Vec<Value> {
        let snapshot = self.0.snapshot(&bucket(kind));
        snapshot.range("", None).filter_map(|entry| serde_json::from_slice(&entry.value).ok()).collect()
    }

    /// The store.
    pub fn store(&self) -> &Store<Digest> {
        &self.0
    }
}

pub(crate) fn bucket(kind: &KindName) -> String {
    format!("{}/{}", kind.group, kind.plural)
}

pub(crate) fn place(key: &Key) -> String {
    if key.namespace.is_empty() { key.name.clone() } else { format!("{}/{}", key.namespace, key.name) }
}
