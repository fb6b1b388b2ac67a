//! Input for property tests of decoders: what a peer would send, with parts exchanged.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;
use serde_json::{Value, json};

/// A few cases, or as many as `cargo xtask fuzz` asks for.
pub fn config() -> Config {
    let default = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 200 };
    Config { cases, failure_persistence: None, ..default }
}

/// A document in which a few values are others, or absent.
pub fn mutated(valid: Value) -> impl Strategy<Value = Value> {
    vec((any::<Index>(), value()), 0..4).prop_map(move |changes| {
        let mut document = valid.clone();
        for (position, new) in changes {
            let all = pointers(&document);
            if let Some(place) = document.pointer_mut(&all[position.index(all.len())]) {
                *place = new;
            }
        }
        document
    })
}

/// Bytes of which a few are others, cut off somewhere.
pub fn mutated_bytes(valid: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<Index>(), any::<u8>()), 0..6);
    (edits, prop_oneof![3 => Just(None), 1 => any::<Index>().prop_map(Some)]).prop_map(move |(edits, cut)| {
        let mut bytes = valid.clone();
        for (position, byte) in edits {
            let at = position.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        select(vec!["", "v1", "Success", "Failure", "JSONPatch", "W10=", "\u{0}", "a/b/c"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = select(vec!["metadata", "name", "uid", "status", "labels", "causes", "x"]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key, inner), 0..4)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// The places of all values of a document.
fn pointers(document: &Value) -> Vec<String> {
    fn visit(value: &Value, at: &str, out: &mut Vec<String>) {
        out.push(at.to_owned());
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, item)| visit(item, &format!("{at}/{n}"), out));
            }
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                visit(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), out);
            }),
            _ => {}
        }
    }
    let mut out = Vec::new();
    visit(document, "", &mut out);
    out
}

#[test]
fn every_value_has_a_place() {
    let document = json!({"a": [1, {"b/c": null}], "d": {}});
    let all = pointers(&document);
    assert_eq!(all, ["", "/a", "/a/0", "/a/1", "/a/1/b~1c", "/d"]);
    assert!(all.iter().all(|place| document.pointer(place).is_some()));
}
