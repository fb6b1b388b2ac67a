//! Garbage collection by owner references: background, foreground and orphaning.
//!
//! Maintains one index, owner uid → dependents, built from the store at startup and updated with every change.
//! Whether an owner exists is always looked up in the store, never in the index.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Weak};

use capstan_store::Entry;
use futures::StreamExt;
use serde_json::{Value, json};

use super::{Changes, alive, retry::Retry};
use crate::call::Call;
use crate::controllers::Committed;
use crate::digest::Digest;
use crate::http::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::object::{Meta, OwnerRef};
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change};
use crate::registry::{Registry, Resource};
use crate::status::Result;
use crate::verbs::delete::{FOREGROUND, ORPHAN, delete_object};

/// Concurrent deletions.
const CONCURRENT: usize = 16;

/// Bucket and key of an object.
type ObjectKey = (Arc<str>, Arc<str>);

#[derive(Default)]
struct Index {
    dependents: HashMap<Box<str>, BTreeSet<ObjectKey>>,
    owners: HashMap<ObjectKey, Vec<Box<str>>>,
}

impl Index {
    fn set(&mut self, key: ObjectKey, owners: &[OwnerRef]) {
        let uids: Vec<Box<str>> = owners.iter().map(|o| o.uid.as_str().into()).collect();
        let before = if uids.is_empty() {
            self.owners.remove(&key)
        } else {
            self.owners.insert(key.clone(), uids.clone())
        };
        for uid in without(before.unwrap_or_default(), &uids) {
            if let Some(dependents) = self.dependents.get_mut(&uid) {
                dependents.remove(&key);
                if dependents.is_empty() {
                    self.dependents.remove(&uid);
                }
            }
        }
        for uid in uids {
            self.dependents.entry(uid).or_default().insert(key.clone());
        }
    }

    fn of(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.dependents.get(uid).into_iter().flatten()
    }
}

/// The elements of `all` that are not in `taken`. Linear time: objects may have thousands of owners.
fn without<T: Hash + Eq>(all: Vec<T>, taken: &[T]) -> Vec<T> {
    let taken: HashSet<&T> = taken.iter().collect();
    let mut all = all;
    all.retain(|one| !taken.contains(one));
    all
}

/// Runs the garbage collector until the server shuts down.
pub(crate) async fn run(parts: Weak<ServerParts>, mut changes: Changes) {
    let mut index = Index::default();
    let mut retry = Retry::new();
    let mut dirty: BTreeSet<ObjectKey> = BTreeSet::new();
    if let Some(parts) = alive(&parts) {
        for bucket in parts.store.buckets() {
            for entry in parts.store.snapshot(&bucket).range("", None) {
                let key = (entry.bucket.clone(), entry.key.clone());
                index.set(key.clone(), &entry.digest().owners);
                if !entry.digest().owners.is_empty() || entry.digest().terminating {
                    dirty.insert(key);
                }
            }
        }
    }
    loop {
        if dirty.is_empty() {
            tokio::select! {
                biased;
                change = changes.recv() => match change {
                    Some(change) => on_change(&parts, &mut index, &mut dirty, &change),
                    None => return,
                },
                key = retry.next() => { dirty.insert(key); }
            }
        }
        while let Ok(change) = changes.try_recv() {
            on_change(&parts, &mut index, &mut dirty, &change);
        }
        let Some(parts) = alive(&parts) else { return };
        let work: Vec<ObjectKey> = std::mem::take(&mut dirty).into_iter().collect();
        let index_ref = &index;
        let shared_ref = &parts;
        let outcomes: Vec<(ObjectKey, Result<()>)> = futures::stream::iter(work)
            .map(|key| async move {
                let outcome = collect(shared_ref, index_ref, &key).await;
                (key, outcome)
            })
            .buffer_unordered(CONCURRENT)
            .collect()
            .await;
        for (key, outcome) in outcomes {
            match outcome {
                Ok(()) => retry.succeeded(&key),
                Err(status) => {
                    tracing::debug!(bucket = %key.0, key = %key.1, error = %status, "garbage collection failed; retrying");
                    retry.failed(key);
                }
            }
        }
    }
}

