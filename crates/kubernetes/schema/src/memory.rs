//! Memory usage of decoded JSON. A text of 3 MiB can become a tree a hundred times its size (`[{"":0},…`), so
//! decoders count what they allocate and stop at a limit.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Memory limit of one decoded body in bytes. A list of `{"name":"a","value":"b"}`, about the densest realistic
/// document, may have 2 MiB of text, more than can be stored. Most documents take less than ten times their text.
pub const MAX_DECODED: usize = 64 * 1024 * 1024;

/// Overhead of an allocation in bytes.
const ALLOCATION: usize = 16;
/// Entries per node of a map.
const NODE_ENTRIES: usize = 11;
const MAP_ENTRY: usize = size_of::<String>() + size_of::<Value>();
const NODE: usize = NODE_ENTRIES * MAP_ENTRY + 2 * ALLOCATION;

/// The document would exceed the memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the document has too many fields and entries: decoded it would take more than {MAX_DECODED} bytes; split it into smaller objects"
)]
pub struct TooLarge;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// It is malformed. Has upstream's text.
    #[error("{0}")]
    Malformed(String),
    /// It would exceed the memory limit.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

impl From<String> for Undecodable {
    fn from(why: String) -> Self {
        Self::Malformed(why)
    }
}

/// A memory budget for decoding.
#[derive(Debug)]
pub struct MemoryBudget {
    left: Cell<usize>,
    exceeded: Cell<bool>,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::of(MAX_DECODED)
    }
}

impl MemoryBudget {
    /// A budget of that many bytes.
    pub fn of(bytes: usize) -> Self {
        Self { left: Cell::new(bytes), exceeded: Cell::new(false) }
    }

    /// Takes bytes from the budget. Fails if it is exceeded.
    pub fn spend(&self, bytes: usize) -> Result<(), TooLarge> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.exceeded.set(true);
                Err(TooLarge)
            }
        }
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.left.get()
    }

    /// Whether the budget was exceeded. Needed after decoders of other crates, which lose our error type.
    pub fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }
}

/// An upper bound of what a body takes when it is decoded, from the marks in its text. At most [`MAX_DECODED`], which no
/// decoder exceeds.
pub fn estimate(body: &[u8]) -> usize {
    let is_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
    // In a binary message every pair of bytes may be a message of many fields, in YAML an alias anything.
    if !is_json && (body.starts_with(b"k8s\0") || body.contains(&b'*')) {
        return MAX_DECODED;
    }
    let mut bytes = body.len();
    let (mut quoted, mut escaped) = (false, false);
    for byte in body {
        bytes += match byte {
            _ if escaped => {
                escaped = false;
                0
            }
            b'\\' if is_json && quoted => {
                escaped = true;
                0
            }
            b'"' if is_json => {
                quoted = !quoted;
                0
            }
            _ if quoted => 0,
            b'{' => NODE,
            // In YAML, each key may be the first of a map.
            b':' | b'?' if !is_json => NODE + 2 * ALLOCATION,
            b':' => 2 * (MAP_ENTRY + ALLOCATION),
            b'[' => ALLOCATION + 4 * size_of::<Value>(),
            b'-' if !is_json => 2 * ALLOCATION + 4 * size_of::<Value>(),
            b',' => ALLOCATION + 2 * size_of::<Value>(),
            _ => 0,
        };
    }
    bytes.min(MAX_DECODED)
}

/// Size of the n-th entry of a list in bytes, without its heap data.
pub fn list_entry(position: usize) -> usize {
    match position {
        // Lists start with a capacity of four.
        0 => ALLOCATION + 4 * size_of::<Value>(),
        1..4 => 0,
        // They double when they grow, and existing entries are copied.
        _ => 2 * size_of::<Value>(),
    }
}

/// Size of the n-th entry of a map with its key in bytes, without the value's heap data.
pub fn map_entry(position: usize, key: &str) -> usize {
    let place = match position {
        0 => NODE,
        1..NODE_ENTRIES => 0,
        // Nodes of large maps are about half full.
        _ => 2 * MAP_ENTRY,
    };
    place + text(key)
}

/// Heap size of a string in bytes.
pub fn text(text: &str) -> usize {
    if text.is_empty() { 0 } else { text.len() + ALLOCATION }
}

/// Heap size of a value in bytes.
pub fn tree(value: &Value) -> usize {
    match value {
        Value::String(own) => text(own),
        Value::Array(items) => {
            items.iter().enumerate().map(|(position, item)| list_entry(position) + tree(item)).sum()
        }
        Value::Object(fields) => {
            let entries = fields.iter().enumerate();
            entries.map(|(position, (key, value))| map_entry(position, key) + tree(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Decodes any JSON within a budget. The last duplicate of a field wins. The deserializer limits nesting.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'b>(pub &'b MemoryBudget);

impl Counted<'_> {
    fn spend<E: serde::de::Error>(self, bytes: usize) -> Result<(), E> {
        self.0.spend(bytes).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
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
        self.spend(text(&value))?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            self.spend(list_entry(items.len()))?;
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            self.spend(map_entry(fields.len(), &key))?;
            let value = object.next_value_seed(self)?;
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

/// Decodes JSON within a budget.
pub fn from_slice(json: &[u8], budget: &MemoryBudget) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = Counted(budget).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_estimate_is_never_less_than_what_is_decoded() {
        for text in [
            r#"{"":0}"#.to_owned(),
            format!("[{}]", vec![r#"{"":0}"#; 1000].join(",")),
            format!("[{}]", vec!["[0]"; 1000].join(",")),
            format!("[{}]", vec!["\"\""; 1000].join(",")),
            format!("[{}]", vec![r#"{"a":{"b":{}}}"#; 1000].join(",")),
            format!("{{{}}}", (0..1000).map(|n| format!("\"k{n}\":\"v\"")).collect::<Vec<_>>().join(",")),
            json!({"data": {"text": "{\"a\": [1, 2, \\\"}".repeat(100)}}).to_string(),
        ] {
            let budget = MemoryBudget::default();
            from_slice(text.as_bytes(), &budget).expect("it fits");
            let (taken, estimated) = (MAX_DECODED - budget.left(), estimate(text.as_bytes()));
            assert!(taken <= estimated, "{taken} > {estimated}: {}", &text[..text.len().min(80)]);
        }
        assert_eq!(estimate(b"k8s\0"), MAX_DECODED);
        let text = json!({"data": {"a": "x{[,:".repeat(100_000)}}).to_string();
        assert!(estimate(text.as_bytes()) < 600_000, "marks in texts do not count");
    }

    #[test]
    fn decoding_counts_what_the_tree_costs() {
        let value = json!({"a": [1, 2, 3, 4, 5, "x"], "b": {"c": {}, "d": null}, "e": "text"});
        let budget = MemoryBudget::default();
        assert_eq!(from_slice(value.to_string().as_bytes(), &budget).expect("it fits"), value);
        assert_eq!(MAX_DECODED - budget.left.get(), tree(&value));
    }

    #[test]
    fn many_tiny_values_are_too_large() {
        for entry in [r#"{"":0}"#, "[0]", r#"{"a":{}}"#] {
            let text = format!("[{}]", vec![entry; 3 * 1024 * 1024 / (entry.len() + 1)].join(","));
            let budget = MemoryBudget::default();
            assert!(from_slice(text.as_bytes(), &budget).is_err(), "{entry}");
            assert!(budget.is_exceeded(), "{entry}");
        }
    }
}
