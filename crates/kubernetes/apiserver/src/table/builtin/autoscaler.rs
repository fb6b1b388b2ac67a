//! Autoscalers and the scale subresource.

use capstan_builtin::autoscaling;
use serde_json::Value;

use super::{Kind, age, name};
use crate::table::column::{AGE, NAME, integer, text as column};
use crate::table::read::{at, int, list, scalar, text};

pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    Some(match (group, kind) {
        ("autoscaling", "HorizontalPodAutoscaler") => &AUTOSCALER,
        ("autoscaling", "Scale") => &SCALE,
        _ => return None,
    })
}

static AUTOSCALER: Kind = Kind::new(
    &[
        NAME,
        column("Reference", "object that is scaled"),
        column("Targets", "current and target values of the metrics"),
        column("MinPods", "minimum number of replicas"),
        column("MaxPods", "maximum number of replicas"),
        column("Replicas", "current number of replicas"),
        AGE,
    ],
    |given, now| {
        // Rows are built from the newer version, whichever was requested.
        let newer = (given["apiVersion"] == "autoscaling/v1").then(|| autoscaling::to_v2(given.clone()));
        let object = newer.as_ref().unwrap_or(given);
        let target = at(object, &["spec", "scaleTargetRef"]);
        let least = at(object, &["spec", "minReplicas"]).as_i64();
        vec![
            name(object).into(),
            format!("{}/{}", text(target, &["kind"]), text(target, &["name"])).into(),
            metrics(object).into(),
            least.map_or_else(|| "<unset>".to_owned(), |n| n.to_string()).into(),
            int(object, &["spec", "maxReplicas"]).into(),
            int(object, &["status", "currentReplicas"]).into(),
            age(object, now),
        ]
    },
);

static SCALE: Kind = Kind::new(
    &[
        column("Name", "name of the scaled object"),
        integer("Desired", "desired number of replicas"),
        integer("Available", "available replicas"),
        AGE,
    ],
    |object, now| {
        vec![
            name(object).into(),
            int(object, &["spec", "replicas"]).into(),
            int(object, &["status", "replicas"]).into(),
            age(object, now),
        ]
    },
);

/// Current and target metrics, at most two.
fn metrics(autoscaler: &Value) -> String {
    const SHOWN: usize = 2;
    let measured = list(autoscaler, &["status", "currentMetrics"]);
    let all: Vec<String> = list(autoscaler, &["spec", "metrics"])
        .iter()
        .enumerate()
        .map(|(index, metric)| shown(metric, measured.get(index).unwrap_or(&Value::Null)))
        .collect();
    match all.len() {
        0 => "<none>".into(),
        1..=SHOWN => all.join(", "),
        count => format!("{} + {} more...", all[..SHOWN].join(", "), count - SHOWN),
    }
}

fn shown(metric: &Value, measured: &Value) -> String {
    let source = match text(metric, &["type"]) {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".into(),
    };
    let target = at(metric, &[source, "target"]);
    let current = at(measured, &[source, "current"]);
    let value = |of: &Value, key: &str, absent: &str| match &of[key] {
        Value::Null => absent.to_owned(),
        value => scalar(value),
    };
    let percent = |of: &Value, absent: &str| match of["averageUtilization"].as_i64() {
        Some(percent) => format!("{percent}%"),
        None => absent.to_owned(),
    };
    let by_average = !target["averageValue"].is_null();
    let average = |suffix: &str| {
        let (now, wanted) = (value(current, "averageValue", "<unknown>"), value(target, "averageValue", "0"));
        format!("{now}/{wanted}{suffix}")
    };
    match source {
        "pods" => average(""),
        "external" | "object" if by_average => average(" (avg)"),
        "external" | "object" => {
            format!("{}/{}", value(current, "value", "<unknown>"), value(target, "value", "0"))
        }
        _ => {
            let name = text(metric, &[source, "name"]);
            if by_average {
                format!("{name}: {}", average(""))
            } else {
                format!("{name}: {}/{}", percent(current, "<unknown>"), percent(target, "<auto>"))
            }
        }
    }
}
