//! What may stand in the way: how the copy ended, and budgets of the real clusters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use capstan_capi_core::secret::Secret;
use capstan_capi_types::version::tolerant;
use capstan_controller::{Access, Client, Env, KindName, Remote, TcpDial};
use capstan_object::Key;
use capstan_rehearsal::{Course, What};
use capstan_view::{Part, Tree, one_line, why};
use serde_json::Value;

use crate::kinds::list;
use crate::upgrade::behind;

/// How long a workload cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything worth a warning.
pub async fn of(client: &Client, course: &Course) -> Vec<String> {
    let mut warnings = unfinished(course);
    warnings.extend(skewed(course));
    warnings.extend(course.without_network.iter().map(|cluster| {
        format!(
            "cluster {}: nothing that is recorded brings it a network: the plan takes it that somebody will, and until \
             then its nodes are not ready",
            cluster.name
        )
    }));
    for cluster in drained(course) {
        match tokio::time::timeout(PATIENCE, budgets(client, &cluster)).await {
            Ok(Ok(budgets)) => warnings.extend(budgets.iter().filter_map(|budget| blocks(&cluster, budget))),
            Ok(Err(_)) | Err(_) => warnings.push(format!(
                "cluster {}: its PodDisruptionBudgets cannot be read, so whether one holds up a drain is not known",
                cluster.name
            )),
        }
    }
    warnings
}

/// Clusters that stay and whose machines are drained; nobody drains machines of a cluster that goes as a whole.
fn drained(course: &Course) -> BTreeSet<Key> {
    let goes = course.steps.iter().filter(|step| step.what == What::Deleting && step.machine.existed);
    let clusters = goes.map(|step| Key::new(step.machine.namespace.as_str(), step.machine.cluster.as_str()));
    let stays = |cluster: &Key| {
        clusters_of(course).any(|object| {
            let meta = &object["metadata"];
            meta["namespace"] == cluster.namespace.as_str()
                && meta["name"] == cluster.name.as_str()
                && meta["deletionTimestamp"].is_null()
        })
    };
    clusters.filter(stays).collect()
}

fn clusters_of(course: &Course) -> impl Iterator<Item = &Value> {
    of_kind(course, "Cluster", "cluster.x-k8s.io/")
}

fn of_kind<'a>(course: &'a Course, kind: &'a str, group: &'a str) -> impl Iterator<Item = &'a Value> {
    course.objects.iter().filter(move |object| {
        object["kind"] == kind && object["apiVersion"].as_str().is_some_and(|api| api.starts_with(group))
    })
}

/// Workers whose version does not go with that of their control plane, once everything has happened.
fn skewed(course: &Course) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    for cluster in clusters_of(course) {
        let (meta, reference) = (&cluster["metadata"], &cluster["spec"]["controlPlaneRef"]);
        let control_plane = course.objects.iter().find(|object| {
            object["kind"] == reference["kind"]
                && object["metadata"]["name"] == reference["name"]
                && object["metadata"]["namespace"] == meta["namespace"]
        });
        let Some(wanted) = control_plane.and_then(|it| tolerant(it["spec"]["version"].as_str()?)) else {
            continue;
        };
        let mine = |machine: &&Value| {
            machine["metadata"]["namespace"] == meta["namespace"]
                && machine["spec"]["clusterName"] == meta["name"]
        };
        for deployment in of_kind(course, "MachineDeployment", "cluster.x-k8s.io/").filter(mine) {
            let version = deployment["spec"]["template"]["spec"]["version"].as_str();
            let Some(Err(error)) = version.and_then(tolerant).map(|own| behind(&own, &wanted)) else {
                continue;
            };
            let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
            warnings.insert(format!(
                "MachineDeployment/{name} runs {} under a control plane of v{wanted}: {error}",
                version.unwrap_or_default()
            ));
        }
    }
    warnings.into_iter().collect()
}

