//! Warnings: how the simulation ended, version skew, and PodDisruptionBudgets of the real clusters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use capstan_capi_core::secret::Secret;
use capstan_capi_types::version::tolerant;
use capstan_controller::{Access, Client, Env, KindName, Remote, TcpDial};
use capstan_object::Key;
use capstan_rehearsal::{MachineEventKind, Preview};
use capstan_view::{Part, Tree, one_line, why};
use serde_json::Value;

use crate::kinds::list;
use crate::upgrade::check_skew;

/// For each workload cluster.
const TIMEOUT: Duration = Duration::from_secs(5);

pub async fn of(client: &Client, course: &Preview) -> Vec<String> {
    let mut warnings = not_ready(course);
    warnings.extend(version_skew(course));
    warnings.extend(course.without_network.iter().map(|cluster| {
        format!(
            "cluster {}: no resource set installs a CNI: the plan assumes that somebody does; until then its nodes are \
             NotReady",
            cluster.name
        )
    }));
    for cluster in drained(course) {
        match tokio::time::timeout(TIMEOUT, budgets(client, &cluster)).await {
            Ok(Ok(budgets)) => {
                warnings.extend(budgets.iter().filter_map(|budget| blocked_drain(&cluster, budget)))
            }
            Ok(Err(_)) | Err(_) => warnings.push(format!(
                "cluster {}: cannot read its PodDisruptionBudgets; one may block a drain",
                cluster.name
            )),
        }
    }
    warnings
}

/// Clusters whose machines are drained. Machines of a cluster that is deleted as a whole are not.
fn drained(course: &Preview) -> BTreeSet<Key> {
    let deleting =
        course.steps.iter().filter(|step| step.what == MachineEventKind::Deleting && step.machine.existed);
    let clusters =
        deleting.map(|step| Key::new(step.machine.namespace.as_str(), step.machine.cluster.as_str()));
    let is_kept = |cluster: &Key| {
        clusters_of(course).any(|object| {
            let meta = &object["metadata"];
            meta["namespace"] == cluster.namespace.as_str()
                && meta["name"] == cluster.name.as_str()
                && meta["deletionTimestamp"].is_null()
        })
    };
    clusters.filter(is_kept).collect()
}

fn clusters_of(course: &Preview) -> impl Iterator<Item = &Value> {
    of_kind(course, "Cluster", "cluster.x-k8s.io/")
}

fn of_kind<'a>(course: &'a Preview, kind: &'a str, group: &'a str) -> impl Iterator<Item = &'a Value> {
    course.objects.iter().filter(move |object| {
        object["kind"] == kind && object["apiVersion"].as_str().is_some_and(|api| api.starts_with(group))
    })
}

/// Workers whose final version is outside the supported skew to their control plane.
fn version_skew(course: &Preview) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    for cluster in clusters_of(course) {
        let (meta, reference) = (&cluster["metadata"], &cluster["spec"]["controlPlaneRef"]);
        let control_plane = course.objects.iter().find(|object| {
            object["kind"] == reference["kind"]
                && object["metadata"]["name"] == reference["name"]
                && object["metadata"]["namespace"] == meta["namespace"]
        });
        let Some(target) = control_plane.and_then(|it| tolerant(it["spec"]["version"].as_str()?)) else {
            continue;
        };
        let mine = |machine: &&Value| {
            machine["metadata"]["namespace"] == meta["namespace"]
                && machine["spec"]["clusterName"] == meta["name"]
        };
        for deployment in of_kind(course, "MachineDeployment", "cluster.x-k8s.io/").filter(mine) {
            let version = deployment["spec"]["template"]["spec"]["version"].as_str();
            let Some(Err(error)) = version.and_then(tolerant).map(|own| check_skew(&own, &target)) else {
                continue;
            };
            let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
            warnings.insert(format!(
                "MachineDeployment/{name} is at {} and its control plane at v{target}: {error}",
                version.unwrap_or_default()
            ));
        }
    }
    warnings.into_iter().collect()
}

/// Clusters that are not ready when the simulation ends.
fn not_ready(course: &Preview) -> Vec<String> {
    let mut warnings = Vec::new();
    for cluster in clusters_of(course) {
        let parts: Vec<Part> = course.objects.iter().filter_map(Part::of).collect();
        let tree = cluster["metadata"]["uid"].as_str().and_then(|uid| Tree::below(uid, parts));
        let Some(why) = tree.as_ref().and_then(why) else { continue };
        let message = why.first.chain.last().map(|link| {
            let text = if link.message.is_empty() { &link.reason } else { &link.message };
            one_line(text)
        });
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        warnings.push(format!(
            "the simulation ends with cluster {name} not ready: {}: {}",
            why.first.cause.part,
            message.unwrap_or_default()
        ));
    }
    if !course.idle && warnings.is_empty() {
        warnings.push("the simulation does not settle: something is retried again and again".to_owned());
    }
    warnings
}

/// PodDisruptionBudgets of a workload cluster; none if it has no kubeconfig yet.
async fn budgets(client: &Client, cluster: &Key) -> Result<Vec<Value>> {
    let key = Key::new(&cluster.namespace, format!("{}-kubeconfig", cluster.name));
    let Some(secret) = client.get::<Secret>(&key).await? else { return Ok(Vec::new()) };
    let access = Access::from_kubeconfig(secret.text("value")?.as_bytes())?;
    let remote = Remote::new(access, Arc::new(TcpDial), &Env::system())?;
    let kind = KindName::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
    Ok(list(&Client::new(Arc::new(remote), "capstan-cli"), &kind, "").await?)
}

/// A warning, if the budget allows no eviction now.
fn blocked_drain(cluster: &Key, budget: &Value) -> Option<String> {
    let status = &budget["status"];
    let guards = status["expectedPods"].as_i64().unwrap_or(0) > 0;
    let blocks = guards && status["disruptionsAllowed"].as_i64().unwrap_or(0) == 0;
    let text = |field: &str| budget["metadata"][field].as_str().unwrap_or_default();
    blocks.then(|| {
        format!(
            "cluster {}: PodDisruptionBudget {}/{} allows no eviction now: a drain waits for it",
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
    fn version_skew_is_reported() {
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
            Preview { objects, ..Preview::default() }
        };
        for (control_plane, workers, expected) in [
            ("v1.36.0", "v1.36.0", None),
            ("v1.36.0", "v1.33.9", None),
            ("v1.36.0", "v1.32.0", Some("at least v1.33 first")),
            ("v1.35.0", "v1.36.0", Some("must not be newer than their control plane")),
        ] {
            let warnings = version_skew(&course(control_plane, workers));
            assert_eq!(
                warnings.len(),
                usize::from(expected.is_some()),
                "{control_plane} {workers}: {warnings:?}"
            );
            assert!(
                warnings.iter().all(|it| expected.is_some_and(|expected| it.contains(expected))),
                "{warnings:?}"
            );
        }
    }

    #[test]
    fn only_a_budget_with_pods_and_no_allowed_disruption_blocks() {
        let cluster = Key::new("default", "c");
        for (expected, allowed, blocks) in [(3, 0, true), (3, 1, false), (0, 0, false)] {
            let budget = json!({"metadata": {"name": "b", "namespace": "n"},
                "status": {"expectedPods": expected, "disruptionsAllowed": allowed}});
            assert_eq!(blocked_drain(&cluster, &budget).is_some(), blocks, "{expected} {allowed}");
        }
    }
}
