//! Seats and queues.
//!
//! Each level has its guaranteed seats; what others do not use of theirs can be borrowed. Requests that find no seat
//! wait in one of the level's queues. A flow has a hand of queues, the same for all its requests, and takes the
//! shortest: a flow that floods the server fills its own hand, while other flows find queues that are short. The
//! queues take turns by the seats they were given (start-time fair queuing).

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::levels::{Level, Limits, Queuing};

pub(super) type SharedScheduler = Arc<Mutex<Scheduler>>;

/// Most cards of a hand: upstream's bound for 60 bits of a hash.
const MAX_HAND: usize = 15;

/// The seats of a server.
#[derive(Debug)]
pub(super) struct Scheduler {
    total: usize,
    levels: BTreeMap<Arc<str>, LevelState>,
    next_id: u64,
}

#[derive(Debug)]
struct LevelState {
    limits: Limits,
    /// No longer configured. Stays until its requests are done.
    retired: bool,
    in_use: usize,
    executing: usize,
    waiting: usize,
    rejected: u64,
    dispatched: u64,
    /// Start tag of the request that was dispatched last.
    virtual_time: u64,
    /// Queues that have requests, or had some recently.
    queues: BTreeMap<u64, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Virtual time at which its next request starts.
    tag: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    flow: u64,
    seats: usize,
    grant: oneshot::Sender<()>,
}

/// Seats of a running request.
#[derive(Debug)]
pub(super) struct Admitted {
    scheduler: SharedScheduler,
    level: Arc<str>,
    seats: usize,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.scheduler.lock().release(&self.level, self.seats);
    }
}

/// A request in a queue.
struct Ticket {
    scheduler: SharedScheduler,
    level: Arc<str>,
    id: u64,
    seats: usize,
    granted: oneshot::Receiver<()>,
    /// Whether the seats are accounted for by [`Admitted`].
    taken: bool,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut scheduler = self.scheduler.lock();
        // Granted while nobody was waiting any more.
        self.granted.close();
        match self.granted.try_recv() {
            Ok(()) => scheduler.release(&self.level, self.seats),
            Err(_) => scheduler.forget(&self.level, self.id),
        }
    }
}

impl Scheduler {
    pub(super) fn shared(total: usize) -> SharedScheduler {
        Arc::new(Mutex::new(Self { total, levels: BTreeMap::new(), next_id: 0 }))
    }

    pub(super) fn total(shared: &SharedScheduler) -> usize {
        shared.lock().total
    }

    /// Sets the levels. Requests that wait stay, in the queues that their flows have now.
    pub(super) fn configure(shared: &SharedScheduler, levels: &[Arc<Level>]) {
        let mut scheduler = shared.lock();
        for state in scheduler.levels.values_mut() {
            state.retired = true;
        }
        for level in levels {
            let Some(limits) = level.limits else { continue };
            let state = scheduler.levels.entry(level.name.clone()).or_insert_with(|| LevelState::new(limits));
            state.retired = false;
            if state.limits.queuing != limits.queuing {
                state.requeue(limits.queuing);
            }
            state.limits = limits;
        }
        scheduler.levels.retain(|_, state| !state.is_done());
        scheduler.dispatch_all();
    }

    /// Waits for seats. `None` if the level rejects the request, or it waited too long.
    pub(super) async fn enter(
        shared: &SharedScheduler,
        level: &Arc<str>,
        flow: u64,
        seats: usize,
        wait: Duration,
    ) -> Option<Admitted> {
        let admitted = || Admitted { scheduler: shared.clone(), level: level.clone(), seats };
        let (id, granted) = {
            let mut scheduler = shared.lock();
            match scheduler.arrive(level, flow, seats) {
                Arrival::Runs => return Some(admitted()),
                Arrival::Rejected => return None,
                Arrival::Waits(id, granted) => (id, granted),
            }
        };
        let mut ticket =
            Ticket { scheduler: shared.clone(), level: level.clone(), id, seats, granted, taken: false };
        match tokio::time::timeout(wait, &mut ticket.granted).await {
            Ok(Ok(())) => {
                ticket.taken = true;
                Some(admitted())
            }
            _ => {
                drop(ticket);
                shared.lock().count_rejection(level);
                None
            }
        }
    }

