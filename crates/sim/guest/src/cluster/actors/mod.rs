//! The actors of a cluster: its kubelets, controllers and scheduler, in one task.
//!
//! ```text
//!   a change in the store or of a machine, or a requeue time
//!        │
//!   snapshot.rs  snapshot ──▶ decide: pure, one file per actor ──▶ decision.rs ──▶ the API server
//! ```
//!
//! The task watches the store. Between reconciles it keeps at most what it has read, and only while there is work. It
//! writes the difference between actual and desired state. An idle cluster therefore costs nothing, unless its
//! kubelets send heartbeats. While no API server works, no actor makes progress.

mod budgets;
mod conditions;
mod daemon_sets;
mod decision;
mod deployments;
mod fit;
mod jobs;
mod kubelet;
mod node;
mod nodes;
mod pod_networks;
mod pods;
mod replica_sets;
mod schedule;
mod snapshot;
mod stateful_sets;
mod static_pods;
mod template;
mod tokens;
mod volumes;

use std::sync::{Arc, Weak};
use std::time::Duration;

use capstan_apiserver::Digest;
use capstan_controller::Deletion;
use capstan_object::Key;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::GuestCluster;
use decision::{Decision, Step};
pub(super) use kubelet::would_install_network;
use snapshot::{Objects, Snapshot};

/// Delay before a rejected action is retried.
const RETRY: Duration = Duration::from_secs(1);

/// Starts the task; it ends with the cluster.
pub(super) fn begin(cluster: &Arc<GuestCluster>) -> AbortHandle {
    let store = cluster.plane.store().clone();
    let notify = cluster.notify.clone();
    tokio::spawn(run(Arc::downgrade(cluster), store, notify)).abort_handle()
}

async fn run(cluster: Weak<GuestCluster>, store: capstan_store::Store<Digest>, notify: Arc<Notify>) {
    let mut read = Objects::default();
    loop {
        let seen = snapshot::revisions(&store);
        let pause = {
            let Some(cluster) = cluster.upgrade() else { return };
            let served = cluster.state.lock().is_served();
            if served { reconcile(&cluster, &mut read).await } else { None }
        };
        let changed = async {
            // Commits of other kinds do not wake the task.
            loop {
                let revision = store.revision();
                if snapshot::revisions(&store) != seen {
                    return;
                }
                store.reached(revision + 1).await;
            }
        };
        let waited = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = notify.notified() => {}
            () = changed => {}
            () = waited => {}
        }
    }
}

/// One reconcile; returns the time until the next without a change. `read` is what the previous one read.
async fn reconcile(cluster: &Arc<GuestCluster>, read: &mut Objects) -> Option<Duration> {
    let snapshot = Snapshot::take(cluster, read);
    let now = snapshot.now;
    let decision = decide(&snapshot);
    // An idle cluster keeps nothing: there may be thousands.
    *read = if decision.steps.is_empty() { Objects::default() } else { snapshot.objects };
    let mut pause = decision.again.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    for step in decision.steps {
        if !act(cluster, step).await {
            pause = Some(pause.unwrap_or(RETRY).min(RETRY));
        }
    }
    pause
}

/// The next actions of all actors.
fn decide(snapshot: &Snapshot) -> Decision {
    let mut decision = Decision::default();
    let actors = [
        kubelet::decide,
        static_pods::decide,
        nodes::decide,
        pod_networks::decide,
        pods::decide,
        tokens::decide,
        deployments::decide,
        replica_sets::decide,
        daemon_sets::decide,
        stateful_sets::decide,
        jobs::decide,
        budgets::decide,
        volumes::decide,
        schedule::decide,
    ];
    for actor in actors {
        actor(snapshot, &mut decision);
    }
    decision
}

/// Executes one action; returns whether it succeeded or is no longer needed.
async fn act(cluster: &Arc<GuestCluster>, step: Step) -> bool {
    let client = |actor: &str| cluster.client.named(actor);
    let done = match &step {
        Step::Create { actor, kind, object } => {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            client(actor).create(kind, namespace, object).await
        }
        Step::Patch { actor, kind, key, subresource, patch } => {
            client(actor).patch(kind, key, *subresource, patch).await
        }
        Step::Delete { actor, kind, key, uid, grace_seconds } => {
            let deletion =
                Deletion { uid: Some(uid.clone()), grace_seconds: *grace_seconds, ..Deletion::default() };
            client(actor).delete(kind, key, &deletion).await
        }
        Step::Bind { kind, pod, node } => {
            let Key { namespace, name } = pod;
            let binding = serde_json::json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            client("kube-scheduler").post_subresource(kind, pod, "binding", &binding).await
        }
        Step::Registered { vm } => {
            if let Some(member) = cluster.state.lock().machines.get_mut(vm) {
                member.registers = false;
            }
            return true;
        }
        Step::NetworkInstalled { vm } => {
            cluster.change(|state| {
                if let Some(member) = state.machines.get_mut(vm) {
                    member.network = true;
                }
            });
            return true;
        }
    };
    match done {
        Ok(_) => true,
        // A conflict: the next reconcile shows what is left.
        Err(error) if error.is_not_found() || error.is_conflict() || error.is_already_exists() => true,
        Err(error) => {
            tracing::warn!(%error, ?step, "an action in a simulated cluster failed");
            false
        }
    }
}
