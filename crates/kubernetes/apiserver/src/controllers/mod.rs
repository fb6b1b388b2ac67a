//! The built-in controllers that every client of a Kubernetes API relies on. Each is one task that receives the
//! committed changes it watches and writes through the same verbs as clients do.
//!
//! ```text
//! commit ──► Committed ──► garbage        dependents of deleted objects
//!                     ├──► namespaces     contents of terminating namespaces
//!                     ├──► accounts       default ServiceAccount and kube-root-ca.crt per namespace
//!                     ├──► token_secrets  tokens in Secrets that request one
//!                     ├──► service_addresses  the default ServiceCIDR, one IPAddress per cluster IP
//!                     ├──► volume_protection  finalizers of claims and volumes that are no longer used
//!                     ├──► quotas         usage of each ResourceQuota
//!                     ├──► roles          aggregated ClusterRoles
//!                     ├──► policy_types   type checks of ValidatingAdmissionPolicies
//!                     ├──► flow_control   priority levels and flow schemas that every server has
//!                     └──► crd            names, establishing, clean-up (`crate::crd`)
//! every minute ──────────► housekeeping   expired events and history
//! ```

pub(crate) mod accounts;
pub(crate) mod flow_control;
pub(crate) mod garbage;
mod housekeeping;
pub(crate) mod keyed;
pub(crate) mod namespaces;
mod policy_types;
mod quotas;
pub(crate) mod retry;
pub(crate) mod roles;
pub(crate) mod service_addresses;
mod token_secrets;
mod volume_protection;

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;

use crate::object::OwnerRef;
use crate::parts::ServerParts;

/// A committed change, as sent to the built-in controllers.
#[derive(Debug, Clone)]
pub(crate) struct Committed {
    pub bucket: Arc<str>,
    pub key: Arc<str>,
    /// Whether the object was deleted.
    pub gone: bool,
    pub uid: Box<str>,
    /// Its owners before the change.
    pub owners: Box<[OwnerRef]>,
}

/// The channel of a controller.
pub(crate) type Changes = mpsc::UnboundedReceiver<Arc<Committed>>;

/// Sends changes to one controller.
pub(crate) struct Follower {
    /// Whether the controller watches a bucket.
    watches: fn(&str) -> bool,
    sender: mpsc::UnboundedSender<Arc<Committed>>,
}

impl Follower {
    /// Sends a change if the controller watches its bucket.
    pub fn send(&self, change: &Arc<Committed>) {
        if (self.watches)(&change.bucket) {
            // The receiver is gone when the server shuts down.
            let _ = self.sender.send(change.clone());
        }
    }
}

const FOLLOWERS: usize = 11;

/// The buckets that each controller watches, in the order of [`start`].
const WATCHED_BUCKETS: [fn(&str) -> bool; FOLLOWERS] = [
    everything,
    everything,
    everything,
    everything,
    accounts::watches,
    token_secrets::watches,
    roles::watches,
    policy_types::watches,
    flow_control::watches,
    service_addresses::watches,
    volume_protection::watches,
];

fn everything(_: &str) -> bool {
    true
}

/// Starts all controllers. They end when the server shuts down and its channels close.
pub(crate) fn start(parts: &Weak<ServerParts>, changes: [Changes; FOLLOWERS]) {
    let [a, b, c, d, e, f, g, h, i, j, k] = changes;
    tokio::spawn(keyed::run(crate::crd::controller::DefinitionController::default(), parts.clone(), a));
    tokio::spawn(garbage::run(parts.clone(), b));
    tokio::spawn(keyed::run(namespaces::Namespaces::default(), parts.clone(), c));
    tokio::spawn(keyed::run(quotas::Quotas, parts.clone(), d));
    tokio::spawn(keyed::run(accounts::Accounts, parts.clone(), e));
    tokio::spawn(keyed::run(token_secrets::TokenSecrets, parts.clone(), f));
    tokio::spawn(roles::run(parts.clone(), g));
    tokio::spawn(keyed::run(policy_types::PolicyTypes, parts.clone(), h));
    tokio::spawn(flow_control::run(parts.clone(), i));
    let (services, protection) =
        alive(parts).map_or((false, false), |parts| (parts.services.is_some(), parts.pod_admission));
    if services {
        tokio::spawn(keyed::run(service_addresses::ServiceAddresses, parts.clone(), j));
    }
    if protection {
        tokio::spawn(keyed::run(volume_protection::VolumeProtection, parts.clone(), k));
    }
    tokio::spawn(housekeeping::run(parts.clone()));
}

/// Channels for [`start`].
pub(crate) fn channels() -> (Vec<Follower>, [Changes; FOLLOWERS]) {
    let mut followers = Vec::with_capacity(FOLLOWERS);
    let changes = WATCHED_BUCKETS.map(|watches| {
        let (sender, receiver) = mpsc::unbounded_channel();
        followers.push(Follower { watches, sender });
        receiver
    });
    (followers, changes)
}

/// The server, unless it has shut down.
pub(crate) fn alive(parts: &Weak<ServerParts>) -> Option<Arc<ServerParts>> {
    parts.upgrade()
}
