//! A whole server from its smallest description: a store, keys, and the parts in their usual order.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use capstan_store::{OpenError, Options, RealDisk, Seed, Store};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::admission::Admission;
use crate::admission::lifecycle::NamespaceLifecycle;
use crate::admission::webhook::Webhooks;
use crate::auth::rbac::Rbac;
use crate::auth::{AlwaysAllow, Authenticator, Authorizer, ObjectSource, ServiceAccountTokens};
use crate::bootstrap;
use crate::conversion::Conversions;
use crate::digest::Digest;
use crate::env::Env;
use crate::front;
use crate::pki::{Pki, PkiError};
use crate::portforward::PodStreams;
use crate::server::{Parts, Server};
use crate::webhook_client::WebhookClient;

/// Where a plane keeps its objects, and whom it trusts.
pub struct Config {
    data_dir: Option<PathBuf>,
    store: Option<Store<Digest>>,
    env: Env,
    trust_everybody: bool,
    pods: Option<Arc<dyn PodStreams>>,
    kinds: Vec<Arc<dyn Kinds>>,
    history_bytes: Option<u64>,
    policy: Option<SharedPolicy>,
}

/// The bootstrap policy of servers in memory, made by the first of them and shared by all: the objects are the same, and
/// thousands of servers need not have each its own. They have one uid and one time of creation, then.
#[derive(Clone, Default)]
pub struct SharedPolicy(Arc<OnceLock<Seed<Digest>>>);

/// What a program knows of kinds that its server otherwise knows by their definitions alone: the work of webhooks, in
/// process.
pub trait Kinds: Send + Sync {
    /// Defaults and rules. They stand before webhooks.
    fn admission(&self, stored: &Arc<dyn ObjectSource>) -> Vec<Arc<dyn Admission>>;

    /// Adds conversions between versions.
    fn conversions(&self, known: Conversions, stored: &Arc<dyn ObjectSource>) -> Conversions;
}

