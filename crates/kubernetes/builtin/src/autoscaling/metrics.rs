//! Metrics, conditions and behavior in the format of the `v1` annotations: fields in upstream's order, so that the
//! texts are equal.

use capstan_schema::golang;
use serde_json::{Map, Value, json};

/// Whether a metric is in the spec or the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Wanted,
    Measured,
}

impl Side {
    /// Field of the values in `v2`.
    fn values(self) -> &'static str {
        match self {
            Self::Wanted => "target",
            Self::Measured => "current",
        }
    }

    /// Field name in `v1`: `targetValue`, `currentValue`.
    fn named(self, what: &str) -> String {
        format!("{}{what}", self.values())
    }
}

const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

/// A JSON object with its fields in the given order; those without a value are omitted.
fn ordered(members: &[(&str, Option<String>)]) -> String {
    let members: Vec<String> = members
        .iter()
        .filter_map(|(key, value)| {
            value.as_ref().map(|value| format!("{}:{value}", golang::json(&json!(key))))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn optional(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| golang::json(value))
}

/// A value that is always written: a missing quantity is `"0"`.
fn quantity(value: &Value) -> Option<String> {
    Some(optional(value).unwrap_or_else(|| "\"0\"".to_owned()))
}

fn required(value: &Value) -> Option<String> {
    Some(optional(value).unwrap_or_else(|| "\"\"".to_owned()))
}

/// Converts a metric of `v2` to the text of one of `v1`.
pub(super) fn metric_text(metric: &Value, side: Side) -> String {
    let mut members = vec![("type", required(&metric["type"]))];
    for source in SOURCES {
        if let Some(value) = metric.get(source).filter(|v| !v.is_null()) {
            members.push((source, Some(source_text(source, value, side))));
        }
    }
    ordered(&members)
}

fn source_text(source: &str, of: &Value, side: Side) -> String {
    let values = &of[side.values()];
    let (name, selector) = (required(&of["metric"]["name"]), optional(&of["metric"]["selector"]));
    let named = |what: &str| side.named(what);
    let wanted = side == Side::Wanted;
    match source {
        "object" => {
            let target = &of["describedObject"];
            let target = ordered(&[
                ("kind", required(&target["kind"])),
                ("name", required(&target["name"])),
                ("apiVersion", optional(&target["apiVersion"])),
            ]);
            ordered(&[
                ("target", Some(target)),
                ("metricName", name),
                (&named("Value"), quantity(&values["value"])),
                ("selector", selector),
                ("averageValue", optional(&values["averageValue"])),
            ])
        }
        "pods" => ordered(&[
            ("metricName", name),
            (&named("AverageValue"), quantity(&values["averageValue"])),
            ("selector", selector),
        ]),
        "external" => ordered(&[
            ("metricName", name),
            ("metricSelector", selector),
            (&named("Value"), if wanted { optional(&values["value"]) } else { quantity(&values["value"]) }),
            (&named("AverageValue"), optional(&values["averageValue"])),
        ]),
        _ => {
            let average = &values["averageValue"];
            ordered(&[
                ("name", required(&of["name"])),
                (&named("AverageUtilization"), optional(&values["averageUtilization"])),
                (&named("AverageValue"), if wanted { optional(average) } else { quantity(average) }),
                ("container", (source == "containerResource").then(|| golang::json(&of["container"]))),
            ])
        }
    }
}

/// Converts a metric of `v1` to one of `v2`.
pub(super) fn metric_from_v1(metric: &Value, side: Side) -> Value {
    let mut out = json!({"type": metric["type"]});
    for source in SOURCES {
        if let Some(value) = metric.get(source).filter(|v| v.is_object()) {
            out[source] = source_from_v1(source, value, side);
        }
    }
    out
}

fn source_from_v1(source: &str, of: &Value, side: Side) -> Value {
    let named = |what: &str| of.get(side.named(what)).filter(|v| !v.is_null()).cloned();
    let mut values = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            values.insert(key.to_owned(), value);
        }
    };
    let mut out = Map::new();
    let mut identify = |selector: &str| {
        let mut metric = json!({"name": of["metricName"].as_str().unwrap_or_default()});
        if of[selector].is_object() {
            metric["selector"] = of[selector].clone();
        }
        out.insert("metric".into(), metric);
    };
    let kind = match source {
        "object" => {
            identify("selector");
            out.insert("describedObject".into(), of["target"].clone());
            let average = of.get("averageValue").filter(|v| !v.is_null()).cloned();
            let by_average = average.is_some();
            // This version requires the value and writes zero, which the other one rejects.
            let value = named("Value").filter(|v| side == Side::Measured || !by_average || !is_zero(v));
            put("value", value);
            put("averageValue", average);
            if by_average { "AverageValue" } else { "Value" }
        }
        "pods" => {
            identify("selector");
            put("averageValue", named("AverageValue"));
            "AverageValue"
        }
        "external" => {
            identify("metricSelector");
            let value = named("Value");
            let by_value = value.is_some();
            put("value", value);
            put("averageValue", named("AverageValue"));
            if by_value { "Value" } else { "AverageValue" }
        }
        _ => {
            out.insert("name".into(), of["name"].clone());
            if source == "containerResource" {
                out.insert("container".into(), of["container"].clone());
            }
            let utilization = named("AverageUtilization");
            let by_utilization = utilization.is_some();
            put("averageUtilization", utilization);
            put("averageValue", named("AverageValue"));
            if by_utilization { "Utilization" } else { "AverageValue" }
        }
    };
    if side == Side::Wanted {
        values.insert("type".into(), kind.into());
    }
    out.insert(side.values().to_owned(), values.into());
    out.into()
}

