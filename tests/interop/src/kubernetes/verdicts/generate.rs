//! Generates objects that a schema accepts, from a seeded random generator.

use rand::Rng;
use rand::rngs::StdRng;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

/// How many optional fields are filled in.
#[derive(Clone, Copy, Debug)]
pub struct Density {
    /// Probability of an optional field at the root of the spec. Decreases with depth.
    pub optional: f64,
}

/// A value that fits the schema's structure. CEL rules may still reject it.
pub fn value(schema: &Value, rng: &mut StdRng, density: Density, depth: u32) -> Value {
    if let Some(choices) = schema["enum"].as_array() {
        return choices[rng.random_range(0..choices.len())].clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if rng.random_bool(0.5) { json!(rng.random_range(0..100)) } else { json!("10%") };
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, rng, density, depth),
        Some("array") => array(schema, rng, density, depth),
        Some("string") => json!(string(schema, rng)),
        Some("integer") => json!(integer(schema, rng)),
        Some("number") => json!(integer(schema, rng) as f64 + 0.5),
        Some("boolean") => json!(rng.random_bool(0.5)),
        _ => json!({"free": rng.random_range(0..10)}),
    }
}

fn object(schema: &Value, rng: &mut StdRng, density: Density, depth: u32) -> Value {
    let mut out = Map::new();
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let chance = density.optional / f64::from(1 + depth);
    if let Some(properties) = schema["properties"].as_object() {
        let mut left_out = Vec::new();
        for (name, property) in properties {
            if required.contains(&name.as_str()) || rng.random_bool(chance) {
                out.insert(name.clone(), value(property, rng, density, depth + 1));
            } else {
                left_out.push((name, property));
            }
        }
        let wanted = schema["minProperties"].as_u64().unwrap_or(0) as usize;
        while out.len() < wanted && !left_out.is_empty() {
            let (name, property) = left_out.swap_remove(rng.random_range(0..left_out.len()));
            out.insert(name.clone(), value(property, rng, density, depth + 1));
        }
    } else if schema["additionalProperties"].is_object() {
        let least = schema["minProperties"].as_u64().unwrap_or(0);
        for position in 0..least.max(rng.random_range(0..3)) {
            out.insert(
                format!("key-{position}"),
                value(&schema["additionalProperties"], rng, density, depth + 1),
            );
        }
    }
    Value::Object(out)
}

fn array(schema: &Value, rng: &mut StdRng, density: Density, depth: u32) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or(0);
    let most = schema["maxItems"].as_u64().unwrap_or(3).min(least + 2);
    let count = rng.random_range(least..=most.max(least));
    let mut items: Vec<Value> = Vec::new();
    let keys: Vec<_> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let same = |a: &Value, b: &Value| {
        if keys.is_empty() { a == b } else { keys.iter().all(|key| a[*key] == b[*key]) }
    };
    for _ in 0..count {
        // A few attempts for a unique item; a short list is better than an invalid one.
        for _ in 0..8 {
            let item = value(&schema["items"], rng, density, depth + 1);
            if !items.iter().any(|known| same(known, &item)) {
                items.push(item);
                break;
            }
        }
    }
    Value::Array(items)
}

fn integer(schema: &Value, rng: &mut StdRng) -> i64 {
    let low = schema["minimum"].as_i64().unwrap_or(0);
    let high = schema["maximum"].as_i64().unwrap_or(low.saturating_add(1000)).max(low);
    let step = schema["multipleOf"].as_i64().unwrap_or(1).max(1);
    rng.random_range(low..=high) / step * step
}

fn string(schema: &Value, rng: &mut StdRng) -> String {
    if let Some(known) = formatted(schema["format"].as_str().unwrap_or_default()) {
        return known.to_owned();
    }
    let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
    let most = schema["maxLength"].as_u64().unwrap_or(60) as usize;
    if let Some(pattern) = schema["pattern"].as_str() {
        let mut sampled = (0..20).filter_map(|_| sample(pattern, rng));
        let fits = |text: &String| (least..=most).contains(&text.chars().count());
        if let Some(text) = sampled.find(fits) {
            return text;
        }
    }
    let length = least.max(rng.random_range(1..9)).min(most);
    (0..length).map(|_| char::from(rng.random_range(b'a'..=b'z'))).collect()
}

fn formatted(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2026-01-02T03:04:05Z",
        "date" => "2026-01-02",
        "duration" => "1m30s",
        "byte" => "aGVsbG8=",
        "uri" => "https://example.com/x",
        "ipv4" | "ip" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "cidr" => "192.0.2.0/24",
        "hostname" => "host.example.com",
        "email" => "a@example.com",
        "uuid" => "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        _ => return None,
    })
}

/// A string that matches a pattern.
fn sample(pattern: &str, rng: &mut StdRng) -> Option<String> {
    let mut out = String::new();
    grow(&regex_syntax::parse(pattern).ok()?, rng, &mut out);
    Some(out)
}

fn grow(pattern: &Hir, rng: &mut StdRng, out: &mut String) {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            if !ranges.is_empty() {
                let range = ranges[rng.random_range(0..ranges.len())];
                let (low, high) =
                    (u32::from(range.start()), u32::from(range.end()).min(u32::from(range.start()) + 60));
                out.push(char::from_u32(rng.random_range(low..=high)).unwrap_or(range.start()));
            }
        }
        HirKind::Class(Class::Bytes(class)) => {
            if let Some(range) = class.ranges().first() {
                out.push(char::from(range.start()));
            }
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX).min(repetition.min + 3);
            for _ in 0..rng.random_range(repetition.min..=most) {
                grow(&repetition.sub, rng, out);
            }
        }
        HirKind::Capture(capture) => grow(&capture.sub, rng, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| grow(part, rng, out)),
        HirKind::Alternation(parts) => grow(&parts[rng.random_range(0..parts.len())], rng, out),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use regex::Regex;

    use super::*;

    #[test]
    fn sampled_texts_match_their_pattern() {
        let mut rng = StdRng::seed_from_u64(1);
        for pattern in [r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^v\d+(\.\d+){2}$", r"^(a|bc)+x?$"] {
            let check = Regex::new(pattern).unwrap();
            for _ in 0..50 {
                let text = sample(pattern, &mut rng).unwrap();
                assert!(check.is_match(&text), "{text:?} for {pattern}");
            }
        }
    }

    #[test]
    fn required_fields_and_bounds_are_kept() {
        let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "integer", "minimum": 3, "maximum": 4},
            "b": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["x"]}},
            "c": {"type": "string"}}});
        let mut rng = StdRng::seed_from_u64(2);
        for _ in 0..20 {
            let made = value(&schema, &mut rng, Density { optional: 0.0 }, 0);
            assert!(made["a"] == 3 || made["a"] == 4);
            assert_eq!(made["b"][0], "x");
            assert!(made.get("c").is_none());
        }
    }

    #[test]
    fn one_seed_gives_one_object() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
        let make = || value(&schema, &mut StdRng::seed_from_u64(7), Density { optional: 1.0 }, 0);
        assert_eq!(make(), make());
    }
}
