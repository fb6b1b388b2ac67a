//! The caches of one API server.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use capstan_object::{Key, LabelSelector, Object, ObjectMeta, Scope};
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use tokio::task::JoinSet;

use super::{Cache, Cached, Change, Dynamic, reflector};
use crate::client::{Client, Reply};
use crate::{KindName, ObserveError};

/// The part of the server that a process watches.
#[derive(Debug, Clone, Default)]
pub struct WatchScope {
    /// Only this namespace, of kinds that live in one; all if empty.
    pub namespace: String,
    /// Only objects with these labels, as a selector of `key=value` pairs.
    pub labels: String,
}

impl WatchScope {
    /// Whether the watch of this scope reports an object.
    pub(super) fn contains(&self, kind: &KindName, meta: &ObjectMeta) -> bool {
        let in_namespace =
            self.namespace.is_empty() || kind.scope == Scope::Cluster || meta.namespace == self.namespace;
        in_namespace && (self.labels.is_empty() || self.selector().matches(&meta.labels).unwrap_or(false))
    }

    fn selector(&self) -> LabelSelector {
        let pairs = self.labels.split(',').filter_map(|pair| pair.split_once('='));
        LabelSelector {
            match_labels: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            ..LabelSelector::default()
        }
    }
}

/// The caches of one API server, by kind. Cheap to clone.
#[derive(Clone)]
pub struct Caches(Arc<Registry>);

struct Registry {
    namespace: String,
    typed: RwLock<HashMap<TypeId, Arc<dyn AnyCache>>>,
    /// The same caches by name, for answers of writes.
    by_kind: RwLock<BTreeMap<KindName, Vec<Arc<dyn AnyCache>>>>,
    dynamic: RwLock<BTreeMap<KindName, Arc<Cache<Dynamic>>>>,
    followers: Mutex<Followers>,
}

#[derive(Default)]
struct Followers {
    client: Option<Client>,
    tasks: JoinSet<()>,
}

/// A cache whose type is known by name only.
trait AnyCache: Send + Sync {
    fn absorb(&self, bytes: &Bytes);
    fn absorb_gone(&self, key: &Key, uid: &str);
    fn follow(self: Arc<Self>, client: Client) -> BoxFuture<'static, ()>;
    fn synced(self: Arc<Self>) -> BoxFuture<'static, ()>;
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Cached> AnyCache for Cache<T> {
    fn absorb(&self, bytes: &Bytes) {
        self.absorb(bytes);
    }

    fn absorb_gone(&self, key: &Key, uid: &str) {
        self.absorb_gone(key, uid);
    }

    fn follow(self: Arc<Self>, client: Client) -> BoxFuture<'static, ()> {
        Box::pin(reflector::follow(self, client))
    }

    fn synced(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { Cache::synced(&self).await })
    }

    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Caches {
    /// No caches yet; those to come watch one namespace, or all if it is empty.
    pub fn new(namespace: &str) -> Self {
        Self(Arc::new(Registry {
            namespace: namespace.to_owned(),
            typed: RwLock::default(),
            by_kind: RwLock::default(),
            dynamic: RwLock::default(),
            followers: Mutex::default(),
        }))
    }

    /// The cache of a type, made if there is none.
    pub fn ensure<T: Object>(&self) -> Arc<Cache<T>> {
        if let Some(cache) = self.find::<T>() {
            return cache;
        }
        let cache = Arc::new(Cache::<T>::new(T::KIND.into(), self.scope()));
        self.0.typed.write().insert(TypeId::of::<T>(), cache.clone());
        self.add(cache.kind().clone(), cache.clone());
        cache
    }

    /// The cache of a kind known by name, made and followed if there is none.
    pub fn ensure_dynamic(&self, kind: &KindName) -> Arc<Cache<Dynamic>> {
        if let Some(cache) = self.0.dynamic.read().get(kind) {
            return cache.clone();
        }
        let mut dynamic = self.0.dynamic.write();
        if let Some(cache) = dynamic.get(kind) {
            return cache.clone();
        }
        let cache = Arc::new(Cache::new(kind.clone(), self.scope()));
        dynamic.insert(kind.clone(), cache.clone());
        self.add(kind.clone(), cache.clone());
        cache
    }

    /// The kinds that are watched, or will be.
    pub fn kinds(&self) -> Vec<KindName> {
        self.0.by_kind.read().keys().cloned().collect()
    }

    fn scope(&self) -> WatchScope {
        WatchScope { namespace: self.0.namespace.clone(), labels: String::new() }
    }

    fn add(&self, kind: KindName, cache: Arc<dyn AnyCache>) {
        self.0.by_kind.write().entry(kind).or_default().push(cache.clone());
        let mut followers = self.0.followers.lock();
        if let Some(client) = followers.client.clone() {
            followers.tasks.spawn(cache.follow(client));
        }
    }

    /// Begins to follow the server with every cache there is and every one to come.
    pub fn start(&self, client: &Client) {
        let caches: Vec<_> = self.0.by_kind.read().values().flatten().cloned().collect();
        let mut followers = self.0.followers.lock();
        followers.client = Some(client.clone());
        for cache in caches {
            followers.tasks.spawn(cache.follow(client.clone()));
        }
    }

    /// Stops following and drops everything: listeners hold these caches, so nothing else would.
    pub(crate) fn stop(&self) {
        let mut followers = self.0.followers.lock();
        followers.client = None;
        followers.tasks = JoinSet::new();
        drop(followers);
        self.0.typed.write().clear();
        self.0.by_kind.write().clear();
        self.0.dynamic.write().clear();
    }

    /// Returns once every cache there is has everything that was there at the beginning.
    pub async fn synced(&self) {
        let caches: Vec<_> = self.0.by_kind.read().values().flatten().cloned().collect();
        for cache in caches {
            cache.synced().await;
        }
    }

    fn find<T: Object>(&self) -> Option<Arc<Cache<T>>> {
        let cache = self.0.typed.read().get(&TypeId::of::<T>()).cloned()?;
        cache.any().downcast::<Cache<T>>().ok()
    }

    /// The cache of a type that some controller watches or reads.
    pub fn of<T: Object>(&self) -> Result<Arc<Cache<T>>, ObserveError> {
        self.find::<T>().ok_or_else(|| ObserveError::NotWatched(KindName::of::<T>().to_string()))
    }

    /// Takes the answer to a write of ours in.
    pub(crate) fn absorb(&self, kind: &KindName, reply: &Reply) {
        for cache in self.0.by_kind.read().get(kind).into_iter().flatten() {
            cache.absorb(&reply.bytes);
        }
    }

    /// An object we deleted went at once.
    pub(crate) fn absorb_gone(&self, kind: &KindName, key: &Key, uid: &str) {
        for cache in self.0.by_kind.read().get(kind).into_iter().flatten() {
            cache.absorb_gone(key, uid);
        }
    }

    pub fn get<T: Object>(&self, key: &Key) -> Result<Option<Arc<T>>, ObserveError> {
        self.of::<T>()?.get(key)
    }

    /// Calls `listener` on every change of a type.
    pub fn listen<T: Object>(&self, listener: impl Fn(&Change<T>) + Send + Sync + 'static) {
        self.ensure::<T>().listen(listener);
    }
}
