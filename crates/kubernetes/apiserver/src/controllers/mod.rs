//! The controllers every client of a Kubernetes API takes for granted. Each is one task that hears of
//! every committed change and acts through the same verbs as clients do.
//!
//! ```text
//! commit ──► Committed ──► garbage     dependents of what is gone
//!                     ├──► namespaces  contents of what is terminating
//!                     ├──► accounts    default ServiceAccount and kube-root-ca.crt per namespace
//!                     ├──► roles       aggregated ClusterRoles
//!                     └──► crd         names, establishing, clean-up (`crate::crd`)
//! ```

pub(crate) mod accounts;
pub(crate) mod garbage;
pub(crate) mod namespaces;
pub(crate) mod retry;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::shared::Committed;
use crate::shared::Shared;

/// What a controller hears.
pub(crate) type Changes = mpsc::UnboundedReceiver<Committed>;

/// Starts all controllers. They end when the server goes and its channels close.
pub(crate) fn start(shared: &std::sync::Weak<Shared>, changes: Vec<Changes>) {
    let mut changes = changes.into_iter();
    let mut next = || changes.next();
    if let (Some(a), Some(b), Some(c), Some(d)) = (next(), next(), next(), next()) {
        tokio::spawn(crate::crd::controller::run(shared.clone(), a));
        tokio::spawn(garbage::run(shared.clone(), b));
        tokio::spawn(namespaces::run(shared.clone(), c));
        tokio::spawn(accounts::run(shared.clone(), d));
    }
}

/// Channels for [`start`].
pub(crate) fn channels() -> (Vec<mpsc::UnboundedSender<Committed>>, Vec<Changes>) {
    (0..4).map(|_| mpsc::unbounded_channel()).unzip()
}

/// The server, while it lives.
pub(crate) fn alive(shared: &std::sync::Weak<Shared>) -> Option<Arc<Shared>> {
    shared.upgrade()
}
