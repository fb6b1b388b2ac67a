//! The public handle of a store.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    Digest, Entry, Health, HistoryError, Metrics, OpenError, Options, Snapshot, Watch, Write, WriteError,
    Written,
    commit::{StoreCore, validate},
    disk::Disk,
    log::{Space, recover::recover},
    queue::Job,
    state::State,
};

/// A handle to a store. Clones share the store. Dropping the last handle ends all watches.
pub struct Store<D> {
    handle: Arc<Handle<D>>,
}

struct Handle<D> {
    shared: Arc<StoreCore<D>>,
}

/// Initial content of in-memory stores. Cheap to clone.
pub struct Seed<D>(Arc<State<D>>);

impl<D> Clone for Seed<D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<D> Drop for Handle<D> {
    fn drop(&mut self) {
        self.shared.close();
        self.shared.release_if_closed();
    }
}

impl<D> Clone for Store<D> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone() }
    }
}

impl<D: Digest> Store<D> {
    /// A store without a disk. It needs no threads and takes a few kilobytes.
    pub fn in_memory(options: Options) -> Self {
        Self { handle: Arc::new(Handle { shared: Arc::new(StoreCore::in_memory(options, State::empty())) }) }
    }

    /// A store without a disk that starts with the content of a seed. Stores of one seed share unchanged entries.
    pub fn in_memory_from(options: Options, seed: &Seed<D>) -> Self {
        let state = State::clone(&seed.0);
        Self { handle: Arc::new(Handle { shared: Arc::new(StoreCore::in_memory(options, state)) }) }
    }

    /// The current content, as initial content of other stores.
    pub fn seed(&self) -> Seed<D> {
        Seed(Arc::new(self.shared().state.load().without_history()))
    }

    /// Opens the store on a disk, or creates one on an empty disk. Blocks until everything is read. Unless the disk
    /// is [immediate](Disk::immediate), writes need a Tokio runtime, whose blocking threads do the I/O.
    pub fn open(disk: impl Disk, options: Options) -> Result<Self, OpenError> {
        let recovered = recover(Arc::new(disk), &options)?;
        Ok(Self { handle: Arc::new(Handle { shared: Arc::new(StoreCore::recovered(options, recovered)) }) })
    }

    /// Closes the store: waits for writes in progress, marks the log as complete and releases the disk. Reads still
    /// work afterwards.
    pub async fn close(&self) {
        let _ = self.shared().submit(Job::Close).await;
        self.checkpoint_over().await;
    }

    pub(crate) fn shared(&self) -> &Arc<StoreCore<D>> {
        &self.handle.shared
    }

    /// The revision of the last published transaction.
    pub fn revision(&self) -> u64 {
        self.shared().state.load().revision
    }

    /// The oldest revision that can be read or watched from.
    pub fn compacted(&self) -> u64 {
        self.shared().state.load().compacted
    }

    /// The revision of the last change in a bucket, deletes included; 0 if there was none.
    pub fn bucket_revision(&self, bucket: &str) -> u64 {
        self.shared().state.load().buckets.get(bucket).map_or(0, |bucket| bucket.revision)
    }

    /// All buckets that were ever written to, sorted.
    pub fn buckets(&self) -> Vec<Arc<str>> {
        self.shared().state.load().buckets.keys().cloned().collect()
    }

    /// The current entry of a key.
    pub fn get(&self, bucket: &str, key: &str) -> Option<Arc<Entry<D>>> {
        self.shared().state.load().get(bucket, key).cloned()
    }

    /// The current view of a bucket, in O(1).
    pub fn snapshot(&self, bucket: &str) -> Snapshot<D> {
        self.shared().state.load().snapshot(bucket)
    }

    /// The view of a bucket at an older revision. Takes time proportional to the number of changes since.
    pub fn snapshot_at(&self, bucket: &str, revision: u64) -> Result<Snapshot<D>, HistoryError> {
        self.shared().state.load_full().snapshot_at(bucket, revision)
    }