fn is_zero(quantity: &Value) -> bool {
    let text = quantity.as_str().unwrap_or_default();
    crate::quantity::Quantity::parse(text).is_ok_and(|quantity| quantity.is_zero())
}

pub(super) fn conditions_text(conditions: &[Value]) -> String {
    let texts: Vec<String> = conditions
        .iter()
        .map(|condition| {
            ordered(&[
                ("type", required(&condition["type"])),
                ("status", required(&condition["status"])),
                ("lastTransitionTime", Some(golang::json(&condition["lastTransitionTime"]))),
                ("reason", optional(&condition["reason"])),
                ("message", optional(&condition["message"])),
            ])
        })
        .collect();
    format!("[{}]", texts.join(","))
}

const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] = [("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];
const DIRECTIONS: [(&str, &str); 2] = [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];

/// Behavior as upstream's internal type is serialized: Go's names, every field.
pub(super) fn behavior_text(behavior: &Value) -> String {
    spelled(behavior, &DIRECTIONS, |_, rules| match rules {
        Value::Null => "null".to_owned(),
        rules => spelled(rules, &RULES, |name, value| match (name, value.as_array()) {
            ("policies", Some(policies)) => {
                let all: Vec<String> =
                    policies.iter().map(|p| spelled(p, &POLICY, |_, v| golang::json(v))).collect();
                format!("[{}]", all.join(","))
            }
            _ => golang::json(value),
        }),
    })
}

fn spelled(of: &Value, names: &[(&str, &str)], text: impl Fn(&str, &Value) -> String) -> String {
    let members: Vec<(&str, Option<String>)> =
        names.iter().map(|(go, json)| (*go, Some(text(json, &of[*json])))).collect();
    ordered(&members)
}

/// Behavior from its text; `None` if it is empty.
pub(super) fn behavior_from_text(text: &Value) -> Option<Value> {
    let behavior = respelled(text, &DIRECTIONS, |_, rules| {
        respelled(rules, &RULES, |name, value| match (name, value.as_array()) {
            ("policies", Some(policies)) => {
                policies.iter().map(|p| respelled(p, &POLICY, |_, v| v.clone())).collect()
            }
            _ => value.clone(),
        })
    });
    (behavior != json!({})).then_some(behavior)
}

/// Go matches names case-insensitively.
fn respelled(of: &Value, names: &[(&str, &str)], value: impl Fn(&str, &Value) -> Value) -> Value {
    let members = of.as_object().into_iter().flatten();
    let known = members.filter(|(_, member)| !member.is_null()).filter_map(|(key, member)| {
        let (_, name) = names.iter().find(|(go, _)| go.eq_ignore_ascii_case(key))?;
        Some(((*name).to_owned(), value(name, member)))
    });
    Value::Object(known.collect())
}
