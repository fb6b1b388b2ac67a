//! Properties of the store.

use std::collections::BTreeMap;

use capstan_apiserver::Digest;
use capstan_controller::EffectOf;
use capstan_store::{HistoryError, Store, Watch};

use super::fence::version;
use super::{Checker, Step};
use crate::Objects;
use crate::objects::{bucket, path};

/// A1: a write with a precondition applies to exactly the version it names. A3: an acknowledged write survives every
/// restart, unless it was deleted later.
#[derive(Default)]
pub struct Acknowledged {
    versions: BTreeMap<(String, String), u64>,
    /// Last version each controller received; responses of several controllers may arrive out of order.
    last_seen: BTreeMap<(String, String, String), u64>,
}

impl Acknowledged {
    /// Records an acknowledged write. For one writer, versions of an object only increase.
    fn acknowledge(&mut self, actor: &str, bucket: &str, key: &str, version: u64) -> Result<(), String> {
        self.acknowledge_unguarded(bucket, key, version);
        let last_seen = (actor.to_owned(), bucket.to_owned(), key.to_owned());
        let before = self.last_seen.insert(last_seen, version).unwrap_or_default();
        if version < before {
            return Err(format!(
                "A1: {bucket} {key} goes back from version {before} to {version} for {actor}"
            ));
        }
        Ok(())
    }

    /// Records an acknowledged write without a precondition. One controller may have several in flight, and their
    /// responses may arrive out of order.
    fn acknowledge_unguarded(&mut self, bucket: &str, key: &str, version: u64) {
        let known = self.versions.entry((bucket.to_owned(), key.to_owned())).or_default();
        *known = version.max(*known);
    }

    /// Checks after a restart that an acknowledged version is still there or was deleted later.
    fn survived(
        &self,
        current: impl Fn(&str, &str) -> Option<u64>,
        deleted_after: impl Fn(&str, &str, u64) -> bool,
    ) -> Result<(), String> {
        for ((bucket, key), acknowledged) in &self.versions {
            let there = match current(bucket, key) {
                Some(version) => version >= *acknowledged,
                None => deleted_after(bucket, key, *acknowledged),
            };
            if !there {
                return Err(format!(
                    "A3: version {acknowledged} of {bucket} {key} was acknowledged but is lost"
                ));
            }
        }
        Ok(())
    }
}

/// A write with a precondition must apply to the version it names.
fn exact(guard: u64, answered: u64, before: Option<u64>) -> Result<(), String> {
    if answered == guard || before == Some(guard) {
        Ok(())
    } else {
        Err(format!(
            "A1: a write with precondition {guard} was applied to {before:?} and returned {answered}"
        ))
    }
}

impl Checker for Acknowledged {
    fn name(&self) -> &'static str {
        "A1/A3"
    }

    fn after(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        if step.workload {
            return Ok(());
        }
        let (kind, key, guard) = match step.effect {
            EffectOf::Create { kind, key, .. } => (kind, key, None),
            EffectOf::Patch { kind, key, patch, .. } => {
                (kind, key, patch.body()["metadata"]["resourceVersion"].as_str())
            }
            EffectOf::Replace { kind, key, body, .. } => {
                (kind, key, body["metadata"]["resourceVersion"].as_str())
            }
            _ => return Ok(()),
        };
        let Ok(bytes) = step.result else { return Ok(()) };
        let Some(answered) = version(bytes) else { return Ok(()) };
        // Events are stored with those of the core group.
        if kind.group == "events.k8s.io" {
            return Ok(());
        }
        let (bucket, path) = (bucket(kind), path(key));
        if let Some(guard) = guard.and_then(|text| text.parse().ok()) {
            let watch = objects.store().watch(&bucket, &path, answered.saturating_sub(1));
            if let Ok(mut watch) = watch
                && let Ok(Some(batch)) = watch.ready()
                && let Some(event) =
                    batch.events.iter().find(|event| event.revision == answered && event.key() == path)
            {
                exact(guard, answered, event.previous.as_ref().map(|entry| entry.revision))?;
            }
        }
        if guard.is_none() && matches!(step.effect, EffectOf::Patch { .. }) {
            self.acknowledge_unguarded(&bucket, &path, answered);
            return Ok(());
        }
        self.acknowledge(step.actor, &bucket, &path, answered)
    }

    fn booted(&mut self, objects: &Objects) -> Result<(), String> {
        let store = objects.store();
        self.survived(
            |bucket, key| store.get(bucket, key).map(|entry| entry.revision),
            // The write that removes the last finalizer deletes the object: its version is that of the deletion.
            |bucket, key, version| match store.watch(bucket, key, version.saturating_sub(1)) {
                Ok(mut watch) => watch.ready().ok().flatten().is_some_and(|batch| {
                    batch.events.iter().any(|event| event.key() == key && event.current.is_none())
                }),
                // The history was compacted: unknown.
                Err(HistoryError::Compacted { .. }) => true,
                // The store has not reached that version again.
                Err(HistoryError::Future { .. }) => false,
            },
        )
    }
}

