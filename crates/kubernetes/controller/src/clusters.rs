//! Workload clusters by the kubeconfig Secrets of the management cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use capstan_env::Env;
use capstan_object::Key;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::error::Elapsed;

use crate::KindName;
use crate::client::{ApiError, Client, WorkloadBudgets, shortened};
use crate::reconcile::chain;
use crate::remote::{Access, Dial, Remote, Windows};
use crate::worker::off_worker;
use crate::workload::{Health, Stream, WorkloadError, Workloads};

/// A cluster that answered is not asked again for this long; the times are those of upstream's cluster cache.
const PROBE_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// The same for a cluster that has never answered: it is being made, and may answer any moment.
const PROBE_NEW_EVERY: SignedDuration = SignedDuration::from_millis(500);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// A cluster whose probes time out is asked ever less often, at most this seldom. One that has never answered is asked
/// as often as a healthy one at least: it is being made.
const PROBE_SELDOM: SignedDuration = SignedDuration::from_secs(60);
/// A cluster that has answered counts as unreachable after this many failed probes in a row, so that conditions do not
/// change with every lost packet. Until then its client is handed out, and calls fail by themselves.
const FAILURES_UNTIL_UNREACHABLE: u32 = 5;
/// Bytes of an error that are kept: it ends up on the Cluster.
const LONGEST_ERROR: usize = 300;
/// What is asked for, upstream's too: the one document that in-memory API servers of providers have.
const PROBE: &str = "/";

