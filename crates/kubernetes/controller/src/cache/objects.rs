//! The objects of one kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use capstan_object::{Key, ObjectMeta};
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use tokio::sync::watch;

use super::index::{Index, Values};
use super::registry::WatchScope;
use super::{Cached, version};
use crate::client::{Charge, Exhausted, Identity, Share, WatchedObject};
use crate::{KindName, ObserveError};

/// Bytes that are kept of why an object cannot be read: the text may quote the object.
const LONGEST_REASON: usize = 512;
/// What an entry for an object that cannot be read takes, beside its texts.
const UNREADABLE: usize = 256;

/// A change of an object.
pub struct Change<T> {
    /// To which.
    pub key: Key,
    /// What it was; `None` if it is new.
    pub old: Option<Arc<T>>,
    /// What it is; `None` if it is gone.
    pub new: Option<Arc<T>>,
    /// It existed before the cache started: nothing has just happened.
    pub initial: bool,
}

impl<T> Change<T> {
    /// What it is, or what it was last.
    pub fn latest(&self) -> Option<&Arc<T>> {
        self.new.as_ref().or(self.old.as_ref())
    }

    /// The old and the new object.
    pub fn both(&self) -> impl Iterator<Item = &Arc<T>> {
        self.old.iter().chain(self.new.iter())
    }
}

/// Where an object comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The initial list. Lists are in order of names, so they say nothing about progress.
    List,
    /// An event of the watch.
    Watch,
    /// The response to our own write.
    Own,
}

type Listener<T> = Arc<dyn Fn(&Change<T>) + Send + Sync>;

/// All objects of one kind in the scope of this process.
pub struct Cache<T> {
    kind: KindName,
    scope: WatchScope,
    state: RwLock<State<T>>,
    listeners: RwLock<Vec<Listener<T>>>,
    synced: watch::Sender<bool>,
    /// What its objects may take together, if the server is not trusted with memory.
    share: OnceLock<Arc<Share>>,
    /// Why the server cannot be followed now.
    failure: Mutex<Option<String>>,
}

struct State<T> {
    objects: BTreeMap<Key, Arc<T>>,
    owners: Index<T>,
    indexes: BTreeMap<String, Index<T>>,
    /// Objects that are there but cannot be read as `T`, and why.
    unreadable: BTreeMap<Key, String>,
    /// Objects we deleted at once, by uid, whose deletion the watch has not reported yet.
    tombstones: BTreeMap<String, Key>,
    /// Everything up to this version has arrived by the watch. Our own writes do not count: the watch must not
    /// be taken up behind what others wrote before them.
    progress: u64,
    /// What objects and unreadable ones take of the share.
    charges: BTreeMap<Key, Charge>,
    /// An object was left out because there was no room for it.
    exhausted: Option<Exhausted>,
}

/// Which object it is and in what version, without a copy of anything.
#[derive(Deserialize)]
struct IdentityFields<'a> {
    #[serde(borrow)]
    metadata: IdentityMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IdentityMeta<'a> {
    #[serde(default)]
    namespace: &'a str,
    name: &'a str,
    resource_version: &'a str,
}

/// Enough of an object to know which it is.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<T> State<T> {
    /// Charges what an object takes; if there is no room, what is here stays as it is.
    fn charged(&mut self, share: &Arc<Share>, key: &Key, weight: usize) -> bool {
        let charge = self.charges.entry(key.clone()).or_insert_with(|| Charge::none(share));
        let charged = charge.resize(weight);
        if let Err(exhausted) = charged {
            self.exhausted = Some(exhausted);
            if !self.objects.contains_key(key) {
                self.charges.remove(key);
            }
        }
        charged.is_ok()
    }

    /// Gives back what was charged for objects that are not here any more.
    fn forget_charges(&mut self) {
        let Self { charges, objects, unreadable, .. } = self;
        charges.retain(|key, _| objects.contains_key(key) || unreadable.contains_key(key));
    }
}

impl<T: Cached> Cache<T> {
    pub(super) fn new(kind: KindName, scope: WatchScope) -> Self {
        let by_owner: Values<T> =
            Arc::new(|object| object.meta().owner_references.iter().map(|owner| owner.uid.clone()).collect());
        Self {
            kind,
            scope,
            state: RwLock::new(State {
                objects: BTreeMap::new(),
                owners: Index::new(by_owner),
                indexes: BTreeMap::new(),
                unreadable: BTreeMap::new(),
                tombstones: BTreeMap::new(),
                progress: 0,
                charges: BTreeMap::new(),
                exhausted: None,
            }),
            listeners: RwLock::default(),
            synced: watch::Sender::new(false),
            share: OnceLock::new(),
            failure: Mutex::default(),
        }
    }