/// A2: a watch sends every change once and in order, also across restarts. A4: a list plus the events of a watch
/// equals the next list.
#[derive(Default)]
pub struct History {
    buckets: BTreeMap<String, Followed>,
}

#[derive(Default)]
struct Followed {
    watch: Option<Watch<Digest>>,
    model: Model,
}

impl Followed {
    /// The history no longer reaches back to what is known: who follows lists again, as after a 410.
    fn list(&mut self, store: &Store<Digest>, name: &str) -> Option<Watch<Digest>> {
        let snapshot = store.snapshot(name);
        let list = snapshot.range("", None);
        self.model = Model {
            entries: list.map(|entry| (entry.key.to_string(), entry.revision)).collect(),
            progress: snapshot.revision(),
            seen: Vec::new(),
        };
        store.watch(name, "", snapshot.revision()).ok()
    }
}

/// The entries of a bucket as a watcher knows them.
#[derive(Default)]
struct Model {
    entries: BTreeMap<String, u64>,
    progress: u64,
    /// Keys seen at `progress`.
    seen: Vec<String>,
}

impl Model {
    fn event(
        &mut self,
        key: &str,
        revision: u64,
        previous: Option<u64>,
        present: bool,
    ) -> Result<(), String> {
        if revision < self.progress {
            return Err(format!("A2: {key} at {revision} is sent after {}", self.progress));
        }
        if revision > self.progress {
            self.seen.clear();
            self.progress = revision;
        }
        if self.seen.iter().any(|seen| seen == key) {
            return Err(format!("A2: {key} at {revision} is sent twice"));
        }
        self.seen.push(key.to_owned());
        if self.entries.get(key).copied() != previous {
            let known = self.entries.get(key);
            return Err(format!("A2: {key} was {known:?} to the watcher and {previous:?} to the store"));
        }
        if present {
            self.entries.insert(key.to_owned(), revision);
        } else {
            self.entries.remove(key);
        }
        Ok(())
    }

    fn same_as(&self, list: &BTreeMap<String, u64>) -> Result<(), String> {
        if self.entries == *list {
            return Ok(());
        }
        let missed: Vec<_> = list.iter().filter(|(key, at)| self.entries.get(*key) != Some(at)).collect();
        let extra: Vec<_> = self.entries.keys().filter(|key| !list.contains_key(*key)).collect();
        Err(format!("A4: the watch missed {missed:?} and still has {extra:?}"))
    }
}

