//! Configuration of a server: storage, authorization, in-process admission and conversion.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use capstan_env::Env;
use capstan_oidc::Oidc;
use capstan_pki::PkiError;
use capstan_store::{Cipher, OpenError, Options, RealDisk, Seed, Store};
use capstan_streams::PodStreams;

use crate::admission::Admission;
use crate::audit::Audit;
use crate::auth::{Authorizer, ObjectSource};
use crate::conversion::Conversions;
use crate::digest::Digest;
use crate::flow_control::InFlightLimits;
use crate::front::ConnectionLimits;
use crate::services::ServiceRange;
use crate::watches::WatchLimits;

pub struct Config {
    data_dir: Option<PathBuf>,
    store: Option<Store<Digest>>,
    pub(crate) env: Env,
    pub(crate) trust_everybody: bool,
    pub(crate) pods: Option<Arc<dyn PodStreams>>,
    pub(crate) kinds: Vec<Arc<dyn Kinds>>,
    pub(crate) connections: ConnectionLimits,
    pub(crate) in_flight: InFlightLimits,
    pub(crate) watches: WatchLimits,
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) oidc: Option<Arc<Oidc>>,
    pub(crate) services: Option<ServiceRange>,
    pub(crate) pod_admission: bool,
    history_bytes: Option<u64>,
    pub(crate) cipher: Option<Arc<dyn Cipher>>,
    policy: Option<SharedPolicy>,
}

/// The bootstrap policy of in-memory servers, created by the first of them and shared by all: the objects are the
/// same, and thousands of servers need not have a copy each. They share uids and creation times.
#[derive(Clone, Default)]
pub struct SharedPolicy(pub(crate) Arc<OnceLock<Seed<Digest>>>);

/// In-process admission and conversion for custom resources that the program implements itself, in place of webhooks.
pub trait Kinds: Send + Sync {
    /// Defaulting and validation. They run before webhooks. The authorizer has the permissions of the requester.
    fn admission(
        &self,
        stored: &Arc<dyn ObjectSource>,
        authorizer: &Arc<dyn Authorizer>,
    ) -> Vec<Arc<dyn Admission>>;

