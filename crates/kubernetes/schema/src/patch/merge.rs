//! JSON merge patch (RFC 7396), with the deviations of upstream's library: nulls in a new list are kept while nulls
//! in objects below it are dropped, and nothing is dropped from a list that replaces an object.

use serde_json::{Map, Value};

use super::PatchError;

/// Merges `patch` into `document`.
///
/// # Errors
/// [`PatchError::Malformed`] when the patch is null or a scalar. (With field validation, upstream rejects lists too,
/// see [`decode_error`]; without, a list replaces the document.)
pub fn apply(document: Value, patch: Value) -> Result<Value, PatchError> {
    match (document, patch) {
        (Value::Object(mut document), Value::Object(patch)) => {
            merge_objects(&mut document, patch);
            Ok(Value::Object(document))
        }
        (_, mut patch @ (Value::Object(_) | Value::Array(_))) => {
            drop_nulls(&mut patch);
            Ok(patch)
        }
        _ => Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
    }
}

/// The error of upstream's field validation (`Warn` and `Strict`) for a patch that is not an object. Check it before
/// [`apply`] unless `fieldValidation=Ignore`.
pub fn decode_error(patch: &Value) -> Option<PatchError> {
    match patch {
        Value::Object(_) | Value::Null => None,
        other => Some(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            super::go::json_kind(other)
        ))),
    }
}

fn merge_objects(document: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, mut patch) in patch {
        if patch.is_null() {
            document.remove(&key);
            continue;
        }
        match (document.get_mut(&key), patch) {
            (Some(Value::Object(current)), Value::Object(patch)) => merge_objects(current, patch),
            (Some(current @ Value::Object(_)), other) => *current = other,
            (_, other) => {
                patch = other;
                drop_nulls(&mut patch);
                document.insert(key, patch);
            }
        }
    }
}

/// Drops nulls from objects, including those in lists. Nulls in a list are kept.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_merge_as_the_standard_and_upstream_say() {
        for (document, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({}), json!({"a": {"b": {"c": null}}}), json!({"a": {"b": {}}})),
            (json!({"a": null}), json!({"a": {"b": null}}), json!({"a": {}})),
            // Nulls in a list are kept, null fields of objects in a new list are not.
            (json!({}), json!({"a": [null, {"b": null, "c": 1}]}), json!({"a": [null, {"c": 1}]})),
            (json!({"a": [1]}), json!({"a": [{"b": null}]}), json!({"a": [{}]})),
            // A list that replaces an object is used unchanged.
            (json!({"a": {"x": 1}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
            (json!({"a": 1}), json!([{"b": null}]), json!([{}])),
        ] {
            assert_eq!(apply(document.clone(), patch.clone()), Ok(expected), "{document} + {patch}");
        }
    }

    #[test]
    fn a_scalar_is_no_merge_patch() {
        for patch in [json!(null), json!(1), json!("x"), json!(true)] {
            let error = apply(json!({}), patch).unwrap_err();
            assert_eq!((error.status(), error.to_string().as_str()), (400, "Invalid JSON Patch"));
        }
        let error = decode_error(&json!([])).unwrap();
        assert_eq!(
            error.to_string(),
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!(true))];
        let value = leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-d]", value, 0..4).prop_map(|m| Value::Object(m.into_iter().collect()))
    }

    /// The merge patch that turns `from` into `to` (neither holds nulls).
    fn difference(from: &Value, to: &Value) -> Value {
        let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
        let mut patch = Map::new();
        for key in from.keys().filter(|k| !to.contains_key(*k)) {
            patch.insert(key.clone(), Value::Null);
        }
        for (key, value) in to {
            match from.get(key) {
                Some(old) if old == value => {}
                Some(old) => {
                    patch.insert(key.clone(), difference(old, value));
                }
                None => {
                    patch.insert(key.clone(), value.clone());
                }
            }
        }
        Value::Object(patch)
    }

    proptest! {
        #[test]
        fn a_patch_merged_twice_is_a_patch_merged_once(document in document(), patch in document()) {
            let once = apply(document, patch.clone()).unwrap();
            prop_assert_eq!(apply(once.clone(), patch).unwrap(), once);
        }

        #[test]
        fn a_difference_turns_one_document_into_the_other(from in document(), to in document()) {
            prop_assert_eq!(apply(from.clone(), difference(&from, &to)).unwrap(), to);
        }
    }
}
