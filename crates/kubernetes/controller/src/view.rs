//! What a controller may read while it observes.

use std::sync::Arc;

use capstan_object::{Key, Object, ObjectMeta};
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::cache::{Cached, version};
use crate::watches::External;
use crate::workload::Workloads;
use crate::{Caches, Client, Dynamic, KindName, ObserveError, Wake};

/// What one reconcile can read. Reads are answered from caches; lists are sorted by key.
pub struct View {
    /// The object that is reconciled.
    pub(crate) own: Key,
    pub(crate) caches: Caches,
    pub(crate) client: Client,
    pub(crate) now: Timestamp,
    pub(crate) external: Arc<External>,
    pub(crate) workloads: Option<Arc<dyn Workloads>>,
    /// What was read and in which version; a gate checks that no decision is made on stale state.
    pub(crate) read: Option<Mutex<Vec<(KindName, Key, u64)>>>,
}

impl View {
    /// The time of this observation.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// An object of a kind that the controller declared to watch or read.
    pub fn get<T: Object>(&self, key: &Key) -> Result<Option<Arc<T>>, ObserveError> {
        let object = self.caches.get::<T>(key)?;
        self.note(&T::KIND.into(), object.iter().map(|object| object.metadata()));
        Ok(object)
    }

    /// The objects of a namespace, or all if it is empty.
    pub fn list<T: Object>(&self, namespace: &str) -> Result<Vec<Arc<T>>, ObserveError> {
        self.noted(self.caches.of::<T>()?.list(namespace)?)
    }

    /// The objects with an owner reference to a uid.
    pub fn owned_by<T: Object>(&self, uid: &str) -> Result<Vec<Arc<T>>, ObserveError> {
        self.noted(self.caches.of::<T>()?.owned_by(uid)?)
    }

    /// The objects of a namespace (of all if empty) with a label of a value.
    pub fn labelled<T: Object>(
        &self,
        namespace: &str,
        label: &str,
        value: &str,
    ) -> Result<Vec<Arc<T>>, ObserveError> {
        self.noted(self.caches.of::<T>()?.labelled(namespace, label, value)?)
    }

    /// The objects with a value in a declared index.
    pub fn indexed<T: Object>(&self, index: &str, value: &str) -> Result<Vec<Arc<T>>, ObserveError> {
        self.noted(self.caches.of::<T>()?.indexed(index, value)?)
    }

    /// An object of a kind known only at run time. The first read starts a watch of the kind, whose objects requeue their
    /// owners of this controller's kind. If the object does not exist, its creation requeues the object being reconciled.
    pub async fn external(&self, kind: &KindName, key: &Key) -> Result<Option<Arc<Dynamic>>, ObserveError> {
        let cache = self.external.follow(&self.caches, kind);
        cache.synced().await;
        let mut object = cache.get(key)?;
        if object.is_none() {
            self.external.await_for(&self.own, kind, key);
            // It may have appeared before the wait was registered.
            object = cache.get(key)?;
        }
        self.note(kind, object.iter().map(|object| object.meta()));
        Ok(object)
    }

    /// Objects of a kind known only at run time, by the value of a label. The first read adds an index.
    pub async fn external_labelled(
        &self,
        kind: &KindName,
        namespace: &str,
        label: &str,
        value: &str,
    ) -> Result<Vec<Arc<Dynamic>>, ObserveError> {
        let cache = self.external.follow(&self.caches, kind);
        cache.index_label(label);
        cache.synced().await;
        let objects = cache.labelled(namespace, label, value)?;
        self.note(kind, objects.iter().map(|object| object.meta()));
        Ok(objects)
    }

    /// A client of the API server, for reads that are not worth a cache. Writes are effects.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Connections to workload clusters, if this runtime has any.
    pub fn workloads(&self) -> Option<&Arc<dyn Workloads>> {
        self.workloads.as_ref()
    }

    /// Requeues objects of this controller, for watches on its behalf.
    pub fn wake(&self) -> Wake {
        self.external.wake()
    }

    fn noted<T: Object>(&self, objects: Vec<Arc<T>>) -> Result<Vec<Arc<T>>, ObserveError> {
        self.note(&T::KIND.into(), objects.iter().map(|object| object.metadata()));
        Ok(objects)
    }

    fn note<'a>(&self, kind: &KindName, objects: impl Iterator<Item = &'a ObjectMeta>) {
        let (Some(read), Some(gate)) = (&self.read, self.client.gate()) else { return };
        for meta in objects {
            let (key, version) = (meta.key(), version(meta));
            gate.read(self.client.manager(), kind, &key, version);
            read.lock().push((kind.clone(), key, version));
        }
    }
}
