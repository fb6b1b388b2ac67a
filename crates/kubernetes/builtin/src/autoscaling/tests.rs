use super::*;

fn v2(metrics: Value) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "annotations": {"mine": "stays"}},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "minReplicas": 1, "maxReplicas": 3, "metrics": metrics,
        },
        "status": {"desiredReplicas": 0, "currentMetrics": null},
    })
}

fn cpu(percent: i64) -> Value {
    cpu_metric("target", percent)
}

#[test]
fn fields_missing_in_v1_round_trip() {
    let metric = json!({"name": "m", "selector": {"matchLabels": {"a": "b"}}});
    let cases = [
        json!([cpu(50)]),
        json!([{"type": "Pods", "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "5"}}}, cpu(50)]),
        json!([{"type": "External", "external": {"metric": metric, "target": {"type": "Value", "value": "5"}}}]),
        json!([{"type": "Object", "object": {
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"}, "metric": metric,
            "target": {"type": "AverageValue", "averageValue": "100m"},
        }}]),
        json!([{"type": "ContainerResource", "containerResource": {
            "name": "memory", "container": "c", "target": {"type": "Utilization", "averageUtilization": 70},
        }}]),
    ];
    for metrics in cases {
        let mut object = v2(metrics);
        object["spec"]["behavior"] = json!({"scaleDown": {
            "selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        }});
        object["status"]["conditions"] =
            json!([{"type": "AbleToScale", "status": "True", "lastTransitionTime": null}]);
        assert_eq!(to_v2(to_v1(object.clone())), object);
    }
}

#[test]
fn annotations_have_upstreams_format() {
    let mut object = v2(json!([
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        {"type": "Object", "object": {
            "describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "m"},
            "target": {"type": "AverageValue", "averageValue": "2"},
        }},
    ]));
    object["spec"]["behavior"] =
        json!({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]}});
    let v1 = to_v1(object);
    let annotation = |key: &str| v1["metadata"]["annotations"][key].as_str().unwrap_or_default();
    assert_eq!(
        annotation(METRICS),
        r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"m","targetValue":"0","averageValue":"2"}}]"#
    );
    assert_eq!(
        annotation(BEHAVIOR),
        r#"{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":null,"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":2}],"Tolerance":null},"ScaleDown":null}"#
    );
    assert_eq!(v1["spec"].get("targetCPUUtilizationPercentage"), None);
    assert_eq!(v1["status"], json!({"currentReplicas": 0, "desiredReplicas": 0}));
}

#[test]
fn a_v1_autoscaler_without_metric_gets_the_default_target() {
    let mut object = v2(json!([]));
    object["apiVersion"] = "autoscaling/v1".into();
    object["metadata"]["annotations"][METRICS] = "no json".into();
    let new = to_v2(object);
    assert_eq!(new["spec"]["metrics"], json!([cpu(80)]));
    assert_eq!(new["metadata"]["annotations"], json!({"mine": "stays"}));
    assert_eq!(to_v1(new)["spec"]["targetCPUUtilizationPercentage"], 80);
}

#[test]
fn the_measured_cpu_utilization_is_a_field_of_v1() {
    let mut object = v2(json!([cpu(50)]));
    object["status"]["currentMetrics"] = json!([{
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 33, "averageValue": "100m"}},
    }]);
    let v1 = to_v1(object.clone());
    assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], 33);
    assert_eq!(
        v1["metadata"]["annotations"][CURRENT_METRICS],
        r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":33,"currentAverageValue":"100m"}}]"#
    );
    assert_eq!(to_v2(v1), object);
}

#[test]
fn kube_apiserver_converts_to_the_same() {
    let recorded: Value = serde_json::from_str(include_str!("recorded.json")).unwrap();
    assert_eq!(to_v1(recorded["v2"].clone()), recorded["v1"]);
}