    fn arrive(&mut self, name: &Arc<str>, flow: u64, seats: usize) -> Arrival {
        let Some(level) = self.levels.get(name) else {
            // Removed in between: the next request finds another level.
            return Arrival::Rejected;
        };
        if level.waiting == 0 && self.fits(name, seats) {
            if let Some(level) = self.levels.get_mut(name) {
                level.start(seats);
            }
            return Arrival::Runs;
        }
        let id = self.next_id;
        self.next_id += 1;
        let Some(level) = self.levels.get_mut(name) else { return Arrival::Rejected };
        let Some(queuing) = level.limits.queuing else {
            level.rejected += 1;
            return Arrival::Rejected;
        };
        let (grant, granted) = oneshot::channel();
        if !level.enqueue(queuing, Waiting { id, flow, seats, grant }) {
            level.rejected += 1;
            return Arrival::Rejected;
        }
        self.dispatch(name);
        Arrival::Waits(id, granted)
    }

    /// Whether a level can use more seats: its guaranteed ones, or what others leave of theirs.
    fn fits(&self, name: &str, seats: usize) -> bool {
        let Some(level) = self.levels.get(name) else { return false };
        let wanted = level.in_use + seats;
        if level.executing == 0 || wanted <= level.limits.guaranteed {
            return true;
        }
        let others = self.levels.iter().filter(|(other, _)| ***other != *name);
        let reserved: usize = others.map(|(_, other)| other.in_use.max(other.guaranteed())).sum();
        wanted <= level.limits.most && reserved + wanted <= self.total
    }

    fn release(&mut self, name: &Arc<str>, seats: usize) {
        if let Some(level) = self.levels.get_mut(name) {
            level.in_use = level.in_use.saturating_sub(seats);
            level.executing = level.executing.saturating_sub(1);
        }
        self.dispatch(name);
        self.dispatch_all();
        if self.levels.get(name).is_some_and(LevelState::is_done) {
            self.levels.remove(name);
        }
    }

    /// Removes a request that no longer waits.
    fn forget(&mut self, name: &str, id: u64) {
        let Some(level) = self.levels.get_mut(name) else { return };
        for queue in level.queues.values_mut() {
            if let Some(position) = queue.waiting.iter().position(|waiting| waiting.id == id) {
                queue.waiting.remove(position);
                level.waiting -= 1;
                return;
            }
        }
    }

    fn count_rejection(&mut self, name: &str) {
        if let Some(level) = self.levels.get_mut(name) {
            level.rejected += 1;
        }
    }

    fn dispatch_all(&mut self) {
        let waiting: Vec<Arc<str>> =
            self.levels.iter().filter(|(_, level)| level.waiting > 0).map(|(name, _)| name.clone()).collect();
        for name in waiting {
            self.dispatch(&name);
        }
    }

    /// Starts waiting requests of a level while there are seats.
    fn dispatch(&mut self, name: &Arc<str>) {
        loop {
            let Some(seats) = self.levels.get(name).and_then(LevelState::next_seats) else { return };
            if !self.fits(name, seats) {
                return;
            }
            let Some(level) = self.levels.get_mut(name) else { return };
            level.dispatch_next();
        }
    }

    /// Metrics in the text format.
    pub(super) fn metrics(shared: &SharedScheduler) -> String {
        let scheduler = shared.lock();
        let mut text = String::new();
        type Read = fn(&LevelState) -> u64;
        let families: [(&str, &str, &str, Read); 5] = [
            ("current_executing_requests", "gauge", "Requests that run", |level| level.executing as u64),
            ("current_executing_seats", "gauge", "Seats in use", |level| level.in_use as u64),
            ("current_inqueue_requests", "gauge", "Requests that wait", |level| level.waiting as u64),
            ("dispatched_requests_total", "counter", "Requests that were started", |level| level.dispatched),
            ("rejected_requests_total", "counter", "Requests that were rejected", |level| level.rejected),
        ];
        for (name, kind, help, read) in families {
            let _ = writeln!(text, "# HELP apiserver_flowcontrol_{name} {help}.");
            let _ = writeln!(text, "# TYPE apiserver_flowcontrol_{name} {kind}");
            for (level, state) in &scheduler.levels {
                let value = read(state);
                let _ = writeln!(text, "apiserver_flowcontrol_{name}{{priority_level=\"{level}\"}} {value}");
            }
        }
        text
    }
}

enum Arrival {
    Runs,
    Waits(u64, oneshot::Receiver<()>),
    Rejected,
}

