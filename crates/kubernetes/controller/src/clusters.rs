//! Workload clusters by the kubeconfig Secrets of the management cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_env::Env;
use capstan_object::Key;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::KindName;
use crate::client::{ApiError, Client, WorkloadBudgets};
use crate::remote::{Access, Dial, Remote, Windows};
use crate::workload::{Health, Stream, WorkloadError, Workloads};

/// A cluster that answered is not asked again for this long; the times are those of upstream's cluster cache.
const PROBE_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// The same for a cluster that has never answered: it is being made, and may answer any moment.
const PROBE_NEW_EVERY: SignedDuration = SignedDuration::from_millis(500);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// What is asked for, upstream's too: the one document that in-memory API servers of providers have.
const PROBE: &str = "/";

/// Where the kubeconfig of a cluster is: a Secret and a key in it.
pub type KubeconfigOf = fn(cluster: &Key) -> (Key, &'static str);

/// Reaches clusters by their kubeconfig Secrets. A client is made once and again when its Secret changes; before it
/// is handed out, the cluster must have answered within the last ten seconds. Nothing runs for clusters nobody asks
/// about.
pub struct Clusters {
    management: Client,
    kubeconfig: KubeconfigOf,
    dial: Arc<dyn Dial>,
    env: Env,
    manager: String,
    /// What the answers of all clusters share.
    budgets: WorkloadBudgets,
    known: Mutex<BTreeMap<Key, Arc<Known>>>,
}

/// A cluster that was reached for.
struct Known {
    /// Version of the Secret the client was made from.
    version: String,
    remote: Arc<Remote>,
    client: Client,
    health: Mutex<Health>,
    probed: Mutex<Option<Timestamp>>,
    /// The limit that the last probe exceeded.
    exceeded: Mutex<Option<String>>,
}

/// The version of an object.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta {
    resource_version: String,
}

impl Clusters {
    /// Clusters whose kubeconfigs are found by `kubeconfig`, dialled by `dial`. Writes to them pass the gate of the
    /// management client, if it has one.
    pub fn new(
        management: Client,
        kubeconfig: KubeconfigOf,
        dial: Arc<dyn Dial>,
        env: Env,
        manager: &str,
    ) -> Self {
        let (budgets, known) = (WorkloadBudgets::default(), Mutex::default());
        Self { management, kubeconfig, dial, env, manager: manager.to_owned(), budgets, known }
    }

    async fn reach(&self, cluster: &Key) -> Result<Arc<Known>, WorkloadError> {
        let (secret, field) = (self.kubeconfig)(cluster);
        let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
        let read = self.management.get_raw(&secrets, &secret).await;
        let unreachable = |why: String| WorkloadError::Unreachable { cluster: cluster.clone(), why };
        let reply = read.map_err(|error| unreachable(format!("its kubeconfig cannot be read: {error}")))?;
        let Some(reply) = reply else {
            self.known.lock().remove(cluster);
            return Err(WorkloadError::NoKubeconfig(cluster.clone()));
        };
        let bad = |why: String| WorkloadError::BadKubeconfig { cluster: cluster.clone(), why };
        // A cluster is reached for again and again; its kubeconfig is read once.
        let Head { metadata } = reply.parse().map_err(|error| bad(error.to_string()))?;
        let version = metadata.resource_version;
        if let Some(known) = self.known.lock().get(cluster).filter(|known| known.version == version) {
            return Ok(known.clone());
        }
        let secret: Value = reply.parse().map_err(|error| bad(error.to_string()))?;
        let text = secret["data"][field].as_str().and_then(|text| STANDARD.decode(text).ok());
        let text = text.ok_or_else(|| bad(format!("the Secret has no {field:?}")))?;
        let access = Access::from_kubeconfig(&text).map_err(|error| bad(error.to_string()))?;
        let remote = Remote::new(access, self.dial.clone(), &self.env);
        let remote = remote.map_err(|error| bad(error.to_string()))?.with_windows(Windows::NARROW);
        let remote = Arc::new(remote);
        let mut client = Client::new(remote.clone(), &self.manager).limited(self.budgets.limits(cluster));
        if let Some(gate) = self.management.gate() {
            client = client.gated(gate.clone());
        }
        let (health, probed, exceeded) = (Mutex::default(), Mutex::default(), Mutex::default());
        let known = Arc::new(Known { version, remote, client, health, probed, exceeded });
        self.known.lock().insert(cluster.clone(), known.clone());
        Ok(known)
    }

    /// Asks the cluster unless it was asked just now; one that does not answer is not asked by everybody at once.
    async fn probe(&self, cluster: &Key, known: &Known) -> Result<(), WorkloadError> {
        let now = self.env.now();
        let due = {
            let is_new = known.health.lock().last_success.is_none();
            let every = if is_new { PROBE_NEW_EVERY } else { PROBE_EVERY };
            let mut probed = known.probed.lock();
            let due = probed.is_none_or(|at| now.duration_since(at) >= every);
            if due {
                *probed = Some(now);
            }
            due
        };
        if due {
            let answer = tokio::time::timeout(PROBE_TIMEOUT, known.client.document(PROBE)).await;
            *known.exceeded.lock() = match &answer {
                Ok(Err(ApiError::Limit(exceeded))) => Some(exceeded.to_string()),
                _ => None,
            };
            let mut health = known.health.lock();
            if matches!(answer, Ok(Ok(_))) {
                *health = Health { last_success: Some(self.env.now()), failures: 0 };
            } else {
                health.failures += 1;
            }
        }
        let health = *known.health.lock();
        if health.failures == 0 {
            return Ok(());
        }
        let mut why = format!("{} probes in a row failed", health.failures);
        if let Some(exceeded) = &*known.exceeded.lock() {
            why = format!("{why}: {exceeded}");
        }
        Err(WorkloadError::Unreachable { cluster: cluster.clone(), why })
    }
}

impl Workloads for Clusters {
    fn client<'a>(&'a self, cluster: &'a Key) -> BoxFuture<'a, Result<Client, WorkloadError>> {
        Box::pin(async move {
            let known = self.reach(cluster).await?;
            self.probe(cluster, &known).await?;
            Ok(known.client.clone())
        })
    }

    fn port_forward<'a>(
        &'a self,
        cluster: &'a Key,
        pod: &'a Key,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, WorkloadError>> {
        Box::pin(async move {
            let known = self.reach(cluster).await?;
            let stream = tokio::time::timeout(PROBE_TIMEOUT, known.remote.port_forward(pod, port)).await;
            let unreachable = |why: String| WorkloadError::Unreachable { cluster: cluster.clone(), why };
            match stream {
                Ok(stream) => stream.map_err(|error| unreachable(error.to_string())),
                Err(_) => Err(unreachable(format!("no stream to {pod} within {PROBE_TIMEOUT:?}"))),
            }
        })
    }

    fn health(&self, cluster: &Key) -> Health {
        self.known.lock().get(cluster).map(|known| *known.health.lock()).unwrap_or_default()
    }

    fn forget(&self, cluster: &Key) {
        self.known.lock().remove(cluster);
    }
}
