//! Helpers, and the model that a store is compared with.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use capstan_store::{
    Batch, Event, Expect, Options, Salvaged, SimDisk, Stamped, Store, Watch, Write, WriteError, Written,
    disk::Disk,
};

pub type Plain = Store<()>;

pub const BUCKETS: [&str; 2] = ["b", "c"];

/// A value whose bytes are `text`, a space and the revision.
pub fn body(text: &str) -> Stamped {
    Stamped { head: Bytes::from(format!("{text} ")), ..Stamped::default() }
}

pub fn put(bucket: &str, key: &str, text: &str, expect: Expect) -> Write {
    Write::Put { bucket: bucket.into(), key: key.into(), value: body(text), expect }
}

pub fn delete(bucket: &str, key: &str, expect: Expect) -> Write {
    Write::Delete { bucket: bucket.into(), key: key.into(), last: body("last"), expect }
}

pub async fn set(store: &Plain, key: &str, text: &str) -> Result<Written<()>, WriteError<()>> {
    store.write(put("b", key, text, Expect::Any)).await
}

/// An event as text: revision, key, value before and after.
pub fn event_text(event: &Arc<Event<()>>) -> String {
    let text = |bytes: Option<&Bytes>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let previous = text(event.previous.as_ref().map(|entry| &entry.value)).unwrap_or_default();
    let current = text(event.current.as_ref().map(|entry| &entry.value).or(event.last.as_ref()));
    format!("{}:{}:{previous}:{}", event.revision, event.key(), current.unwrap_or_default())
}

/// All events that a watch has now.
pub fn drain(watch: &mut Watch<()>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(Batch { events, progress }) = watch.ready().unwrap() {
        assert!(events.iter().all(|event| event.revision <= progress));
        all.extend(events.iter().map(event_text));
    }
    all
}

/// A single-threaded runtime, for a deterministic order.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A manual clock.
#[derive(Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    pub fn advance(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }

    pub fn options(&self) -> Options {
        let clock = self.clone();
        Options::with_clock(move || {
            SystemTime::UNIX_EPOCH + Duration::from_millis(clock.0.load(Ordering::Relaxed))
        })
    }
}

/// The expected content of a store: its transactions, from which everything else follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Transactions from revision 2 on: bucket, key, and the text, or `None` for a delete.
    pub transactions: Vec<Vec<(String, String, Option<String>)>>,
}

impl Model {
    pub fn revision(&self) -> u64 {
        1 + self.transactions.len() as u64
    }

    /// Records the writes as the next transaction.
    pub fn commit(&mut self, writes: &[Write]) {
        let changes = writes.iter().map(|write| match write {
            Write::Put { bucket, key, value, .. } => {
                let text = String::from_utf8_lossy(&value.head).trim_end().to_owned();
                (bucket.to_string(), key.to_string(), Some(text))
            }
            Write::Delete { bucket, key, .. } => (bucket.to_string(), key.to_string(), None),
        });
        self.transactions.push(changes.collect());
    }

    fn numbered(&self) -> impl Iterator<Item = (u64, &(String, String, Option<String>))> {
        self.transactions
            .iter()
            .enumerate()
            .flat_map(|(index, changes)| changes.iter().map(move |change| (index as u64 + 2, change)))
    }

