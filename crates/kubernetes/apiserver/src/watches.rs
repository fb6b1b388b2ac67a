//! Limits of open watches, in total and per user.
//!
//! A watch holds up to a piece of events that its client has not read, and no seat of a priority level. One with long
//! selectors counts as several: they are kept for as long as it lasts, and matched with every event.

use std::collections::HashMap;
use std::sync::Arc;

use ::http::StatusCode;
use parking_lot::Mutex;

use crate::auth::{MASTERS, User};
use crate::status::{Details, Result, Status};

/// Entries of selectors, and bytes of the query, for which a watch counts as one more.
const ENTRIES: usize = 32;
const QUERY_BYTES: usize = 4096;

/// When a client may try again, in seconds.
const RETRY_AFTER: u32 = 5;

/// Limits of open watches. Zero means no limit. Administrators (`system:masters`) are exempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchLimits {
    /// For all users together.
    pub total: usize,
    pub per_user: usize,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self { total: 10_000, per_user: 2_000 }
    }
}

/// The open watches of one server.
#[derive(Default)]
pub(crate) struct Watches {
    limits: WatchLimits,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    total: usize,
    by_user: HashMap<Arc<str>, usize>,
}

/// One open watch. Dropping it frees its slots.
pub(crate) struct WatchPermit(Option<(Arc<Watches>, Arc<str>, usize)>);

/// How many watches one counts as.
pub(crate) fn slots(selector_entries: usize, query_bytes: usize) -> usize {
    1 + selector_entries / ENTRIES + query_bytes / QUERY_BYTES
}

impl Watches {
    pub fn new(limits: WatchLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Admits a watch of a user that counts as `slots`, or rejects it with 429.
    pub fn admit(self: &Arc<Self>, user: &User, slots: usize) -> Result<WatchPermit> {
        if user.in_group(MASTERS) {
            return Ok(WatchPermit(None));
        }
        let mut open = self.open.lock();
        let WatchLimits { total, per_user } = self.limits;
        let of_user = open.by_user.get(user.name.as_str()).copied().unwrap_or(0);
        if per_user != 0 && of_user + slots > per_user {
            let name = &user.name;
            return Err(too_many(format!(
                "user {name:?} has {of_user} watches open, the limit per user is {per_user}: close some, or \
                 watch whole collections instead of single objects"
            )));
        }
        if total != 0 && open.total + slots > total {
            let all = open.total;
            return Err(too_many(format!(
                "{all} watches are open, the limit of this server for all users is {total}: try again later"
            )));
        }
        open.total += slots;
        let known = open.by_user.get_key_value(user.name.as_str()).map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| user.name.as_str().into());
        *open.by_user.entry(name.clone()).or_default() += slots;
        Ok(WatchPermit(Some((self.clone(), name, slots))))
    }
}

impl Drop for WatchPermit {
    fn drop(&mut self) {
        let Some((watches, name, slots)) = &self.0 else { return };
        let mut open = watches.open.lock();
        open.total -= slots;
        if let Some(count) = open.by_user.get_mut(name) {
            *count -= slots;
            if *count == 0 {
                open.by_user.remove(name);
            }
        }
    }
}

fn too_many(message: String) -> Status {
    let mut status = Status::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    status.details = Some(Box::new(Details { retry_after_seconds: RETRY_AFTER, ..Details::default() }));
    status.retry_after = Some(RETRY_AFTER);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> User {
        User::new(name, ["system:authenticated"])
    }

    #[test]
    fn watches_are_counted_per_user_and_in_total_and_leave_nothing_behind() {
        let watches = Arc::new(Watches::new(WatchLimits { total: 3, per_user: 2 }));
        let admit = |name: &str| watches.admit(&user(name), 1);
        let mut held: Vec<_> = ["a", "a", "b"].map(|name| admit(name).expect("there is room")).into();
        let refused =
            |name: &str| admit(name).err().map(|status| (status.code, status.retry_after, status.message));
        let (code, after, why) = refused("a").expect("a has two");
        assert_eq!((code, after), (429, Some(5)));
        assert!(why.contains("user \"a\" has 2 watches open"), "{why}");
        let (code, _, why) = refused("c").expect("three are open");
        assert!(code == 429 && why.contains("3 watches are open"), "{code} {why}");
        held.push(watches.admit(&User::privileged("admin"), 1).expect("administrators are exempt"));
        held.remove(0);
        held.push(admit("c").expect("one was closed"));
        drop(held);
        let open = watches.open.lock();
        assert_eq!((open.total, open.by_user.len()), (0, 0));
    }

    #[test]
    fn a_watch_with_long_selectors_counts_as_several() {
        assert_eq!((slots(5, 200), slots(1_000, 60_000)), (1, 46));
        let watches = Arc::new(Watches::new(WatchLimits { total: 0, per_user: 2_000 }));
        let held: Vec<_> = (0..43).filter_map(|_| watches.admit(&user("a"), 46).ok()).collect();
        assert_eq!(held.len(), 43);
        assert!(watches.admit(&user("a"), 46).is_err() && watches.admit(&user("a"), 1).is_ok());
        drop(held);
        assert!(watches.open.lock().by_user.is_empty());
    }

    #[test]
    fn zero_is_no_limit() {
        let watches = Arc::new(Watches::new(WatchLimits { total: 0, per_user: 0 }));
        let held: Vec<_> = (0..100).map(|_| watches.admit(&user("a"), 1).expect("no limit")).collect();
        assert_eq!(held.len(), 100);
    }
}
