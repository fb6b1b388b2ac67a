//! Room for bodies that are being received. A client may send one slowly, and what has arrived is held meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use ::http_body::Body;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{MIB, no_room};
use crate::auth::{MASTERS, User};
use crate::http::body::{self, MAX_BODY};
use crate::status::Result;

/// Bodies up to this size take no room: the number of requests is limited.
const SMALL: u64 = 64 * 1024;
/// Bytes of all larger bodies that are being received.
const ROOM: usize = 128 * MIB;
/// Further bytes for administrators (`system:masters`).
const RESERVE: usize = 16 * MIB;

/// Bytes of the bodies that are being received. A user gets at most as much as is then left to the others, so one never
/// has more than half.
#[derive(Default)]
pub(crate) struct Receiving {
    held: Mutex<Held>,
    released: Notify,
}

#[derive(Default)]
struct Held {
    bytes: usize,
    by_user: HashMap<Arc<str>, usize>,
}

/// Room that one body takes.
pub(crate) struct ReceivingPermit<'r> {
    room: &'r Receiving,
    user: Arc<str>,
    bytes: usize,
}

impl Receiving {
    /// Reads a body until the deadline, once there is room for its `Content-Length`, or for the largest body where there
    /// is none. The permit is to be held as long as the text is.
    pub async fn read<B>(
        &self,
        user: &User,
        body: B,
        deadline: Instant,
    ) -> Result<(Bytes, Option<ReceivingPermit<'_>>)>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let expected = body.size_hint();
        // One that is too large is refused by its length.
        if expected.upper().is_some_and(|most| most <= SMALL) || expected.lower() > MAX_BODY as u64 {
            return Ok((body::read(body, deadline).await?, None));
        }
        let length = expected.upper().and_then(|most| usize::try_from(most).ok());
        let permit = self.take(user, length.map_or(MAX_BODY, |most| most.min(MAX_BODY)), deadline).await?;
        Ok((body::read(body, deadline).await?, Some(permit)))
    }

    /// Waits for room; 429 if there is none before the deadline.
    async fn take(&self, user: &User, bytes: usize, deadline: Instant) -> Result<ReceivingPermit<'_>> {
        let wait = async {
            loop {
                // Registered before the attempt, so that no release is missed.
                let mut released = std::pin::pin!(self.released.notified());
                released.as_mut().enable();
                if let Some(permit) = self.try_take(user, bytes) {
                    return permit;
                }
                released.await;
            }
        };
        tokio::time::timeout_at(deadline, wait).await.map_err(|_| {
            let (room, name) = (ROOM / MIB, &user.name);
            no_room(format!(
                "bodies that are being received take up the {room} MiB for them, or the part of user {name:?}"
            ))
        })
    }

    fn try_take(&self, user: &User, bytes: usize) -> Option<ReceivingPermit<'_>> {
        let mut held = self.held.lock();
        let own = held.by_user.get(user.name.as_str()).copied().unwrap_or(0);
        let after = held.bytes + bytes;
        let fits = if user.in_group(MASTERS) {
            after <= ROOM + RESERVE
        } else {
            after <= ROOM && own + bytes <= ROOM - after
        };
        if !fits {
            return None;
        }
        held.bytes = after;
        let known = held.by_user.get_key_value(user.name.as_str()).map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| user.name.as_str().into());
        *held.by_user.entry(name.clone()).or_default() += bytes;
        Some(ReceivingPermit { room: self, user: name, bytes })
    }
}

impl Drop for ReceivingPermit<'_> {
    fn drop(&mut self) {
        let mut held = self.room.held.lock();
        held.bytes -= self.bytes;
        if let Some(own) = held.by_user.get_mut(&self.user) {
            *own -= self.bytes;
            if *own == 0 {
                held.by_user.remove(&self.user);
            }
        }
        drop(held);
        self.room.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use futures::future::join_all;
    use futures::{StreamExt as _, stream};
    use http_body_util::{Full, StreamBody};

    use super::*;

    fn user(name: &str) -> User {
        User::new(name, ["system:authenticated"])
    }

    /// A body whose last bytes never arrive.
    fn slow(begun: Bytes) -> impl Body<Data = Bytes, Error = Infallible> {
        StreamBody::new(stream::iter([Ok(http_body::Frame::data(begun))]).chain(stream::pending()))
    }

    fn whole(bytes: usize) -> Full<Bytes> {
        Full::new(Bytes::from(vec![b'x'; bytes]))
    }

    #[tokio::test(start_paused = true)]
    async fn slow_senders_hold_half_of_the_room_and_others_are_served() {
        let room = Receiving::default();
        let deadline = Instant::now() + Duration::from_secs(60);
        let mallory = user("mallory");
        let begun = Bytes::from(vec![b'x'; MAX_BODY - 1]);
        let attack = join_all((0..300).map(|_| room.read(&mallory, slow(begun.clone()), deadline)));
        let others = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let held = room.held.lock().bytes;
            assert!((ROOM / 2 - MAX_BODY..=ROOM / 2).contains(&held), "{held}");
            for name in ["jane", "joe"] {
                let (body, permit) = room.read(&user(name), whole(MAX_BODY), deadline).await.expect("room");
                assert!(body.len() == MAX_BODY && permit.is_some());
            }
            let (_, permit) = room.read(&mallory, whole(1000), deadline).await.expect("it is small");
            assert!(permit.is_none());
            Instant::now()
        };
        let (refused, served) = tokio::join!(attack, others);
        assert!(deadline - served > Duration::from_secs(58), "others do not wait");
        let codes: Vec<u16> = refused.into_iter().filter_map(Result::err).map(|s| s.code).collect();
        assert!(codes.len() == 300 && codes.iter().all(|code| [408, 429].contains(code)), "{codes:?}");
        let held = room.held.lock();
        assert_eq!((held.bytes, held.by_user.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_received_when_there_is_room() {
        let room = Receiving::default();
        let deadline = Instant::now() + Duration::from_secs(60);
        let jane = user("jane");
        let mut held = Vec::new();
        while let Some(permit) = room.try_take(&jane, MAX_BODY) {
            held.push(permit);
        }
        let soon = Instant::now() + Duration::from_secs(1);
        let refused = room.read(&jane, whole(MAX_BODY), soon).await.err().expect("jane has half");
        assert_eq!((refused.code, refused.retry_after), (429, Some(1)));
        let release = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            held.pop();
        };
        let (read, ()) = tokio::join!(room.read(&jane, whole(MAX_BODY), deadline), release);
        assert!(read.is_ok());
        let began = Instant::now();
        let admin = User::privileged("admin");
        assert!(room.read(&admin, whole(MAX_BODY), deadline).await.is_ok() && began.elapsed().is_zero());
        let too_large = room.read(&jane, whole(MAX_BODY + 1), deadline).await.err();
        assert_eq!(too_large.map(|status| status.code), Some(413));
    }
}
