//! `FieldsV1`: a set as JSON. A key names a path element by kind: `f:` a field, `k:` a list entry by its
//! key fields, `v:` a set entry by its value, `i:` a list entry by its position; `.` marks the element
//! itself as a member when it also has children.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{PathElement, Set};
use crate::golang;
use crate::patch::go;

/// Why a JSON value is not a field set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A level is not an object. Has the actual type.
    #[error("expected an object of field paths, found {0}")]
    NotAnObject(&'static str),
    /// A key is invalid.
    #[error("parsing key {key:?} as path element: {why}")]
    Key {
        /// The invalid key.
        key: String,
        /// The reason.
        why: String,
    },
}

impl Set {
    /// Decodes a set. Keys of unknown kinds are ignored; numbers become floats, as upstream decodes them.
    ///
    /// # Errors
    /// [`FieldsError`] when a level is not an object or a key is invalid.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        Ok(read(fields)?.0.unwrap_or_default())
    }

    /// The JSON form. Object keys are sorted by [`Value`]; see [`Set::to_json`] for upstream's order.
    pub fn to_fields_v1(&self) -> Value {
        self.write_value(false)
    }

    /// The JSON text with upstream's order of keys: fields, keys, values, positions, each sorted by its meaning (`80`
    /// before `443`), unlike a sorted map of texts.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(false, &mut out);
        out
    }

    fn write_value(&self, itself: bool) -> Value {
        let mut map = Map::new();
        if itself {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for member in self.members.iter().filter(|m| !self.children.contains_key(m)) {
            map.insert(key_text(member), Value::Object(Map::new()));
        }
        for (element, set) in &self.children {
            map.insert(key_text(element), set.write_value(self.members.contains(element)));
        }
        Value::Object(map)
    }

    fn write_json(&self, itself: bool, out: &mut String) {
        out.push('{');
        let mut first = true;
        let mut key = |out: &mut String, text: &str| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            out.push_str(&Value::from(text).to_string());
            out.push(':');
        };
        if itself {
            key(out, ".");
            out.push_str("{}");
        }
        let mut members = self.members.iter().peekable();
        let mut children = self.children.iter().peekable();
        loop {
            let member_first = match (members.peek(), children.peek()) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(member), Some((element, _))) => *member < element,
            };
            if member_first {
                if let Some(member) = members.next() {
                    key(out, &key_text(member));
                    out.push_str("{}");
                }
            } else if let Some((element, set)) = children.next() {
                let itself = members.next_if(|member| *member == element).is_some();
                key(out, &key_text(element));
                set.write_json(itself, out);
            }
        }
        out.push('}');
    }
}

/// The set of a level, if it has members, and whether the level itself is one.
fn read(fields: &Value) -> Result<(Option<Set>, bool), FieldsError> {
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => return Ok((None, true)),
        other => return Err(FieldsError::NotAnObject(go::json_kind(other))),
    };
    let mut set: Option<Set> = None;
    let mut itself = false;
    for (key, below) in map {
        if key == "." {
            itself = true;
            continue;
        }
        let Some(element) = parse_key(key)? else { continue };
        let (children, member) = read(below)?;
        if member {
            set.get_or_insert_default().members.insert(element.clone());
        }
        if let Some(children) = children {
            set.get_or_insert_default().children.insert(element, children);
        }
    }
    let itself = itself || set.is_none();
    Ok((set, itself))
}

fn parse_key(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let fail = |why: String| FieldsError::Key { key: key.to_owned(), why };
    if key.len() < 2 {
        return Err(fail("key must be 2 characters long:".to_owned()));
    }
    let Some((kind, content)) =
        key.split_at_checked(1).and_then(|(kind, rest)| Some((kind, rest.strip_prefix(':')?)))
    else {
        return Err(fail(format!("missing colon: {key}")));
    };
    Ok(Some(match kind {
        "f" => PathElement::field(content),
        "v" => {
            let mut value: Value = serde_json::from_str(content).map_err(|e| fail(e.to_string()))?;
            numbers_to_floats(&mut value);
            PathElement::Value(value.into())
        }
        "k" => {
            let mut fields: Value = serde_json::from_str(content).map_err(|e| fail(e.to_string()))?;
            numbers_to_floats(&mut fields);
            let Value::Object(fields) = fields else {
                return Err(fail("expected an object of key fields".to_owned()));
            };
            PathElement::key(fields.into_iter().collect())
        }
        "i" => PathElement::Index(content.parse().map_err(|_| fail("expected a whole number".to_owned()))?),
        _ => return Ok(None),
    }))
}