/// Why a plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[from] OpenError),
    /// Keys or certificates cannot be read or made.
    #[error("keys and certificates cannot be set up")]
    Pki(#[from] PkiError),
    /// The objects every cluster has cannot be created.
    #[error("the first objects cannot be created")]
    Bootstrap(#[source] crate::status::Status),
}

impl Config {
    /// Objects live in memory and go with the plane.
    pub fn in_memory() -> Self {
        Self {
            data_dir: None,
            store: None,
            env: Env::system(),
            trust_everybody: false,
            pods: None,
            kinds: Vec::new(),
            history_bytes: None,
            policy: None,
        }
    }

    /// Objects live in a directory.
    pub fn on_disk(dir: &Path) -> Self {
        Self { data_dir: Some(dir.to_owned()), ..Self::in_memory() }
    }

    /// Objects live in a store the caller has opened, as on a simulated disk.
    #[must_use]
    pub fn with_store(mut self, store: Store<Digest>) -> Self {
        self.store = Some(store);
        self
    }

    /// Time and randomness from elsewhere.
    #[must_use]
    pub fn with_env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Kinds the program knows more about than their definitions say.
    #[must_use]
    pub fn with_kinds(mut self, kinds: Arc<dyn Kinds>) -> Self {
        self.kinds.push(kinds);
        self
    }

    /// Keeps only so many bytes of history for watches: for servers of which one process has many. Without effect on a
    /// store that the caller has opened.
    #[must_use]
    pub fn with_history_bytes(mut self, bytes: u64) -> Self {
        self.history_bytes = Some(bytes);
        self
    }

    /// Takes its bootstrap policy from where other servers have theirs. Without effect on a store that is not in memory.
    #[must_use]
    pub fn with_policy(mut self, policy: &SharedPolicy) -> Self {
        self.policy = Some(policy.clone());
        self
    }

    /// Every request is allowed: for tests and servers only their own process can reach.
    #[must_use]
    pub fn trusting_everybody(mut self) -> Self {
        self.trust_everybody = true;
        self
    }

    /// Somebody runs the Pods that are stored, so that their ports can be reached.
    #[must_use]
    pub fn with_pods(mut self, pods: Arc<dyn PodStreams>) -> Self {
        self.pods = Some(pods);
        self
    }
}

/// A running server with its keys.
#[derive(Clone)]
pub struct Plane {
    server: Server,
    pki: Arc<Pki>,
}

impl Plane {
    /// Opens the store, puts a server together and creates the objects every cluster has.
    pub async fn start(config: Config, pki: Arc<Pki>) -> Result<Self, StartError> {
        let clock = config.env.clone();
        let mut options = Options::with_clock(move || clock.now().into());
        options.history_bytes = config.history_bytes.unwrap_or(options.history_bytes);
        let mut policy = None;
        let mut has_policy = false;
        let store: Store<Digest> = match (config.store, &config.data_dir) {
            (Some(store), _) => store,
            (None, Some(dir)) => Store::open(RealDisk::open(dir)?, options)?,
            (None, None) => {
                policy = config.policy;
                match policy.as_ref().and_then(|policy| policy.0.get()) {
                    Some(seed) => {
                        has_policy = true;
                        Store::in_memory_from(options, seed)
                    }
                    None => Store::in_memory(options),
                }
            }
        };
        let objects: Arc<dyn ObjectSource> = Arc::new(StoredObjects(store.clone()));
        let rbac = Arc::new(Rbac::new(objects.clone()));
        let authorizer: Arc<dyn Authorizer> =
            if config.trust_everybody { Arc::new(AlwaysAllow) } else { rbac.clone() };
        let tokens = Arc::new(ServiceAccountTokens::new(
            pki.clone(),
            objects.clone(),
            config.env.clone(),
            ServiceAccountTokens::DEFAULT_ISSUER,
            Vec::new(),
        ));
        let client = Arc::new(WebhookClient::new(objects.clone(), config.env.clone()));
        let mut admission: Vec<Arc<dyn Admission>> = vec![NamespaceLifecycle::new(store.clone())];
        let mut conversions = Conversions::new(client.clone(), config.env.clone());
        for kinds in &config.kinds {
            admission.extend(kinds.admission(&objects));
            conversions = kinds.conversions(conversions, &objects);
        }
        admission.push(Arc::new(Webhooks::new(client, objects.clone(), config.env.clone())));
        let server = Server::new(Parts {
            store,
            authenticator: Authenticator::new(tokens, objects.clone(), config.env.clone()),
            authorizer,
            rbac,
            admission,
            conversions,
            root_ca: pki.ca_pem()?.into(),
            pki: pki.clone(),
            pods: config.pods,
            env: config.env,
        });
        if !has_policy {
            bootstrap::policy(&server).await.map_err(StartError::Bootstrap)?;
            if let Some(policy) = policy {
                policy.0.get_or_init(|| server.store().seed());
            }
        }
        bootstrap::objects(&server).await.map_err(StartError::Bootstrap)?;
        Ok(Self { server, pki })
    }

    /// The server, for callers in the same process.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Keys and certificates.
    pub fn pki(&self) -> &Arc<Pki> {
        &self.pki
    }

    /// Serves on a listener, valid for `names`, until `stop` resolves; then closes the store.
    pub async fn serve(
        self,
        listener: TcpListener,
        names: &[String],
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), StartError> {
        let tls = self.pki.server_config(names)?;
        front::serve(listener, tls, self.pki.clone(), self.server.clone(), stop).await;
        self.server.store().close().await;
        Ok(())
    }
}

/// Stored objects for authentication, authorization and webhooks.
struct StoredObjects(Store<Digest>);

impl ObjectSource for StoredObjects {
    fn get(&self, bucket: &str, key: &str) -> Option<Arc<Value>> {
        let entry = self.0.get(bucket, key)?;
        serde_json::from_slice(&entry.value).ok().map(Arc::new)
    }

    fn list(&self, bucket: &str) -> Vec<Arc<Value>> {
        let snapshot = self.0.snapshot(bucket);
        snapshot.range("", None).filter_map(|e| serde_json::from_slice(&e.value).ok()).map(Arc::new).collect()
    }

    fn bucket_revision(&self, bucket: &str) -> u64 {
        self.0.bucket_revision(bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::bucket::CLUSTER_ROLES;

    #[tokio::test]
    async fn servers_that_share_their_policy_have_it_once_and_all_else_for_themselves() {
        let policy = SharedPolicy::default();
        let mut planes = Vec::new();
        for _ in 0..2 {
            let pki = Arc::new(Pki::ephemeral(Env::system()));
            planes.push(Plane::start(Config::in_memory().with_policy(&policy), pki).await.expect("a server"));
        }
        let both = |bucket: &str, key: &str| {
            let entries: Vec<_> =
                planes.iter().map(|plane| plane.server().store().get(bucket, key).expect(key)).collect();
            (Arc::ptr_eq(&entries[0], &entries[1]), entries[0].digest().uid == entries[1].digest().uid)
        };
        assert_eq!(both(CLUSTER_ROLES, "view"), (true, true));
        assert_eq!(both("/namespaces", "kube-system"), (false, false));
    }
}
