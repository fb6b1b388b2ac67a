//! What the server tells a process, against what the store holds.

use std::collections::{BTreeMap, VecDeque};

use capstan_apiserver::Digest;
use capstan_store::Watch;

use super::Checker;
use crate::Objects;
use crate::wire::{Collection, Told};

/// A2: a process hears of every change once and in order, and a bookmark passes over none. A4: the list that a watch
/// begins with is the state at the version it names.
#[derive(Default)]
pub struct Heard {
    watches: BTreeMap<u64, (Collection, Following)>,
}

/// One watch, beside the history that it should tell.
#[derive(Default)]
struct Following {
    /// What was listed so far; `None` after the list.
    listing: Option<BTreeMap<String, u64>>,
    /// `None` where the history does not reach back that far, or the watch leaves some of it out.
    history: Option<Watch<Digest>>,
    /// What is to be told next.
    due: VecDeque<Change>,
    reached: u64,
}

/// A change of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    key: String,
    version: u64,
    present: bool,
}

impl Following {
    fn after(version: u64, collection: &Collection, objects: &Objects) -> Self {
        let store = objects.store();
        let watch = || store.watch(&collection.bucket, &collection.prefix, version).ok();
        let history = if collection.selectors.is_empty() { watch() } else { None };
        Self { history, reached: version, ..Self::default() }
    }

    fn hear(&mut self, told: &Told, collection: &Collection, objects: &Objects) -> Result<(), String> {
        let change =
            |key: &String, version: &u64, present| Change { key: key.clone(), version: *version, present };
        match (told, &mut self.listing) {
            (Told::Present(key, version), Some(list)) => match list.insert(key.clone(), *version) {
                Some(_) => Err(format!("A4: {key} is listed twice")),
                None => Ok(()),
            },
            (Told::Everything(version), Some(list)) => {
                let list = std::mem::take(list);
                *self = Self::after(*version, collection, objects);
                listed(&list, *version, collection, objects)
            }
            (Told::Gone(key, _), Some(_)) => Err(format!("A4: {key} is listed as gone")),
            (Told::Present(key, version), None) => self.change(change(key, version, true)),
            (Told::Gone(key, version), None) => self.change(change(key, version, false)),
            (Told::Everything(version), None) => self.everything(*version),
            (Told::Begins(_) | Told::Ends, _) => Ok(()),
        }
    }

    /// Takes up what the store has committed meanwhile.
    fn catch_up(&mut self) {
        let Some(history) = &mut self.history else { return };
        loop {
            match history.ready() {
                Ok(Some(batch)) => self.due.extend(batch.events.iter().map(|event| Change {
                    key: event.key().to_owned(),
                    version: event.revision,
                    present: event.current.is_some(),
                })),
                Ok(None) => return,
                Err(_) => {
                    self.history = None;
                    self.due.clear();
                    return;
                }
            }
        }
    }

    fn change(&mut self, told: Change) -> Result<(), String> {
        let Change { key, version, .. } = &told;
        if *version < self.reached {
            return Err(format!("A2: {key} at {version} is told after {}", self.reached));
        }
        self.catch_up();
        if self.history.is_some() {
            match self.due.pop_front() {
                Some(due) if due == told => {}
                Some(due) if due.version <= *version => {
                    return Err(format!("A2: {told:?} is told instead of {due:?}"));
                }
                _ => return Err(format!("A2: {told:?} is told twice, or never happened")),
            }
        }
        self.reached = *version;
        Ok(())
    }

    fn everything(&mut self, version: u64) -> Result<(), String> {
        self.catch_up();
        match self.due.front() {
            Some(due) if due.version <= version => {
                Err(format!("A2: {due:?} is not told before the bookmark of {version}"))
            }
            _ => {
                self.reached = version;
                Ok(())
            }
        }
    }
}

/// What was listed is what the store held.
fn listed(
    list: &BTreeMap<String, u64>,
    version: u64,
    collection: &Collection,
    objects: &Objects,
) -> Result<(), String> {
    if !collection.selectors.is_empty() {
        return Ok(());
    }
    let Ok(snapshot) = objects.store().snapshot_at(&collection.bucket, version) else { return Ok(()) };
    let there: BTreeMap<String, u64> = snapshot
        .range(&collection.prefix, None)
        .map(|entry| (entry.key.to_string(), entry.revision))
        .collect();
    if there == *list {
        return Ok(());
    }
    let missing: Vec<_> = there.iter().filter(|(key, at)| list.get(*key) != Some(at)).collect();
    let extra: Vec<_> = list.keys().filter(|key| !there.contains_key(*key)).collect();
    Err(format!("A4: the list at {version} lacks {missing:?} and has {extra:?} besides"))
}

impl Checker for Heard {
    fn name(&self) -> &'static str {
        "A2/A4"
    }

    fn told(
        &mut self,
        watch: u64,
        collection: &Collection,
        told: &Told,
        objects: &Objects,
    ) -> Result<(), String> {
        let mut begin = |following| {
            self.watches.insert(watch, (collection.clone(), following));
            Ok(())
        };
        let result = match told {
            Told::Begins(None) => begin(Following { listing: Some(BTreeMap::new()), ..Following::default() }),
            Told::Begins(Some(version)) => begin(Following::after(*version, collection, objects)),
            Told::Ends => {
                self.watches.remove(&watch);
                Ok(())
            }
            _ => match self.watches.get_mut(&watch) {
                Some((_, following)) => following.hear(told, collection, objects),
                None => Ok(()),
            },
        };
        result.map_err(|what| format!("{}: {what}", collection.bucket))
    }

    fn booted(&mut self, _: &Objects) -> Result<(), String> {
        self.watches.clear();
        Ok(())
    }

    fn at_rest(&mut self, _: &Objects) -> Result<(), String> {
        for (collection, following) in self.watches.values_mut() {
            following.catch_up();
            if let Some(due) = following.due.front() {
                return Err(format!("{}: A2: {due:?} is never told", collection.bucket));
            }
        }
        Ok(())
    }
}
