//! The loop of every controller that reconciles single objects: receive changes, collect keys, reconcile each once,
//! retry failures.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use super::{Changes, alive, retry::Retry};
use crate::controllers::Committed;
use crate::parts::ServerParts;
use crate::status::Result;

/// Result of a reconcile.
pub(crate) enum Progress {
    /// Nothing is left to do.
    Done,
    /// Waits for another change, which will requeue it.
    Waiting,
}

/// A controller of single objects.
pub(crate) trait Keyed: Send {
    /// Description of the work for the log.
    const WORK: &'static str;

    /// Keys to reconcile at startup.
    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String>;

    /// Adds the keys to reconcile after a change.
    fn on_change(&self, parts: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>);

    fn reconcile(
        &mut self,
        parts: &Arc<ServerParts>,
        key: &str,
    ) -> impl Future<Output = Result<Progress>> + Send;
}

/// Runs a controller until the server shuts down.
pub(crate) async fn run<C: Keyed>(mut controller: C, server: Weak<ServerParts>, mut changes: Changes) {
    let mut dirty = match alive(&server) {
        Some(parts) => controller.initial_keys(&parts),
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
                    controller.on_change(&parts, &change, &mut dirty);
                }
                key = retry.next() => { dirty.insert(key); }
            }
        }
        let Some(parts) = alive(&server) else { return };
        // One reconcile covers all changes before it.
        while let Ok(change) = changes.try_recv() {
            controller.on_change(&parts, &change, &mut dirty);
        }
        for key in std::mem::take(&mut dirty) {
            match controller.reconcile(&parts, &key).await {
                Ok(Progress::Done) => retry.succeeded(&key),
                Ok(Progress::Waiting) => {}
                Err(status) => {
                    tracing::debug!(key, error = %status, "{} failed; retrying", C::WORK);
                    retry.failed(key);
                }
            }
        }
    }
}
