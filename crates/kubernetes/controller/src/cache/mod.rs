//! One cache per process and kind: every object is parsed once and shared by all controllers.
//!
//! ```text
//!  reflector: streaming list, watch, resume, relist ──┐
//!                                                     ├──▶ Cache<T> ──▶ Change ──▶ listeners (work queues)
//!  writer: answers of our own writes ─────────────────┘      │
//!                                                            └──▶ get, list, owned_by, labelled, indexed
//! ```
//!
//! **Our own writes are never waited for.** The answer to a write is the object as it is now, so it goes into
//! the cache before the writer goes on, and the watch's echo of it, being no newer, is dropped. A decision can
//! therefore never see state older than an acknowledged write of this process. That leans on resource versions
//! being numbers that grow, which Kubernetes guarantees to clients since 1.35 and etcd always has. An object
//! deleted at once leaves a tombstone, so that a late event does not bring it back.

#[cfg(test)]
mod cost_tests;
mod dynamic;
mod index;
mod objects;
mod reflector;
mod registry;

pub use dynamic::Dynamic;
pub use objects::{Cache, Change};
pub use registry::Caches;

use bytes::Bytes;
use capstan_object::{Object, ObjectMeta};

use crate::client::Weight;

/// A kind that a cache can hold.
pub trait Cached: Send + Sync + Sized + 'static {
    fn meta(&self) -> &ObjectMeta;
    /// Parses an object as the API sends it.
    fn decode(bytes: &Bytes) -> Result<Self, serde_json::Error>;
    /// Bytes of memory it takes, at most. Costs as much as writing it; asked only where memory is limited.
    fn weight(&self) -> usize;
}

impl<T: Object> Cached for T {
    fn meta(&self) -> &ObjectMeta {
        self.metadata()
    }

    fn decode(bytes: &Bytes) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    fn weight(&self) -> usize {
        Weight::of(self)
    }
}

/// A resource version as the number it is; 0 for none.
pub(crate) fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.parse().unwrap_or(0)
}
