//! Deployments: a ReplicaSet per template, and a gradual rollout from one to the next.

use serde_json::{Value, json};

use super::conditions::{self, ConditionUpdate};
use super::decision::Decision;
use super::snapshot::{Snapshot, controlled_by, is_deleting, name, namespace};
use super::template::{self, share};

const ACTOR: &str = "kube-controller-manager";
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for deployment in snapshot.all("Deployment").filter(|deployment| !is_deleting(deployment)) {
        keep(snapshot, deployment, out);
    }
}

/// Current and allowed numbers of Pods of the newest and of older templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rollout {
    wanted: i64,
    most: i64,
    least_available: i64,
    new: i64,
    new_available: i64,
    old: i64,
    old_available: i64,
}

impl Rollout {
    /// Next sizes of the newest template and of all older ones.
    fn next(self) -> (i64, i64) {
        let room = (self.most - self.new - self.old).max(0);
        let new = if self.new > self.wanted { self.wanted } else { (self.new + room).min(self.wanted) };
        // Unavailable old Pods are deleted at once; others as new ones replace them.
        let broken = self.old - self.old_available;
        let spare = (self.old_available + self.new_available - self.least_available).max(0);
        let old = (self.old - broken.max(0) - spare).clamp(0, self.old);
        (new, old)
    }
}

fn keep(snapshot: &Snapshot, deployment: &Value, out: &mut Decision) {
    let hash = template::hash(&deployment["spec"]["template"]);
    let own = format!("{}-{hash}", name(deployment));
    let sets: Vec<&Value> = snapshot.controlled("ReplicaSet", deployment).collect();
    let newest = sets.iter().find(|set| name(set) == own).copied();
    let old: Vec<&Value> = sets.iter().filter(|set| name(set) != own).copied().collect();
    let size = |set: &Value| set["spec"]["replicas"].as_i64().unwrap_or(0);
    let available = |set: &Value| set["status"]["availableReplicas"].as_i64().unwrap_or(0);
    let sum = |of: &dyn Fn(&Value) -> i64| old.iter().map(|set| of(set)).sum::<i64>();
    let spec = &deployment["spec"];
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let rolling = &spec["strategy"]["rollingUpdate"];
    let quarter = json!("25%");
    let (mut surge, mut unavailable) = (
        share(&rolling["maxSurge"], wanted, &quarter, true),
        share(&rolling["maxUnavailable"], wanted, &quarter, false),
    );
    if spec["strategy"]["type"] == "Recreate" {
        (surge, unavailable) = (0, wanted);
    } else if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    let rollout = Rollout {
        wanted,
        most: wanted + surge,
        least_available: wanted - unavailable,
        new: newest.map_or(0, size),
        new_available: newest.map_or(0, available),
        old: sum(&size),
        old_available: sum(&available),
    };
    let (next_new, next_old) = rollout.next();
    let revision = sets.iter().filter_map(|set| revision_of(set)).max().unwrap_or(0);
    match newest {
        _ if spec["paused"] == true => {}
        None => out.create(ACTOR, replica_set(deployment, &own, &hash, next_new, revision + 1)),
        Some(set) => {
            let revision = if revision_of(set) == Some(revision) { revision } else { revision + 1 };
            out.patch(ACTOR, "ReplicaSet", set, json!({
                "metadata": {"annotations": {REVISION: revision.to_string()}}, "spec": {"replicas": next_new},
            }));
            let annotation = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
            out.patch(ACTOR, "Deployment", deployment, annotation);
        }
    }
    let mut excess = rollout.old - next_old;
    for set in old.iter().filter(|set| size(set) > 0 && spec["paused"] != true) {
        let less = excess.min(size(set));
        excess -= less;
        if less > 0 {
            out.patch(ACTOR, "ReplicaSet", set, json!({"spec": {"replicas": size(set) - less}}));
        }
    }
    forget(spec, &old, out);
    status(snapshot, deployment, &sets, newest, &rollout, out);
}

