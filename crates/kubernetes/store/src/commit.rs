//! The commit lane: one group at a time is checked, stamped, logged, published and acknowledged.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    Digest, Health, Options, Write, WriteError, Written,
    log::{AppendError, Log, Space, frame::FrameBuilder, recover::Recovered},
    metrics::Counters,
    queue::{Job, Outcome, Queue, Request},
    state::{Change, State},
    window::Window,
};

/// Largest transaction, in bytes of keys and values.
const MAX_TRANSACTION: usize = 64 << 20;
/// Revisions the floor may rise before the events of quiet buckets are forgotten as well.
const SWEEP: u64 = 1024;

/// What all handles and watches of a store share.
pub(crate) struct Shared<D> {
    pub options: Options,
    pub state: ArcSwap<State<D>>,
    pub counters: Counters,
    pub health: Mutex<Health>,
    /// Rung whenever a commit is published, a checkpoint ends, or the store closes.
    pub published: Notify,
    /// Rung when a bucket changes, for the buckets that were ever watched.
    bells: Mutex<BTreeMap<Arc<str>, Arc<Notify>>>,
    pub queue: Mutex<Queue<D>>,
    pub lane: Mutex<Lane>,
    /// Revisions of the snapshots on disk, oldest first.
    pub snapshots: Mutex<Vec<u64>>,
    pub checkpointing: AtomicBool,
    /// The lane's work returns at once and is done on the writer's task.
    pub inline: bool,
    pub durable: bool,
    closed: AtomicBool,
}

/// What belongs to the one who commits.
pub(crate) struct Lane {
    /// None in memory, and once closed.
    pub log: Option<Log>,
    frame: FrameBuilder,
    window: Window,
    /// The floor at the last sweep over all buckets.
    swept: u64,
    /// Log bytes since the last snapshot was begun.
    pub since_snapshot: u64,
    /// The disk has no space but the reserve.
    pub full: bool,
}

impl<D> Shared<D> {
    pub fn in_memory(options: Options, state: State<D>) -> Self {
        let window = options.window();
        Self::new(options, state, window, None, Vec::new(), 0)
    }

