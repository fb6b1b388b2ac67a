//! Memory that answers of several servers share, fairly.

use std::sync::Arc;

use parking_lot::Mutex;

/// Memory for what several servers send. Each server has a reserve of its own. Beyond it, a server gets
/// at most as much of the common pool as it leaves free for the others (the dynamic threshold of shared switch buffers):
/// one hostile server never gets more than half, and however many there are, something is left for the next.
#[derive(Debug)]
pub struct Budget {
    reserve: usize,
    pool: usize,
    most: usize,
    /// Bytes of the pool that are in use.
    taken: Mutex<usize>,
}

/// Which part of a budget has no room left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// One server holds as much as any may.
    Server(usize),
    /// All servers together hold so much that this one gets no more.
    Process(usize),
}

impl Budget {
    /// A budget: bytes reserved for each server, bytes that all share beyond that, and bytes one server may hold.
    pub fn new(reserve: usize, pool: usize, most: usize) -> Arc<Self> {
        Arc::new(Self { reserve, pool, most, taken: Mutex::default() })
    }

    /// The part of one server.
    pub fn share(self: &Arc<Self>) -> Arc<Share> {
        Arc::new(Share { budget: self.clone(), held: Mutex::default() })
    }
}

/// What one server holds of a budget.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    held: Mutex<usize>,
}

impl Share {
    /// Bytes held now.
    pub fn held(&self) -> usize {
        *self.held.lock()
    }

    fn take(&self, bytes: usize) -> Result<(), Exhausted> {
        let Budget { reserve, pool, most, taken } = &*self.budget;
        let mut held = self.held.lock();
        let wanted = held.saturating_add(bytes);
        if wanted > *most {
            return Err(Exhausted::Server(*most));
        }
        let (before, beyond) = (held.saturating_sub(*reserve), wanted.saturating_sub(*reserve));
        if beyond > before {
            let mut taken = taken.lock();
            let all = taken.saturating_add(beyond - before);
            if beyond > pool.saturating_sub(all) {
                return Err(Exhausted::Process(*pool));
            }
            *taken = all;
        }
        *held = wanted;
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        let Budget { reserve, taken, .. } = &*self.budget;
        let mut held = self.held.lock();
        let left = held.saturating_sub(bytes);
        let freed = held.saturating_sub(*reserve) - left.saturating_sub(*reserve);
        if freed > 0 {
            let mut taken = taken.lock();
            *taken = taken.saturating_sub(freed);
        }
        *held = left;
    }
}

/// Bytes held of a share; given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Charge {
    pub fn none(share: &Arc<Share>) -> Self {
        Self { share: share.clone(), bytes: 0 }
    }

    /// Holds this many bytes from now on. Without room for more, it stays as it is.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exhausted> {
        if bytes > self.bytes {
            self.share.take(bytes - self.bytes)?;
        } else {
            self.share.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.resize(self.bytes.saturating_add(bytes))
    }

    /// Splits so many of the bytes off.
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { share: self.share.clone(), bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(share: &Arc<Share>, bytes: usize) -> Result<Charge, Exhausted> {
        let mut charge = Charge::none(share);
        charge.resize(bytes).map(|()| charge)
    }

    /// As much as a server can get, in steps of one byte.
    fn greedy(share: &Arc<Share>) -> Charge {
        let mut charge = Charge::none(share);
        while charge.grow(1).is_ok() {}
        charge
    }

    #[test]
    fn one_server_gets_at_most_half_of_the_pool_and_its_reserve() {
        let budget = Budget::new(10, 1000, 10_000);
        let hostile = budget.share();
        let held = greedy(&hostile);
        assert_eq!(hostile.held(), 510);
        assert_eq!(charge(&hostile, 1).err(), Some(Exhausted::Process(1000)));
        drop(held);
        assert_eq!((hostile.held(), *budget.taken.lock()), (0, 0));
    }

    #[test]
    fn however_many_servers_are_greedy_the_next_one_has_its_reserve_and_more() {
        let budget = Budget::new(10, 1000, 10_000);
        let hostile: Vec<_> = (0..8).map(|_| greedy(&budget.share())).collect();
        let honest = budget.share();
        assert!(charge(&honest, 10).is_ok(), "the reserve");
        let got = greedy(&honest);
        assert!(honest.held() > 10, "{hostile:?} left nothing: {got:?}");
        assert!(*budget.taken.lock() <= 1000);
    }

    #[test]
    fn a_server_never_holds_more_than_any_may() {
        let budget = Budget::new(10, 1000, 50);
        let share = budget.share();
        let mut held = charge(&share, 50).expect("room");
        assert_eq!(held.grow(1), Err(Exhausted::Server(50)));
        assert_eq!(share.held(), 50);
        let part = held.split(20);
        drop(held);
        assert_eq!(share.held(), 20);
        drop(part);
        assert_eq!((share.held(), *budget.taken.lock()), (0, 0));
    }
}
