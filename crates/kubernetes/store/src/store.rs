//! The handle through which a store is used.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    Digest, Entry, Health, HistoryError, Metrics, OpenError, Options, Snapshot, Watch, Write, WriteError,
    Written,
    commit::{Shared, validate},
    disk::Disk,
    log::{Space, recover::recover},
    queue::Job,
    state::State,
};

/// A store. Cloning gives another handle to the same one; when the last handle goes, watches end.
pub struct Store<D> {
    handle: Arc<Handle<D>>,
}

struct Handle<D> {
    shared: Arc<Shared<D>>,
}

/// What stores in memory begin with. Cheap to clone.
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
    /// A store without a disk. It needs no threads and costs a few kilobytes.
    pub fn in_memory(options: Options) -> Self {
        Self { handle: Arc::new(Handle { shared: Arc::new(Shared::in_memory(options, State::empty())) }) }
    }

    /// A store without a disk that begins with what a seed holds. Stores of one seed share what none of them changes.
    pub fn in_memory_from(options: Options, seed: &Seed<D>) -> Self {
        let state = State::clone(&seed.0);
        Self { handle: Arc::new(Handle { shared: Arc::new(Shared::in_memory(options, state)) }) }
    }

    /// What the store holds now, for others to begin with.
    pub fn seed(&self) -> Seed<D> {
        Seed(Arc::new(self.shared().state.load().without_history()))
    }

    /// Opens the store on a disk, or creates one on an empty disk. Blocks on reading all of it. On a disk
    /// that is not [immediate](Disk::immediate), writes need a Tokio runtime, whose blocking threads do the I/O.
    pub fn open(disk: impl Disk, options: Options) -> Result<Self, OpenError> {
        let recovered = recover(Arc::new(disk), &options)?;
        Ok(Self { handle: Arc::new(Handle { shared: Arc::new(Shared::recovered(options, recovered)) }) })
    }

    /// Closes the store: waits for writes under way, marks the log complete and releases the disk. Reads
    /// still work afterwards.
    pub async fn close(&self) {
        let _ = self.shared().submit(Job::Close).await;
        self.checkpoint_over().await;
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<D>> {
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

    /// The buckets that were ever written to, in order.
    pub fn buckets(&self) -> Vec<Arc<str>> {
        self.shared().state.load().buckets.keys().cloned().collect()
    }

    /// The entry of a key.
    pub fn get(&self, bucket: &str, key: &str) -> Option<Arc<Entry<D>>> {
        self.shared().state.load().get(bucket, key).cloned()
    }

    /// The present view of a bucket, in O(1).
    pub fn snapshot(&self, bucket: &str) -> Snapshot<D> {
        self.shared().state.load().snapshot(bucket)
    }

    /// The view of a bucket as it was at an older revision; takes time in proportion to what changed since.
    pub fn snapshot_at(&self, bucket: &str, revision: u64) -> Result<Snapshot<D>, HistoryError> {
        self.shared().state.load_full().snapshot_at(bucket, revision)
    }

    /// Commits one write. When it returns, the write is durable and visible. A future dropped before it
    /// returned leaves the write done or not done, never half done.
    pub async fn write(&self, write: Write) -> Result<Written<D>, WriteError<D>> {
        let mut written = self.write_all(vec![write]).await?;
        written.pop().ok_or(WriteError::Closed)
    }

    /// Commits several writes as one transaction of one revision: all of them or none. Deletes alone may use the
    /// space that is kept for a full disk.
    pub async fn write_all(&self, writes: Vec<Write>) -> Result<Vec<Written<D>>, WriteError<D>> {
        let deletes = writes.iter().all(|write| matches!(write, Write::Delete { .. }));
        self.transact(writes, if deletes { Space::Reserve } else { Space::Ordinary }).await
    }

    /// Commits one write that leads to less data, such as the mark of an object that is being deleted. Like a
    /// delete it may use the space that is kept for a full disk.
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

    /// Forgets the history that has become too old. Writes do this as they go; a store that may be quiet
    /// for hours wants it called now and then.
    pub async fn compact(&self) -> Result<(), WriteError<D>> {
        self.shared().submit(Job::Compact).await.map(|_| ())
    }

    /// Writes a snapshot now, unless one is being written, and waits for it. The store does this by itself
    /// whenever the log has outgrown the data; what failed shows in [`Self::metrics`].
    pub async fn checkpoint(&self) -> Result<(), WriteError<D>> {
        self.shared().submit(Job::Checkpoint).await?;
        self.checkpoint_over().await;
        Ok(())
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

    /// What the store has done and how large it is.
    pub fn metrics(&self) -> Metrics {
        let state = self.shared().state.load();
        self.shared().counters.read(state.count, state.weight)
    }

    /// Whether the store takes writes.
    pub fn health(&self) -> Health {
        self.shared().health.lock().clone()
    }

    /// The events with a revision above `from` of the keys of a bucket that begin with `prefix`.
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