/// Deletes ReplicaSets beyond the revision history limit.
fn forget(spec: &Value, old: &[&Value], out: &mut Decision) {
    let kept = usize::try_from(spec["revisionHistoryLimit"].as_i64().unwrap_or(10)).unwrap_or(0);
    let mut idle: Vec<&&Value> = old
        .iter()
        .filter(|set| set["spec"]["replicas"] == 0 && set["status"]["replicas"].as_i64().unwrap_or(0) == 0)
        .collect();
    idle.sort_by_key(|set| revision_of(set));
    for set in idle.iter().take(idle.len().saturating_sub(kept)).filter(|set| !is_deleting(set)) {
        out.delete(ACTOR, "ReplicaSet", set, None);
    }
}

fn revision_of(set: &Value) -> Option<i64> {
    set["metadata"]["annotations"][REVISION].as_str()?.parse().ok()
}

fn replica_set(deployment: &Value, own: &str, hash: &str, replicas: i64, revision: i64) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][HASH] = hash.into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = hash.into();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": own, "namespace": namespace(deployment), "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision.to_string()},
            "ownerReferences": controlled_by("apps/v1", "Deployment", deployment),
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    })
}

fn status(
    snapshot: &Snapshot,
    deployment: &Value,
    sets: &[&Value],
    newest: Option<&Value>,
    rollout: &Rollout,
    out: &mut Decision,
) {
    let count = |set: &Value, field: &str| set["status"][field].as_i64().unwrap_or(0);
    let total = |field: &str| sets.iter().map(|set| count(set, field)).sum::<i64>();
    let (all, ready, available) = (total("replicas"), total("readyReplicas"), total("availableReplicas"));
    let updated = newest.map_or(0, |set| count(set, "replicas"));
    let present = |count: i64| if count == 0 { Value::Null } else { count.into() };
    let enough = available >= rollout.least_available;
    let done = updated == rollout.wanted && all == updated && available == updated;
    let (own, title) = (newest.map_or("", name), name(deployment));
    let progress = if done {
        format!("ReplicaSet \"{own}\" has successfully progressed.")
    } else {
        format!("ReplicaSet \"{own}\" is progressing.")
    };
    let updates = [
        if enough {
            ConditionUpdate {
                of: "Available",
                status: "True",
                reason: "MinimumReplicasAvailable",
                message: "Deployment has minimum availability.",
            }
        } else {
            ConditionUpdate {
                of: "Available",
                status: "False",
                reason: "MinimumReplicasUnavailable",
                message: "Deployment does not have minimum availability.",
            }
        },
        ConditionUpdate {
            of: "Progressing",
            status: "True",
            reason: if done { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" },
            message: &progress,
        },
    ];
    tracing::trace!(title, ?rollout, "a deployment");
    out.status(ACTOR, "Deployment", deployment, json!({
        "observedGeneration": deployment["metadata"]["generation"], "replicas": present(all),
        "updatedReplicas": present(updated), "readyReplicas": present(ready),
        "availableReplicas": present(available), "unavailableReplicas": present((rollout.wanted - available).max(0)),
        "conditions": conditions::with(deployment, &updates, &snapshot.stamp()),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_respects_surge_and_unavailability() {
        let rollout = |(new, new_available), (old, old_available)| Rollout {
            wanted: 4,
            most: 5,
            least_available: 3,
            new,
            new_available,
            old,
            old_available,
        };
        for (before, after) in [
            // The first template is created at full size.
            (rollout((0, 0), (0, 0)), (4, 0)),
            // One above and one below the replicas.
            (rollout((0, 0), (4, 4)), (1, 3)),
            // Nothing is deleted before its replacement is available.
            (rollout((1, 0), (3, 3)), (2, 3)),
            (rollout((2, 0), (3, 3)), (2, 3)),
            (rollout((2, 2), (3, 3)), (2, 1)),
            // Unavailable Pods do not count.
            (rollout((2, 0), (3, 1)), (2, 1)),
            (rollout((4, 4), (1, 1)), (4, 0)),
            // Scaled down.
            (rollout((6, 6), (0, 0)), (4, 0)),
        ] {
            assert_eq!(before.next(), after, "{before:?}");
        }
    }
}
