//! What may stand in the way: how the copy ended, and budgets of the real clusters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use capstan_capi_kubeadm::secret::Secret;
use capstan_controller::{Access, Client, Env, KindName, Remote, TcpDial};
use capstan_object::Key;
use capstan_rehearsal::{Course, What};
use capstan_view::{Part, Tree, one_line, why};
use serde_json::Value;

use crate::kinds::list;

/// How long a workload cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything worth a warning.
pub async fn of(client: &Client, course: &Course) -> Vec<String> {
    let mut warnings = unfinished(course);
    let drained = course.steps.iter().filter(|step| step.what == What::Deleting && step.machine.existed);
    let clusters: BTreeSet<Key> = drained
        .map(|step| Key::new(step.machine.namespace.as_str(), step.machine.cluster.as_str()))
        .collect();
    for cluster in clusters {
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

/// Clusters that are not as wanted when nothing more happens.
fn unfinished(course: &Course) -> Vec<String> {
    let is_cluster = |object: &&Value| {
        object["kind"] == "Cluster"
            && object["apiVersion"].as_str().is_some_and(|api| api.starts_with("cluster.x-k8s.io/"))
    };
    let mut warnings = Vec::new();
    for cluster in course.objects.iter().filter(is_cluster) {
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
    fn only_a_budget_that_guards_pods_and_lets_none_go_blocks() {
        let cluster = Key::new("default", "c");
        for (expected, allowed, is_said) in [(3, 0, true), (3, 1, false), (0, 0, false)] {
            let budget = json!({"metadata": {"name": "b", "namespace": "n"},
                "status": {"expectedPods": expected, "disruptionsAllowed": allowed}});
            assert_eq!(blocks(&cluster, &budget).is_some(), is_said, "{expected} {allowed}");
        }
    }
}
