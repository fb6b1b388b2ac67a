//! What wakes a controller.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use capstan_object::{Key, Object, ObjectMeta, Scope};
use parking_lot::Mutex;

use crate::cache::{Cache, Cached, version};
use crate::queue::{Priority, Wake, WorkQueue};
use crate::{Caches, Change, Dynamic, KindName};

/// How long an object that summarizes many others waits for more of them to change: short for people, long for machines.
/// Longer when many change at a time.
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

    /// Reads a kind without being woken by it.
    pub fn read<T: Object>(&mut self) -> &mut Self {
        self.caches.ensure::<T>();
        self
    }

    /// Objects of `T` wake every owner of kind `K` that they name.
    pub fn owned<T: Object>(&mut self) -> &mut Self {
        let queue = self.queue.clone();
        let own = KindName::of::<K>();
        self.caches.ensure::<T>().listen(move |change| {
            wake_owners(&own, &queue, change);
        });
        self
    }

    /// The same, but many changes within a time are one reconcile at the end of it.
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

    /// Changes of `T` wake whatever `keys` says.
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

    /// The same, but many changes within a time are one reconcile at the end of it: for controllers that read many objects
    /// at once.
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

    /// Makes objects of `T` findable by values.
    pub fn index<T: Object>(
        &mut self,
        name: &str,
        values: impl Fn(&T) -> Vec<String> + Send + Sync + 'static,
    ) -> &mut Self {
        self.caches.ensure::<T>().index(name, values);
        self
    }

    /// Makes objects of `T` quickly findable by a label.
    pub fn index_label<T: Object>(&mut self, label: &str) -> &mut Self {
        self.caches.ensure::<T>().index_label(label);
        self
    }

    /// Wakes this controller from elsewhere.
    pub fn wake(&self) -> Wake {
        Wake(self.queue.clone())
    }

    /// Own objects wake themselves: at once if what is wanted of them changed. `selects` says which objects
    /// this process looks after.
    pub(crate) fn own(&mut self, selects: impl Fn(&ObjectMeta) -> bool + Send + Sync + 'static) {
        let queue = self.queue.clone();
        self.caches.ensure::<K>().listen(move |change: &Change<K>| {
            let Some(latest) = change.latest().filter(|object| selects(object.metadata())) else { return };
            let wanted = |object: &Arc<K>| (object.metadata().generation, object.metadata().is_deleting());
            let changed =
                !change.initial && change.old.as_ref().map(wanted) != change.new.as_ref().map(wanted);
            if changed {
                // What failed before may well succeed now.
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

/// Objects that were asked for and are not there yet, with who asked.
type Awaited = Mutex<BTreeMap<(KindName, Key), BTreeSet<Key>>>;

/// The kinds known only at run time that a controller has asked about.
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

    /// Has an object of this controller's woken when another appears.
    pub fn await_for(&self, own: &Key, kind: &KindName, key: &Key) {
        let mut awaited = self.awaited.lock();
        awaited.entry((kind.clone(), key.clone())).or_default().insert(own.clone());
    }

    /// An object of this controller's is gone and waits for nothing.
    pub fn forget(&self, own: &Key) {
        self.awaited.lock().retain(|_, waiting| {
            waiting.remove(own);
            !waiting.is_empty()
        });
    }

    /// The cache of a kind, whose objects from now on wake the owners they name, and whoever waits for them.
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