    pub fn kind(&self) -> &KindName {
        &self.kind
    }

    pub(super) fn scope(&self) -> &WatchScope {
        &self.scope
    }

    /// Returns once everything that was there at the beginning is here.
    pub async fn synced(&self) {
        // The sender is in `self`, so waiting cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    pub(super) fn mark_synced(&self) {
        self.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
    }

    /// Why the server cannot be followed at the moment; `None` if it can, or nothing is known yet.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    pub(super) fn report(&self, failure: Option<String>) {
        *self.failure.lock() = failure;
    }

    /// Has the objects that come from now on charged to a share. The first one stays.
    pub(super) fn limit(&self, share: &Arc<Share>) {
        let _ = self.share.set(share.clone());
    }

    /// Whether an object was left out since the last call because there was no room for it.
    pub(super) fn exhausted(&self) -> Option<Exhausted> {
        self.share.get()?;
        self.state.write().exhausted.take()
    }

    /// Calls `listener` on every change, on the task that brings it. It must not block.
    pub fn listen(&self, listener: impl Fn(&Change<T>) + Send + Sync + 'static) {
        self.listeners.write().push(Arc::new(listener));
    }

    /// Makes objects findable by values of the caller's. The first definition of a name stays.
    pub fn index(&self, name: &str, values: impl Fn(&T) -> Vec<String> + Send + Sync + 'static) {
        let mut state = self.state.write();
        if state.indexes.contains_key(name) {
            return;
        }
        let mut index = Index::new(Arc::new(values));
        for (key, object) in &state.objects {
            index.add(key, object);
        }
        state.indexes.insert(name.to_owned(), index);
    }

    /// Makes objects findable by the value of a label.
    pub fn index_label(&self, label: &str) {
        if self.state.read().indexes.contains_key(&label_index(label)) {
            return;
        }
        let name = label.to_owned();
        self.index(&label_index(label), move |object| {
            object.meta().labels.get(&name).cloned().into_iter().collect()
        });
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.state.read().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version up to which everything has arrived.
    pub fn progress(&self) -> u64 {
        self.state.read().progress
    }

    pub fn get(&self, key: &Key) -> Result<Option<Arc<T>>, ObserveError> {
        let state = self.state.read();
        if let Some(why) = state.unreadable.get(key) {
            return Err(self.unreadable(key, why));
        }
        Ok(state.objects.get(key).cloned())
    }

    /// The objects of a namespace, or all if it is empty, in order of their keys.
    pub fn list(&self, namespace: &str) -> Result<Vec<Arc<T>>, ObserveError> {
        let state = self.state.read();
        self.check(&state, namespace)?;
        if namespace.is_empty() {
            return Ok(state.objects.values().cloned().collect());
        }
        let from = Key::new(namespace, "");
        let of_namespace = state.objects.range(from..).take_while(|(key, _)| key.namespace == namespace);
        Ok(of_namespace.map(|(_, object)| object.clone()).collect())
    }

    /// The objects with an owner reference to a uid, in order of their keys.
    pub fn owned_by(&self, uid: &str) -> Result<Vec<Arc<T>>, ObserveError> {
        let state = self.state.read();
        self.check(&state, "")?;
        Ok(state.owners.keys(uid).filter_map(|key| state.objects.get(key).cloned()).collect())
    }

    /// The objects of a namespace (of all if empty) with a label of a value, in order of their keys. Fast where
    /// the label is indexed.
    pub fn labelled(&self, namespace: &str, label: &str, value: &str) -> Result<Vec<Arc<T>>, ObserveError> {
        let state = self.state.read();
        if let Some(index) = state.indexes.get(&label_index(label)) {
            self.check(&state, namespace)?;
            let keys = index.keys(value).filter(|key| namespace.is_empty() || key.namespace == namespace);
            return Ok(keys.filter_map(|key| state.objects.get(key).cloned()).collect());
        }
        drop(state);
        let mut objects = self.list(namespace)?;
        objects.retain(|object| object.meta().labels.get(label).is_some_and(|have| have == value));
        Ok(objects)
    }

    /// The objects with a value in a declared index, in order of their keys.
    pub fn indexed(&self, name: &str, value: &str) -> Result<Vec<Arc<T>>, ObserveError> {
        let state = self.state.read();
        self.check(&state, "")?;
        let Some(index) = state.indexes.get(name) else {
            return Err(ObserveError::NoIndex { kind: self.kind.to_string(), index: name.to_owned() });
        };
        Ok(index.keys(value).filter_map(|key| state.objects.get(key).cloned()).collect())
    }

    /// A list that leaves out what cannot be read would say that it is not there.
    fn check(&self, state: &State<T>, namespace: &str) -> Result<(), ObserveError> {
        let found =
            state.unreadable.iter().find(|(key, _)| namespace.is_empty() || key.namespace == namespace);
        found.map_or(Ok(()), |(key, why)| Err(self.unreadable(key, why)))
    }

    fn unreadable(&self, key: &Key, why: &str) -> ObserveError {
        ObserveError::Unreadable { kind: self.kind.to_string(), key: key.clone(), why: why.to_owned() }
    }

    /// Takes an object in, unless what is here is as new; returns its key.
    pub(super) fn present(&self, object: impl Into<WatchedObject>, source: Source) -> Option<Key> {
        let WatchedObject { bytes, identity } = object.into();
        let identity = identity.or_else(|| identify(&bytes));
        let identity = match identity {
            Some(known) if self.is_known(&known) => {
                if source == Source::Watch {
                    self.advance(known.version);
                }
                return Some(known.key);
            }
            other => other,
        };
        let object = match T::decode(&bytes) {
            Ok(object) => Arc::new(object),
            Err(error) => return self.note_unreadable(&bytes, source, &error),
        };
        let key = identity.map_or_else(|| object.meta().key(), |identity| identity.key);
        if !self.scope.contains(&self.kind, object.meta()) {
            return Some(key);
        }
        let rv = version(object.meta());
        let weight = self.share.get().map(|share| (share, object.weight()));
        let old = {
            let mut guard = self.state.write();
            let state = &mut *guard;
            if source == Source::Watch {
                state.progress = state.progress.max(rv);
            }
            if state.tombstones.contains_key(&object.meta().uid) {
                return Some(key);
            }
            let old = state.objects.get(&key).cloned();
            // The response may come after later events. What those have reported and is not here is gone,
            // or cannot be read since.
            if source == Source::Own && old.is_none() && rv <= state.progress {
                return Some(key);
            }
            state.unreadable.remove(&key);
            if old.as_ref().is_some_and(|old| version(old.meta()) >= rv) {
                return Some(key);
            }
            if let Some((share, weight)) = weight
                && !state.charged(share, &key, weight)
            {
                return None;
            }
            for index in std::iter::once(&mut state.owners).chain(state.indexes.values_mut()) {
                if let Some(old) = &old {
                    index.remove(&key, old);
                }
                index.add(&key, &object);
            }
            state.objects.insert(key.clone(), object.clone());
            old
        };
        let initial = source == Source::List;
        self.notify(&Change { key: key.clone(), old, new: Some(object), initial });
        Some(key)
    }

    /// Whether an object is here already, as new or newer. Most of what a watch sends is the echo of our own writes,
    /// and to find that out takes a fraction of reading all of it.
    fn is_known(&self, Identity { key, version: rv, .. }: &Identity) -> bool {
        let state = self.state.read();
        let known = state.objects.get(key).is_some_and(|known| version(known.meta()) >= *rv);
        known && !state.unreadable.contains_key(key)
    }

    /// Takes the answer to a write of our own in.
    pub(super) fn absorb(&self, bytes: &Bytes) {
        // Nothing is cached before the first list is complete: the list will bring it.
        if *self.synced.borrow() {
            self.present(bytes.clone(), Source::Own);
        }
    }

    /// An object is gone at a version.
    pub(super) fn gone(&self, object: impl Into<WatchedObject>) {
        let WatchedObject { bytes, identity } = object.into();
        let (key, uid, rv) = match identity {
            Some(Identity { key, version, uid: Some(uid) }) => (key, uid.into_string(), version),
            _ => {
                let Ok(Head { metadata }) = serde_json::from_slice(&bytes) else {
                    tracing::error!(kind = %self.kind, "a deleted object has no readable metadata");
                    return;
                };
                (metadata.key(), metadata.uid.clone(), version(&metadata))
            }
        };
        let mut state = self.state.write();
        state.progress = state.progress.max(rv);
        state.tombstones.remove(&uid);
        drop(state);
        self.remove(&key, |old| old.uid == uid);
    }

    /// We deleted an object and it went at once.
    pub(super) fn absorb_gone(&self, key: &Key, uid: &str) {
        let removed = self.remove(key, |old| old.uid == uid);
        if removed {
            self.state.write().tombstones.insert(uid.to_owned(), key.clone());
        }
    }

    /// A list is complete: what it did not name and is not newer is gone.
    pub(super) fn complete(&self, named: &BTreeSet<Key>, at: u64) {
        let mut state = self.state.write();
        state.progress = state.progress.max(at);
        // What a list taken after the deletion does not name will not be reported again.
        state.tombstones.retain(|_, key| named.contains(key));
        state.unreadable.retain(|key, _| named.contains(key));
        state.forget_charges();
        let missing: Vec<Key> = state
            .objects
            .iter()
            .filter(|(key, object)| !named.contains(key) && version(object.meta()) <= at)
            .map(|(key, _)| key.clone())
            .collect();
        drop(state);
        for key in missing {
            self.remove(&key, |old| version(old) <= at);
        }
        self.mark_synced();
    }

    /// Everything up to a version has arrived.
    pub(super) fn advance(&self, to: u64) {
        let mut state = self.state.write();
        state.progress = state.progress.max(to);
    }

    fn remove(&self, key: &Key, is_it: impl Fn(&ObjectMeta) -> bool) -> bool {
        let old = {
            let mut guard = self.state.write();
            let state = &mut *guard;
            state.unreadable.remove(key);
            let Some(old) = state.objects.get(key).filter(|old| is_it(old.meta())).cloned() else {
                if !state.objects.contains_key(key) {
                    state.charges.remove(key);
                }
                return false;
            };
            state.objects.remove(key);
            state.charges.remove(key);
            for index in std::iter::once(&mut state.owners).chain(state.indexes.values_mut()) {
                index.remove(key, &old);
            }
            old
        };
        self.notify(&Change { key: key.clone(), old: Some(old), new: None, initial: false });
        true
    }

    fn note_unreadable(&self, bytes: &Bytes, source: Source, error: &serde_json::Error) -> Option<Key> {
        let head = serde_json::from_slice::<Head>(bytes).ok()?;
        let key = head.metadata.key();
        let mut why = error.to_string();
        why.truncate(why.floor_char_boundary(LONGEST_REASON));
        let share = self.share.get();
        // A server that is not trusted could fill the log with them; readers of the object get the error.
        match share {
            None => tracing::error!(kind = %self.kind, %key, error = why, "an object cannot be read"),
            Some(_) => tracing::debug!(kind = %self.kind, %key, error = why, "an object cannot be read"),
        }
        let mut guard = self.state.write();
        let state = &mut *guard;
        if source == Source::Watch {
            state.progress = state.progress.max(version(&head.metadata));
        }
        if let Some(share) = share
            && !state.objects.contains_key(&key)
            && !state.charged(share, &key, UNREADABLE + why.len() + 2 * key.name.len())
        {
            return None;
        }
        state.unreadable.insert(key.clone(), why);
        Some(key)
    }

    fn notify(&self, change: &Change<T>) {
        let listeners = self.listeners.read().clone();
        for listener in &listeners {
            listener(change);
        }
    }
}

