//! The commit lane: checks, stamps, logs, publishes and acknowledges one group at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    Cipher, Digest, Health, Options, Write, WriteError, Written,
    log::{AppendError, Log, Space, frame::FrameBuilder, recover::Recovered},
    metrics::Counters,
    queue::{Job, Outcome, Queue, Request},
    state::{Change, State},
    window::Window,
};

/// Largest transaction, in bytes of keys and values.
const MAX_TRANSACTION: usize = 64 << 20;
/// How far the history floor may rise before the events of idle buckets are dropped as well.
const SWEEP: u64 = 1024;

/// State shared by all handles and watches of a store.
pub(crate) struct StoreCore<D> {
    pub options: Options,
    pub state: ArcSwap<State<D>>,
    pub counters: Counters,
    pub health: Mutex<Health>,
    /// Notified when a commit is published, a checkpoint ends, or the store closes.
    pub published: Notify,
    /// One per watched bucket; notified when the bucket changes.
    bucket_notifiers: Mutex<BTreeMap<Arc<str>, Arc<Notify>>>,
    pub queue: Mutex<Queue<D>>,
    pub lane: Mutex<Lane>,
    /// Log bytes that a failed checkpoint should have made unnecessary.
    pub retry_bytes: AtomicU64,
    /// Revisions of the snapshots on disk, oldest first.
    pub snapshots: Mutex<Vec<u64>>,
    pub checkpointing: AtomicBool,
    /// The disk does not block, so commits run on the writer's task.
    pub inline: bool,
    pub durable: bool,
    closed: AtomicBool,
}

/// State of the committer. Guarded by one lock.
pub(crate) struct Lane {
    /// `None` in memory, and once closed.
    pub log: Option<Log>,
    frame: FrameBuilder,
    window: Window,
    /// The history floor at the last sweep over all buckets.
    swept: u64,
    /// Log bytes since the last snapshot was started.
    pub since_snapshot: u64,
    /// The disk has no space except the reserve.
    pub full: bool,
}

impl<D> StoreCore<D> {
    pub fn in_memory(options: Options, state: State<D>) -> Self {
        let window = options.window();
        Self::new(options, state, window, None, Vec::new(), 0)
    }

    pub fn recovered(options: Options, recovered: Recovered<D>) -> Self {
        let Recovered { state, window, log, snapshots, since_snapshot, damaged_files, stale_values } =
            recovered;
        let shared = Self::new(options, state, window, Some(log), snapshots, since_snapshot);
        shared.counters.opened(damaged_files, stale_values);
        shared
    }

    fn new(
        options: Options,
        state: State<D>,
        window: Window,
        log: Option<Log>,
        snapshots: Vec<u64>,
        since_snapshot: u64,
    ) -> Self {
        let durable = log.is_some();
        let inline = log.as_ref().is_none_or(|log| log.disk().immediate());
        let frame = FrameBuilder::default();
        Self {
            options,
            state: ArcSwap::from_pointee(state),
            counters: Counters::default(),
            health: Mutex::default(),
            published: Notify::new(),
            bucket_notifiers: Mutex::default(),
            queue: Mutex::default(),
            retry_bytes: AtomicU64::new(0),
            lane: Mutex::new(Lane { log, frame, window, swept: 0, since_snapshot, full: false }),
            snapshots: Mutex::new(snapshots),
            checkpointing: AtomicBool::new(false),
            inline,
            durable,
            closed: AtomicBool::new(false),
        }
    }

    pub fn notifier(&self, bucket: &str) -> Arc<Notify> {
        let mut bucket_notifiers = self.bucket_notifiers.lock();
        if let Some(notifier) = bucket_notifiers.get(bucket) {
            return notifier.clone();
        }
        let notifier = Arc::new(Notify::new());
        bucket_notifiers.insert(bucket.into(), notifier.clone());
        notifier
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends all watches and rejects further writes.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        *self.health.lock() = Health::Closed;
        for notifier in self.bucket_notifiers.lock().values() {
            notifier.notify_waiters();
        }
        self.published.notify_waiters();
    }

    /// Releases the disk of a closed store. If another task holds the lane, that task does it at the end.
    pub fn release_if_closed(&self) {
        if self.is_closed()
            && let Some(mut lane) = self.lane.try_lock()
        {
            lane.log = None;
        }
    }

    /// Publishes a new state to readers and wakes the watches of changed buckets.
    pub fn publish(&self, next: State<D>, touched: &BTreeSet<Arc<str>>) {
        self.state.store(Arc::new(next));
        let bucket_notifiers: Vec<_> = {
            let bucket_notifiers = self.bucket_notifiers.lock();
            touched.iter().filter_map(|bucket| bucket_notifiers.get(bucket).cloned()).collect()
        };
        for notifier in bucket_notifiers {
            notifier.notify_waiters();
        }
        self.published.notify_waiters();
    }

