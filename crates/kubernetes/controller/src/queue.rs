//! The keys that wait to be reconciled.
//!
//! ```text
//!  wake(key) ──▶ ready: urgent │ normal │ initial ──▶ next() ──▶ busy ──▶ done(key)
//!  wake_after(key, time) ──▶ later ──┘                             │
//!                             a key woken while busy waits for its turn again
//! ```
//!
//! A key is in the queue once and is handed out to one reconcile at a time. Within a priority, namespaces take turns, and
//! so do the groups of a namespace; keys of one group are first come, first served. Every eighth pick goes to the lowest
//! priority, so that a busy plane does not starve a restart's backlog.
//!
//! A failing key backs off, twice as long each time; a success or a change of the desired state resets that. What a failed
//! reconcile itself wrote to its object does not end its back-off: every attempt records its intents, and would follow the
//! last one without a pause.

mod fair;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_object::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metrics::QueueMetrics;
use fair::{Position, Turns};

/// How soon a key is reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// It existed before this process started: nothing has just happened.
    Initial,
    /// Something it depends on changed.
    Normal,
    /// The desired state changed.
    Urgent,
}

const PRIORITIES: usize = 3;
/// One pick in so many goes to the lowest priority that waits.
const FAIR_PICK: u64 = 8;

/// How long a failing key waits.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// At most.
    pub most: Duration,
}

impl Default for Backoff {
    /// Five minutes at most: upstream's sixteen leave a recovered cloud unused for too long.
    fn default() -> Self {
        Self { first: Duration::from_millis(50), most: Duration::from_secs(300) }
    }
}

impl Backoff {
    /// The pause after so many failures in a row.
    pub fn after(&self, failures: u32) -> Duration {
        let doubled = 2u32.checked_pow(failures.saturating_sub(1)).and_then(|n| self.first.checked_mul(n));
        doubled.unwrap_or(self.most).min(self.most)
    }
}

/// The queue of one controller.
pub struct WorkQueue {
    state: Mutex<State>,
    changed: Notify,
    backoff: Backoff,
    metrics: Arc<QueueMetrics>,
    group: GroupOf,
}

/// The name of the group that a key takes turns with.
type GroupOf = Box<dyn Fn(&Key) -> String + Send + Sync>;

#[derive(Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    ready: [Turns; PRIORITIES],
    later: BTreeMap<(Instant, u64), Key>,
    sequence: u64,
    picks: u64,
    crowd: Crowd,
}

/// How many keys were batched recently.
#[derive(Default)]
struct Crowd {
    since: Option<Instant>,
    counted: u32,
    before: u32,
}

/// Each time this many keys a second are batched, the batching time grows by its base length.
const CROWD: u32 = 50;
/// At most this many times the base length.
const LONGEST: u32 = 10;
const CROWD_WINDOW: Duration = Duration::from_secs(1);

impl Crowd {
    fn turn(&mut self, now: Instant) {
        let age = self.since.map(|since| now.saturating_duration_since(since));
        if age.is_none_or(|age| age >= CROWD_WINDOW) {
            let fresh = age.is_some_and(|age| age < 2 * CROWD_WINDOW);
            self.before = if fresh { self.counted } else { 0 };
            (self.since, self.counted) = (Some(now), 0);
        }
    }

    fn stretched(&self, time: Duration) -> Duration {
        time * (1 + self.counted.max(self.before) / CROWD).min(LONGEST)
    }
}

#[derive(Default)]
struct Entry {
    ready: Option<(Priority, Position)>,
    since: Option<Instant>,
    later: Option<(Instant, u64)>,
    /// When its reconcile began.
    busy: Option<Instant>,
    /// Requeued while busy.
    again: Option<Priority>,
    /// Versions of the object that arrived while busy.
    came: Vec<u64>,
    /// Versions that the current reconcile wrote.
    wrote: Vec<u64>,
    failures: u32,
}

impl Entry {
    fn idle(&self) -> bool {
        self.ready.is_none() && self.later.is_none() && self.busy.is_none() && self.failures == 0
    }
}