/// Clusters that are not as wanted when nothing more happens.
fn unfinished(course: &Course) -> Vec<String> {
    let mut warnings = Vec::new();
    for cluster in clusters_of(course) {
        let parts: Vec<Part> = course.objects.iter().filter_map(Part::of).collect();
        let tree = cluster["metadata"]["uid"].as_str().and_then(|uid| Tree::below(uid, parts));
        let Some(why) = tree.as_ref().and_then(why) else { continue };
        let said = why.chain.last().map(|link| {
            let words = if link.message.is_empty() { &link.reason } else { &link.message };
            one_line(words)
        });
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        warnings.push(format!(
            "the model ends with cluster {name} not as wanted: {}: {}",
            why.cause.part,
            said.unwrap_or_default()
        ));
    }
    if !course.rested && warnings.is_empty() {
        warnings.push("the model does not come to rest: something is tried again and again".to_owned());
    }
    warnings
}

/// The budgets of a workload cluster; none if it has no kubeconfig yet.
async fn budgets(client: &Client, cluster: &Key) -> Result<Vec<Value>> {
    let key = Key::new(&cluster.namespace, format!("{}-kubeconfig", cluster.name));
    let Some(secret) = client.get::<Secret>(&key).await? else { return Ok(Vec::new()) };
    let access = Access::from_kubeconfig(secret.text("value")?.as_bytes())?;
    let remote = Remote::new(access, Arc::new(TcpDial), &Env::system())?;
    let kind = KindName::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
    Ok(list(&Client::new(Arc::new(remote), "capstan-cli"), &kind, "").await?)
}

/// A budget that lets no Pod go now.
fn blocks(cluster: &Key, budget: &Value) -> Option<String> {
    let status = &budget["status"];
    let guards = status["expectedPods"].as_i64().unwrap_or(0) > 0;
    let blocks = guards && status["disruptionsAllowed"].as_i64().unwrap_or(0) == 0;
    let text = |field: &str| budget["metadata"][field].as_str().unwrap_or_default();
    blocks.then(|| {
        format!(
            "cluster {}: PodDisruptionBudget {}/{} lets no Pod go now: a drain waits for it",
            cluster.name,
            text("namespace"),
            text("name")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn workers_that_do_not_go_with_their_control_plane_are_named() {
        let course = |control_plane: &str, workers: &str| {
            let meta = |name: &str| json!({"name": name, "namespace": "n"});
            let objects = vec![
                json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta("c"),
                    "spec": {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "c"}}}),
                json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
                    "metadata": meta("c"), "spec": {"version": control_plane}}),
                json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": meta("w"),
                    "spec": {"clusterName": "c", "template": {"spec": {"version": workers}}}}),
            ];
            Course { objects, ..Course::default() }
        };
        for (control_plane, workers, said) in [
            ("v1.36.0", "v1.36.0", None),
            ("v1.36.0", "v1.33.9", None),
            ("v1.36.0", "v1.32.0", Some("at least v1.33 first")),
            ("v1.35.0", "v1.36.0", Some("never newer than their control plane")),
        ] {
            let warnings = skewed(&course(control_plane, workers));
            assert_eq!(
                warnings.len(),
                usize::from(said.is_some()),
                "{control_plane} {workers}: {warnings:?}"
            );
            assert!(warnings.iter().all(|it| said.is_some_and(|said| it.contains(said))), "{warnings:?}");
        }
    }

    #[test]
    fn only_a_budget_that_guards_pods_and_lets_none_go_blocks() {
        let cluster = Key::new("default", "c");
        for (expected, allowed, is_said) in [(3, 0, true), (3, 1, false), (0, 0, false)] {
            let budget = json!({"metadata": {"name": "b", "namespace": "n"},
                "status": {"expectedPods": expected, "disruptionsAllowed": allowed}});
            assert_eq!(blocks(&cluster, &budget).is_some(), is_said, "{expected} {allowed}");
        }
    }
}