fn on_change(
    parts: &Weak<ServerParts>,
    index: &mut Index,
    dirty: &mut BTreeSet<ObjectKey>,
    change: &Committed,
) {
    let Some(parts) = alive(parts) else { return };
    let key = (change.bucket.clone(), change.key.clone());
    let entry = parts.store.get(&change.bucket, &change.key);
    match &entry {
        Some(entry) => index.set(key.clone(), &entry.digest().owners),
        None => index.set(key.clone(), &[]),
    }
    let registry = parts.registry.load();
    if change.gone {
        dirty.extend(index.of(&change.uid).cloned());
    }
    if let Some(entry) = &entry {
        let digest = entry.digest();
        let held = digest.finalizers.iter().any(|f| matches!(&**f, ORPHAN | FOREGROUND));
        if !digest.owners.is_empty() || (digest.terminating && held) {
            dirty.insert(key);
        }
    }
    // Requeues owners that waited for this object, which is gone or no longer blocks them.
    let owners = entry.as_ref().map(|entry| &*entry.digest().owners).unwrap_or_default();
    let blocked: HashSet<&str> = owners.iter().filter(|o| o.block).map(|o| o.uid.as_str()).collect();
    let waits = |o: &&OwnerRef| change.gone || (o.block && !blocked.contains(o.uid.as_str()));
    for owner in change.owners.iter().filter(waits) {
        if let OwnerState::Exists(owner) = find_owner(&parts, &registry, owner, &change.key) {
            dirty.insert((owner.bucket.clone(), owner.key.clone()));
        }
    }
}

/// Whether a dependent blocks the foreground deletion of its owner.
fn blocks(dependent: &Entry<Digest>, owner: &str) -> bool {
    dependent.digest().owners.iter().any(|o| *o.uid == *owner && o.block)
}

fn deletes_dependents(entry: &Entry<Digest>) -> bool {
    let digest = entry.digest();
    digest.terminating && digest.finalizers.iter().any(|f| **f == *FOREGROUND)
}

enum OwnerState {
    Exists(Arc<Entry<Digest>>),
    Absent,
    /// Unknown: the kind is not served, or the reference crosses namespaces.
    Unknown,
}

fn find_owner(parts: &ServerParts, registry: &Registry, owner: &OwnerRef, dependent_key: &str) -> OwnerState {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let Some(resource) = registry.find_kind(group, &owner.kind) else { return OwnerState::Unknown };
    let key = if resource.namespaced {
        match dependent_key.split_once('/') {
            Some((namespace, _)) => format!("{namespace}/{}", owner.name),
            None => return OwnerState::Unknown,
        }
    } else {
        owner.name.clone()
    };
    match parts.store.get(&resource.bucket, &key) {
        Some(entry) if *entry.digest().uid == *owner.uid => OwnerState::Exists(entry),
        _ => OwnerState::Absent,
    }
}

/// Reconciles one object: deletes it if its owners are gone, or handles its own finalizer.
async fn collect(parts: &Arc<ServerParts>, index: &Index, key: &ObjectKey) -> Result<()> {
    let Some(entry) = parts.store.get(&key.0, &key.1) else { return Ok(()) };
    let registry = parts.registry.load_full();
    let digest = entry.digest();
    let has = |finalizer: &str| digest.finalizers.iter().any(|f| **f == *finalizer);
    if digest.terminating && has(ORPHAN) {
        return orphan_dependents(parts, &registry, index, &entry).await;
    }
    if digest.terminating && has(FOREGROUND) {
        return delete_in_foreground(parts, &registry, index, &entry).await;
    }
    if digest.terminating || digest.owners.is_empty() {
        return Ok(());
    }
    delete_if_abandoned(parts, &registry, index, &entry).await
}

