//! Expires events after an hour, and old history.

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
/// Lifetime of an event after its last write: kube-apiserver's default.
const EVENT_LIFE: SignedDuration = SignedDuration::from_hours(1);
const EVENTS: &str = "/events";

/// Runs until the server shuts down.
pub(crate) async fn run(parts: Weak<ServerParts>) {
    let mut marks = Marks::default();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(parts) = alive(&parts) else { return };
        if let Some(expired) = marks.record(parts.env.now(), parts.store.revision())
            && let Err(status) = expire(&parts, expired).await
        {
            tracing::warn!(error = %status, "cannot delete expired events; retrying");
        }
        if let Err(error) = parts.store.compact().await {
            tracing::warn!(%error, "cannot drop old history; retrying");
        }
    }
}

/// Records the revision of the store over time. An event was last written before a time if its revision is not higher
/// than the store's was then, so events need no timestamp of their own. Events found at startup live for a full hour,
/// as etcd renews leases when it starts.
#[derive(Default)]
struct Marks(VecDeque<(Timestamp, u64)>);

impl Marks {
    /// Records a revision. Returns the one up to which events have expired.
    fn record(&mut self, now: Timestamp, revision: u64) -> Option<u64> {
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

/// Deletes the events last written at or before a revision, without admission and finalizers.
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
            // Written or deleted meanwhile.
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
        assert_eq!(marks.record(at(0), 5), None);
        assert_eq!(marks.record(at(59), 9), None);
        assert_eq!(marks.record(at(60), 11), Some(5));
        assert_eq!(marks.record(at(61), 12), None);
        assert_eq!(marks.record(at(200), 12), Some(12));
    }
}
