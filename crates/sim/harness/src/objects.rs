//! The objects in the store, for checkers.

use capstan_apiserver::{Digest, Server};
use capstan_controller::KindName;
use capstan_object::Key;
use capstan_store::Store;
use serde_json::Value;

/// The current state of an API server, read from its store and not from a cache.
#[derive(Clone)]
pub struct Objects(pub(crate) Store<Digest>);

impl Objects {
    /// The objects of any server in this process, such as one of a workload cluster.
    pub fn of(server: &Server) -> Self {
        Self(server.store().clone())
    }

    pub fn revision(&self) -> u64 {
        self.0.revision()
    }

    /// An object, in its storage version.
    pub fn get(&self, kind: &KindName, key: &Key) -> Option<Value> {
        let entry = self.0.get(&bucket(kind), &path(key))?;
        serde_json::from_slice(&entry.value).ok()
    }

    /// All objects of a kind, ordered by key.
    pub fn list(&self, kind: &KindName) -> Vec<Value> {
        let snapshot = self.0.snapshot(&bucket(kind));
        snapshot.range("", None).filter_map(|entry| serde_json::from_slice(&entry.value).ok()).collect()
    }

    pub fn store(&self) -> &Store<Digest> {
        &self.0
    }
}

pub(crate) fn bucket(kind: &KindName) -> String {
    format!("{}/{}", kind.group, kind.plural)
}

pub(crate) fn path(key: &Key) -> String {
    if key.namespace.is_empty() { key.name.clone() } else { format!("{}/{}", key.namespace, key.name) }
}