impl State {
    fn make_ready(&mut self, key: &Key, priority: Priority, now: Instant, group: &GroupOf) -> bool {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.busy.is_some() {
            entry.again = entry.again.max(Some(priority));
            return false;
        }
        if let Some((have, position)) = &mut entry.ready {
            if *have < priority {
                self.ready[*have as usize].remove(position);
                *have = priority;
                *position = self.ready[priority as usize].add(key, &position.group);
            }
            return false;
        }
        if let Some(due) = entry.later.take() {
            self.later.remove(&due);
        }
        entry.ready = Some((priority, self.ready[priority as usize].add(key, &group(key))));
        entry.since = Some(now);
        true
    }

    /// Returns whether anything changed.
    fn make_later(&mut self, key: &Key, at: Instant) -> bool {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.ready.is_some() || entry.again.is_some() || entry.later.is_some_and(|(have, _)| have <= at) {
            return false;
        }
        if let Some(due) = entry.later.take() {
            self.later.remove(&due);
        }
        self.sequence += 1;
        entry.later = Some((at, self.sequence));
        self.later.insert((at, self.sequence), key.clone());
        true
    }

    fn pick(&mut self) -> Option<Key> {
        self.picks += 1;
        let fair = self.picks.is_multiple_of(FAIR_PICK);
        let mut order: [usize; PRIORITIES] = [2, 1, 0];
        if fair {
            order.reverse();
        }
        for priority in order {
            if let Some(key) = self.ready[priority].pop() {
                return Some(key);
            }
        }
        None
    }
}

impl WorkQueue {
    pub(crate) fn new(backoff: Backoff, metrics: Arc<QueueMetrics>) -> Self {
        let group: GroupOf = Box::new(|_| String::new());
        Self { state: Mutex::default(), changed: Notify::new(), backoff, metrics, group }
    }

    /// The same queue whose keys take turns by group within their namespace.
    pub(crate) fn grouped(self, group: impl Fn(&Key) -> String + Send + Sync + 'static) -> Self {
        Self { group: Box::new(group), ..self }
    }

    /// Requeues a key.
    pub fn wake(&self, key: &Key, priority: Priority) {
        let added = self.state.lock().make_ready(key, priority, Instant::now(), &self.group);
        if added {
            self.metrics.added();
            self.changed.notify_one();
        }
    }

    /// Requeues a key because its object changed to this version.
    pub(crate) fn wake_own(&self, key: &Key, priority: Priority, version: u64) {
        {
            let mut state = self.state.lock();
            if let Some(entry) = state.entries.get_mut(key).filter(|entry| entry.busy.is_some())
                && priority < Priority::Urgent
            {
                // The write of this version may not have been answered yet.
                entry.came.push(version);
                return;
            }
        }
        self.wake(key, priority);
    }

    /// The reconcile of a key wrote this version of its object.
    pub(crate) fn wrote(&self, key: &Key, version: u64) {
        if let Some(entry) = self.state.lock().entries.get_mut(key) {
            entry.wrote.push(version);
        }
    }

    /// Requeues a key after a time at the latest.
    pub fn wake_after(&self, key: &Key, time: Duration) {
        if time.is_zero() {
            return self.wake(key, Priority::Normal);
        }
        // A time that overflows the clock is never reached.
        if let Some(at) = Instant::now().checked_add(time) {
            self.metrics.retried();
            self.state.lock().make_later(key, at);
            self.changed.notify_one();
        }
    }

