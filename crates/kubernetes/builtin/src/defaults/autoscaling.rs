//! Defaults of autoscalers.

use serde_json::{Value, json};

use super::{Object, set};

pub(super) fn spec(spec: &mut Object) {
    set(spec, "minReplicas", 1);
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        spec.insert(
            "metrics".to_owned(),
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
        );
    }
    if let Some(Value::Object(behavior)) = spec.get_mut("behavior") {
        let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
        let up = json!({
            "stabilizationWindowSeconds": 0, "selectPolicy": "Max",
            "policies": [policy("Pods", 4), policy("Percent", 100)],
        });
        let down = json!({"selectPolicy": "Max", "policies": [policy("Percent", 100)]});
        for (direction, rules) in [("scaleUp", up), ("scaleDown", down)] {
            complete(behavior, direction, rules);
        }
    }
}

/// Applies defaults to the rules of a direction.
fn complete(behavior: &mut Object, direction: &str, defaults: Value) {
    let (Some(Value::Object(rules)), Value::Object(defaults)) = (behavior.get_mut(direction), &defaults)
    else {
        behavior.insert(direction.to_owned(), defaults);
        return;
    };
    for (key, value) in defaults {
        if rules.get(key).is_none_or(Value::is_null) {
            rules.insert(key.clone(), value.clone());
        }
    }
}
