//! Watches: cursors into the shared history of a bucket.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::{Event, HistoryError, WatchError, commit::StoreCore};

/// Most events in a batch, unless a single transaction is larger: transactions are never split.
const BATCH: usize = 1024;
/// Bytes of objects after which a batch ends, at the end of a transaction. A caller that holds a batch keeps that
/// much alive beyond the history.
const BATCH_BYTES: usize = 1 << 20;

/// Events ordered by revision, whole transactions only.
pub struct Batch<D> {
    /// The events, without gaps to the previous batch.
    pub events: Vec<Arc<Event<D>>>,
    /// Every event of the watched range up to this revision has been delivered.
    pub progress: u64,
}

/// A watch of the keys of a bucket that start with a prefix.
pub struct Watch<D> {
    shared: Arc<StoreCore<D>>,
    notifier: Arc<Notify>,
    bucket: Arc<str>,
    prefix: Arc<str>,
    /// Position of the next event in the bucket's history.
    cursor: u64,
    /// End of the history when the watch started. The initial replay does not count as lag.
    replayed: u64,
    progress: u64,
}

impl<D> Watch<D> {
    pub(crate) fn new(
        shared: Arc<StoreCore<D>>,
        bucket: &str,
        prefix: &str,
        from: u64,
    ) -> Result<Self, HistoryError> {
        let state = shared.state.load();
        state.check(from)?;
        let history = state.buckets.get(bucket).map(|bucket| &bucket.history);
        let (cursor, replayed) = history.map_or((0, 0), |history| (history.after(from), history.end()));
        drop(state);
        let notifier = shared.notifier(bucket);
        let (bucket, prefix) = (bucket.into(), prefix.into());
        Ok(Self { shared, notifier, bucket, prefix, cursor, replayed, progress: from })
    }

    /// Waits for the next events. Cancel safe.
    pub async fn next(&mut self) -> Result<Batch<D>, WatchError> {
        let notifier = self.notifier.clone();
        loop {
            // Registered before the check, so that no commit is missed between check and wait.
            let notified = notifier.notified();
            let closed = self.shared.is_closed();
            if let Some(batch) = self.ready()? {
                return Ok(batch);
            }
            if closed {
                return Err(WatchError::Closed);
            }
            notified.await;
        }
    }

    /// The next events, if there are any now.
    pub fn ready(&mut self) -> Result<Option<Batch<D>>, WatchError> {
        let state = self.shared.state.load();
        let Some(bucket) = state.buckets.get(&*self.bucket) else {
            self.progress = state.revision;
            return Ok(None);
        };
        let history = &bucket.history;
        if self.cursor < history.first {
            return Err(WatchError::Compacted { compacted: state.compacted });
        }
        let limit = self.shared.options.watch_lag;
        if history.end() - self.cursor.max(self.replayed) > limit as u64 {
            return Err(WatchError::Lagged { limit });
        }
        let skip = (self.cursor - history.first) as usize;
        let mut events: Vec<Arc<Event<D>>> = Vec::new();
        let mut last = 0;
        let mut all = true;
        let mut bytes = 0;
        for event in history.events.focus().narrow(skip..).into_iter() {
            if (events.len() >= BATCH || bytes >= BATCH_BYTES) && event.revision != last {
                all = false;
                break;
            }
            last = event.revision;
            self.cursor += 1;
            if event.key().starts_with(&*self.prefix) {
                bytes +=
                    event.current.as_ref().or(event.previous.as_ref()).map_or(0, |entry| entry.value.len());
                events.push(event.clone());
            }
        }
        self.progress = if all { state.revision } else { last };
        let progress = self.progress;
        Ok((!events.is_empty()).then_some(Batch { events, progress }))
    }

    /// A revision up to which every event of the watched range has been delivered, for bookmarks. It advances with
    /// the store even while the bucket is idle.
    pub fn progress(&mut self) -> u64 {
        let state = self.shared.state.load();
        let end = state.buckets.get(&*self.bucket).map_or(0, |bucket| bucket.history.end());
        if self.cursor == end {
            self.progress = state.revision;
        }
        self.progress
    }
}
