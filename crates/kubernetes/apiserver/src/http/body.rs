//! Request bodies: size, depth and memory limits, decoding, duplicate fields.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use ::http::StatusCode;
use ::http_body::Body;
use ::http_body_util::{BodyExt, LengthLimitError, Limited};
use bytes::Bytes;
use capstan_schema::bounded::Texts;
use capstan_schema::memory::{self, Counted, MemoryBudget, TooLarge, Undecodable};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::budget::BudgetBreach;
use tokio::time::Instant;

use crate::status::{Result, Status};

/// Largest request body in bytes.
pub const MAX_BODY: usize = 3 * 1024 * 1024;
/// Timeout of a request until its body is read and there is room for it: upstream's request timeout.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Nesting limit of a decoded body.
pub const MAX_DEPTH: usize = 64;
/// Nesting limit of a CustomResourceDefinition: each of the 64 levels of a schema takes up to three levels of JSON.
pub const MAX_CRD_DEPTH: usize = 200;

#[derive(Debug, Default)]
pub struct Decoded {
    pub value: Value,
    /// Duplicate fields: `duplicate field "spec.x"`, or the YAML form of the error.
    pub duplicates: Texts,
    /// Memory that it takes in bytes, estimated.
    pub memory: usize,
}

/// Reads a whole body of at most [`MAX_BODY`] bytes until a deadline, which is [`TIMEOUT`] from the start.
pub async fn read<B>(body: B, deadline: Instant) -> Result<Bytes>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || Status::too_large(format!("Request entity too large: limit is {MAX_BODY}"));
    // Rejects by `Content-Length` before reading.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large());
    }
    let Ok(read) = tokio::time::timeout_at(deadline, Limited::new(body, MAX_BODY).collect()).await else {
        let why = format!("the request body was not received within {} seconds", TIMEOUT.as_secs());
        return Err(Status::new(StatusCode::REQUEST_TIMEOUT, "Timeout", why));
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(Status::bad_request(format!("the request body could not be read: {error}"))),
    }
}

/// Decodes JSON into at most `memory` bytes. As in Go, the last duplicate of a field wins.
pub fn json(bytes: &[u8], max_depth: usize, memory: usize) -> std::result::Result<Decoded, Undecodable> {
    let walk = Walk { duplicates: RefCell::default(), budget: MemoryBudget::of(memory), max_depth };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    // Our own limit applies instead; see `MAX_CRD_DEPTH`.
    deserializer.disable_recursion_limit();
    let value = Node { walk: &walk, path: &Path::Root, depth: 0 }.deserialize(&mut deserializer).map_err(
        |error| match walk.budget.is_exceeded() {
            true => Undecodable::from(TooLarge),
            false => go_syntax_error(bytes, &error).into(),
        },
    )?;
    deserializer.end().map_err(|e| go_syntax_error(bytes, &e))?;
    let memory = memory - walk.budget.left();
    Ok(Decoded { value, duplicates: walk.duplicates.into_inner(), memory })
}

/// Decodes the first YAML document into at most `memory` bytes, by the YAML 1.1 rules of kubectl and the API server.
pub fn yaml(bytes: &[u8], max_depth: usize, memory: usize) -> std::result::Result<Decoded, Undecodable> {
    let bytes = first_document(bytes);
    // Most YAML bodies are JSON, which is YAML: clients send apply configurations that way. Duplicates are reported
    // with the YAML form of the error.
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        match json(bytes, max_depth, memory) {
            Ok(decoded) if decoded.duplicates.is_empty() => return Ok(decoded),
            Err(error @ Undecodable::TooLarge(_)) => return Err(error),
            Ok(_) | Err(Undecodable::Malformed(_)) => {}
        }
    }
    let mut duplicates = Texts::default();
    let budget = MemoryBudget::of(memory);
    let (value, budget) = match parse_yaml(bytes, serde_saphyr::DuplicateKeyPolicy::Error, &budget) {
        Ok(value) => (value, budget),
        Err(error @ Undecodable::TooLarge(_)) => return Err(error),
        Err(Undecodable::Malformed(first)) => {
            let again = MemoryBudget::of(memory);
            let value =
                parse_yaml(bytes, serde_saphyr::DuplicateKeyPolicy::LastWins, &again).map_err(|error| {
                    match error {
                        Undecodable::Malformed(why) => {
                            format!("error converting YAML to JSON: yaml: {why}").into()
                        }
                        too_large @ Undecodable::TooLarge(_) => too_large,
                    }
                })?;
            duplicates.push(first);
            (value, again)
        }
    };
    if depth(&value) > max_depth {
        return Err(format!("document is nested deeper than {max_depth} levels").into());
    }
    Ok(Decoded { value, duplicates, memory: memory - budget.left() })
}