    fn set_health(&self, health: Health) {
        let mut present = self.health.lock();
        if *present != health {
            match &health {
                Health::Full => {
                    tracing::error!("the disk of the store is full: only deletes work until there is space")
                }
                Health::Failed(reason) => tracing::error!(%reason, "the store is read-only: its disk failed"),
                Health::Writable => tracing::info!("the store accepts writes again"),
                Health::Closed => {}
            }
            *present = health;
        }
    }
}

impl<D: Digest> StoreCore<D> {
    /// Commits a group. Nothing of it is visible or acknowledged before all of it is durable.
    pub fn commit(self: &Arc<Self>, lane: &mut Lane, group: Vec<Request<D>>) {
        if group.is_empty() {
            return;
        }
        if self.is_closed() {
            group.into_iter().for_each(|request| drop(request.reply.send(Err(WriteError::Closed))));
            return;
        }
        let any = |space| group.iter().any(|request| request.job.space() == Some(space));
        let (ordinary, reclaiming) = (any(Space::Ordinary), any(Space::Reserve));
        let base = self.state.load_full();
        let mut next = State::clone(&base);
        let mut touched = BTreeSet::new();
        let mut outcomes = Vec::with_capacity(group.len());
        let (mut compact, mut checkpoint, mut close) = (false, false, false);
        let mut bytes = 0;
        let mut floor = 0;
        // On a full disk a delete takes little space, whatever the size of its entry.
        let terse = lane.full || lane.log.as_ref().is_some_and(Log::is_sealed);
        lane.frame.clear();
        for request in &group {
            outcomes.push(match &request.job {
                Job::Write(writes, _) => {
                    bytes +=
                        writes.iter().map(|one| (one.key().len() + one.body().len()) as u64).sum::<u64>();
                    let frame = lane.log.is_some().then_some(&mut lane.frame);
                    transact(&mut next, writes, &mut touched, frame, self.options.cipher(), terse)
                }
                Job::Advance => {
                    let frame = lane.log.as_mut().map(|log| {
                        log.rotate_next();
                        &mut lane.frame
                    });
                    transact(&mut next, &[], &mut touched, frame, None, terse)
                }
                job => {
                    if let Job::Forget(revision) = job {
                        floor = floor.max(*revision);
                    }
                    compact |= matches!(job, Job::Compact);
                    checkpoint |= matches!(job, Job::Checkpoint);
                    close |= matches!(job, Job::Close);
                    Ok(Vec::new())
                }
            });
        }
        let now = self.options.now();
        let written = next.revision - base.revision;
        if written > 0 {
            let space = if ordinary { Space::Ordinary } else { Space::Reserve };
            match self.log(lane, base.revision + 1, now, space) {
                Ok(()) => {
                    lane.window.committed(next.revision, now, bytes);
                    self.counters.committed(written);
                }
                Err(AppendError::Full) if ordinary && reclaiming => {
                    // Smaller writes, and those that may use the reserve, can still succeed.
                    let refused = |request: &mut Request<D>| request.job.space() == Some(Space::Ordinary);
                    let mut rest = group;
                    for request in rest.extract_if(.., refused) {
                        let _ = request.reply.send(Err(WriteError::Full));
                    }
                    return self.commit(lane, rest);
                }
                Err(error) => {
                    // Conflicts fail too: they may conflict with a write that did not happen.
                    for (request, outcome) in group.iter().zip(&mut outcomes) {
                        if request.job.space().is_some() {
                            *outcome = Err(WriteError::from(&error));
                        }
                    }
                    next = State::clone(&base);
                    touched.clear();
                }
            }
        }
        if floor > 0 {
            let names: Vec<_> = next.buckets.keys().cloned().collect();
            next.forget(floor.min(next.revision), names.iter().map(|name| &**name));
        }
        if compact || floor > 0 || next.revision > base.revision {
            forget(lane, &mut next, now, &touched, compact);
            self.publish(next, &touched);
        }
        if close {
            self.write_close_mark(lane, now);
            self.close();
        }
        let mut others = Vec::new();
        for (Request { job, reply }, outcome) in group.into_iter().zip(outcomes) {
            if job.space().is_some() {
                let _ = reply.send(outcome);
            } else {
                others.push(reply);
            }
        }
        if compact {
            self.check_for_space(lane);
        }
        self.maintain(lane, checkpoint);
        for reply in others {
            let _ = reply.send(Ok(Vec::new()));
        }
    }

