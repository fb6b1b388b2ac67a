//! HorizontalPodAutoscalers have two versions. They are stored as `v2`; `v1` has one metric, CPU utilization, and
//! keeps everything else in annotations, in upstream's format.

mod metrics;

use serde_json::{Map, Value, json};

use metrics::{Side, behavior_from_text, behavior_text, conditions_text, metric_from_v1, metric_text};

/// Default target CPU utilization.
const DEFAULT_UTILIZATION: i64 = 80;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// Annotations of the conversion; values of others in them do not survive.
const ROUND_TRIP: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Converts to `autoscaling/v1`.
pub fn to_v1(mut autoscaler: Value) -> Value {
    let mut annotations = take_annotations(&mut autoscaler);
    let mut notes: Vec<(&str, String)> = Vec::new();

    let spec = object(&mut autoscaler, "spec");
    let metrics = take_list(spec, "metrics");
    let cpu = metrics.iter().find_map(cpu_utilization);
    if let Some(percent) = cpu {
        spec.insert("targetCPUUtilizationPercentage".into(), percent.into());
    }
    let others: Vec<String> = metrics
        .iter()
        .filter(|m| cpu_utilization(m).is_none())
        .map(|m| metric_text(m, Side::Wanted))
        .collect();
    if !others.is_empty() {
        notes.push((METRICS, format!("[{}]", others.join(","))));
    }
    if let Some(behavior) = spec.remove("behavior").filter(|b| !b.is_null()) {
        notes.push((BEHAVIOR, behavior_text(&behavior)));
    }

    let status = object(&mut autoscaler, "status");
    let measured = take_list(status, "currentMetrics");
    let cpu = measured
        .iter()
        .rev()
        .filter(|m| is_cpu(m))
        .find_map(|m| m["resource"]["current"]["averageUtilization"].as_i64());
    if let Some(percent) = cpu {
        status.insert("currentCPUUtilizationPercentage".into(), percent.into());
    }
    // Zero is written out in this version.
    status.entry("currentReplicas").or_insert_with(|| 0.into());
    status.entry("desiredReplicas").or_insert_with(|| 0.into());
    if !measured.is_empty() {
        let texts: Vec<String> = measured.iter().map(|m| metric_text(m, Side::Measured)).collect();
        notes.push((CURRENT_METRICS, format!("[{}]", texts.join(","))));
    }
    let conditions = take_list(status, "conditions");
    if !conditions.is_empty() {
        notes.push((CONDITIONS, conditions_text(&conditions)));
    }

    annotations.extend(notes.into_iter().map(|(key, text)| (key.to_owned(), text.into())));
    put_annotations(&mut autoscaler, annotations);
    autoscaler["apiVersion"] = "autoscaling/v1".into();
    autoscaler
}

/// Converts to `autoscaling/v2`. Annotations take precedence over the field; an unreadable annotation is ignored.
pub fn to_v2(mut autoscaler: Value) -> Value {
    let notes = match autoscaler["metadata"]["annotations"].as_object() {
        Some(annotations) => annotations.clone(),
        None => Map::new(),
    };
    let read = |key: &str| notes.get(key).and_then(Value::as_str).and_then(|t| serde_json::from_str(t).ok());
    let annotations = take_annotations(&mut autoscaler);
    put_annotations(&mut autoscaler, annotations);

    let spec = object(&mut autoscaler, "spec");
    let cpu = spec.remove("targetCPUUtilizationPercentage").and_then(|v| v.as_i64());
    let mut metrics = Vec::new();
    if let Some(Value::Array(others)) = read(METRICS) {
        metrics.extend(others.iter().map(|m| metric_from_v1(m, Side::Wanted)));
    }
    metrics.extend(cpu.map(|percent| cpu_metric("target", percent)));
    if metrics.is_empty() {
        metrics.push(cpu_metric("target", DEFAULT_UTILIZATION));
    }
    spec.insert("metrics".into(), metrics.into());
    if let Some(behavior) = read(BEHAVIOR).as_ref().and_then(behavior_from_text) {
        spec.insert("behavior".into(), behavior);
    }

    let status = object(&mut autoscaler, "status");
    let cpu = status.remove("currentCPUUtilizationPercentage").and_then(|v| v.as_i64());
    let measured = match read(CURRENT_METRICS) {
        Some(Value::Array(all)) => all.iter().map(|m| metric_from_v1(m, Side::Measured)).collect(),
        _ => cpu.map(|percent| cpu_metric("current", percent)).into_iter().collect::<Vec<_>>(),
    };
    status.insert("currentMetrics".into(), if measured.is_empty() { Value::Null } else { measured.into() });
    if status.get("currentReplicas").is_some_and(|n| n == 0) {
        status.remove("currentReplicas");
    }
    if let Some(Value::Array(conditions)) = read(CONDITIONS).filter(|c| *c != json!([])) {
        status.insert("conditions".into(), conditions.into());
    }
    autoscaler["apiVersion"] = "autoscaling/v2".into();
    autoscaler
}

fn cpu_metric(side: &str, percent: i64) -> Value {
    let mut value = json!({"averageUtilization": percent});
    if side == "target" {
        value["type"] = "Utilization".into();
    }
    json!({"type": "Resource", "resource": {"name": "cpu", side: value}})
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

/// The target CPU utilization, if the metric is about it.
fn cpu_utilization(metric: &Value) -> Option<i64> {
    is_cpu(metric).then(|| metric["resource"]["target"]["averageUtilization"].as_i64()).flatten()
}

fn object<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !value[key].is_object() {
        value[key] = json!({});
    }
    match &mut value[key] {
        Value::Object(map) => map,
        // Set to an object just above.
        _ => unreachable!("an object"),
    }
}

fn take_list(map: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match map.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The annotations without those of the conversion.
fn take_annotations(autoscaler: &mut Value) -> Map<String, Value> {
    let metadata = object(autoscaler, "metadata");
    let mut annotations = match metadata.remove("annotations") {
        Some(Value::Object(annotations)) => annotations,
        _ => Map::new(),
    };
    annotations.retain(|key, _| !ROUND_TRIP.contains(&key.as_str()));
    annotations
}

fn put_annotations(autoscaler: &mut Value, annotations: Map<String, Value>) {
    if !annotations.is_empty() {
        object(autoscaler, "metadata").insert("annotations".into(), annotations.into());
    }
}

#[cfg(test)]
mod tests;