/// Which object it is and in what version, read without a copy of anything else.
fn identify(bytes: &Bytes) -> Option<Identity> {
    let IdentityFields { metadata } = serde_json::from_slice(bytes).ok()?;
    let version = metadata.resource_version.parse().ok()?;
    Some(Identity { key: Key::new(metadata.namespace, metadata.name), version, uid: None })
}

fn label_index(label: &str) -> String {
    format!("label {label}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Dynamic;

    fn cache() -> Cache<Dynamic> {
        let cache = Cache::new(KindName::namespaced("", "v1", "Secret", "secrets"), WatchScope::default());
        cache.mark_synced();
        cache
    }

    fn object(name: &str, uid: &str, rv: u64, label: &str) -> Bytes {
        Bytes::from(
            serde_json::json!({"metadata": {
                "namespace": "a", "name": name, "uid": uid, "resourceVersion": rv.to_string(),
                "labels": {"tier": label},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Own", "name": "o", "uid": "owner"}],
            }})
            .to_string(),
        )
    }

    fn version_of(cache: &Cache<Dynamic>, name: &str) -> Option<u64> {
        cache.get(&Key::new("a", name)).expect("readable").map(|object| version(object.metadata()))
    }

    #[test]
    fn an_older_event_does_not_undo_our_own_write() {
        let cache = cache();
        cache.present(object("x", "1", 5, "web"), Source::Watch);
        cache.absorb(&object("x", "1", 9, "web"));
        cache.present(object("x", "1", 7, "web"), Source::Watch);
        assert_eq!(version_of(&cache, "x"), Some(9));
    }

    #[test]
    fn the_echo_of_our_own_write_is_progress_and_nothing_else() {
        let cache = cache();
        let changes = Arc::new(parking_lot::Mutex::new(0));
        let count = changes.clone();
        cache.listen(move |_| *count.lock() += 1);
        cache.absorb(&object("x", "1", 9, "web"));
        cache.present(object("x", "1", 9, "web"), Source::Watch);
        assert_eq!((*changes.lock(), cache.progress()), (1, 9));
    }

    #[test]
    fn a_late_answer_does_not_bring_back_what_has_gone_since() {
        let cache = cache();
        cache.present(object("x", "1", 5, "web"), Source::Watch);
        cache.gone(object("x", "1", 7, "web"));
        cache.absorb(&object("x", "1", 6, "web"));
        assert_eq!(version_of(&cache, "x"), None, "it went at 7");
        cache.absorb(&object("x", "2", 8, "web"));
        assert_eq!(version_of(&cache, "x"), Some(8), "this one is new");
    }

    #[test]
    fn a_late_event_does_not_bring_back_what_we_deleted_at_once() {
        let cache = cache();
        cache.present(object("x", "1", 5, "web"), Source::Watch);
        cache.absorb_gone(&Key::new("a", "x"), "1");
        cache.present(object("x", "1", 6, "web"), Source::Watch);
        assert_eq!(version_of(&cache, "x"), None);
        cache.gone(object("x", "1", 7, "web"));
        cache.present(object("x", "2", 8, "web"), Source::Watch);
        assert_eq!(version_of(&cache, "x"), Some(8), "a successor of the name is another object");
    }

    #[test]
    fn the_deletion_of_a_predecessor_leaves_its_successor_alone() {
        let cache = cache();
        cache.absorb(&object("x", "2", 8, "web"));
        cache.gone(object("x", "1", 7, "web"));
        assert_eq!(version_of(&cache, "x"), Some(8));
    }

    #[test]
    fn a_complete_list_removes_what_it_does_not_name_unless_that_is_newer() {
        let cache = cache();
        for (name, rv) in [("stays", 3), ("went", 4), ("newer", 12)] {
            cache.present(object(name, name, rv, "web"), Source::Watch);
        }
        cache.complete(&BTreeSet::from([Key::new("a", "stays")]), 10);
        assert_eq!(
            [version_of(&cache, "stays"), version_of(&cache, "went"), version_of(&cache, "newer")],
            [Some(3), None, Some(12)]
        );
    }

    #[test]
    fn objects_are_found_by_owner_label_and_index_as_they_change() {
        let cache = cache();
        cache.index_label("tier");
        cache.index("uid", |object: &Dynamic| vec![object.metadata().uid.clone()]);
        cache.present(object("x", "1", 1, "web"), Source::Watch);
        cache.present(object("y", "2", 2, "web"), Source::Watch);
        cache.present(object("x", "1", 3, "db"), Source::Watch);
        let names = |objects: Vec<Arc<Dynamic>>| -> Vec<String> {
            objects.iter().map(|object| object.metadata().name.clone()).collect()
        };
        assert_eq!(names(cache.labelled("a", "tier", "web").expect("list")), ["y"]);
        assert_eq!(names(cache.labelled("", "tier", "db").expect("list")), ["x"]);
        assert_eq!(names(cache.owned_by("owner").expect("list")), ["x", "y"]);
        assert_eq!(names(cache.indexed("uid", "2").expect("list")), ["y"]);
        assert!(cache.indexed("nothing", "2").is_err());
    }

    #[test]
    fn what_cannot_be_read_is_an_error_not_an_absence() {
        let cache = cache();
        let broken = r#"{"metadata":{"namespace":"a","name":"x","resourceVersion":"4"},"metadata2":"#;
        cache.present(Bytes::from_static(broken.as_bytes()), Source::Watch);
        assert!(cache.get(&Key::new("a", "x")).expect("unparsable text names nothing").is_none());
        let typed: Cache<Numbered> =
            Cache::new(KindName::namespaced("", "v1", "Secret", "secrets"), WatchScope::default());
        typed.present(object("x", "1", 1, "web"), Source::Watch);
        assert!(typed.get(&Key::new("a", "x")).is_err());
        assert!(typed.list("a").is_err());
        assert!(typed.list("b").is_ok());
    }

    /// Reads nothing.
    struct Numbered(ObjectMeta);

    impl Cached for Numbered {
        fn meta(&self) -> &ObjectMeta {
            &self.0
        }

        fn decode(_: &Bytes) -> Result<Self, serde_json::Error> {
            Err(serde::de::Error::custom("never"))
        }

        fn weight(&self) -> usize {
            0
        }
    }
}
