//! The controllers every client of a Kubernetes API takes for granted. Each is one task that hears of
//! the committed changes it cares about and acts through the same verbs as clients do.
//!
//! ```text
//! commit ──► Committed ──► garbage        dependents of what is gone
//!                     ├──► namespaces     contents of what is terminating
//!                     ├──► accounts       default ServiceAccount and kube-root-ca.crt per namespace
//!                     ├──► token_secrets  tokens in Secrets that ask for one
//!                     ├──► quotas         what is used of each ResourceQuota
//!                     ├──► roles          aggregated ClusterRoles
//!                     └──► crd            names, establishing, clean-up (`crate::crd`)
//! every minute ──────────► housekeeping   events past their time, history past its
//! ```

pub(crate) mod accounts;
pub(crate) mod garbage;
mod housekeeping;
pub(crate) mod keyed;
pub(crate) mod namespaces;
mod quotas;
pub(crate) mod retry;
pub(crate) mod roles;
mod token_secrets;

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;

use crate::object::OwnerRef;
use crate::parts::ServerParts;

/// A change that was committed, as the controllers inside the server hear of it.
#[derive(Debug, Clone)]
pub(crate) struct Committed {
    /// Where it happened.
    pub bucket: Arc<str>,
    /// To what.
    pub key: Arc<str>,
    /// The object is gone.
    pub gone: bool,
    /// Its uid.
    pub uid: Box<str>,
    /// Whom it belonged to before the change.
    pub owners: Box<[OwnerRef]>,
}

/// What a controller hears.
pub(crate) type Changes = mpsc::UnboundedReceiver<Arc<Committed>>;

/// Where the changes that one controller cares about go.
pub(crate) struct Follower {
    /// Whether changes of a bucket are of interest.
    wants: fn(&str) -> bool,
    sender: mpsc::UnboundedSender<Arc<Committed>>,
}

impl Follower {
    /// Sends a change to whom it may concern.
    pub fn tell(&self, change: &Arc<Committed>) {
        if (self.wants)(&change.bucket) {
            // Nobody listens when the server is going down.
            let _ = self.sender.send(change.clone());
        }
    }
}

const FOLLOWERS: usize = 7;

/// What each controller wants to hear of, in the order of [`start`].
const WANTS: [fn(&str) -> bool; FOLLOWERS] =
    [everything, everything, everything, everything, accounts::wants, token_secrets::wants, roles::wants];

fn everything(_: &str) -> bool {
    true
}

/// Starts all controllers. They end when the server goes and its channels close.
pub(crate) fn start(parts: &Weak<ServerParts>, changes: [Changes; FOLLOWERS]) {
    let [a, b, c, d, e, f, g] = changes;
    tokio::spawn(keyed::run(crate::crd::controller::DefinitionController::default(), parts.clone(), a));
    tokio::spawn(garbage::run(parts.clone(), b));
    tokio::spawn(keyed::run(namespaces::Namespaces::default(), parts.clone(), c));
    tokio::spawn(keyed::run(quotas::Quotas, parts.clone(), d));
    tokio::spawn(keyed::run(accounts::Accounts, parts.clone(), e));
    tokio::spawn(keyed::run(token_secrets::TokenSecrets, parts.clone(), f));
    tokio::spawn(roles::run(parts.clone(), g));
    tokio::spawn(housekeeping::run(parts.clone()));
}

/// Channels for [`start`].
pub(crate) fn channels() -> (Vec<Follower>, [Changes; FOLLOWERS]) {
    let mut followers = Vec::with_capacity(FOLLOWERS);
    let changes = WANTS.map(|wants| {
        let (sender, receiver) = mpsc::unbounded_channel();
        followers.push(Follower { wants, sender });
        receiver
    });
    (followers, changes)
}

/// The server, while it lives.
pub(crate) fn alive(parts: &Weak<ServerParts>) -> Option<Arc<ServerParts>> {
    parts.upgrade()
}
