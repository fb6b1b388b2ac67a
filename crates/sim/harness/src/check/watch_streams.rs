//! Watch events that the server sends, compared with the store.

use std::collections::{BTreeMap, VecDeque};

use capstan_apiserver::Digest;
use capstan_store::Watch;

use super::Checker;
use crate::Objects;
use crate::watch_tap::{Collection, WatchEvent};

/// A2: a process receives every change once and in order, and no bookmark is ahead of a change. A4: the initial list
/// of a watch is the state at the version it names.
#[derive(Default)]
pub struct WatchStreams {
    watches: BTreeMap<u64, (Collection, Following)>,
}

/// One watch, and the part of the store's history that it must send.
#[derive(Default)]
struct Following {
    /// Objects listed so far; `None` after the initial list.
    listing: Option<BTreeMap<String, u64>>,
    /// `None` if the history was compacted or the watch has selectors.
    history: Option<Watch<Digest>>,
    /// Changes that must be sent next.
    due: VecDeque<Change>,
    reached: u64,
}

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

    fn event(
        &mut self,
        event: &WatchEvent,
        collection: &Collection,
        objects: &Objects,
    ) -> Result<(), String> {
        let change =
            |key: &String, version: &u64, present| Change { key: key.clone(), version: *version, present };
        match (event, &mut self.listing) {
            (WatchEvent::Present(key, version), Some(list)) => match list.insert(key.clone(), *version) {
                Some(_) => Err(format!("A4: {key} is listed twice")),
                None => Ok(()),
            },
            (WatchEvent::Bookmark(version), Some(list)) => {
                let list = std::mem::take(list);
                *self = Self::after(*version, collection, objects);
                listed(&list, *version, collection, objects)
            }
            (WatchEvent::Deleted(key, _), Some(_)) => Err(format!("A4: {key} is listed as deleted")),
            (WatchEvent::Present(key, version), None) => self.change(change(key, version, true)),
            (WatchEvent::Deleted(key, version), None) => self.change(change(key, version, false)),
            (WatchEvent::Bookmark(version), None) => self.bookmark(*version),
            (WatchEvent::Started(_) | WatchEvent::Ended, _) => Ok(()),
        }
    }

    /// Reads what the store has committed meanwhile.
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

    fn change(&mut self, event: Change) -> Result<(), String> {
        let Change { key, version, .. } = &event;
        if *version < self.reached {
            return Err(format!("A2: {key} at {version} is sent after {}", self.reached));
        }
        self.catch_up();
        if self.history.is_some() {
            match self.due.pop_front() {
                Some(due) if due == event => {}
                Some(due) if due.version <= *version => {
                    return Err(format!("A2: {event:?} is sent instead of {due:?}"));
                }
                _ => return Err(format!("A2: {event:?} is sent twice or never happened")),
            }
        }
        self.reached = *version;
        Ok(())
    }

    fn bookmark(&mut self, version: u64) -> Result<(), String> {
        self.catch_up();
        match self.due.front() {
            Some(due) if due.version <= version => {
                Err(format!("A2: {due:?} is not sent before the bookmark {version}"))
            }
            _ => {
                self.reached = version;
                Ok(())
            }
        }
    }
}

/// Compares the initial list with the store.
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
    let stored: BTreeMap<String, u64> = snapshot
        .range(&collection.prefix, None)
        .map(|entry| (entry.key.to_string(), entry.revision))
        .collect();
    if stored == *list {
        return Ok(());
    }
    let missing: Vec<_> = stored.iter().filter(|(key, at)| list.get(*key) != Some(at)).collect();
    let extra: Vec<_> = list.keys().filter(|key| !stored.contains_key(*key)).collect();
    Err(format!("A4: the list at {version} lacks {missing:?} and also has {extra:?}"))
}

impl Checker for WatchStreams {
    fn name(&self) -> &'static str {
        "A2/A4"
    }

    fn watch_event(
        &mut self,
        watch: u64,
        collection: &Collection,
        event: &WatchEvent,
        objects: &Objects,
    ) -> Result<(), String> {
        let mut begin = |following| {
            self.watches.insert(watch, (collection.clone(), following));
            Ok(())
        };
        let result = match event {
            WatchEvent::Started(None) => {
                begin(Following { listing: Some(BTreeMap::new()), ..Following::default() })
            }
            WatchEvent::Started(Some(version)) => begin(Following::after(*version, collection, objects)),
            WatchEvent::Ended => {
                self.watches.remove(&watch);
                Ok(())
            }
            _ => match self.watches.get_mut(&watch) {
                Some((_, following)) => following.event(event, collection, objects),
                None => Ok(()),
            },
        };
        result.map_err(|what| format!("{}: {what}", collection.bucket))
    }

    fn booted(&mut self, _: &Objects) -> Result<(), String> {
        self.watches.clear();
        Ok(())
    }

    fn idle(&mut self, _: &Objects) -> Result<(), String> {
        for (collection, following) in self.watches.values_mut() {
            following.catch_up();
            if let Some(due) = following.due.front() {
                return Err(format!("{}: A2: {due:?} is never sent", collection.bucket));
            }
        }
        Ok(())
    }
}
