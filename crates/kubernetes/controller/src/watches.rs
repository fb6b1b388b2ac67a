//! Watches of a controller: which changes requeue its objects.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use capstan_object::{Key, Object, ObjectMeta, Scope};
use parking_lot::Mutex;

use crate::cache::{Cache, Cached, version};
use crate::queue::{Priority, Wake, WorkQueue};
use crate::{Caches, Change, Dynamic, KindName};

/// How long changes are batched before an object that summarizes many others is requeued. Grows when many change at once.
pub const GATHER: Duration = Duration::from_millis(200);

/// Collects what a controller of `K` watches and reads.
pub struct Watches<K> {
    caches: Caches,
    queue: Arc<WorkQueue>,
    own: PhantomData<K>,
}

impl<K: Object> Watches<K> {
    pub(crate) fn new(caches: Caches, queue: Arc<WorkQueue>) -> Self {
        Self { caches, queue, own: PhantomData }
    }

    /// Reads a kind; its changes requeue nothing.
    pub fn read<T: Object>(&mut self) -> &mut Self {
        self.caches.ensure::<T>();
        self
    }

    /// Changes of `T` requeue their owners of kind `K`.
    pub fn owned<T: Object>(&mut self) -> &mut Self {
        let queue = self.queue.clone();
        let own = KindName::of::<K>();
        self.caches.ensure::<T>().listen(move |change| {
            wake_owners(&own, &queue, change);
        });
        self
    }

    /// The same, with changes batched into one reconcile.
    pub fn owned_within<T: Object>(&mut self, time: Duration) -> &mut Self {
        let queue = self.queue.clone();
        let own = KindName::of::<K>();
        self.caches.ensure::<T>().listen(move |change| {
            for key in owners(&own, change) {
                queue.gather(&key, time);
            }
        });
        self
    }

    /// Changes of `T` requeue the keys that `keys` returns.
    pub fn related<T: Object>(
        &mut self,
        keys: impl Fn(&Change<T>, &Caches) -> Vec<Key> + Send + Sync + 'static,
    ) -> &mut Self {
        let (queue, caches) = (self.queue.clone(), self.caches.clone());
        self.caches.ensure::<T>().listen(move |change| {
            for key in keys(change, &caches) {
                queue.wake(&key, priority(change));
            }
        });
        self
    }

    /// The same, with changes batched into one reconcile: for controllers that read many objects at once.
    pub fn related_within<T: Object>(
        &mut self,
        time: Duration,
        keys: impl Fn(&Change<T>, &Caches) -> Vec<Key> + Send + Sync + 'static,
    ) -> &mut Self {
        let (queue, caches) = (self.queue.clone(), self.caches.clone());
        self.caches.ensure::<T>().listen(move |change| {
            for key in keys(change, &caches) {
                queue.gather(&key, time);
            }
        });
        self
    }

    /// Adds an index over objects of `T`.
    pub fn index<T: Object>(
        &mut self,
        name: &str,
        values: impl Fn(&T) -> Vec<String> + Send + Sync + 'static,
    ) -> &mut Self {
        self.caches.ensure::<T>().index(name, values);
        self
    }

    pub fn index_label<T: Object>(&mut self, label: &str) -> &mut Self {
        self.caches.ensure::<T>().index_label(label);
        self
    }

    /// Requeues objects of this controller from elsewhere.
    pub fn wake(&self) -> Wake {
        Wake(self.queue.clone())
    }

    /// Changes of own objects requeue them, with priority if the desired state changed. `selects` returns which objects this
    /// process reconciles.
    pub(crate) fn own(&mut self, selects: impl Fn(&ObjectMeta) -> bool + Send + Sync + 'static) {
        let queue = self.queue.clone();
        self.caches.ensure::<K>().listen(move |change: &Change<K>| {
            let Some(latest) = change.latest().filter(|object| selects(object.metadata())) else { return };
            let wanted = |object: &Arc<K>| (object.metadata().generation, object.metadata().is_deleting());
            let changed =
                !change.initial && change.old.as_ref().map(wanted) != change.new.as_ref().map(wanted);
            if changed {
                // The new desired state may succeed where the old one failed.
                queue.forget(&change.key);
            }
            let priority = if changed { Priority::Urgent } else { priority(change) };
            queue.wake_own(&change.key, priority, version(latest.metadata()));
        });
    }
}

fn priority<T>(change: &Change<T>) -> Priority {
    if change.initial { Priority::Initial } else { Priority::Normal }
}

fn wake_owners<T: Cached>(own: &KindName, queue: &WorkQueue, change: &Change<T>) {
    for key in owners(own, change) {
        queue.wake(&key, priority(change));
    }
}

/// The owners of a kind that an object names or named.
fn owners<T: Cached>(own: &KindName, change: &Change<T>) -> Vec<Key> {
    let of = |object: &Arc<T>| {
        let meta = object.meta();
        let namespace = if own.scope == Scope::Cluster { "" } else { meta.namespace.as_str() };
        let named = meta.owner_references.iter().filter(|owner| own.is_kind_of(owner));
        named.map(|owner| Key::new(namespace, owner.name.clone())).collect::<Vec<_>>()
    };
    change.both().flat_map(of).collect()
}

/// Objects that were read and do not exist yet, with their readers.
type Awaited = Mutex<BTreeMap<(KindName, Key), BTreeSet<Key>>>;

/// Kinds known only at run time that a controller has read.
pub(crate) struct External {
    own: KindName,
    queue: Arc<WorkQueue>,
    followed: Mutex<BTreeSet<KindName>>,
    awaited: Arc<Awaited>,
}

impl External {
    pub fn new(own: KindName, queue: Arc<WorkQueue>) -> Self {
        Self { own, queue, followed: Mutex::default(), awaited: Arc::default() }
    }

    pub fn wake(&self) -> Wake {
        Wake(self.queue.clone())
    }

    /// Requeues an object of this controller when another is created.
    pub fn await_for(&self, own: &Key, kind: &KindName, key: &Key) {
        let mut awaited = self.awaited.lock();
        awaited.entry((kind.clone(), key.clone())).or_default().insert(own.clone());
    }

    /// Drops the waits of an object that is gone.
    pub fn forget(&self, own: &Key) {
        self.awaited.lock().retain(|_, waiting| {
            waiting.remove(own);
            !waiting.is_empty()
        });
    }

    /// The cache of a kind. From now on its objects requeue their owners and the objects that wait for them.
    pub fn follow(&self, caches: &Caches, kind: &KindName) -> Arc<Cache<Dynamic>> {
        let cache = caches.ensure_dynamic(kind);
        if self.followed.lock().insert(kind.clone()) {
            let (own, queue) = (self.own.clone(), self.queue.clone());
            let (kind, awaited) = (kind.clone(), self.awaited.clone());
            cache.listen(move |change| {
                wake_owners(&own, &queue, change);
                if change.old.is_none() && change.new.is_some() {
                    let waiting = awaited.lock().remove(&(kind.clone(), change.key.clone()));
                    waiting.iter().flatten().for_each(|own| queue.wake(own, Priority::Normal));
                }
            });
        }
        cache
    }
}