impl LevelState {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            retired: false,
            in_use: 0,
            executing: 0,
            waiting: 0,
            rejected: 0,
            dispatched: 0,
            virtual_time: 0,
            queues: BTreeMap::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.retired && self.executing == 0 && self.waiting == 0
    }

    fn guaranteed(&self) -> usize {
        if self.retired { 0 } else { self.limits.guaranteed }
    }

    fn start(&mut self, seats: usize) {
        self.in_use += seats;
        self.executing += 1;
        self.dispatched += 1;
    }

    /// Puts a request into the shortest queue of its hand. Returns whether there was room.
    fn enqueue(&mut self, queuing: Queuing, waiting: Waiting) -> bool {
        let length = |queue: u64| self.queues.get(&queue).map_or(0, |queue| queue.waiting.len());
        let hand = deal(waiting.flow, queuing.queues, queuing.hand);
        let Some(shortest) = hand.into_iter().min_by_key(|queue| length(*queue)) else { return false };
        if length(shortest) >= queuing.length {
            return false;
        }
        let virtual_time = self.virtual_time;
        let queue = self.queues.entry(shortest).or_default();
        if queue.waiting.is_empty() {
            queue.tag = queue.tag.max(virtual_time);
        }
        queue.waiting.push_back(waiting);
        self.waiting += 1;
        true
    }

    fn next_queue(&self) -> Option<u64> {
        let busy = self.queues.iter().filter(|(_, queue)| !queue.waiting.is_empty());
        busy.min_by_key(|(index, queue)| (queue.tag, **index)).map(|(index, _)| *index)
    }

    fn next_seats(&self) -> Option<usize> {
        self.queues.get(&self.next_queue()?)?.waiting.front().map(|waiting| waiting.seats)
    }

    fn dispatch_next(&mut self) {
        let Some(index) = self.next_queue() else { return };
        let Some(queue) = self.queues.get_mut(&index) else { return };
        let Some(next) = queue.waiting.pop_front() else { return };
        self.waiting -= 1;
        self.virtual_time = queue.tag;
        queue.tag += next.seats as u64;
        let virtual_time = self.virtual_time;
        // A queue that is not ahead of the others is like a new one.
        self.queues.retain(|_, queue| !queue.waiting.is_empty() || queue.tag > virtual_time);
        // Whoever has gone needs no seats.
        if next.grant.send(()).is_ok() {
            self.start(next.seats);
        }
    }

    /// Deals new hands to all that wait. What no longer fits is rejected.
    fn requeue(&mut self, queuing: Option<Queuing>) {
        let queues = std::mem::take(&mut self.queues);
        self.waiting = 0;
        let mut waiting: Vec<Waiting> = queues.into_values().flat_map(|queue| queue.waiting).collect();
        waiting.sort_by_key(|waiting| waiting.id);
        for waiting in waiting {
            match queuing {
                Some(queuing) if self.enqueue(queuing, waiting) => {}
                // Its sender is dropped, which wakes it.
                _ => {}
            }
        }
    }
}

