//! The queue in front of the commit lane, and who empties it.
//!
//! There is no committer thread. On a blocking disk, a writer that finds the lane free starts a blocking task that
//! commits until the queue is empty; meanwhile the next group collects in the queue. In memory and on a simulated
//! disk the writer commits immediately, on its own task.

use std::{collections::VecDeque, sync::Arc};

use tokio::{runtime::Handle, sync::oneshot, task::yield_now};

use crate::{Digest, Write, WriteError, Written, commit::StoreCore, log::Space};

/// Most bytes of values in one group commit, unless a single transaction is larger.
const GROUP_BYTES: usize = 4 << 20;

pub(crate) type Outcome<D> = Result<Vec<Written<D>>, WriteError<D>>;

pub(crate) enum Job {
    Write(Vec<Write>, Space),
    Compact,
    /// Begins a new segment with a transaction without changes.
    Advance,
    /// Drops the history up to a revision.
    Forget(u64),
    Checkpoint,
    Close,
}

impl Job {
    fn size(&self) -> usize {
        match self {
            Self::Write(writes, _) => writes.iter().map(|write| write.body().len()).sum(),
            _ => 0,
        }
    }

    /// The space that a write may use; `None` for other jobs.
    pub fn space(&self) -> Option<Space> {
        match self {
            Self::Write(_, space) => Some(*space),
            Self::Advance => Some(Space::Ordinary),
            _ => None,
        }
    }
}

/// A queued job and the channel for its outcome.
pub(crate) struct Request<D> {
    pub job: Job,
    pub reply: oneshot::Sender<Outcome<D>>,
}

pub(crate) struct Queue<D> {
    pending: VecDeque<Request<D>>,
    /// A blocking task is emptying the queue.
    leading: bool,
}

impl<D> Default for Queue<D> {
    fn default() -> Self {
        Self { pending: VecDeque::new(), leading: false }
    }
}

impl<D> Queue<D> {
    /// The next group. Requests of cancelled writers are dropped and never happen.
    fn group(&mut self) -> Vec<Request<D>> {
        let mut group = Vec::new();
        let mut size = 0;
        while size < GROUP_BYTES
            && let Some(request) = self.pending.pop_front()
        {
            if !request.reply.is_closed() {
                size += request.job.size();
                group.push(request);
            }
        }
        group
    }
}

impl<D: Digest> StoreCore<D> {
    /// Queues a job and waits for its outcome.
    pub async fn submit(self: &Arc<Self>, job: Job) -> Outcome<D> {
        let (reply, answer) = oneshot::channel();
        let leads = {
            let mut queue = self.queue.lock();
            queue.pending.push_back(Request { job, reply });
            !self.inline && !std::mem::replace(&mut queue.leading, true)
        };
        if leads {
            let leadership = Leadership { shared: self.clone(), over: false };
            match Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(move || leadership.lead())),
                Err(_) => leadership.lead(),
            }
        } else if self.inline {
            if self.durable {
                // Lets tasks that are about to write join the group, as they would during a real sync.
                yield_now().await;
            }
            let mut lane = self.lane.lock();
            let group = self.queue.lock().group();
            self.commit(&mut lane, group);
        }
        answer.await.unwrap_or(Err(WriteError::Closed))
    }
}

/// The obligation to empty the queue. If its task never runs, for example because its runtime ends, dropping it does
/// the work: waiting writers may belong to another runtime.
struct Leadership<D: Digest> {
    shared: Arc<StoreCore<D>>,
    over: bool,
}

impl<D: Digest> Leadership<D> {
    fn lead(mut self) {
        self.empty();
    }

    fn empty(&mut self) {
        loop {
            let mut lane = self.shared.lane.lock();
            let group = {
                let mut queue = self.shared.queue.lock();
                let group = queue.group();
                if group.is_empty() {
                    queue.leading = false;
                    self.over = true;
                }
                group
            };
            if self.over {
                break;
            }
            self.shared.commit(&mut lane, group);
        }
        self.shared.release_if_closed();
    }
}

impl<D: Digest> Drop for Leadership<D> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if std::thread::panicking() {
            let mut queue = self.shared.queue.lock();
            queue.leading = false;
            queue.pending.clear();
        } else {
            self.empty();
        }
    }
}