    /// Adds conversions between versions.
    fn conversions(&self, known: Conversions, stored: &Arc<dyn ObjectSource>) -> Conversions;
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the store cannot be opened")]
    Store(#[from] OpenError),
    #[error("keys and certificates cannot be set up")]
    Pki(#[from] PkiError),
    #[error("the bootstrap objects cannot be created")]
    Bootstrap(#[source] crate::status::Status),
}

impl Config {
    /// Objects are kept in memory only.
    pub fn in_memory() -> Self {
        Self {
            data_dir: None,
            store: None,
            env: Env::system(),
            trust_everybody: false,
            pods: None,
            kinds: Vec::new(),
            connections: ConnectionLimits::default(),
            in_flight: InFlightLimits::default(),
            watches: WatchLimits::default(),
            audit: None,
            oidc: None,
            services: None,
            pod_admission: false,
            history_bytes: None,
            cipher: None,
            policy: None,
        }
    }

    /// Objects are stored in a directory.
    pub fn on_disk(dir: &Path) -> Self {
        Self { data_dir: Some(dir.to_owned()), ..Self::in_memory() }
    }

    /// Uses a store that the caller has opened, for example on a simulated disk.
    #[must_use]
    pub fn with_store(mut self, store: Store<Digest>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the source of time and randomness.
    #[must_use]
    pub fn with_env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Adds in-process admission and conversion.
    #[must_use]
    pub fn with_kinds(mut self, kinds: Arc<dyn Kinds>) -> Self {
        self.kinds.push(kinds);
        self
    }

    /// Completes Pods, claims, volumes, Ingresses and nodes as kube-apiserver's admission does: limits, service account
    /// and its token, priority, tolerations, default classes, protection, taints. Not for simulated clusters, which have
    /// thousands of Pods that nobody reads.
    #[must_use]
    pub fn with_pod_admission(mut self) -> Self {
        self.pod_admission = true;
        self
    }

    /// Allocates cluster IPs and node ports to Services. Without it, Services have the addresses that clients name.
    #[must_use]
    pub fn with_services(mut self, range: ServiceRange) -> Self {
        self.services = Some(range);
        self
    }

    /// Limits the watch history in bytes, for processes with many servers. No effect on a store that the caller has
    /// opened.
    #[must_use]
    pub fn with_history_bytes(mut self, bytes: u64) -> Self {
        self.history_bytes = Some(bytes);
        self
    }

    /// Shares the bootstrap policy with other servers. No effect on a store that is not in memory.
    #[must_use]
    pub fn with_policy(mut self, policy: &SharedPolicy) -> Self {
        self.policy = Some(policy.clone());
        self
    }

    /// Limits open connections of a listener.
    #[must_use]
    pub fn with_connections(mut self, limits: ConnectionLimits) -> Self {
        self.connections = limits;
        self
    }

    /// Limits concurrent requests.
    #[must_use]
    pub fn with_in_flight(mut self, limits: InFlightLimits) -> Self {
        self.in_flight = limits;
        self
    }

    #[must_use]
    pub fn with_watches(mut self, limits: WatchLimits) -> Self {
        self.watches = limits;
        self
    }

    /// Records requests.
    #[must_use]
    pub fn with_audit(mut self, audit: Arc<Audit>) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Accepts tokens of OpenID Connect issuers.
    #[must_use]
    pub fn with_oidc(mut self, oidc: Arc<Oidc>) -> Self {
        self.oidc = Some(oidc);
        self
    }

    /// Encrypts objects on disk. No effect in memory and on a store that the caller has opened.
    #[must_use]
    pub fn with_cipher(mut self, cipher: Option<Arc<dyn Cipher>>) -> Self {
        self.cipher = cipher;
        self
    }

    /// Allows every request: for tests and servers that only their own process can reach.
    #[must_use]
    pub fn trusting_everybody(mut self) -> Self {
        self.trust_everybody = true;
        self
    }

    /// Connects a backend that runs the stored Pods, so that their ports can be reached.
    #[must_use]
    pub fn with_pods(mut self, pods: Arc<dyn PodStreams>) -> Self {
        self.pods = Some(pods);
        self
    }

    /// Opens the store, and returns where its bootstrap policy comes from.
    pub(crate) fn open_store(&mut self) -> Result<(Store<Digest>, Policy), OpenError> {
        let clock = self.env.clone();
        let mut options = Options::with_clock(move || clock.now().into());
        options.history_bytes = self.history_bytes.unwrap_or(options.history_bytes);
        options.cipher = self.cipher.clone();
        if let Some(store) = self.store.take() {
            return Ok((store, Policy::Reconcile(None)));
        }
        if let Some(dir) = &self.data_dir {
            return Ok((Store::open(RealDisk::open(dir)?, options)?, Policy::Reconcile(None)));
        }
        let policy = self.policy.take();
        Ok(match policy.as_ref().and_then(|policy| policy.0.get()) {
            Some(seed) => (Store::in_memory_from(options, seed), Policy::Present),
            None => (Store::in_memory(options), Policy::Reconcile(policy)),
        })
    }
}

/// Source of a store's bootstrap policy.
pub(crate) enum Policy {
    /// The store already contains it.
    Present,
    /// It is written at startup, and kept for other servers if there is a shared one.
    Reconcile(Option<SharedPolicy>),
}

#[cfg(test)]
mod tests {
    use capstan_pki::Pki;

    use super::*;
    use crate::Server;
    use crate::auth::bucket::CLUSTER_ROLES;

    #[tokio::test]
    async fn servers_that_share_their_policy_have_it_once_and_all_else_for_themselves() {
        let policy = SharedPolicy::default();
        let mut servers = Vec::new();
        for _ in 0..2 {
            let pki = Arc::new(Pki::ephemeral(Env::system()));
            servers
                .push(Server::start(Config::in_memory().with_policy(&policy), pki).await.expect("a server"));
        }
        let both = |bucket: &str, key: &str| {
            let entries: Vec<_> =
                servers.iter().map(|server| server.store().get(bucket, key).expect(key)).collect();
            (Arc::ptr_eq(&entries[0], &entries[1]), entries[0].digest().uid == entries[1].digest().uid)
        };
        assert_eq!(both(CLUSTER_ROLES, "view"), (true, true));
        assert_eq!(both("/namespaces", "kube-system"), (false, false));
    }
}
