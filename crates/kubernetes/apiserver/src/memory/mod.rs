//! Memory of bodies: one budget for what each request decodes, and room for the bodies that are received and handled at
//! the same time.

mod receiving;

use std::sync::atomic::{AtomicUsize, Ordering};

use ::http::StatusCode;
use capstan_schema::memory::{MAX_DECODED, MemoryBudget, estimate, tree};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use self::receiving::Receiving;
use crate::status::{Result, Status};

/// Bodies up to this size take no room: decoded they take up to half a MiB, and the number of requests is limited.
const SMALL: usize = 4 * 1024;
/// Decoded bodies up to this size do not count towards the budget of their request, which is far larger.
const LITTLE: usize = 64 * 1024;
const MIB: usize = 1024 * 1024;
/// Bytes of a unit of the room.
const UNIT: usize = 64 * 1024;
/// Units for all bodies above [`SMALL`] that are being handled: 256 MiB.
const ROOM: usize = 4096;
/// The most memory that a byte of JSON takes when it is decoded: nested maps of one field.
const WORST: usize = 136;

/// What may be decoded or copied for one request. Its body takes its part for as long as the request lasts; a patch of
/// a webhook or a copy gets what is left, and gives it back.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    left: AtomicUsize,
}

impl Default for RequestMemory {
    fn default() -> Self {
        Self { left: AtomicUsize::new(MAX_DECODED) }
    }
}

impl RequestMemory {
    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// A budget for what does not last: everything that is left.
    pub fn budget(&self) -> MemoryBudget {
        MemoryBudget::of(self.left())
    }

    /// Takes what lasts until the request ends.
    pub fn keep(&self, bytes: usize) {
        self.left.fetch_sub(bytes.min(self.left()), Ordering::Relaxed);
    }

    /// Takes a decoded body, if it is not small.
    pub fn keep_decoded(&self, body: &[u8], value: &Value) {
        if body.len() > LITTLE {
            self.keep(tree(value));
        }
    }
}

/// Room for bodies that are being received, and for those that are being handled.
pub(crate) struct BodyRoom {
    pub receiving: Receiving,
    free: Semaphore,
}

impl Default for BodyRoom {
    fn default() -> Self {
        Self { receiving: Receiving::default(), free: Semaphore::new(ROOM) }
    }
}

impl BodyRoom {
    /// Waits until a body may be decoded; 429 if it may not before the deadline of its request. Small ones always may.
    pub async fn admit(&self, body: &[u8], deadline: Instant) -> Result<Option<SemaphorePermit<'_>>> {
        if body.len() <= SMALL {
            return Ok(None);
        }
        // While half of the room is free, the text need not be read for an estimate.
        let most = (body.len() * WORST).div_ceil(UNIT);
        if body.len() <= LITTLE
            && self.free.available_permits() >= ROOM / 2 + most
            && let Ok(taken) = self.free.try_acquire_many(u32::try_from(most).unwrap_or(u32::MAX))
        {
            return Ok(Some(taken));
        }
        let units = estimate(body).min(MAX_DECODED).div_ceil(UNIT);
        let taken = self.free.acquire_many(u32::try_from(units).unwrap_or(u32::MAX));
        match tokio::time::timeout_at(deadline, taken).await {
            Ok(Ok(taken)) => Ok(Some(taken)),
            Ok(Err(_)) | Err(_) => {
                let (room, needed) = (ROOM * UNIT / MIB, (units * UNIT).div_ceil(MIB));
                Err(no_room(format!(
                    "the bodies that are being handled take {room} MiB of memory, and this one needs {needed}"
                )))
            }
        }
    }
}

fn no_room(why: String) -> Status {
    let mut status = Status::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", why + ": try again later");
    status.retry_after = Some(1);
    status
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn dense(bytes: usize) -> Vec<u8> {
        format!("[{}]", vec![r#"{"":0}"#; bytes / 7].join(",")).into_bytes()
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_wait_for_room_and_small_ones_do_not() {
        let room = BodyRoom::default();
        let deadline = || Instant::now() + Duration::from_secs(60);
        let body = dense(3_000_000);
        let mut held = Vec::new();
        for _ in 0..ROOM * UNIT / MAX_DECODED {
            held.push(room.admit(&body, deadline()).await.expect("there is room"));
        }
        let began = Instant::now();
        let refused = room.admit(&body, deadline()).await.expect_err("there is none");
        assert_eq!((refused.code, refused.retry_after, began.elapsed().as_secs()), (429, Some(1), 60));
        assert!(room.admit(&dense(SMALL), deadline()).await.expect("it is small").is_none());
        held.pop();
        assert!(room.admit(&body, deadline()).await.expect("there is room again").is_some());
    }

    #[tokio::test]
    async fn texts_take_the_room_of_their_bytes() {
        let room = BodyRoom::default();
        let body = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(1_000_000));
        let taken =
            room.admit(body.as_bytes(), Instant::now()).await.expect("there is room").expect("counted");
        assert!(taken.num_permits() * UNIT <= 2 * MIB, "{}", taken.num_permits());
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_of_a_few_kib_are_counted_too() {
        let room = BodyRoom::default();
        let body = dense(LITTLE - 100);
        let mut held = Vec::new();
        let mut taken = 0;
        while let Ok(Some(one)) = room.admit(&body, Instant::now() + Duration::from_secs(60)).await {
            taken += one.num_permits() * UNIT;
            held.push(one);
        }
        assert!((20..=64).contains(&held.len()), "{}", held.len());
        assert!(held.len() * estimate(&body) <= ROOM * UNIT && taken <= ROOM * UNIT);
        // Ordinary ones are only as large as they are once it matters.
        let room = BodyRoom::default();
        let body = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(10_000)).into_bytes();
        let mut held = Vec::new();
        while let Ok(Some(one)) = room.admit(&body, Instant::now()).await {
            held.push(one);
        }
        assert!(held.len() > 1_000, "{}", held.len());
    }

    #[test]
    fn one_budget_is_for_everything_that_a_request_decodes() {
        let memory = RequestMemory::default();
        memory.keep(MAX_DECODED - 100);
        for _ in 0..2 {
            let patch = memory.budget();
            assert!(patch.spend(100).is_ok(), "a patch gives back what it took");
            assert!(patch.spend(1).is_err());
        }
    }
}