    /// Requeues a key after a time in which further changes are batched. The time grows with the number of such keys:
    /// reconciling each of them less often leaves workers for all of them.
    pub(crate) fn gather(&self, key: &Key, time: Duration) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.crowd.turn(now);
        let at = now + state.crowd.stretched(time);
        if state.make_later(key, at) {
            state.crowd.counted += 1;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Requeues a key with back-off; returns the pause.
    pub fn wake_after_failure(&self, key: &Key) -> Duration {
        let pause = {
            let mut state = self.state.lock();
            let entry = state.entries.entry(key.clone()).or_default();
            entry.failures += 1;
            self.backoff.after(entry.failures)
        };
        self.wake_after(key, pause);
        pause
    }

    /// Resets the back-off of a key.
    pub fn forget(&self, key: &Key) {
        let mut state = self.state.lock();
        if let Some(entry) = state.entries.get_mut(key) {
            entry.failures = 0;
            if entry.idle() {
                state.entries.remove(key);
            }
        }
    }

    /// The next key; waits for one. It is not handed out again before [`WorkQueue::done`].
    pub async fn next(&self) -> Key {
        loop {
            let notified = self.changed.notified();
            let due = {
                let now = Instant::now();
                let mut state = self.state.lock();
                while let Some(entry) = state.later.first_entry()
                    && entry.key().0 <= now
                {
                    let key = entry.remove();
                    if let Some(entry) = state.entries.get_mut(&key) {
                        entry.later = None;
                    }
                    if state.make_ready(&key, Priority::Normal, now, &self.group) {
                        self.metrics.added();
                    }
                }
                if let Some(key) = state.pick() {
                    if let Some(entry) = state.entries.get_mut(&key) {
                        entry.ready = None;
                        entry.busy = Some(now);
                        let waited = entry.since.take().map_or(Duration::ZERO, |since| now - since);
                        self.metrics.picked(now, waited);
                    }
                    return key;
                }
                state.later.keys().next().map(|(at, _)| *at)
            };
            match due {
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = notified => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => notified.await,
            }
        }
    }

    /// The reconcile of a key has ended; `took` is how long it took.
    pub fn done(&self, key: &Key, took: Duration) {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(key) else { return };
        if let Some(picked) = entry.busy.take() {
            self.metrics.worked(picked, took);
        }
        // A success has reset the back-off by now.
        let failed = entry.failures > 0;
        let wrote = std::mem::take(&mut entry.wrote);
        let came = std::mem::take(&mut entry.came);
        if came.iter().any(|version| !failed || !wrote.contains(version)) {
            entry.again = entry.again.max(Some(Priority::Normal));
        }
        if let Some(priority) = entry.again.take() {
            if state.make_ready(key, priority, Instant::now(), &self.group) {
                self.metrics.added();
                self.changed.notify_one();
            }
        } else if entry.idle() {
            state.entries.remove(key);
        }
    }

    /// Keys that are ready or being reconciled, and keys that are requeued for later.
    pub fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        let ready = state.ready.iter().map(Turns::len).sum::<usize>();
        (ready + state.entries.values().filter(|entry| entry.busy.is_some()).count(), state.later.len())
    }
}

/// Requeues objects of a controller from elsewhere: watches of workload clusters, timers.
#[derive(Clone)]
pub struct Wake(pub(crate) Arc<WorkQueue>);