/// Where the kubeconfig of a cluster is: a Secret and a key in it.
pub type KubeconfigOf = fn(cluster: &Key) -> (Key, &'static str);

/// Reaches clusters by their kubeconfig Secrets. A client is made once and again when its Secret changes; before it
/// is handed out, the cluster must have answered within the last ten seconds. One whose probes time out is probed ever less
/// often, and callers in between get the last error at once. No reconcile keeps its worker during a slow probe. Nothing
/// runs for clusters without callers.
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

/// A cluster that was asked for.
struct Known {
    /// Version of the Secret the client was made from.
    version: String,
    remote: Arc<Remote>,
    client: Client,
    health: Mutex<Health>,
    probes: Mutex<Probes>,
    /// Held while a probe is under way.
    probing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Probes {
    /// When the last one began.
    begun: Option<Timestamp>,
    /// How many in a row timed out.
    timed_out: u32,
    /// The limit that the last one exceeded.
    exceeded: Option<String>,
    /// Whether the last one was refused for its credentials: asking again does not help.
    unauthorized: bool,
}

impl Probes {
    /// How long after the last probe the next one is made.
    fn pause(&self, is_new: bool) -> SignedDuration {
        let doubled = |first: SignedDuration, times: u32| first.saturating_mul(1 << times.min(8));
        match (is_new, self.timed_out) {
            // What leads to an API server may be there a moment before it: one probe that times out is no reason to wait.
            (true, times) => doubled(PROBE_NEW_EVERY, times).min(PROBE_EVERY),
            (false, times) => doubled(PROBE_EVERY, times.saturating_sub(1)).min(PROBE_SELDOM),
        }
    }

    fn is_reachable(&self, health: &Health) -> bool {
        let hopeless = self.unauthorized || self.exceeded.is_some();
        let tolerated = health.last_success.is_some() && !hopeless;
        health.failures < if tolerated { FAILURES_UNTIL_UNREACHABLE } else { 1 }
    }
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
        // A client is asked for again and again; the kubeconfig is parsed once.
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
        let (health, probes, probing) = (Mutex::default(), Mutex::default(), tokio::sync::Mutex::default());
        let known = Arc::new(Known { version, remote, client, health, probes, probing });
        self.known.lock().insert(cluster.clone(), known.clone());
        Ok(known)
    }

    /// Asks the cluster unless it was asked just now; one that does not answer is not asked by everybody at once. A
    /// caller during the first probe waits for it.
    async fn probe(&self, cluster: &Key, known: &Known) -> Result<(), WorkloadError> {
        let is_new = known.health.lock().last_success.is_none();
        match self.begin_probe(known, is_new) {
            Some(_probing) => {
                let answer = tokio::time::timeout(PROBE_TIMEOUT, known.client.document(PROBE));
                let answer = off_worker(answer).await;
                self.conclude_probe(known, &answer);
            }
            None if is_new => drop(off_worker(known.probing.lock()).await),
            None => {}
        }
        let probes = known.probes.lock();
        let health = known.health.lock();
        if probes.is_reachable(&health) {
            return Ok(());
        }
        let mut why = format!("{} probes in a row failed", health.failures);
        if let Some(exceeded) = &probes.exceeded {
            why = format!("{why}: {exceeded}");
        }
        Err(WorkloadError::Unreachable { cluster: cluster.clone(), why })
    }

    /// Begins a probe, if one is due and none under way.
    fn begin_probe<'a>(&self, known: &'a Known, is_new: bool) -> Option<tokio::sync::MutexGuard<'a, ()>> {
        let now = self.env.now();
        let mut probes = known.probes.lock();
        let due = probes.begun.is_none_or(|at| now.duration_since(at) >= probes.pause(is_new));
        let probing = known.probing.try_lock().ok().filter(|_| due)?;
        probes.begun = Some(now);
        Some(probing)
    }

    fn conclude_probe(&self, known: &Known, answer: &Result<Result<Bytes, ApiError>, Elapsed>) {
        let mut probes = known.probes.lock();
        probes.timed_out = if answer.is_err() { probes.timed_out + 1 } else { 0 };
        probes.exceeded = match answer {
            Ok(Err(ApiError::Limit(exceeded))) => Some(exceeded.to_string()),
            _ => None,
        };
        probes.unauthorized = matches!(answer, Ok(Err(ApiError::Status { code: 401, .. })));
        let mut health = known.health.lock();
        let error = match answer {
            Ok(Ok(_)) => {
                *health = Health { last_success: Some(self.env.now()), ..Health::default() };
                return;
            }
            Ok(Err(ApiError::Transport(error))) => chain(error),
            Ok(Err(error)) => chain(error),
            Err(_) => format!("no answer within {PROBE_TIMEOUT:?}"),
        };
        health.failures += 1;
        health.error = Some(shortened(error, LONGEST_ERROR));
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
            let stream = tokio::time::timeout(PROBE_TIMEOUT, known.remote.port_forward(pod, port));
            let stream = off_worker(stream).await;
            let unreachable = |why: String| WorkloadError::Unreachable { cluster: cluster.clone(), why };
            match stream {
                Ok(stream) => stream.map_err(|error| unreachable(error.to_string())),
                Err(_) => Err(unreachable(format!("no stream to {pod} within {PROBE_TIMEOUT:?}"))),
            }
        })
    }

    fn health(&self, cluster: &Key) -> Health {
        self.known.lock().get(cluster).map(|known| known.health.lock().clone()).unwrap_or_default()
    }

    fn forget(&self, cluster: &Key) {
        self.known.lock().remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_whose_probes_time_out_is_asked_ever_less_often() {
        let milliseconds = |is_new: bool, timed_out: u32| {
            Probes { timed_out, ..Probes::default() }.pause(is_new).as_millis()
        };
        let pauses = |is_new| [0, 1, 2, 3, 4, 5, u32::MAX].map(|timed_out| milliseconds(is_new, timed_out));
        assert_eq!(pauses(false), [10_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
        assert_eq!(pauses(true), [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    }

    #[test]
    fn a_cluster_that_has_answered_is_unreachable_after_five_failed_probes() {
        let (answered, new) = (Some(Timestamp::UNIX_EPOCH), None);
        let wrong_keys = || Probes { unauthorized: true, ..Probes::default() };
        let endless = || Probes { exceeded: Some("too long".to_owned()), ..Probes::default() };
        for (what, last_success, failures, probes, expected) in [
            ("healthy", answered, 0, Probes::default(), true),
            ("a lost packet", answered, 1, Probes::default(), true),
            ("four of them", answered, 4, Probes::default(), true),
            ("down", answered, 5, Probes::default(), false),
            ("never up", new, 1, Probes::default(), false),
            ("refused", answered, 1, wrong_keys(), false),
            ("hostile", answered, 1, endless(), false),
        ] {
            let health = Health { last_success, failures, error: None };
            assert_eq!(probes.is_reachable(&health), expected, "{what}");
        }
    }
}

#[cfg(test)]
mod silent_tests;
