//! Autoscalers in two versions.

use serde_json::{Value, json};

use crate::client::Client;

const OLD: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const NEW: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

fn old(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 5},
    });
    for (key, value) in spec.as_object().expect("a spec") {
        object["spec"][key] = value.clone();
    }
    object
}

#[tokio::test]
async fn an_autoscaler_is_one_object_in_both_versions() {
    let client = Client::start().await;
    let (code, created) = client.create(OLD, &old("a", json!({"targetCPUUtilizationPercentage": 60}))).await;
    assert_eq!((code, &created["apiVersion"]), (201, &json!("autoscaling/v1")), "{created}");
    assert_eq!(created["spec"]["minReplicas"], 1);
    assert_eq!(created["status"], json!({"currentReplicas": 0, "desiredReplicas": 0}));

    let (_, new) = client.get(&format!("{NEW}/a")).await;
    let metric = &new["spec"]["metrics"][0]["resource"];
    assert_eq!(metric["target"], json!({"type": "Utilization", "averageUtilization": 60}), "{new}");
    assert_eq!(new["metadata"]["uid"], created["metadata"]["uid"]);

    let memory = json!({"spec": {"metrics": [{"type": "Resource", "resource": {
        "name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"},
    }}]}});
    client.patch(&format!("{NEW}/a"), "application/merge-patch+json", &memory).await;
    let (_, again) = client.get(&format!("{OLD}/a")).await;
    assert_eq!(again["spec"].get("targetCPUUtilizationPercentage"), None);
    assert_eq!(
        again["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"],
        r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]"#
    );
    // Writing back what was read changes nothing.
    let (code, same) = client.call("PUT", &format!("{OLD}/a"), &again).await;
    assert_eq!((code, &same["metadata"]["resourceVersion"]), (200, &again["metadata"]["resourceVersion"]));
}

#[tokio::test]
async fn what_is_missing_is_filled_in_and_what_is_wrong_is_named_as_in_the_newer_version() {
    let client = Client::start().await;
    let (_, created) = client.create(OLD, &old("a", json!({}))).await;
    assert_eq!(created["spec"]["targetCPUUtilizationPercentage"], 80, "{created}");
    let (code, refused) =
        client.create(OLD, &old("b", json!({"minReplicas": 9, "targetCPUUtilizationPercentage": -1}))).await;
    assert_eq!(code, 422);
    let causes = refused["details"]["causes"].as_array().expect("causes").iter();
    let fields: Vec<&str> = causes.filter_map(|cause| cause["field"].as_str()).collect();
    assert_eq!(fields, ["spec.maxReplicas", "spec.metrics[0].resource.target.averageUtilization"]);
}

#[tokio::test]
async fn status_is_written_through_its_own_door_in_either_version() {
    let client = Client::start().await;
    client.create(OLD, &old("a", json!({}))).await;
    let conditions = json!({"status": {"desiredReplicas": 3, "conditions": [
        {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    let merge = "application/merge-patch+json";
    let (code, new) = client.patch(&format!("{NEW}/a/status"), merge, &conditions).await;
    assert_eq!((code, &new["status"]["desiredReplicas"]), (200, &json!(3)), "{new}");
    let (_, old) = client.get(&format!("{OLD}/a")).await;
    assert_eq!(old["status"]["desiredReplicas"], 3);
    // A write to the resource itself keeps the status, including what is in annotations.
    let without = json!({"metadata": {"annotations": null}, "spec": {"maxReplicas": 7}});
    client.patch(&format!("{OLD}/a"), merge, &without).await;
    let (_, kept) = client.get(&format!("{NEW}/a")).await;
    assert_eq!((&kept["spec"]["maxReplicas"], &kept["status"]), (&json!(7), &new["status"]));
}

#[tokio::test]
async fn an_applied_field_is_owned_across_versions() {
    let client = Client::start().await;
    let apply = "application/apply-patch+yaml";
    let (code, _) =
        client.patch(&format!("{OLD}/a?fieldManager=one"), apply, &old("a", json!({"maxReplicas": 4}))).await;
    assert_eq!(code, 201);
    let mut other = old("a", json!({"maxReplicas": 6}));
    other["apiVersion"] = "autoscaling/v2".into();
    let (code, refused) = client.patch(&format!("{NEW}/a?fieldManager=two"), apply, &other).await;
    assert_eq!(
        (code, &refused["details"]["causes"][0]["field"]),
        (409, &json!(".spec.maxReplicas")),
        "{refused}"
    );
}
