//! Validation of request bodies by JSON schemas, with the error texts of Python's jsonschema as OpenStack's services
//! quote them: clients and their tests read these.

use regex::Regex;
use serde_json::Value;

use super::python::{repr, text};

/// The first violation, as `Invalid input for field/attribute <field>. Value: <value>. <why>`.
pub(crate) fn validate(root: &str, value: &Value, schema: &Value) -> Result<(), String> {
    match violation(root, value, schema) {
        None => Ok(()),
        Some((field, _, why)) if field.is_empty() => Err(why),
        Some((field, value, why)) => {
            Err(format!("Invalid input for field/attribute {field}. Value: {}. {why}", text(&value)))
        }
    }
}

type Violation = (String, Value, String);

fn violation(field: &str, value: &Value, schema: &Value) -> Option<Violation> {
    let fail = |why: String| Some((field.to_owned(), value.clone(), why));
    if let Some(kinds) = schema.get("type") {
        let kinds: Vec<&str> = match kinds {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            other => other.as_str().into_iter().collect(),
        };
        if !kinds.iter().any(|kind| is_of(value, kind)) {
            let kinds: Vec<_> = kinds.iter().map(|kind| format!("'{kind}'")).collect();
            return fail(format!("{} is not of type {}", repr(value), kinds.join(", ")));
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        return fail(format!("{} is not one of {}", repr(value), repr(&Value::Array(allowed.clone()))));
    }
    if let Some(options) = schema.get("oneOf").and_then(Value::as_array)
        && !options.iter().any(|option| violation(field, value, option).is_none())
    {
        return fail(format!("{} is not valid under any of the given schemas", repr(value)));
    }
    match value {
        Value::String(string) => string_violation(string, schema).and_then(fail),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if let Some(least) =
                schema.get("minimum").filter(|least| number < least.as_f64().unwrap_or(f64::MIN))
            {
                return fail(format!("{} is less than the minimum of {least}", repr(value)));
            }
            if let Some(most) =
                schema.get("maximum").filter(|most| number > most.as_f64().unwrap_or(f64::MAX))
            {
                return fail(format!("{} is greater than the maximum of {most}", repr(value)));
            }
            None
        }
        Value::Array(items) => {
            let count = items.len() as u64;
            if schema.get("minItems").and_then(Value::as_u64).is_some_and(|least| count < least) {
                let why = if count == 0 { "should be non-empty" } else { "is too short" };
                return fail(format!("{} {why}", repr(value)));
            }
            if schema.get("maxItems").and_then(Value::as_u64).is_some_and(|most| count > most) {
                return fail(format!("{} is too long", repr(value)));
            }
            if schema.get("uniqueItems").is_some()
                && items.iter().enumerate().any(|(i, item)| items[..i].contains(item))
            {
                return fail(format!("{} has non-unique elements", repr(value)));
            }
            let each = schema.get("items")?;
            items.iter().enumerate().find_map(|(index, item)| violation(&index.to_string(), item, each))
        }
        Value::Object(fields) => {
            if let Some(required) = schema.get("required").and_then(Value::as_array) {
                let absent =
                    required.iter().filter_map(Value::as_str).find(|name| !fields.contains_key(*name));
                if let Some(name) = absent {
                    return fail(format!("'{name}' is a required property"));
                }
            }
            let known = schema.get("properties").and_then(Value::as_object);
            let patterns = schema.get("patternProperties").and_then(Value::as_object);
            let by_pattern = |name: &str| {
                let (_, schema) =
                    patterns?.iter().find(|(p, _)| Regex::new(p).is_ok_and(|p| p.is_match(name)))?;
                Some(schema)
            };
            if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
                let unknown: Vec<_> = fields
                    .keys()
                    .filter(|name| {
                        !known.is_some_and(|known| known.contains_key(*name)) && by_pattern(name).is_none()
                    })
                    .map(|name| format!("'{name}'"))
                    .collect();
                if let (Some(patterns), false) = (patterns.filter(|_| known.is_none()), unknown.is_empty()) {
                    let does = if unknown.len() == 1 { "does" } else { "do" };
                    let regexes: Vec<_> = patterns.keys().map(|p| format!("'{p}'")).collect();
                    return fail(format!(
                        "{} {does} not match any of the regexes: {}",
                        unknown.join(", "),
                        regexes.join(", ")
                    ));
                }
                if !unknown.is_empty() {
                    let were = if unknown.len() == 1 { "was" } else { "were" };
                    return fail(format!(
                        "Additional properties are not allowed ({} {were} unexpected)",
                        unknown.join(", ")
                    ));
                }
            }
            fields.iter().find_map(|(name, value)| {
                let schema = known.and_then(|known| known.get(name)).or_else(|| by_pattern(name))?;
                violation(name, value, schema)
            })
        }
        Value::Null | Value::Bool(_) => None,
    }
}