    /// Makes the frame durable.
    fn log(&self, lane: &mut Lane, first: u64, now: u64, space: Space) -> Result<(), AppendError> {
        let Some(log) = &mut lane.log else { return Ok(()) };
        let begun = Instant::now();
        match log.append(&mut lane.frame, first, now, space) {
            Ok(bytes) => {
                let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.counters.logged(bytes, micros);
                lane.since_snapshot += bytes;
                // A delete may have used the reserve; that does not mean that other writes have space.
                lane.full &= space == Space::Reserve;
                if !lane.full {
                    self.set_health(Health::Writable);
                }
                Ok(())
            }
            Err(error) => {
                lane.full = matches!(error, AppendError::Full);
                self.set_health(match &error {
                    AppendError::Full => Health::Full,
                    AppendError::Failed(reason) => Health::Failed(reason.clone()),
                });
                Err(error)
            }
        }
    }

    /// Checks whether a full disk has space again, so that health recovers without waiting for a write.
    fn check_for_space(&self, lane: &mut Lane) {
        let Some(log) = lane.log.as_mut().filter(|_| lane.full) else { return };
        match log.reserve_more() {
            Ok(()) => {
                lane.full = false;
                self.set_health(Health::Writable);
            }
            Err(AppendError::Full) => {}
            Err(AppendError::Failed(reason)) => self.set_health(Health::Failed(reason)),
        }
    }

    /// Writes a marker at the end of the log. It makes damage of the last commit detectable, which otherwise looks
    /// like a commit interrupted by a crash. The store is closed even if this fails.
    fn write_close_mark(&self, lane: &mut Lane, now: u64) {
        lane.frame.clear();
        let revision = self.state.load().revision + 1;
        if let Err(error) = self.log(lane, revision, now, Space::Reserve) {
            tracing::warn!(?error, "cannot mark the log of the store as complete");
        }
        if let Some(log) = lane.log.take() {
            log.close();
        }
    }
}

/// Drops old history: always for the buckets at hand, from time to time for all of them.
fn forget<D>(lane: &mut Lane, next: &mut State<D>, now: u64, touched: &BTreeSet<Arc<str>>, all: bool) {
    let floor = lane.window.floor(next.revision, now);
    if all || floor >= lane.swept.saturating_add(SWEEP) {
        lane.swept = floor;
        let names: Vec<_> = next.buckets.keys().cloned().collect();
        next.forget(floor, names.iter().map(|name| &**name));
    } else {
        next.forget(floor, touched.iter().map(|name| &**name));
    }
}

/// Rejects writes that are invalid in any state.
pub(crate) fn validate<D>(writes: &[Write]) -> Result<(), WriteError<D>> {
    let mut size = 0;
    let mut keys = BTreeSet::new();
    for write in writes {
        let (bucket, key) = (write.bucket(), write.key());
        if bucket.len() > usize::from(u16::MAX) || key.len() > usize::from(u16::MAX) {
            return Err(WriteError::Invalid("a bucket or key is longer than 65,535 bytes"));
        }
        if writes.len() > 1 && !keys.insert((bucket, key)) {
            return Err(WriteError::Invalid("a transaction writes the same key twice"));
        }
        size += bucket.len() + key.len() + write.body().len();
    }
    if size > MAX_TRANSACTION {
        return Err(WriteError::Invalid("a transaction is larger than 64 MiB"));
    }
    Ok(())
}

/// Checks one transaction against the state after its predecessors, and applies it if there is no conflict.
fn transact<D>(
    next: &mut State<D>,
    writes: &[Write],
    touched: &mut BTreeSet<Arc<str>>,
    frame: Option<&mut FrameBuilder>,
    cipher: Option<&dyn Cipher>,
    terse: bool,
) -> Outcome<D> {
    for (index, write) in writes.iter().enumerate() {
        let current = next.get(write.bucket(), write.key());
        if !write.admits(current) {
            return Err(WriteError::Conflict { index, current: current.cloned() });
        }
    }
    let revision = next.revision + 1;
    let change = |write: &Write| {
        let current = next.get(write.bucket(), write.key()).filter(|_| terse);
        match current.is_some_and(|entry| write.repeats(entry)) {
            true => Change::repeating(write),
            false => Change::new(write, revision),
        }
    };
    let changes: Vec<_> = writes.iter().map(change).collect();
    if let Some(frame) = frame {
        frame.transaction(changes.iter(), cipher);
    }
    let apply = |change: Change| {
        if !touched.contains(&change.bucket) {
            touched.insert(change.bucket.clone());
        }
        let event = next.apply(change, revision);
        let (entry, previous) = (event.current.clone(), event.previous.clone());
        Written { revision, entry, previous, last: event.last.clone() }
    };
    let written = changes.into_iter().map(apply).collect();
    next.revision = revision;
    Ok(written)
}

impl<D> From<&AppendError> for WriteError<D> {
    fn from(error: &AppendError) -> Self {
        match error {
            AppendError::Full => Self::Full,
            AppendError::Failed(reason) => Self::Failed(reason.clone()),
        }
    }
}