async fn delete_if_abandoned(
    parts: &Arc<ServerParts>,
    registry: &Arc<Registry>,
    index: &Index,
    entry: &Arc<Entry<Digest>>,
) -> Result<()> {
    let (mut solid, mut dangling, mut waiting) = (0, Vec::new(), Vec::new());
    for owner in &entry.digest().owners {
        match find_owner(parts, registry, owner, &entry.key) {
            OwnerState::Exists(found) => {
                if deletes_dependents(&found) {
                    waiting.push(owner.uid.clone());
                } else {
                    solid += 1;
                }
            }
            OwnerState::Absent => dangling.push(owner.uid.clone()),
            OwnerState::Unknown => solid += 1,
        }
    }
    if dangling.is_empty() && waiting.is_empty() {
        return Ok(());
    }
    let Some(call) = internal_call(parts, registry, entry) else { return Ok(()) };
    if solid > 0 {
        dangling.extend(waiting);
        return drop_owners(&call, dangling).await;
    }
    let has_dependents = index.of(&entry.digest().uid).next().is_some();
    let circle = !waiting.is_empty()
        && index.of(&entry.digest().uid).any(|key| {
            parts.store.get(&key.0, &key.1).is_some_and(|dependent| deletes_dependents(&dependent))
        });
    if circle {
        // Owner and dependent would wait for each other: this one waits, its owners do not.
        edit(&call, Edit::UnblockOwners).await?;
    }
    let policy = if entry.digest().finalizers.iter().any(|f| **f == *ORPHAN) {
        "Orphan"
    } else if entry.digest().finalizers.iter().any(|f| **f == *FOREGROUND)
        || (!waiting.is_empty() && has_dependents)
    {
        "Foreground"
    } else {
        "Background"
    };
    delete(&call, entry, policy).await
}

async fn delete(call: &Call, entry: &Entry<Digest>, policy: &str) -> Result<()> {
    let options = DeleteOptions {
        propagation: Some(policy.to_owned()),
        uid: Some(entry.digest().uid.to_string()),
        ..DeleteOptions::default()
    };
    match delete_object(call, &entry.key, &options).await {
        Err(status) if status.reason != "NotFound" && status.reason != "Conflict" => Err(status),
        _ => Ok(()),
    }
}

async fn delete_in_foreground(
    parts: &Arc<ServerParts>,
    registry: &Arc<Registry>,
    index: &Index,
    entry: &Arc<Entry<Digest>>,
) -> Result<()> {
    let mut blocked = false;
    for key in index.of(&entry.digest().uid) {
        let Some(dependent) = parts.store.get(&key.0, &key.1) else { continue };
        blocked |= blocks(&dependent, &entry.digest().uid);
        if !dependent.digest().terminating {
            delete_if_abandoned(parts, registry, index, &dependent).await?;
        }
    }
    if blocked {
        // The deletion of each dependent requeues the owner.
        let uid = &entry.digest().uid;
        let still = index
            .of(uid)
            .any(|key| parts.store.get(&key.0, &key.1).is_some_and(|dependent| blocks(&dependent, uid)));
        if still {
            return Ok(());
        }
    }
    match internal_call(parts, registry, entry) {
        Some(call) => drop_finalizer(&call, FOREGROUND).await,
        None => Ok(()),
    }
}

async fn orphan_dependents(
    parts: &Arc<ServerParts>,
    registry: &Arc<Registry>,
    index: &Index,
    entry: &Arc<Entry<Digest>>,
) -> Result<()> {
    for key in index.of(&entry.digest().uid) {
        let Some(dependent) = parts.store.get(&key.0, &key.1) else { continue };
        if let Some(call) = internal_call(parts, registry, &dependent) {
            drop_owners(&call, vec![entry.digest().uid.to_string()]).await?;
        }
    }
    match internal_call(parts, registry, entry) {
        Some(call) => drop_finalizer(&call, ORPHAN).await,
        None => Ok(()),
    }
}