fn string_violation(string: &str, schema: &Value) -> Option<String> {
    let count = string.chars().count() as u64;
    let quoted = repr(&Value::String(string.to_owned()));
    if let Some(least) = schema.get("minLength").and_then(Value::as_u64).filter(|least| count < *least) {
        return Some(if least == 1 {
            format!("{quoted} should be non-empty")
        } else {
            format!("{quoted} is too short")
        });
    }
    if schema.get("maxLength").and_then(Value::as_u64).is_some_and(|most| count > most) {
        return Some(format!("{quoted} is too long"));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(string))
    {
        return Some(format!("{quoted} does not match {}", repr(&Value::String(pattern.to_owned()))));
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("uuid") if !is_uuid(string) => Some(format!("{quoted} is not a 'uuid'")),
        Some("ip") if string.parse::<std::net::IpAddr>().is_err() => Some(format!("{quoted} is not a 'ip'")),
        Some(kind @ ("ipv4" | "ipv6")) if !is_address(string, kind) => {
            Some(format!("{quoted} is not a '{kind}'"))
        }
        Some("base64") if !is_base64(string) => Some(format!("{quoted} is not a 'base64'")),
        _ => None,
    }
}

fn is_address(text: &str, kind: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_ipv4() == (kind == "ipv4"))
}

/// As Python decodes: characters outside the alphabet are dropped, the padding must fit.
fn is_base64(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/')).count();
    let padding = text.chars().filter(|c| *c == '=').count();
    match letters % 4 {
        0 => true,
        1 => false,
        rest => padding >= 4 - rest,
    }
}

/// With dashes or without, as `uuid.UUID` reads it.
pub(crate) fn is_uuid(text: &str) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    digits.len() == 32 && digits.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_read_as_the_services_word_them() {
        let name = json!({"type": "string", "minLength": 1, "maxLength": 3});
        let schema = json!({"type": "object", "required": ["name"], "additionalProperties": false, "properties": {
            "name": name, "count": {"type": "integer", "minimum": 1, "maximum": 9}, "tags": {"type": "array", "items": {"pattern": "^[^,]*$"}},
            "data": {"format": "base64"}, "way": {"enum": ["up", null]},
        }});
        for (value, why) in [
            (json!({"name": "abc"}), None),
            (json!({}), Some("server. Value: {}. 'name' is a required property")),
            (json!({"name": ""}), Some("name. Value: . '' should be non-empty")),
            (json!({"name": "abcd"}), Some("name. Value: abcd. 'abcd' is too long")),
            (json!({"name": 5}), Some("name. Value: 5. 5 is not of type 'string'")),
            (json!({"name": "a", "count": 0}), Some("count. Value: 0. 0 is less than the minimum of 1")),
            (
                json!({"name": "a", "count": 10}),
                Some("count. Value: 10. 10 is greater than the maximum of 9"),
            ),
            (
                json!({"name": "a", "tags": ["b", "a,b"]}),
                Some("1. Value: a,b. 'a,b' does not match '^[^,]*$'"),
            ),
            (json!({"name": "a", "way": "in"}), Some("way. Value: in. 'in' is not one of ['up', None]")),
            (json!({"name": "a", "data": "***"}), None),
            (json!({"name": "a", "data": "abc"}), Some("data. Value: abc. 'abc' is not a 'base64'")),
            (
                json!({"name": "a", "x": 1}),
                Some(
                    "server. Value: {'name': 'a', 'x': 1}. Additional properties are not allowed ('x' was unexpected)",
                ),
            ),
        ] {
            let found = validate("server", &value, &schema).err();
            let why = why.map(|why| format!("Invalid input for field/attribute {why}"));
            assert_eq!(found, why, "{value}");
        }
    }
}