/// The text up to the marker that begins a second document: upstream ignores what follows.
fn first_document(bytes: &[u8]) -> &[u8] {
    let mut begun = false;
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let marker = |mark: &[u8]| {
            line.strip_prefix(mark).is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
        };
        let content = line.trim_ascii_start();
        if begun && (marker(b"---") || marker(b"...")) {
            return &bytes[..at];
        }
        // A marker before any content begins the first document.
        begun |= !content.is_empty() && !content.starts_with(b"#") && !content.starts_with(b"%");
        at += line.len();
    }
    bytes
}

/// The parser's own limits bound depth (64 levels), nodes and alias expansion; ours bounds the memory of the result.
fn parse_yaml(
    bytes: &[u8],
    duplicate_keys: serde_saphyr::DuplicateKeyPolicy,
    budget: &MemoryBudget,
) -> Result<Value, Undecodable> {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = duplicate_keys;
    options.legacy_octal_numbers = true;
    let parsed = serde_saphyr::with_deserializer_from_slice_with_options(bytes, options, |deserializer| {
        Counted(budget).deserialize(deserializer)
    });
    parsed.map_err(|error| match error.without_snippet() {
        _ if budget.is_exceeded() => TooLarge.into(),
        serde_saphyr::Error::Budget {
            breach:
                BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } | BudgetBreach::ScalarBytes { .. },
            ..
        } => TooLarge.into(),
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), location } => {
            format!("yaml: unmarshal errors:\n  line {}: key {key:?} already set in map", location.line())
                .into()
        }
        error => error.to_string().into(),
    })
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Go's texts for the most common syntax errors.
fn go_syntax_error(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".into();
    }
    let at = offset(bytes, error.line(), error.column());
    match bytes.get(at.saturating_sub(1)).copied() {
        Some(byte) if error.is_syntax() => {
            let text = error.to_string();
            let context = if text.contains("expected value") {
                "looking for beginning of value"
            } else if text.contains("expected `:`") {
                "after object key"
            } else if text.contains("key must be a string") {
                "looking for beginning of object key string"
            } else if text.contains("expected `,` or `}`") {
                "after object key:value pair"
            } else if text.contains("expected `,` or `]`") {
                "after array element"
            } else if text.contains("trailing characters") {
                "after top-level value"
            } else {
                return text;
            };
            format!("invalid character '{}' {context}", char::from(byte))
        }
        _ => error.to_string(),
    }
}

fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let start = bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .map(|(at, _)| at + 1)
        .nth(line.saturating_sub(2))
        .filter(|_| line > 1)
        .unwrap_or(0);
    start + column
}

struct Walk {
    duplicates: RefCell<Texts>,
    budget: MemoryBudget,
    max_depth: usize,
}

impl Walk {
    fn spend<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        self.budget.spend(bytes).map_err(E::custom)
    }
}

enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Node<'a> {
    walk: &'a Walk,
    path: &'a Path<'a>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > self.walk.max_depth {
            return Err(D::Error::custom(format!("exceeded max depth of {}", self.walk.max_depth)));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.walk.spend(memory::text(&value))?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = Path::Index(self.path, items.len());
            let node = Node { walk: self.walk, path: &path, depth: self.depth + 1 };
            match seq.next_element_seed(node)? {
                Some(item) => {
                    self.walk.spend(memory::list_entry(items.len()))?;
                    items.push(item);
                }
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let path = Path::Field(self.path, &key);
            let node = Node { walk: self.walk, path: &path, depth: self.depth + 1 };
            let value = map.next_value_seed(node)?;
            if out.contains_key(&key) {
                self.walk.duplicates.borrow_mut().push(format_args!("duplicate field \"{path}\""));
            } else {
                self.walk.spend(memory::map_entry(out.len(), &key))?;
            }
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_schema::memory::MAX_DECODED;
    use serde_json::json;

    #[test]
    fn only_the_first_document_of_a_yaml_body_counts() {
        for text in ["a: 1\n---\na: 2\n", "---\na: 1\n---\na: [", "# c\n\n---\na: 1\n...\n{", "a: 1\n--- x\n"]
        {
            assert_eq!(
                yaml(text.as_bytes(), MAX_DEPTH, MAX_DECODED).unwrap().value,
                json!({"a": 1}),
                "{text}"
            );
        }
        assert_eq!(yaml(b"a: ---x\nb: |\n  ---\n", MAX_DEPTH, MAX_DECODED).unwrap().value["b"], "---\n");
    }

    #[test]
    fn duplicate_fields_are_named_by_path_and_the_last_wins() {
        let decoded = json(br#"{"spec":{"a":1,"a":2,"l":[{"x":1,"x":3}]}}"#, MAX_DEPTH, MAX_DECODED).unwrap();
        assert_eq!(decoded.value, json!({"spec": {"a": 2, "l": [{"x": 3}]}}));
        assert_eq!(
            decoded.duplicates.entries(),
            ["duplicate field \"spec.a\"", "duplicate field \"spec.l[0].x\""]
        );
    }

    /// Two keys of 50 kB around 400,000 duplicates: with complete paths that took 23.8 GB.
    #[test]
    fn errors_about_duplicates_do_not_grow_with_their_number_and_paths() {
        let key = "k".repeat(50_000);
        let fields = vec!["\"a\":0"; 400_000].join(",");
        let body = format!("{{\"{key}\":{{\"{key}\":{{{fields}}}}}}}");
        let decoded = json(body.as_bytes(), MAX_DEPTH, MAX_DECODED).unwrap();
        assert_eq!(decoded.duplicates.entries().len() + decoded.duplicates.more(), 399_999);
        assert!(decoded.duplicates.bytes() <= Texts::MAX_BYTES + 2 * Texts::MAX_ENTRY);
    }

    #[test]
    fn bodies_that_become_much_memory_are_too_large() {
        let objects = vec![r#"{"":0}"#; 400_000].join(",");
        let lists = vec!["[0]"; 700_000].join(",");
        for text in [&objects, &lists] {
            let body = format!("{{\"a\":[{text}]}}");
            assert_eq!(json(body.as_bytes(), MAX_DEPTH, MAX_DECODED).unwrap_err(), TooLarge.into());
            assert_eq!(yaml(body.as_bytes(), MAX_DEPTH, MAX_DECODED).unwrap_err(), TooLarge.into());
        }
        let block = "- ? ''\n".repeat(120_000);
        assert_eq!(yaml(block.as_bytes(), MAX_DEPTH, MAX_DECODED).unwrap_err(), TooLarge.into());
    }

    #[test]
    fn dense_bodies_of_the_size_of_stored_objects_are_not_too_large() {
        let pairs = vec![r#"{"name":"a","value":"b"}"#; 1_572_864 / 25].join(",");
        let body = format!("{{\"env\":[{pairs}]}}");
        assert!(json(body.as_bytes(), MAX_DEPTH, MAX_DECODED).is_ok());
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused_not_recursed_into() {
        let deep = "[".repeat(100_000);
        assert!(
            json(deep.as_bytes(), MAX_DEPTH, MAX_DECODED)
                .unwrap_err()
                .to_string()
                .contains("exceeded max depth")
        );
    }

    #[test]
    fn syntax_errors_read_as_gos() {
        for (text, want) in [
            ("{", "unexpected end of JSON input"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 x", "invalid character 'x' after object key:value pair"),
            ("nope", "invalid character 'o' in literal null (expecting 'u')"),
        ] {
            let got = json(text.as_bytes(), MAX_DEPTH, MAX_DECODED).unwrap_err().to_string();
            if text != "nope" {
                assert_eq!(got, want, "{text}");
            }
        }
    }

    #[test]
    fn yaml_follows_the_rules_kubectl_follows() {
        let decoded = yaml(b"a: yes\nb: 0644\nc: 12_000\nd: 'x'\n", MAX_DEPTH, MAX_DECODED).unwrap();
        assert_eq!(decoded.value, json!({"a": true, "b": 420, "c": 12000, "d": "x"}));
    }

    #[test]
    fn yaml_aliases_do_not_multiply_what_was_sent() {
        let mut nested = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..10 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(",");
            nested.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 90].join(","));
        for bomb in [nested, long] {
            assert!(yaml(bomb.as_bytes(), MAX_DEPTH, MAX_DECODED).is_err(), "{}", &bomb[..40]);
        }
        assert!(yaml(b"a: &a [1]\nb: *a\n", MAX_DEPTH, MAX_DECODED).is_ok(), "an alias is no crime");
    }

    #[test]
    fn json_that_comes_as_yaml_may_be_nested_as_deep_as_json() {
        let nested = |levels: usize| {
            format!("{}{}", "{\"a\":".repeat(levels - 1), "{}".to_owned() + &"}".repeat(levels - 1))
        };
        type Parser = fn(&[u8], usize, usize) -> std::result::Result<Decoded, Undecodable>;
        let parsers: [(&str, Parser); 2] = [("json", json), ("yaml", yaml)];
        for (name, parse) in parsers {
            assert!(parse(nested(150).as_bytes(), MAX_CRD_DEPTH, MAX_DECODED).is_ok(), "{name}");
            assert!(parse(nested(150).as_bytes(), MAX_DEPTH, MAX_DECODED).is_err(), "{name}");
            assert!(parse(nested(20_000).as_bytes(), MAX_CRD_DEPTH, MAX_DECODED).is_err(), "{name}");
        }
    }

    #[test]
    fn a_duplicate_yaml_key_is_reported_with_its_line() {
        let decoded = yaml(b"a: 1\nb:\n  c: 1\n  c: 2\n", MAX_DEPTH, MAX_DECODED).unwrap();
        assert_eq!(decoded.value, json!({"a": 1, "b": {"c": 2}}));
        assert_eq!(
            decoded.duplicates.entries(),
            ["yaml: unmarshal errors:\n  line 4: key \"c\" already set in map"]
        );
    }
}
