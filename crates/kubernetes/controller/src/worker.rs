//! The workers of a controller, and how a reconcile waits for a workload cluster without one.
//!
//! ```text
//! queue ──▶ worker ──▶ reconcile ──▶ asks a workload cluster ─┬─ answers at once ─────────────▶ goes on
//!                        ▲                                     └─ slow: the worker goes to others ─┐
//!                        └──────────────── waits for a worker again ◀── answer or time-out ◀───────┘
//! ```
//!
//! The server at the address of a cluster decides how long that takes. If a reconcile kept its worker meanwhile, a
//! few hundred silent clusters would stop the controllers of all others.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// A cluster that answers within this time costs its reconcile no worker: to give it away and wait for another takes
/// longer.
const AT_ONCE: Duration = Duration::from_millis(20);
/// For each worker, so many reconciles may wait without one. Each holds memory; those beyond keep their worker.
const WAITING_PER_WORKER: usize = 128;

tokio::task_local! {
    static WORKER: Arc<Worker>;
}

/// The workers of one controller.
pub(crate) struct Workers {
    free: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// The worker that a reconcile holds, if any.
struct Worker {
    workers: Arc<Workers>,
    held: Mutex<Held>,
    /// Held while it waits for a worker again: several of its waits may end together, and it takes one.
    regaining: tokio::sync::Mutex<()>,
}

struct Held {
    permit: Option<OwnedSemaphorePermit>,
    /// Waits under way. As long as there is one, no worker is held.
    waits: usize,
}

/// A wait without a worker. It also ends when the waiting future is dropped.
struct Waiting<'a> {
    worker: &'a Worker,
    _room: SemaphorePermit<'a>,
}

impl Worker {
    /// Gives the worker away; `None` if too many reconciles wait without one.
    fn leave(&self) -> Option<Waiting<'_>> {
        let room = self.workers.waiting.try_acquire().ok()?;
        let mut held = self.held.lock();
        held.waits += 1;
        let permit = held.permit.take();
        drop(held);
        drop(permit);
        Some(Waiting { worker: self, _room: room })
    }

    /// Waits for a worker if none is held and nothing else of the reconcile still waits.
    async fn regain(&self) {
        let _regaining = self.regaining.lock().await;
        let needs_one = |held: &Held| held.permit.is_none() && held.waits == 0;
        if !needs_one(&self.held.lock()) {
            return;
        }
        let permit = self.workers.free().await;
        let mut held = self.held.lock();
        if needs_one(&held) {
            held.permit = permit;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.worker.held.lock().waits -= 1;
    }
}

impl Workers {
    pub fn new(count: usize) -> Arc<Self> {
        let count = count.max(1);
        Arc::new(Self {
            free: Arc::new(Semaphore::new(count)),
            waiting: Arc::new(Semaphore::new(count.saturating_mul(WAITING_PER_WORKER))),
        })
    }

    /// Waits for a worker. Never `None`: the semaphore is not closed.
    pub async fn free(&self) -> Option<OwnedSemaphorePermit> {
        self.free.clone().acquire_owned().await.ok()
    }

    pub async fn run(self: Arc<Self>, permit: OwnedSemaphorePermit, reconcile: impl Future<Output = ()>) {
        let held = Mutex::new(Held { permit: Some(permit), waits: 0 });
        let worker = Worker { workers: self, held, regaining: tokio::sync::Mutex::default() };
        WORKER.scope(Arc::new(worker), reconcile).await;
    }
}

/// Waits for something that depends on a workload cluster. If it takes long, the reconcile that waits gives its worker to
/// others, and goes on when there is one for it again. Elsewhere than in a reconcile this is `future` and nothing else.
///
/// A time-out belongs inside `future`: a wait that is cancelled leaves its reconcile without a worker until the next wait.
pub fn off_worker<F: Future>(future: F) -> impl Future<Output = F::Output> {
    // On the heap: an async function holds a future that it is given several times over, and these waits are nested.
    let mut future = Box::pin(future);
    async move {
        let Ok(worker) = WORKER.try_with(Arc::clone) else { return future.await };
        if let Ok(output) = tokio::time::timeout(AT_ONCE, &mut future).await {
            return output;
        }
        let Some(waiting) = worker.leave() else { return future.await };
        let output = future.await;
        drop(waiting);
        worker.regain().await;
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether another reconcile gets the only worker while one waits for this long.
    async fn lets_others_run(time: Duration, off: bool) -> bool {
        let workers = Workers::new(1);
        let permit = workers.free().await.expect("a worker");
        let wait = tokio::time::sleep(time);
        let waiting = tokio::spawn(workers.clone().run(permit, async move {
            match off {
                true => off_worker(wait).await,
                false => wait.await,
            }
        }));
        tokio::time::sleep(time / 2).await;
        let free = workers.free.available_permits() == 1;
        waiting.await.expect("a reconcile");
        assert_eq!(workers.free.available_permits(), 1, "the worker is given back once");
        free
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_that_waits_for_long_gives_its_worker_to_others() {
        assert!(lets_others_run(10 * AT_ONCE, true).await);
        assert!(!lets_others_run(10 * AT_ONCE, false).await);
        assert!(!lets_others_run(AT_ONCE, true).await, "a fast answer is waited for");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_goes_on_only_when_there_is_a_worker_for_it() {
        let workers = Workers::new(1);
        let permit = workers.free().await.expect("a worker");
        let sleep = |seconds| off_worker(tokio::time::sleep(Duration::from_secs(seconds)));
        let first = tokio::spawn(workers.clone().run(permit, async move {
            // One wait in another, several at a time, and one that is cancelled.
            let cancelled = tokio::time::timeout(Duration::from_secs(1), sleep(60));
            let nested = off_worker(async { sleep(2).await });
            let _ = futures::join!(nested, sleep(1), sleep(2), cancelled);
        }));
        let other = workers.free().await.expect("the first one waits");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!first.is_finished(), "its worker is taken");
        drop(other);
        first.await.expect("a reconcile");
        assert_eq!(workers.waiting.available_permits(), WAITING_PER_WORKER);
        assert_eq!(workers.free.available_permits(), 1);
    }
}