/// Metadata changes of the collector.
enum Edit {
    DropOwners(Vec<String>),
    UnblockOwners,
    DropFinalizer(&'static str),
}

impl Change for Edit {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let mut object = current.clone();
        match self {
            Self::DropOwners(uids) => {
                let uids: HashSet<&str> = uids.iter().map(String::as_str).collect();
                let refs = object.meta().and_then(|m| m.get("ownerReferences")?.as_array()).cloned();
                let kept: Vec<Value> = refs
                    .unwrap_or_default()
                    .into_iter()
                    .filter(|r| !r["uid"].as_str().is_some_and(|uid| uids.contains(uid)))
                    .collect();
                object.set_meta("ownerReferences", kept);
            }
            Self::UnblockOwners => {
                let mut refs =
                    object.meta().and_then(|m| m.get("ownerReferences").cloned()).unwrap_or_default();
                for owner in refs.as_array_mut().into_iter().flatten() {
                    owner["blockOwnerDeletion"] = false.into();
                }
                object.set_meta("ownerReferences", refs);
            }
            Self::DropFinalizer(finalizer) => {
                let kept: Vec<String> = object.finalizers().into_iter().filter(|f| f != finalizer).collect();
                object.set_meta("finalizers", json!(kept));
            }
        }
        Ok(Step::Write { object, manager: call.manager("") })
    }
}

async fn drop_owners(call: &Call, uids: Vec<String>) -> Result<()> {
    edit(call, Edit::DropOwners(uids)).await
}

async fn drop_finalizer(call: &Call, finalizer: &'static str) -> Result<()> {
    edit(call, Edit::DropFinalizer(finalizer)).await
}

async fn edit(call: &Call, edit: Edit) -> Result<()> {
    match change(call, &edit, &WriteOptions::default(), WriteKind::Patch).await {
        Err(status) if status.reason != "NotFound" => Err(status),
        _ => Ok(()),
    }
}

fn internal_call(parts: &Arc<ServerParts>, registry: &Arc<Registry>, entry: &Entry<Digest>) -> Option<Call> {
    let resource: Arc<Resource> = registry.find_bucket(&entry.bucket)?.clone();
    let (namespace, name) = entry.key.split_once('/').unwrap_or(("", &entry.key));
    Some(parts.internal_call(
        "system:serviceaccount:kube-system:generic-garbage-collector",
        resource,
        namespace,
        name,
    ))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    /// A value that counts its comparisons.
    struct Compared<'c>(usize, &'c Cell<usize>);

    impl PartialEq for Compared<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Compared<'_> {}

    impl Hash for Compared<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn owners_are_compared_in_linear_time() {
        for count in [1_000, 4_000] {
            let comparisons = Cell::new(0);
            let numbered =
                |range: std::ops::Range<usize>| range.map(|n| Compared(n, &comparisons)).collect::<Vec<_>>();
            let left = without(numbered(0..count), &numbered(count / 2..count));
            assert_eq!(left.len(), count / 2);
            assert!(comparisons.get() < 2 * count, "{} comparisons of {count} owners", comparisons.get());
        }
    }

    #[test]
    fn a_removed_owner_has_no_dependents_in_the_index() {
        let key: ObjectKey = ("/pods".into(), "a/b".into());
        let owner = |uid: &str| OwnerRef { uid: uid.into(), ..OwnerRef::default() };
        let mut index = Index::default();
        index.set(key.clone(), &[owner("1"), owner("2")]);
        index.set(key.clone(), &[owner("2"), owner("3")]);
        let of = |index: &Index, uid: &str| index.of(uid).count();
        assert_eq!([of(&index, "1"), of(&index, "2"), of(&index, "3")], [0, 1, 1]);
        index.set(key, &[]);
        assert!(index.dependents.is_empty() && index.owners.is_empty());
    }
}