    /// The values of a bucket at a revision.
    pub fn at(&self, bucket: &str, revision: u64) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        for (number, (_, key, text)) in self.numbered().filter(|(_, change)| change.0 == bucket) {
            if number <= revision {
                match text {
                    Some(text) => values.insert(key.clone(), format!("{text} {number}")),
                    None => values.remove(key),
                };
            }
        }
        values
    }

    /// The events of a bucket after a revision, in the format of [`event_text`].
    pub fn events(&self, bucket: &str, after: u64) -> Vec<String> {
        let mut values: BTreeMap<&str, String> = BTreeMap::new();
        let mut events = Vec::new();
        for (number, (_, key, text)) in self.numbered().filter(|(_, change)| change.0 == bucket) {
            let previous = values.remove(key.as_str()).unwrap_or_default();
            let current = format!("{} {number}", text.as_deref().unwrap_or("last"));
            if number > after {
                events.push(format!("{number}:{key}:{previous}:{current}"));
            }
            if text.is_some() {
                values.insert(key, current);
            }
        }
        events
    }

    /// The revision of a key's entry.
    pub fn entry(&self, bucket: &str, key: &str) -> Option<u64> {
        let changes = self.numbered().filter(|(_, change)| change.0 == bucket && change.1 == key);
        changes.last().filter(|(_, change)| change.2.is_some()).map(|(number, _)| number)
    }

    /// The revision of the last change of a key, deletes included.
    pub fn last_change(&self, bucket: &str, key: &str) -> Option<u64> {
        let changes = self.numbered().filter(|(_, change)| change.0 == bucket && change.1 == key);
        changes.last().map(|(number, _)| number)
    }

    /// Whether a key ever had a value.
    pub fn was(&self, bucket: &str, key: &str, value: &str) -> bool {
        self.numbered().any(|(number, change)| {
            let text = change.2.as_ref().map(|text| format!("{text} {number}"));
            change.0 == bucket && change.1 == key && text.as_deref() == Some(value)
        })
    }

    /// Compares the current state, every readable older revision and the history. `window` is the guaranteed number
    /// of transactions of history.
    pub fn check(&self, store: &Plain, window: u64) {
        let promised = self.revision().saturating_sub(window);
        assert_eq!(store.compacted(), promised, "exactly the promised history is there");
        self.check_from(store, promised);
    }

    /// Like [`Self::check`], with history from a revision on.
    pub fn check_from(&self, store: &Plain, compacted: u64) {
        assert_eq!(store.revision(), self.revision());
        for bucket in BUCKETS {
            self.check_present(store, bucket);
            for revision in compacted..=self.revision() {
                let snapshot = store.snapshot_at(bucket, revision).unwrap();
                assert_eq!(values(&snapshot), self.at(bucket, revision), "{bucket} at {revision}");
            }
            let mut watch = store.watch(bucket, "", compacted).unwrap();
            assert_eq!(drain(&mut watch), self.events(bucket, compacted), "history of {bucket}");
            assert_eq!(watch.progress(), self.revision());
        }
    }

    /// Compares the current state only.
    pub fn check_now(&self, store: &Plain, what: &str) {
        assert_eq!(store.revision(), self.revision(), "{what}");
        for bucket in BUCKETS {
            assert_eq!(values(&store.snapshot(bucket)), self.at(bucket, u64::MAX), "{what}: {bucket}");
        }
    }

    fn check_present(&self, store: &Plain, bucket: &str) {
        let snapshot = store.snapshot(bucket);
        assert_eq!(values(&snapshot), self.at(bucket, u64::MAX), "{bucket}");
        for entry in snapshot.range("", None) {
            assert_eq!(Some(entry.revision), self.entry(bucket, &entry.key));
            assert_eq!(entry.restamped(7), format!("{} 7", text_of(&entry.value)).as_bytes());
        }
        let last = self.numbered().filter(|(_, change)| change.0 == bucket).map(|(number, _)| number).last();
        assert_eq!(store.bucket_revision(bucket), last.unwrap_or(0));
    }
}

fn text_of(value: &Bytes) -> String {
    let text = String::from_utf8_lossy(value);
    text.rsplit_once(' ').unwrap().0.to_owned()
}

pub fn values(snapshot: &capstan_store::Snapshot<()>) -> BTreeMap<String, String> {
    let pair = |entry: &Arc<capstan_store::Entry<()>>| {
        (entry.key.to_string(), String::from_utf8_lossy(&entry.value).into_owned())
    };
    snapshot.range("", None).map(pair).collect()
}

/// Replaces the content of a file.
pub fn overwrite(disk: &SimDisk, name: &str, content: &[u8]) {
    disk.create(name).unwrap().write_at(0, content).unwrap();
}

/// The files as the previous release wrote them: no manifest, no reserve, headers of format 1. Snapshots are left
/// out, so the log must be complete.
pub fn of_the_previous_release(disk: &SimDisk) -> SimDisk {
    let older = SimDisk::new(9);
    for name in disk.list().unwrap().iter().filter(|name| name.starts_with("wal-")) {
        let mut content = disk.content(name).unwrap();
        content[8..16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
        let checksum = crc32fast::hash(&content[..28]);
        content[28..32].copy_from_slice(&checksum.to_le_bytes());
        overwrite(&older, name, &content);
        older.open(name).unwrap().sync_data().unwrap();
    }
    older.sync_dir().unwrap();
    older
}

/// The salvaged part of a damaged store.
pub struct Salvage<'a>(pub &'a Salvaged);

impl Salvage<'_> {
    /// Restores it and compares: every entry is right, unless the report lists it.
    pub fn check(&self, model: &Model, what: &str) {
        let disk = SimDisk::new(1);
        let saved = self.0;
        saved.backup.clone().begin(disk.clone(), SystemTime::UNIX_EPOCH, None).unwrap().finish().unwrap();
        let store: Plain = Store::open(disk.restart(), Options::default()).unwrap();
        for bucket in BUCKETS {
            let (found, expected) = (values(&store.snapshot(bucket)), model.at(bucket, u64::MAX));
            for key in found.keys().chain(expected.keys()) {
                let last = model.last_change(bucket, key).unwrap_or_default();
                let lost = saved.unknown_keys
                    || saved.lost_revisions.iter().any(|range| range.contains(&last))
                    || saved.lost_from.is_some_and(|from| last >= from)
                    || saved.lost_keys.iter().any(|(_, lost)| lost == key);
                assert!(lost || found.get(key) == expected.get(key), "{what}: {key}: {saved:?}");
                if let Some(value) = found.get(key) {
                    assert!(model.was(bucket, key, value), "{what}: {key} never was {value}");
                }
            }
        }
        if saved.is_complete() {
            assert_eq!(saved.backup.revision(), model.revision(), "{what}");
        }
    }
}