fn numbers_to_floats(value: &mut Value) {
    match value {
        Value::Number(n) => {
            if let Some(f) = n.as_f64().and_then(serde_json::Number::from_f64) {
                *n = f;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(numbers_to_floats),
        Value::Object(map) => map.values_mut().for_each(numbers_to_floats),
        _ => {}
    }
}

fn key_text(element: &PathElement) -> String {
    let mut out = String::new();
    match element {
        PathElement::Field(name) => {
            out.push_str("f:");
            out.push_str(name);
        }
        PathElement::Key(fields) => {
            out.push_str("k:{");
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&golang::json(&Value::from(name.as_str())));
                out.push(':');
                out.push_str(&golang::json(value));
            }
            out.push('}');
        }
        PathElement::Value(value) => {
            out.push_str("v:");
            out.push_str(&golang::json(value));
        }
        PathElement::Index(index) => {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "i:{index}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_reads_back_from_its_json() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:ports": {
                "k:{\"port\":443,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}},
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}},
            }, "f:set": {"v:\"a\\u003cb\"": {}, "v:1.5": {}}},
        });
        let set = Set::from_fields_v1(&fields).unwrap();
        assert_eq!(set.to_fields_v1(), fields);
        assert_eq!(
            set.to_json(),
            "{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:a\":{}}},\"f:spec\":{\"f:ports\":{\
             \"k:{\\\"port\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},\"f:name\":{}},\
             \"k:{\\\"port\\\":443,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},\"f:name\":{}}},\
             \"f:set\":{\"v:1.5\":{},\"v:\\\"a\\\\u003cb\\\"\":{}}}}"
        );
    }

    #[test]
    fn an_element_without_children_is_a_member_whatever_it_holds() {
        let set = Set::from_fields_v1(&json!({"f:a": {"x:future": {}}, "f:b": null, "f:c": {}})).unwrap();
        assert_eq!(set, Set::of_fields(&[&["a"], &["b"], &["c"]]));
        assert_eq!(Set::from_fields_v1(&json!({})), Ok(Set::new()));
    }

    #[test]
    fn keys_that_cannot_be_read_are_errors() {
        for fields in [
            json!({"f": {}}),
            json!({"fx": {}}),
            json!({"v:{": {}}),
            json!({"k:[]": {}}),
            json!({"i:x": {}}),
            json!({"f:a": 1}),
            json!([]),
        ] {
            assert!(Set::from_fields_v1(&fields).is_err(), "{fields}");
        }
    }

    fn element() -> impl Strategy<Value = PathElement> {
        let scalar = prop_oneof![
            any::<i32>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            "[a-z<&\"\\\\\u{e9}\n]{0,3}".prop_map(Value::from),
        ];
        prop_oneof![
            "[a-z./~\"]{0,3}".prop_map(PathElement::field),
            scalar.clone().prop_map(|v| PathElement::Value(v.into())),
            prop::collection::btree_map("[a-c]", scalar, 1..3)
                .prop_map(|m| PathElement::key(m.into_iter().collect())),
            any::<i64>().prop_map(PathElement::Index),
        ]
    }

    proptest! {
        #[test]
        fn fields_v1_round_trips(paths in prop::collection::vec(prop::collection::vec(element(), 1..5), 0..12)) {
            let mut set = Set::new();
            for path in &paths {
                set.insert(path);
            }
            prop_assert_eq!(&Set::from_fields_v1(&set.to_fields_v1()).unwrap(), &set);
            let text: Value = serde_json::from_str(&set.to_json()).unwrap();
            prop_assert_eq!(text, set.to_fields_v1());
        }
    }
}
