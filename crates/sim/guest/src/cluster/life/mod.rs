//! What goes on in a cluster: its kubelets, controllers and scheduler, in one task.
//!
//! ```text
//!   a change in the store or of a machine, or a moment that was waited for
//!        │
//!   picture.rs  everything at once ──▶ decide: pure, one file per actor ──▶ decision.rs ──▶ the API server
//! ```
//!
//! The task reads the store and is told by it of changes; between two looks it holds at most what it has read, and
//! that only while there is something to do. What it writes is the difference between what is and what should be. A
//! cluster in which nothing happens therefore costs nothing, unless its kubelets have heartbeats. While no API server
//! works nobody in the cluster gets anything done.

mod budgets;
mod conditions;
mod daemon_sets;
mod decision;
mod deployments;
mod jobs;
mod kubelet;
mod node;
mod nodes;
mod picture;
mod pod_networks;
mod pods;
mod replica_sets;
mod schedule;
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
use picture::{Objects, Picture};

/// How long it takes to try again what was refused.
const RETRY: Duration = Duration::from_secs(1);

/// Starts the task; it ends with the cluster.
pub(super) fn begin(cluster: &Arc<GuestCluster>) -> AbortHandle {
    let store = cluster.plane.store().clone();
    let bell = cluster.bell.clone();
    tokio::spawn(live(Arc::downgrade(cluster), store, bell)).abort_handle()
}

async fn live(cluster: Weak<GuestCluster>, store: capstan_store::Store<Digest>, bell: Arc<Notify>) {
    let mut read = Objects::default();
    loop {
        let seen = picture::revisions(&store);
        let pause = {
            let Some(cluster) = cluster.upgrade() else { return };
            let served = cluster.state.lock().is_served();
            if served { look_decide_act(&cluster, &mut read).await } else { None }
        };
        let changed = async {
            // Commits of kinds that nobody here looks at wake nobody.
            loop {
                let revision = store.revision();
                if picture::revisions(&store) != seen {
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
            () = bell.notified() => {}
            () = changed => {}
            () = waited => {}
        }
    }
}

/// One round; answers after what time another is due without any change. `read` is what the round before read.
async fn look_decide_act(cluster: &Arc<GuestCluster>, read: &mut Objects) -> Option<Duration> {
    let picture = Picture::take(cluster, read);
    let now = picture.now;
    let decision = decide(&picture);
    // A cluster at rest holds nothing: there may be thousands.
    *read = if decision.steps.is_empty() { Objects::default() } else { picture.objects };
    let mut pause = decision.again.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    for step in decision.steps {
        if !act(cluster, step).await {
            pause = Some(pause.unwrap_or(RETRY).min(RETRY));
        }
    }
    pause
}

/// What everybody in the cluster does next.
fn decide(picture: &Picture) -> Decision {
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
        actor(picture, &mut decision);
    }
    decision
}

/// Does one thing; whether it was done, or need not be.
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
        // Somebody was faster; the next look shows what is left to do.
        Err(error) if error.is_not_found() || error.is_conflict() || error.is_already_exists() => true,
        Err(error) => {
            tracing::warn!(%error, ?step, "a simulated cluster could not act");
            false
        }
    }
}