impl Wake {
    /// Requeues an object.
    pub fn wake(&self, key: &Key) {
        self.0.wake(key, Priority::Normal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> WorkQueue {
        WorkQueue::new(
            Backoff { first: Duration::from_secs(1), most: Duration::from_secs(10) },
            Arc::new(QueueMetrics::default()),
        )
    }

    fn key(name: &str) -> Key {
        Key::new("a", name)
    }

    async fn names(queue: &WorkQueue, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(queue.next().await.name);
        }
        names
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_queued_once_and_never_handed_out_twice_at_a_time() {
        let queue = queue();
        queue.wake(&key("x"), Priority::Normal);
        queue.wake(&key("x"), Priority::Normal);
        queue.wake(&key("y"), Priority::Normal);
        assert_eq!(names(&queue, 2).await, ["x", "y"]);
        queue.wake(&key("x"), Priority::Normal);
        assert!(futures::poll!(std::pin::pin!(queue.next())).is_pending(), "x is being reconciled");
        queue.done(&key("x"), Duration::ZERO);
        assert_eq!(names(&queue, 1).await, ["x"]);
    }

    #[tokio::test(start_paused = true)]
    async fn urgent_keys_go_first_and_the_lowest_are_not_starved() {
        let queue = queue();
        queue.wake(&key("old"), Priority::Initial);
        for n in 0..9 {
            queue.wake(&key(&format!("n{n}")), Priority::Normal);
        }
        queue.wake(&key("n8"), Priority::Urgent);
        let order = names(&queue, 10).await;
        assert_eq!(order[0], "n8");
        assert_eq!(order[7], "old", "the eighth pick is a fair one: {order:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_and_groups_take_turns() {
        let queue = queue().grouped(|key| key.name.split('-').next().unwrap_or_default().to_owned());
        for n in 0..100 {
            queue.wake(&key(&format!("flood-{n}")), Priority::Normal);
        }
        queue.wake(&key("other-0"), Priority::Normal);
        queue.wake(&Key::new("b", "tenant-0"), Priority::Normal);
        assert_eq!(names(&queue, 3).await, ["flood-0", "tenant-0", "other-0"]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_twice_as_long_each_time_up_to_a_bound_until_forgotten() {
        let queue = queue();
        let mut pauses = Vec::new();
        for _ in 0..5 {
            pauses.push(queue.wake_after_failure(&key("x")).as_secs());
            names(&queue, 1).await;
            queue.done(&key("x"), Duration::ZERO);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 10]);
        queue.forget(&key("x"));
        assert_eq!(queue.wake_after_failure(&key("x")).as_secs(), 1);
    }

    /// Whether a key waits after a reconcile that wrote version 5 while these versions came.
    async fn waits(came: &[u64], failed: bool) -> bool {
        let (queue, x) = (queue(), key("x"));
        queue.wake(&x, Priority::Normal);
        names(&queue, 1).await;
        for version in came {
            queue.wake_own(&x, Priority::Normal, *version);
        }
        queue.wrote(&x, 5);
        if failed {
            queue.wake_after_failure(&x);
        }
        queue.done(&x, Duration::ZERO);
        queue.load().0 == 0
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_failed_reconcile_wrote_does_not_end_its_pause_but_what_others_wrote_does() {
        assert!(waits(&[5], true).await);
        assert!(!waits(&[5, 6], true).await, "somebody else wrote 6");
        assert!(!waits(&[5], false).await, "what was written is reconciled once more");
        assert!(waits(&[], true).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_write_ends_the_pause_of_a_failed_reconcile() {
        let (queue, x) = (queue(), key("x"));
        queue.wake_after_failure(&x);
        queue.wake_own(&x, Priority::Normal, 7);
        assert_eq!(queue.load(), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_time_counts_and_a_wake_comes_before_it() {
        let queue = queue();
        let begun = Instant::now();
        queue.wake_after(&key("x"), Duration::from_secs(30));
        queue.wake_after(&key("x"), Duration::from_secs(5));
        queue.wake_after(&key("x"), Duration::from_secs(60));
        names(&queue, 1).await;
        assert_eq!(begun.elapsed().as_secs(), 5);
        queue.done(&key("x"), Duration::ZERO);
        queue.wake_after(&key("x"), Duration::from_secs(30));
        queue.wake(&key("x"), Priority::Normal);
        names(&queue, 1).await;
        assert_eq!(begun.elapsed().as_secs(), 5);
        queue.done(&key("x"), Duration::ZERO);
        assert_eq!(queue.load(), (0, 0), "a wake replaces the later requeue");
    }

    #[tokio::test(start_paused = true)]
    async fn the_more_keys_are_gathered_for_the_longer_each_waits() {
        const TIME: Duration = Duration::from_millis(200);
        for (others, waits) in [(0, 1), (CROWD - 1, 1), (CROWD, 2), (3 * CROWD, 4), (100 * CROWD, LONGEST)] {
            let queue = queue();
            for other in 0..others {
                queue.gather(&key(&format!("other-{other}")), TIME);
            }
            let begun = Instant::now();
            queue.gather(&key("this"), TIME);
            while queue.next().await != key("this") {}
            assert_eq!(begun.elapsed(), TIME * waits, "among {others}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gathered_for_one_key_does_not_make_a_crowd_nor_does_what_was_long_ago() {
        const TIME: Duration = Duration::from_millis(200);
        let queue = queue();
        for _ in 0..10 * CROWD {
            queue.gather(&key("this"), TIME);
        }
        for other in 0..10 * CROWD {
            queue.gather(&key(&format!("other-{other}")), TIME);
        }
        tokio::time::advance(3 * CROWD_WINDOW).await;
        for _ in 0..=10 * CROWD {
            queue.next().await;
        }
        let begun = Instant::now();
        queue.gather(&key("late"), TIME);
        assert_eq!(queue.next().await, key("late"));
        assert_eq!(begun.elapsed(), TIME);
    }
}