/// The queues of a flow, by shuffle sharding: every hand of different queues is equally likely.
fn deal(flow: u64, queues: u64, hand: usize) -> Vec<u64> {
    let mut entropy = flow;
    let mut cards: Vec<u64> = Vec::with_capacity(hand.min(MAX_HAND));
    for dealt in 0..hand.min(MAX_HAND) as u64 {
        let left = queues.saturating_sub(dealt);
        if left == 0 {
            break;
        }
        cards.push(entropy % left);
        entropy /= left;
    }
    // Each card is a position among the queues that were not dealt before.
    (0..cards.len())
        .map(|i| {
            cards[..i]
                .iter()
                .rev()
                .fold(cards[i], |card, before| if card >= *before { card + 1 } else { card })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn scheduler(total: usize, levels: &[(&str, usize, usize, Option<Queuing>)]) -> SharedScheduler {
        let shared = Scheduler::shared(total);
        for (name, guaranteed, most, queuing) in levels {
            let limits =
                Limits { nominal: *guaranteed, guaranteed: *guaranteed, most: *most, queuing: *queuing };
            shared.lock().levels.insert((*name).into(), LevelState::new(limits));
        }
        shared
    }

    const QUEUES: Option<Queuing> = Some(Queuing { queues: 8, hand: 2, length: 3 });

    async fn enter(shared: &SharedScheduler, level: &str, flow: u64, seats: usize) -> Option<Admitted> {
        Scheduler::enter(shared, &level.into(), flow, seats, Duration::from_secs(15)).await
    }

    #[test]
    fn a_hand_has_different_queues_and_depends_on_the_flow_only() {
        for flow in [0, 1, 12_345, u64::MAX, 0x0123_4567_89ab_cdef] {
            let hand = deal(flow, 64, 6);
            assert_eq!(hand, deal(flow, 64, 6));
            assert_eq!(hand.iter().collect::<BTreeSet<_>>().len(), 6, "{hand:?}");
            assert!(hand.iter().all(|queue| *queue < 64), "{hand:?}");
        }
        assert_eq!(deal(7, 3, 3).iter().collect::<BTreeSet<_>>().len(), 3);
        assert_ne!(deal(1, 128, 6), deal(2, 128, 6));
    }

    #[tokio::test]
    async fn a_level_without_queues_rejects_what_cannot_run() {
        let shared = scheduler(1, &[("a", 1, 1, None)]);
        let first = enter(&shared, "a", 0, 1).await;
        assert!(first.is_some());
        assert!(enter(&shared, "a", 0, 1).await.is_none());
        drop(first);
        assert!(enter(&shared, "a", 0, 1).await.is_some());
    }

    #[tokio::test]
    async fn seats_that_others_do_not_use_are_borrowed_but_guaranteed_ones_are_not() {
        let shared = scheduler(6, &[("a", 2, 6, None), ("b", 3, 6, None)]);
        let mut held = Vec::new();
        while let Some(admitted) = enter(&shared, "a", 0, 1).await {
            held.push(admitted);
        }
        assert_eq!(held.len(), 3, "two of its own, and the one that belongs to nobody");
        for _ in 0..3 {
            held.push(enter(&shared, "b", 0, 1).await.expect("guaranteed"));
        }
        assert!(enter(&shared, "b", 0, 1).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flow_that_floods_a_level_does_not_starve_another() {
        let shared = scheduler(1, &[("a", 1, 1, Some(Queuing { queues: 128, hand: 1, length: 50 }))]);
        let running = enter(&shared, "a", 0, 1).await.expect("a seat");
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (who, flow) in std::iter::repeat_n(("flood", 1), 20).chain([("other", 2)]) {
            let (shared, order) = (shared.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let admitted = enter(&shared, "a", flow, 1).await;
                order.lock().push(who);
                drop(admitted);
            }));
            tokio::task::yield_now().await;
        }
        drop(running);
        for task in tasks {
            task.await.expect("a task");
        }
        let order = order.lock();
        let position = order.iter().position(|who| *who == "other").expect("it ran");
        assert!(position <= 1, "{order:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_too_long_or_finds_a_full_queue_is_rejected() {
        let shared = scheduler(1, &[("a", 1, 1, QUEUES)]);
        let running = enter(&shared, "a", 0, 1).await;
        let waiting: Vec<_> = (0..7)
            .map(|_| {
                let shared = shared.clone();
                tokio::spawn(async move { enter(&shared, "a", 5, 1).await.is_some() })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(shared.lock().levels["a"].waiting, 6, "two queues of three");
        let mut admitted = 0;
        for task in waiting {
            admitted += usize::from(task.await.expect("a task"));
        }
        assert_eq!(admitted, 0);
        assert_eq!(shared.lock().levels["a"].waiting, 0);
        drop(running);
        assert_eq!(shared.lock().levels["a"].in_use, 0);
    }

    #[tokio::test]
    async fn a_client_that_goes_away_leaves_no_trace() {
        let shared = scheduler(1, &[("a", 1, 1, QUEUES)]);
        let running = enter(&shared, "a", 0, 1).await;
        let mut gone = Box::pin(enter(&shared, "a", 1, 1));
        let mut stays = Box::pin(enter(&shared, "a", 2, 1));
        assert!(futures::poll!(&mut gone).is_pending() && futures::poll!(&mut stays).is_pending());
        drop(gone);
        assert_eq!(shared.lock().levels["a"].waiting, 1);
        drop(running);
        // Granted, and dropped before it was polled again.
        drop(stays);
        assert_eq!(shared.lock().levels["a"].in_use, 0);
        assert!(enter(&shared, "a", 0, 1).await.is_some());
    }

    #[tokio::test]
    async fn a_wide_request_runs_alone_if_it_must() {
        let shared = scheduler(4, &[("a", 2, 2, QUEUES)]);
        assert!(enter(&shared, "a", 0, 10).await.is_some());
    }
}
