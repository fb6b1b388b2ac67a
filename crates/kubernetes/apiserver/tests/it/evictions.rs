//! Evictions and the status of the budget that allows them agree.

use serde_json::{Value, json};

use crate::client::Client;

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";

async fn evict(client: &Client, pod: &str) -> (u16, Value) {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
    client.create(&format!("{PODS}/{pod}/eviction"), &eviction).await
}

#[tokio::test]
async fn the_last_disruption_is_taken_in_numbers_and_in_the_condition() {
    let client = Client::start().await;
    for pod in ["a", "b"] {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        assert_eq!(client.create(PODS, &object).await.0, 201);
        client.patch(&format!("{PODS}/{pod}/status"), MERGE, &json!({"status": {"phase": "Running"}})).await;
    }
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    });
    let (_, created) = client.create(BUDGETS, &budget).await;
    assert_eq!(
        created["status"],
        json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0})
    );
    let (code, refused) = evict(&client, "a").await;
    assert_eq!((code, &refused["details"]["retryAfterSeconds"]), (429, &json!(10)), "not observed yet");
    let status = json!({"status": {
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1,
        "expectedPods": 2,
        "conditions": [{
            "type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        }],
    }});
    client.patch(&format!("{BUDGETS}/b/status"), MERGE, &status).await;
    assert_eq!(evict(&client, "a").await.0, 201);
    let (_, taken) = client.get(&format!("{BUDGETS}/b")).await;
    let condition = &taken["status"]["conditions"][0];
    assert_eq!(taken["status"]["disruptionsAllowed"], 0);
    assert!(taken["status"]["disruptedPods"]["a"].is_string(), "{taken}");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("InsufficientPods")));
    assert_ne!(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
    let (code, refused) = evict(&client, "b").await;
    assert_eq!(code, 429);
    assert_eq!(
        refused["details"]["causes"][0]["message"],
        "The disruption budget b does not allow evicting pods currently"
    );
}
