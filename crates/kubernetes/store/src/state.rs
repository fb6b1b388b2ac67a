//! The published state: persistent maps, so that a version costs only what changed.

use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, Vector};

use crate::{
    Entry, Event, HistoryError, Snapshot,
    entry::{Stamp, Stamped},
};

/// The revision of an empty store. Not zero: Kubernetes clients read "0" as "any".
pub(crate) const FIRST_REVISION: u64 = 1;

/// One version of everything. Cloning is O(1), and changes to a clone do not affect the original.
pub(crate) struct State<D> {
    pub revision: u64,
    /// Events up to this revision may have been dropped.
    pub compacted: u64,
    /// Keys and values of all live entries, in bytes.
    pub weight: u64,
    /// Number of live entries.
    pub count: u64,
    pub buckets: OrdMap<Arc<str>, Arc<Bucket<D>>>,
}

/// A change of a key in a transaction, with its final bytes.
pub(crate) struct Change {
    pub bucket: Arc<str>,
    pub key: Arc<str>,
    pub value: Bytes,
    pub stamp: Stamp,
    pub mark: u64,
    pub deletes: bool,
    /// A delete whose final state is the entry before it. It has no value of its own.
    pub repeats: bool,
}

impl Change {
    /// A delete that need not repeat the entry in the log.
    pub fn repeating(write: &crate::Write) -> Self {
        let (bucket, key) = (write.bucket().clone(), write.key().clone());
        let stamp = Stamp { start: 0, len: 0 };
        Self {
            bucket,
            key,
            value: Bytes::new(),
            stamp,
            mark: write.body().mark,
            deletes: true,
            repeats: true,
        }
    }

    pub fn new(write: &crate::Write, revision: u64) -> Self {
        let body: &Stamped = write.body();
        let (value, stamp) = body.at(revision);
        let deletes = matches!(write, crate::Write::Delete { .. });
        let (bucket, key) = (write.bucket().clone(), write.key().clone());
        Self { bucket, key, value, stamp, mark: body.mark, deletes, repeats: false }
    }
}

impl<D> State<D> {
    pub fn empty() -> Self {
        Self { revision: FIRST_REVISION, compacted: 0, weight: 0, count: 0, buckets: OrdMap::new() }
    }

    /// The same entries without history.
    pub fn without_history(&self) -> Self {
        let bare = |(name, bucket): (&Arc<str>, &Arc<Bucket<D>>)| {
            let Bucket { entries, revision, .. } = &**bucket;
            let history = History { events: Vector::new(), first: 0 };
            (name.clone(), Arc::new(Bucket { entries: entries.clone(), revision: *revision, history }))
        };
        Self { compacted: self.revision, buckets: self.buckets.iter().map(bare).collect(), ..*self }
    }

    pub fn get(&self, bucket: &str, key: &str) -> Option<&Arc<Entry<D>>> {
        self.buckets.get(bucket)?.entries.get(key)
    }

    pub fn snapshot(&self, bucket: &str) -> Snapshot<D> {
        let entries = self.buckets.get(bucket).map(|bucket| bucket.entries.clone()).unwrap_or_default();
        Snapshot { revision: self.revision, entries }
    }

    pub fn check(&self, requested: u64) -> Result<(), HistoryError> {
        if requested < self.compacted {
            Err(HistoryError::Compacted { requested, compacted: self.compacted })
        } else if requested > self.revision {
            Err(HistoryError::Future { requested, current: self.revision })
        } else {
            Ok(())
        }
    }

    /// The bucket at an older revision: undoes newer events, newest first.
    pub fn snapshot_at(&self, bucket: &str, revision: u64) -> Result<Snapshot<D>, HistoryError> {
        self.check(revision)?;
        let Some(bucket) = self.buckets.get(bucket) else {
            return Ok(Snapshot { revision, entries: OrdMap::new() });
        };
        let mut entries = bucket.entries.clone();
        for event in bucket.history.events.iter().rev().take_while(|event| event.revision > revision) {
            match &event.previous {
                Some(entry) => entries.insert(entry.key.clone(), entry.clone()),
                None => entries.remove(event.key()),
            };
        }
        Ok(Snapshot { revision, entries })
    }

