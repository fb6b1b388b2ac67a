//! Reads JSON objects like Go structs: absent fields are empty.

use serde_json::Value;

/// The value at a path of keys; `Null` if absent.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, key| &value[*key])
}

/// The string at a path; empty if absent.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or("")
}

/// The string at a path; `absent` if absent or empty.
pub fn text_or<'a>(value: &'a Value, path: &[&str], absent: &'a str) -> &'a str {
    match text(value, path) {
        "" => absent,
        text => text,
    }
}

/// The number at a path; 0 if absent.
pub fn int(value: &Value, path: &[&str]) -> i64 {
    at(value, path).as_i64().unwrap_or(0)
}

/// The boolean at a path; false if absent.
pub fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).as_bool().unwrap_or(false)
}

/// The list at a path; empty if absent.
pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// Number of entries of the object at a path.
pub fn entries(value: &Value, path: &[&str]) -> usize {
    at(value, path).as_object().map_or(0, serde_json::Map::len)
}

/// The strings of a list.
pub fn texts(value: &Value, path: &[&str]) -> Vec<String> {
    list(value, path).iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

/// A number or string as a string: quantities, `IntOrString`.
pub fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Whether a condition of this type has status `True`. The first of its type counts.
pub fn condition_true(value: &Value, path: &[&str], kind: &str) -> bool {
    condition(value, path, kind).is_some_and(|condition| condition["status"] == "True")
}

/// The first condition of a type.
pub fn condition<'a>(value: &'a Value, path: &[&str], kind: &str) -> Option<&'a Value> {
    list(value, path).iter().find(|condition| condition["type"] == kind)
}

/// Labels as `a=b,c=d`; `<none>` if empty.
pub fn labels(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
        .collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",") }
}

/// A label selector as text; empty if it matches everything or nothing, `Err` if it is malformed.
pub fn selector(selector: &Value) -> Result<String, ()> {
    let mut requirements: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        requirements.push((key, format!("{key}={}", value.as_str().unwrap_or(""))));
    }
    for expression in list(selector, &["matchExpressions"]) {
        let key = text(expression, &["key"]);
        let mut values = texts(expression, &["values"]);
        values.sort();
        let rendered = match (text(expression, &["operator"]), values.is_empty()) {
            ("In", false) => format!("{key} in ({})", values.join(",")),
            ("NotIn", false) => format!("{key} notin ({})", values.join(",")),
            ("Exists", true) => key.to_owned(),
            ("DoesNotExist", true) => format!("!{key}"),
            _ => return Err(()),
        };
        requirements.push((key, rendered));
    }
    requirements.sort_by_key(|(key, _)| *key);
    let rendered: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    Ok(rendered.join(","))
}

/// A label selector as a cell.
pub fn selector_cell(value: &Value) -> String {
    match selector(value) {
        Ok(text) if text.is_empty() => "<none>".into(),
        Ok(text) => text,
        Err(()) => "<error>".into(),
    }
}

/// Names and images of containers, comma-separated.
pub fn containers(containers: &[Value]) -> (String, String) {
    let joined = |key: &str| {
        let parts: Vec<&str> = containers.iter().map(|c| text(c, &[key])).collect();
        parts.join(",")
    };
    (joined("name"), joined("image"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_are_written_in_the_order_of_their_keys() {
        let value = json!({
            "matchLabels": {"z": "1", "b": "2"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["y", "x"]},
                {"key": "a", "operator": "DoesNotExist"},
                {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "NotIn", "values": ["one"]},
            ],
        });
        assert_eq!(selector(&value).unwrap(), "!a,b=2,c,d notin (one),tier in (x,y),z=1");
        assert_eq!(selector_cell(&json!({})), "<none>");
        assert_eq!(selector_cell(&json!({"matchExpressions": [{"key": "a", "operator": "In"}]})), "<error>");
    }
}