    /// Commits one write. When it returns, the write is durable and visible. If the future is dropped before that,
    /// the write happens completely or not at all.
    pub async fn write(&self, write: Write) -> Result<Written<D>, WriteError<D>> {
        let mut written = self.write_all(vec![write]).await?;
        written.pop().ok_or(WriteError::Closed)
    }

    /// Commits several writes as one transaction of one revision: all or none. A transaction of deletes only may use
    /// the space reserved for a full disk.
    pub async fn write_all(&self, writes: Vec<Write>) -> Result<Vec<Written<D>>, WriteError<D>> {
        let deletes = writes.iter().all(|write| matches!(write, Write::Delete { .. }));
        self.transact(writes, if deletes { Space::Reserve } else { Space::Ordinary }).await
    }

    /// Commits one write that leads to less data, such as the deletion timestamp of an object. Like a delete it may
    /// use the space reserved for a full disk.
    pub async fn reclaim(&self, write: Write) -> Result<Written<D>, WriteError<D>> {
        let mut written = self.transact(vec![write], Space::Reserve).await?;
        written.pop().ok_or(WriteError::Closed)
    }

    async fn transact(&self, writes: Vec<Write>, space: Space) -> Result<Vec<Written<D>>, WriteError<D>> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        validate(&writes)?;
        self.shared().submit(Job::Write(writes, space)).await
    }

    /// Drops history that is too old. Writes do this too; a store that is idle for hours should call it from time to
    /// time.
    pub async fn compact(&self) -> Result<(), WriteError<D>> {
        self.shared().submit(Job::Compact).await.map(|_| ())
    }

    /// Writes a snapshot now, unless one is being written, and waits for it. The store does this by itself whenever
    /// the log has outgrown the data. [`Self::metrics`] counts failures.
    pub async fn checkpoint(&self) -> Result<(), WriteError<D>> {
        self.shared().submit(Job::Checkpoint).await?;
        self.checkpoint_over().await;
        Ok(())
    }

    /// Writes every value anew, sealed with the current key, and drops all history and the files that have it. Watches
    /// from before must list again. If it is interrupted, nothing is lost; call it again.
    pub async fn reseal(&self) -> Result<(), WriteError<D>> {
        let shared = self.shared();
        shared.submit(Job::Advance).await?;
        let revision = self.revision();
        // A snapshot that was already being written does not have that revision.
        for _ in 0..3 {
            self.checkpoint().await?;
            let newest = shared.snapshots.lock().last().copied();
            if let Some(newest) = newest.filter(|newest| *newest >= revision || !shared.durable) {
                return shared.submit(Job::Forget(newest)).await.map(|_| ());
            }
        }
        if shared.durable { Err(WriteError::Full) } else { Ok(()) }
    }

    /// Seals bytes that belong beside the store, such as its keys in a backup; `None` without a cipher.
    pub fn seal(&self, context: &str, value: &[u8]) -> Option<Vec<u8>> {
        let cipher = self.shared().options.cipher()?;
        let mut out = Vec::with_capacity(value.len() + cipher.overhead());
        cipher.seal("", context.as_bytes(), value, &mut out);
        Some(out)
    }

    async fn checkpoint_over(&self) {
        let shared = self.shared();
        loop {
            let changed = shared.published.notified();
            if !shared.checkpointing.load(Ordering::Acquire) {
                return;
            }
            changed.await;
        }
    }

    /// Counters and sizes.
    pub fn metrics(&self) -> Metrics {
        let state = self.shared().state.load();
        self.shared().counters.read(state.count, state.weight)
    }

    /// Whether the store accepts writes.
    pub fn health(&self) -> Health {
        self.shared().health.lock().clone()
    }

    /// Events with a revision above `from` of the keys of a bucket that start with `prefix`.
    pub fn watch(&self, bucket: &str, prefix: &str, from: u64) -> Result<Watch<D>, HistoryError> {
        Watch::new(self.shared().clone(), bucket, prefix, from)
    }

    /// Waits until the store has published a revision. Never returns if the store closes before that.
    pub async fn reached(&self, revision: u64) {
        let shared = self.shared();
        loop {
            let published = shared.published.notified();
            if shared.state.load().revision >= revision {
                return;
            }
            published.await;
        }
    }
}