    /// Applies one change of the transaction `revision` and returns its event.
    pub fn apply(&mut self, change: Change, revision: u64) -> Arc<Event<D>> {
        let Change { bucket: name, key, value, stamp, mark, deletes, repeats } = change;
        // Shares names with existing entries instead of keeping one per write.
        let name = match self.buckets.get_key_value(&*name) {
            Some((name, _)) => name.clone(),
            None => {
                self.buckets.insert(name.clone(), Arc::new(Bucket::empty()));
                name
            }
        };
        self.revision = revision;
        let Some(slot) = self.buckets.get_mut(&*name) else { unreachable!("inserted above") };
        let bucket = Arc::make_mut(slot);
        bucket.revision = revision;
        let event = if deletes {
            let previous = bucket.entries.remove(&*key);
            let value =
                previous.as_ref().filter(|_| repeats).map_or(value, |entry| entry.restamped(revision));
            Event { revision, current: None, previous, last: Some(value) }
        } else {
            let key = bucket.entries.get(&*key).map_or(key, |entry| entry.key.clone());
            let entry = Arc::new(Entry::new(name, key.clone(), revision, value, stamp).marked(mark));
            let previous = bucket.entries.insert(key, entry.clone());
            Event { revision, current: Some(entry), previous, last: None }
        };
        if let Some(entry) = &event.current {
            self.weight += entry.weight();
            self.count += 1;
        }
        if let Some(entry) = &event.previous {
            self.weight -= entry.weight();
            self.count -= 1;
        }
        let event = Arc::new(event);
        bucket.history.events.push_back(event.clone());
        event
    }

    /// Removes an entry without an event.
    pub fn remove(&mut self, bucket: &str, key: &str) {
        let Some(slot) = self.buckets.get_mut(bucket) else { return };
        if let Some(entry) = Arc::make_mut(slot).entries.remove(key) {
            self.weight -= entry.weight();
            self.count -= 1;
        }
    }

    /// Drops the events up to `floor` in the given buckets.
    pub fn forget<'a>(&mut self, floor: u64, buckets: impl IntoIterator<Item = &'a str>) {
        self.compacted = self.compacted.max(floor);
        for name in buckets {
            let Some(slot) = self.buckets.get_mut(name) else { continue };
            if slot.history.has_before(floor) {
                Arc::make_mut(slot).history.forget(floor);
            }
        }
    }
}

impl<D> Clone for State<D> {
    fn clone(&self) -> Self {
        Self { buckets: self.buckets.clone(), ..*self }
    }
}

/// One resource type: its entries and its recent events.
pub(crate) struct Bucket<D> {
    pub entries: OrdMap<Arc<str>, Arc<Entry<D>>>,
    /// Revision of the last change, deletes included.
    pub revision: u64,
    pub history: History<D>,
}

impl<D> Bucket<D> {
    pub fn empty() -> Self {
        Self { entries: OrdMap::new(), revision: 0, history: History { events: Vector::new(), first: 0 } }
    }
}

impl<D> Clone for Bucket<D> {
    fn clone(&self) -> Self {
        let history = History { events: self.history.events.clone(), first: self.history.first };
        Self { entries: self.entries.clone(), revision: self.revision, history }
    }
}

/// The recent events of a bucket. Each has a fixed position: the number of events before it since the store was
/// opened.
pub(crate) struct History<D> {
    /// Only pushed to the back and popped from the front.
    pub events: Vector<Arc<Event<D>>>,
    /// Position of the oldest kept event.
    pub first: u64,
}

impl<D> History<D> {
    /// Position of the next event.
    pub fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Position of the first event newer than `revision`.
    pub fn after(&self, revision: u64) -> u64 {
        let (mut low, mut high) = (0, self.events.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.events.get(middle).is_some_and(|event| event.revision > revision) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.first + low as u64
    }

    fn has_before(&self, floor: u64) -> bool {
        self.events.front().is_some_and(|event| event.revision <= floor)
    }

    fn forget(&mut self, floor: u64) {
        while self.has_before(floor) {
            self.events.pop_front();
            self.first += 1;
        }
    }
}
