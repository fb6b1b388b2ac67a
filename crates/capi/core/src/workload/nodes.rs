//! Nodes of workload clusters, watched once per process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::Machine;
use capstan_controller::{Cache, Caches, Change, Client, Transport, View, Wake, WorkloadError, off_worker};
use capstan_object::{Key, Object};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::Node;

/// Name of the index by providerID.
const PROVIDER_ID: &str = "providerID";

/// How long a reconcile waits for the first list of a cluster's Nodes.
const FIRST_LIST: Duration = Duration::from_secs(10);

/// How long a successful probe is trusted.
const CHECK_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// Objects to requeue, by kind and key, with their queue. A control plane and a health check may have the same
/// name.
type Subscribers = BTreeMap<(&'static str, Key), Wake>;

/// A cluster whose Nodes are watched.
struct WatchedCluster {
    caches: Caches,
    /// The transport of the watch; replaced when the credentials change.
    transport: Arc<dyn Transport>,
    /// Time of the last successful probe with these credentials.
    checked: Timestamp,
}

/// Cached Nodes of workload clusters, shared by all controllers. A cluster is watched from the first access until it
/// becomes unreachable; the next access after that watches it again.
#[derive(Default)]
pub struct Nodes {
    clusters: Mutex<BTreeMap<Key, WatchedCluster>>,
    /// By cluster and providerID.
    subscribers: Arc<Mutex<BTreeMap<(Key, String), Subscribers>>>,
}

impl Nodes {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The Nodes of a cluster. A recent successful probe is not repeated.
    async fn of(&self, view: &View, cluster: &Key) -> Result<Arc<Cache<Node>>, WorkloadError> {
        let Some(workloads) = view.workloads() else {
            return Err(WorkloadError::NoKubeconfig(cluster.clone()));
        };
        let answers = workloads.health(cluster).failures == 0;
        let fresh = |followed: &&WatchedCluster| view.now().duration_since(followed.checked) < CHECK_AGAIN;
        let known =
            self.clusters.lock().get(cluster).filter(fresh).map(|followed| followed.caches.ensure::<Node>());
        if let Some(cache) = known.filter(|_| answers) {
            return self.synced(cluster, cache).await;
        }
        let client = match workloads.client(cluster).await {
            Ok(client) => client,
            Err(error) => {
                self.clusters.lock().remove(cluster);
                return Err(error);
            }
        };
        let cache = {
            let mut clusters = self.clusters.lock();
            let same = |followed: &WatchedCluster| Arc::ptr_eq(&followed.transport, client.transport());
            if !clusters.get(cluster).is_some_and(same) {
                clusters.insert(cluster.clone(), self.follow(cluster, &client, view.now()));
            }
            match clusters.get_mut(cluster) {
                Some(followed) => {
                    followed.checked = view.now();
                    followed.caches.ensure::<Node>()
                }
                None => return Err(unreachable(cluster, "it is not followed".to_owned())),
            }
        };
        self.synced(cluster, cache).await
    }

    fn follow(&self, cluster: &Key, client: &Client, now: Timestamp) -> WatchedCluster {
        let caches = Caches::new("");
        let cache = caches.ensure::<Node>();
        cache.index(PROVIDER_ID, |node| vec![node.spec.provider_id.clone()]);
        let (subscribers, cluster) = (self.subscribers.clone(), cluster.clone());
        cache.listen(move |change| wake(&subscribers, &cluster, change));
        caches.start(client);
        WatchedCluster { caches, transport: client.transport().clone(), checked: now }
    }

    /// Waits for the cache's first list.
    async fn synced(
        &self,
        cluster: &Key,
        cache: Arc<Cache<Node>>,
    ) -> Result<Arc<Cache<Node>>, WorkloadError> {
        match off_worker(tokio::time::timeout(FIRST_LIST, cache.synced())).await {
            Ok(()) => Ok(cache),
            Err(_) => {
                self.clusters.lock().remove(cluster);
                let why = cache.failure().map(|failure| format!(": {failure}")).unwrap_or_default();
                Err(unreachable(cluster, format!("its Nodes could not be listed{why}")))
            }
        }
    }

    /// The Node with a providerID; fails if several have it.
    pub async fn by_provider_id(
        &self,
        view: &View,
        cluster: &Key,
        id: &str,
    ) -> Result<Option<Arc<Node>>, NodeError> {
        let cache = self.of(view, cluster).await?;
        let mut found =
            cache.indexed(PROVIDER_ID, id).map_err(|error| unreachable(cluster, error.to_string()))?;
        if found.len() > 1 {
            return Err(NodeError::Ambiguous(id.to_owned()));
        }
        Ok(found.pop())
    }

    pub async fn by_name(
        &self,
        view: &View,
        cluster: &Key,
        name: &str,
    ) -> Result<Option<Arc<Node>>, NodeError> {
        let cache = self.of(view, cluster).await?;
        let found =
            cache.get(&Key::new("", name)).map_err(|error| unreachable(cluster, error.to_string()))?;
        Ok(found)
    }

    /// The Nodes with a label, whatever its value, sorted by name.
    pub async fn labelled(
        &self,
        view: &View,
        cluster: &Key,
        label: &str,
    ) -> Result<Vec<Arc<Node>>, WorkloadError> {
        let cache = self.of(view, cluster).await?;
        let mut found = cache.list("").map_err(|error| unreachable(cluster, error.to_string()))?;
        found.retain(|node| node.metadata.labels.contains_key(label));
        Ok(found)
    }

    /// Requeues an object whenever the Node with this providerID changes. Idempotent.
    pub fn wake_on<T: Object>(&self, cluster: &Key, provider_id: &str, object: &Key, wake: &Wake) {
        let mut subscribers = self.subscribers.lock();
        let of_node = subscribers.entry((cluster.clone(), provider_id.to_owned())).or_default();
        of_node.entry(subscriber::<T>(object)).or_insert_with(|| wake.clone());
    }

    /// Removes a deleted object. With a machine, all subscriptions to its providerID end.
    pub fn forget<T: Object>(&self, object: &Key) {
        let gone = subscriber::<T>(object);
        let takes_all_along = T::KIND.kind == Machine::KIND.kind;
        self.subscribers.lock().retain(|_, of_node| {
            let slept = of_node.remove(&gone).is_some();
            !(of_node.is_empty() || slept && takes_all_along)
        });
    }

    /// Stops watching a deleted cluster.
    pub fn leave(&self, cluster: &Key) {
        self.clusters.lock().remove(cluster);
    }
}

/// Why the Node of a machine cannot be determined.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NodeError {
    /// The cluster is unreachable.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Several Nodes have the same providerID.
    #[error("unexpectedly found more than one Node matching the providerID {0}")]
    Ambiguous(String),
}

fn unreachable(cluster: &Key, why: String) -> WorkloadError {
    WorkloadError::Unreachable { cluster: cluster.clone(), why }
}

fn subscriber<T: Object>(object: &Key) -> (&'static str, Key) {
    (T::KIND.kind, object.clone())
}

fn wake(subscribers: &Mutex<BTreeMap<(Key, String), Subscribers>>, cluster: &Key, change: &Change<Node>) {
    if let (Some(old), Some(new)) = (&change.old, &change.new)
        && old.same_fields(new)
    {
        return;
    }
    let subscribers = subscribers.lock();
    for node in change.both() {
        let of_node = subscribers.get(&(cluster.clone(), node.spec.provider_id.clone()));
        for ((_, key), wake) in of_node.into_iter().flatten() {
            wake.wake(key);
        }
    }
}
