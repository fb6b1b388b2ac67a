//! Metrics and health.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Counters since the store was opened, and its current size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Number of live entries.
    pub entries: u64,
    /// Keys and values of the live entries, in bytes.
    pub live_bytes: u64,
    /// Committed transactions.
    pub transactions: u64,
    /// Group commits. Each is one sync of the log.
    pub batches: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Microseconds spent writing and syncing the log.
    pub log_micros: u64,
    /// Snapshots written.
    pub checkpoints: u64,
    /// Snapshots that failed. The log keeps growing until one succeeds.
    pub checkpoint_failures: u64,
    /// Damaged files found when the store was opened that it did not need.
    pub damaged_files: u64,
    /// Values in the files that were not sealed with the current key when the store was opened.
    pub stale_values: u64,
}

/// Whether the store accepts writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// All writes are accepted.
    #[default]
    Writable,
    /// The disk is full: only deletes and [`crate::Store::reclaim`] succeed. Every write retries.
    Full,
    /// The disk failed. No write succeeds until the store is opened again.
    Failed(Arc<str>),
    /// The store was closed. Reads still work.
    Closed,
}

#[derive(Default)]
pub(crate) struct Counters {
    transactions: AtomicU64,
    batches: AtomicU64,
    log_bytes: AtomicU64,
    log_micros: AtomicU64,
    checkpoints: AtomicU64,
    checkpoint_failures: AtomicU64,
    damaged_files: AtomicU64,
    stale_values: AtomicU64,
}

impl Counters {
    pub fn committed(&self, transactions: u64) {
        self.transactions.fetch_add(transactions, Relaxed);
    }

    pub fn logged(&self, bytes: u64, micros: u64) {
        self.batches.fetch_add(1, Relaxed);
        self.log_bytes.fetch_add(bytes, Relaxed);
        self.log_micros.fetch_add(micros, Relaxed);
    }

    pub fn checkpointed(&self, succeeded: bool) {
        let counter = if succeeded { &self.checkpoints } else { &self.checkpoint_failures };
        counter.fetch_add(1, Relaxed);
    }

    pub fn opened(&self, damaged_files: u64, stale_values: u64) {
        self.damaged_files.store(damaged_files, Relaxed);
        self.stale_values.store(stale_values, Relaxed);
    }

    pub fn read(&self, entries: u64, live_bytes: u64) -> Metrics {
        Metrics {
            entries,
            live_bytes,
            transactions: self.transactions.load(Relaxed),
            batches: self.batches.load(Relaxed),
            log_bytes: self.log_bytes.load(Relaxed),
            log_micros: self.log_micros.load(Relaxed),
            checkpoints: self.checkpoints.load(Relaxed),
            checkpoint_failures: self.checkpoint_failures.load(Relaxed),
            damaged_files: self.damaged_files.load(Relaxed),
            stale_values: self.stale_values.load(Relaxed),
        }
    }
}
