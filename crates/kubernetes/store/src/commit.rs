//! The commit lane: writes queue up, and whoever finds the lane free commits everything that waits.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::{
    Digest, Options, Write, WriteError, Written,
    state::{Change, State},
    window::Window,
};

/// Largest transaction, in bytes of keys and values.
const MAX_TRANSACTION: usize = 64 << 20;
/// Revisions the floor may rise before the events of quiet buckets are forgotten as well.
const SWEEP: u64 = 1024;

pub(crate) type Outcome<D> = Result<Vec<Written<D>>, WriteError<D>>;

/// A transaction that waits to be committed.
struct Request<D> {
    writes: Vec<Write>,
    reply: oneshot::Sender<Outcome<D>>,
}

/// What all handles and watches of a store share.
pub(crate) struct Shared<D> {
    pub options: Options,
    pub state: ArcSwap<State<D>>,
    /// Rung whenever a commit is published.
    pub published: Notify,
    /// Rung when a bucket changes, for the buckets that were ever watched.
    bells: Mutex<BTreeMap<Arc<str>, Arc<Notify>>>,
    queue: Mutex<Vec<Request<D>>>,
    lane: Mutex<Lane>,
    closed: AtomicBool,
}

/// What belongs to the one who commits.
struct Lane {
    window: Window,
    /// The floor at the last sweep over all buckets.
    swept: u64,
}

impl<D> Shared<D> {
    pub fn new(state: State<D>, options: Options) -> Self {
        let window = Window::new(options.history_revisions, options.history_age);
        Self {
            options,
            state: ArcSwap::from_pointee(state),
            published: Notify::new(),
            bells: Mutex::default(),
            queue: Mutex::default(),
            lane: Mutex::new(Lane { window, swept: 0 }),
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

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for bell in self.bells.lock().values() {
            bell.notify_waiters();
        }
        self.published.notify_waiters();
    }
}

impl<D: Digest> Shared<D> {
    pub async fn submit(self: &Arc<Self>, writes: Vec<Write>) -> Outcome<D> {
        validate(&writes)?;
        let (reply, answer) = oneshot::channel();
        self.queue.lock().push(Request { writes, reply });
        self.commit_pending();
        answer.await.unwrap_or(Err(WriteError::Closed))
    }

    /// Commits everything that waits.
    fn commit_pending(&self) {
        let mut lane = self.lane.lock();
        let requests = std::mem::take(&mut *self.queue.lock());
        // The writer of an abandoned request has gone: what it asked for never happens.
        let requests: Vec<_> = requests.into_iter().filter(|request| !request.reply.is_closed()).collect();
        if !requests.is_empty() {
            self.commit(&mut lane, requests);
        }
    }

    fn commit(&self, lane: &mut Lane, requests: Vec<Request<D>>) {
        if self.is_closed() {
            for request in requests {
                let _ = request.reply.send(Err(WriteError::Closed));
            }
            return;
        }
        let mut next = State::clone(&self.state.load());
        let mut touched = BTreeSet::new();
        let mut answers = Vec::with_capacity(requests.len());
        for Request { writes, reply } in requests {
            answers.push((reply, transact(&mut next, &writes, &mut touched)));
        }
        let now = self.options.now();
        lane.window.committed(next.revision, now);
        self.compact(lane, &mut next, now, &touched);
        self.publish(next, &touched);
        for (reply, outcome) in answers {
            let _ = reply.send(outcome);
        }
    }

    fn compact(&self, lane: &mut Lane, next: &mut State<D>, now: u64, touched: &BTreeSet<Arc<str>>) {
        let floor = lane.window.floor(next.revision, now);
        if touched.is_empty() || floor >= lane.swept.saturating_add(SWEEP) {
            lane.swept = floor;
            let all: Vec<_> = next.buckets.keys().cloned().collect();
            next.forget(floor, all.iter().map(|name| &**name));
        } else {
            next.forget(floor, touched.iter().map(|name| &**name));
        }
    }

    fn publish(&self, next: State<D>, touched: &BTreeSet<Arc<str>>) {
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
}

fn validate<D>(writes: &[Write]) -> Result<(), WriteError<D>> {
    let mut size = 0;
    for (index, write) in writes.iter().enumerate() {
        let (bucket, key) = (write.bucket(), write.key());
        if bucket.len() > usize::from(u16::MAX) || key.len() > usize::from(u16::MAX) {
            return Err(WriteError::Invalid("a bucket or key is longer than 65,535 bytes"));
        }
        size += bucket.len() + key.len() + write.body().len();
        if writes[..index].iter().any(|other| other.key() == key && other.bucket() == bucket) {
            return Err(WriteError::Invalid("a transaction writes the same key twice"));
        }
    }
    if size > MAX_TRANSACTION {
        return Err(WriteError::Invalid("a transaction is larger than 64 MiB"));
    }
    Ok(())
}

/// Checks one transaction against the state its predecessors leave, and applies it if it holds.
fn transact<D: Digest>(
    next: &mut State<D>,
    writes: &[Write],
    touched: &mut BTreeSet<Arc<str>>,
) -> Outcome<D> {
    for (index, write) in writes.iter().enumerate() {
        let current = next.get(write.bucket(), write.key());
        if !write.admits(current) {
            return Err(WriteError::Conflict { index, current: current.cloned() });
        }
    }
    let revision = next.revision + 1;
    let mut written = Vec::with_capacity(writes.len());
    for write in writes {
        let event = next.apply(Change::new(write, revision), revision);
        if !touched.contains(write.bucket()) {
            touched.insert(write.bucket().clone());
        }
        let (entry, previous) = (event.current.clone(), event.previous.clone());
        written.push(Written { revision, entry, previous, last: event.last.clone() });
    }
    Ok(written)
}
