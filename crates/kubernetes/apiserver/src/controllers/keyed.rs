//! The loop of every controller that looks at single objects: hear of changes, gather keys, look at each of them
//! once, try again what failed.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use super::{Changes, alive, retry::Retry};
use crate::controllers::Committed;
use crate::parts::ServerParts;
use crate::status::Result;

/// How far a look got.
pub(crate) enum Progress {
    /// Nothing is left to do.
    Settled,
    /// Something else must happen first, and a change will tell of it.
    Waiting,
}

/// What differs between such controllers.
pub(crate) trait Keyed: Send {
    /// What is tried again when it fails, for the log.
    const WORK: &'static str;

    /// What to look at when the server starts.
    fn begin(&self, parts: &ServerParts) -> BTreeSet<String>;

    /// What to look at after a change.
    fn hear(&self, parts: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>);

    /// Looks at one key and acts.
    fn look(&mut self, parts: &Arc<ServerParts>, key: &str) -> impl Future<Output = Result<Progress>> + Send;
}

/// Runs a controller until the server goes.
pub(crate) async fn run<C: Keyed>(mut controller: C, server: Weak<ServerParts>, mut changes: Changes) {
    let mut dirty = match alive(&server) {
        Some(parts) => controller.begin(&parts),
        None => return,
    };
    let mut retry = Retry::new();
    loop {
        if dirty.is_empty() {
            tokio::select! {
                biased;
                change = changes.recv() => {
                    let Some(change) = change else { return };
                    let Some(parts) = alive(&server) else { return };
                    controller.hear(&parts, &change, &mut dirty);
                }
                key = retry.next() => { dirty.insert(key); }
            }
        }
        let Some(parts) = alive(&server) else { return };
        // One look serves everything that happened before it.
        while let Ok(change) = changes.try_recv() {
            controller.hear(&parts, &change, &mut dirty);
        }
        for key in std::mem::take(&mut dirty) {
            match controller.look(&parts, &key).await {
                Ok(Progress::Settled) => retry.succeeded(&key),
                Ok(Progress::Waiting) => {}
                Err(status) => {
                    tracing::debug!(key, error = %status, "{} will be tried again", C::WORK);
                    retry.failed(key);
                }
            }
        }
    }
}