impl History {
    fn follow(&mut self, objects: &Objects) -> Result<(), String> {
        let store = objects.store();
        for name in store.buckets() {
            let followed = self.buckets.entry(name.to_string()).or_default();
            if followed.watch.is_none() {
                followed.watch = match store.watch(&name, "", followed.model.progress) {
                    Ok(watch) => Some(watch),
                    Err(HistoryError::Future { requested, current }) => {
                        return Err(format!(
                            "A2: {name} was sent up to {requested}, but the store is at {current}"
                        ));
                    }
                    Err(HistoryError::Compacted { .. }) => followed.list(store, &name),
                };
            }
            let Some(watch) = &mut followed.watch else { continue };
            loop {
                match watch.ready() {
                    Ok(Some(batch)) => {
                        for event in &batch.events {
                            let previous = event.previous.as_ref().map(|entry| entry.revision);
                            let present = event.current.is_some();
                            followed.model.event(event.key(), event.revision, previous, present)?;
                        }
                    }
                    Ok(None) => break,
                    // Nothing was looked at for so long that what expired meanwhile is history no more.
                    Err(_) => {
                        followed.watch = followed.list(store, &name);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn compare(&self, objects: &Objects) -> Result<(), String> {
        for (name, followed) in &self.buckets {
            let snapshot = objects.store().snapshot(name);
            let list =
                snapshot.range("", None).map(|entry| (entry.key.to_string(), entry.revision)).collect();
            followed.model.same_as(&list).map_err(|what| format!("{name}: {what}"))?;
        }
        Ok(())
    }
}

impl Checker for History {
    fn name(&self) -> &'static str {
        "A2/A4"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        self.follow(objects)
    }

    fn booted(&mut self, objects: &Objects) -> Result<(), String> {
        for followed in self.buckets.values_mut() {
            followed.watch = None;
        }
        self.follow(objects)?;
        self.compare(objects)
    }

    fn idle(&mut self, objects: &Objects) -> Result<(), String> {
        self.follow(objects)?;
        self.compare(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_on_another_version_than_it_names_is_caught() {
        assert!(exact(4, 9, Some(4)).is_ok());
        assert!(exact(4, 4, None).is_ok(), "nothing changed");
        assert!(exact(4, 9, Some(7)).is_err());
        let mut acknowledged = Acknowledged::default();
        acknowledged.acknowledge("a", "b", "k", 5).expect("forward");
        assert!(acknowledged.acknowledge("another", "b", "k", 3).is_ok());
        assert!(acknowledged.acknowledge("a", "b", "k", 3).is_err());
    }

    #[test]
    fn an_acknowledged_write_that_is_lost_is_caught() {
        let mut acknowledged = Acknowledged::default();
        acknowledged.acknowledge("a", "b", "k", 5).expect("forward");
        for (current, deleted, holds) in [
            (Some(5), false, true),
            (Some(8), false, true),
            (None, true, true),
            (Some(4), false, false),
            (None, false, false),
        ] {
            assert_eq!(
                acknowledged.survived(|_, _| current, |_, _, _| deleted).is_ok(),
                holds,
                "{current:?}"
            );
        }
    }

    #[test]
    fn a_watch_out_of_order_or_twice_or_with_a_gap_is_caught() {
        type Sent = (&'static str, u64, Option<u64>, bool);
        let cases: [(&str, &[Sent], bool); 5] = [
            ("in order", &[("a", 1, None, true), ("b", 2, None, true), ("a", 3, Some(1), false)], true),
            ("one transaction", &[("a", 1, None, true), ("b", 1, None, true)], true),
            ("backwards", &[("a", 2, None, true), ("b", 1, None, true)], false),
            ("twice", &[("a", 1, None, true), ("a", 1, Some(1), true)], false),
            ("a gap", &[("a", 1, None, true), ("a", 3, Some(2), true)], false),
        ];
        for (name, sent, holds) in cases {
            let mut model = Model::default();
            let mut result = Ok(());
            for (key, revision, previous, present) in sent {
                result = result.and_then(|()| model.event(key, *revision, *previous, *present));
            }
            assert_eq!(result.is_ok(), holds, "{name}: {result:?}");
        }
    }

    #[test]
    fn a_watch_that_ends_elsewhere_than_the_list_is_caught() {
        let mut model = Model::default();
        model.event("a", 1, None, true).expect("in order");
        assert!(model.same_as(&BTreeMap::from([("a".to_owned(), 1)])).is_ok());
        assert!(model.same_as(&BTreeMap::from([("a".to_owned(), 2)])).is_err());
        assert!(model.same_as(&BTreeMap::new()).is_err());
    }
}