    pub fn recovered(options: Options, recovered: Recovered<D>) -> Self {
        let Recovered { state, window, log, snapshots, since_snapshot, damaged_files } = recovered;
        let shared = Self::new(options, state, window, Some(log), snapshots, since_snapshot);
        shared.counters.opened(damaged_files);
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
            bells: Mutex::default(),
            queue: Mutex::default(),
            lane: Mutex::new(Lane { log, frame, window, swept: 0, since_snapshot, full: false }),
            snapshots: Mutex::new(snapshots),
            checkpointing: AtomicBool::new(false),
            inline,
            durable,
            closed: AtomicBool::new(false),
        }
    }

    pub fn bell(&self, bucket: &str) -> Arc<Notify> {
        let mut bells = self.bells.lock();
        if let Some(bell) = bells.get(bucket) {
            return bell.clone();
        }
        let bell = Arc::new(Notify::new());
        bells.insert(bucket.into(), bell.clone());
        bell
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends the watches and takes no more writes.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        *self.health.lock() = Health::Closed;
        for bell in self.bells.lock().values() {
            bell.notify_waiters();
        }
        self.published.notify_waiters();
    }

    /// Lets go of the disk of a closed store. Whoever holds the lane meanwhile does this when it is done.
    pub fn release_if_closed(&self) {
        if self.is_closed()
            && let Some(mut lane) = self.lane.try_lock()
        {
            lane.log = None;
        }
    }

    /// Shows a new state to readers and wakes the watches of the buckets that changed.
    pub fn publish(&self, next: State<D>, touched: &BTreeSet<Arc<str>>) {
        self.state.store(Arc::new(next));
        let bells: Vec<_> = {
            let bells = self.bells.lock();
            touched.iter().filter_map(|bucket| bells.get(bucket).cloned()).collect()
        };
        for bell in bells {
            bell.notify_waiters();
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

impl<D: Digest> Shared<D> {
    /// Commits a group. Nobody sees or hears of any of it before all of it is durable.
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
        lane.frame.clear();
        for request in &group {
            outcomes.push(match &request.job {
                Job::Write(writes, _) => {
                    bytes +=
                        writes.iter().map(|one| (one.key().len() + one.body().len()) as u64).sum::<u64>();
                    let frame = lane.log.is_some().then_some(&mut lane.frame);
                    transact(&mut next, writes, &mut touched, frame)
                }
                job => {
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
                    // There may be space for what does not need as much.
                    let refused = |request: &mut Request<D>| request.job.space() == Some(Space::Ordinary);
                    let mut rest = group;
                    for request in rest.extract_if(.., refused) {
                        let _ = request.reply.send(Err(WriteError::Full));
                    }
                    return self.commit(lane, rest);
                }
                Err(error) => {
                    // Conflicts too: what they conflict with may be a write that did not happen.
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
        if compact || next.revision > base.revision {
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
            self.look_for_space(lane);
        }
        self.maintain(lane, checkpoint);
        for reply in others {
            let _ = reply.send(Ok(Vec::new()));
        }
    }

    /// Makes the frame that was built durable.
    fn log(&self, lane: &mut Lane, first: u64, now: u64, space: Space) -> Result<(), AppendError> {
        let Some(log) = &mut lane.log else { return Ok(()) };
        let begun = Instant::now();
        match log.append(&mut lane.frame, first, now, space) {
            Ok(bytes) => {
                let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.counters.logged(bytes, micros);
                lane.since_snapshot += bytes;
                // That a delete found space says nothing about other writes.
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

    /// Finds out whether a disk that was full has space again, so that health does not wait for the next write.
    fn look_for_space(&self, lane: &mut Lane) {
        let Some(log) = lane.log.as_mut().filter(|_| lane.full) else { return };
        match log.set_aside() {
            Ok(()) => {
                lane.full = false;
                self.set_health(Health::Writable);
            }
            Err(AppendError::Full) => {}
            Err(AppendError::Failed(reason)) => self.set_health(Health::Failed(reason)),
        }
    }

    /// A mark at the end of the log makes damage of the last commit detectable, which otherwise looks like
    /// a commit that a crash cut short. A store that cannot write it is closed all the same.
    fn write_close_mark(&self, lane: &mut Lane, now: u64) {
        lane.frame.clear();
        let revision = self.state.load().revision + 1;
        if let Err(error) = self.log(lane, revision, now, Space::Reserve) {
            tracing::warn!(?error, "the store could not mark its log as complete");
        }
        if let Some(log) = lane.log.take() {
            log.close();
        }
    }
}

/// Forgets history: of the buckets at hand always, of all of them now and then.
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

/// Refuses what could not be committed whatever the state.
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

/// Checks one transaction against the state its predecessors leave, and applies it if it holds.
fn transact<D>(
    next: &mut State<D>,
    writes: &[Write],
    touched: &mut BTreeSet<Arc<str>>,
    frame: Option<&mut FrameBuilder>,
) -> Outcome<D> {
    for (index, write) in writes.iter().enumerate() {
        let current = next.get(write.bucket(), write.key());
        if !write.admits(current) {
            return Err(WriteError::Conflict { index, current: current.cloned() });
        }
    }
    let revision = next.revision + 1;
    let changes: Vec<_> = writes.iter().map(|write| Change::new(write, revision)).collect();
    if let Some(frame) = frame {
        frame.transaction(changes.iter());
    }
    let apply = |change: Change| {
        if !touched.contains(&change.bucket) {
            touched.insert(change.bucket.clone());
        }
        let event = next.apply(change, revision);
        let (entry, previous) = (event.current.clone(), event.previous.clone());
        Written { revision, entry, previous, last: event.last.clone() }
    };
    Ok(changes.into_iter().map(apply).collect())
}

impl<D> From<&AppendError> for WriteError<D> {
    fn from(error: &AppendError) -> Self {
        match error {
            AppendError::Full => Self::Full,
            AppendError::Failed(reason) => Self::Failed(reason.clone()),
        }
    }
}
