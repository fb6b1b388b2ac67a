//! What time takes away: events after an hour, and history after its own.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use capstan_store::{Expect, Write};
use jiff::{SignedDuration, Timestamp};
use tokio::time::MissedTickBehavior;

use super::alive;
use crate::parts::ServerParts;
use crate::status::Result;

const EVERY: Duration = Duration::from_secs(60);
/// How long an event lives after it was last written, as kube-apiserver's default.
const EVENT_LIFE: SignedDuration = SignedDuration::from_hours(1);
const EVENTS: &str = "/events";

/// Runs until the server goes.
pub(crate) async fn run(parts: Weak<ServerParts>) {
    let mut marks = Marks::default();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(parts) = alive(&parts) else { return };
        if let Some(expired) = marks.note(parts.env.now(), parts.store.revision())
            && let Err(status) = expire(&parts, expired).await
        {
            tracing::warn!(error = %status, "old events could not be deleted and will be tried again");
        }
        if let Err(error) = parts.store.compact().await {
            tracing::warn!(%error, "old history could not be dropped and will be tried again");
        }
    }
}

/// Which revision the store had when. An event needs no clock of its own then: it was last written before
/// a moment if its revision is no higher than the store's was. A server that starts gives the events it
/// finds a full hour, as etcd gives leases their full time when it starts.
#[derive(Default)]
struct Marks(VecDeque<(Timestamp, u64)>);

impl Marks {
    /// Notes a revision; the answer is the one up to which events have expired.
    fn note(&mut self, now: Timestamp, revision: u64) -> Option<u64> {
        let mut expired = None;
        while let Some((_, revision)) =
            self.0.pop_front_if(|(then, _)| now.duration_since(*then) >= EVENT_LIFE)
        {
            expired = Some(revision);
        }
        self.0.push_back((now, revision));
        expired
    }
}

/// Deletes the events last written at a revision or before it: no admission and no finalizer holds them.
async fn expire(parts: &Arc<ServerParts>, revision: u64) -> Result<()> {
    let registry = parts.registry.load_full();
    let Some(resource) = registry.find("", "v1", "events") else { return Ok(()) };
    for entry in parts.store.snapshot(EVENTS).range("", None).filter(|entry| entry.revision <= revision) {
        let (namespace, name) = entry.key.split_once('/').unwrap_or(("", &entry.key));
        let call = parts.internal_call("system:apiserver", resource.clone(), namespace, name);
        let event = call.load(entry).await?;
        let remove = |last| Write::Delete {
            bucket: resource.bucket.clone(),
            key: entry.key.clone(),
            last,
            expect: Expect::Revision(entry.revision),
        };
        match call.commit(event, remove).await {
            // Written anew or deleted meanwhile.
            Err(status) if status.reason == "Conflict" => {}
            Err(status) => return Err(status),
            Ok(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_the_last_hour_has_expired() {
        let at = |minute: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minute);
        let mut marks = Marks::default();
        assert_eq!(marks.note(at(0), 5), None);
        assert_eq!(marks.note(at(59), 9), None);
        assert_eq!(marks.note(at(60), 11), Some(5));
        assert_eq!(marks.note(at(61), 12), None);
        assert_eq!(marks.note(at(200), 12), Some(12));
    }
}
