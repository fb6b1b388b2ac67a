//! Applies any patch to any document: a result within bounds, or an error.

use capstan_schema::Schema;
use capstan_schema::patch::{MAX_DEPTH, depth, json, merge, strategic};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{arbitrary, config};

/// Pointers that often exist.
fn pointer() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", "spec", "metadata", "name", "labels", "0", "1", "-"])
            .prop_map(str::to_owned),
        1 => "[~/0-9a-z%-]{0,4}",
        1 => prop::sample::select(vec!["~0", "~1", "~", "~2", "-1", "01", "99999999999999999999", "é"])
            .prop_map(str::to_owned),
    ];
    prop_oneof![
        9 => vec(token, 0..5).prop_map(|tokens| tokens.iter().map(|token| format!("/{token}")).collect()),
        1 => ".{0,6}",
    ]
}

fn operation() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        9 => prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]).prop_map(Value::from),
        1 => arbitrary::json(),
    ];
    (name, pointer(), prop::option::of(pointer()), prop::option::of(arbitrary::json())).prop_map(
        |(op, path, from, value)| {
            let mut operation = Map::from_iter([("op".to_owned(), op), ("path".to_owned(), path.into())]);
            operation.extend(from.map(|from| ("from".to_owned(), from.into())));
            operation.extend(value.map(|value| ("value".to_owned(), value)));
            Value::Object(operation)
        },
    )
}

/// A document with some directives of strategic merge patches.
fn directed() -> impl Strategy<Value = Value> {
    let directive = prop::sample::select(vec![
        ("$patch", json!("replace")),
        ("$patch", json!("delete")),
        ("$patch", json!("merge")),
        ("$patch", json!(1)),
        ("$retainKeys", json!(["a", "b"])),
        ("$retainKeys", json!([{}])),
        ("$setElementOrder/a", json!([{"name": "x"}, {"a": 1}])),
        ("$setElementOrder/b", json!(["x", "y"])),
        ("$setElementOrder/c", json!(null)),
        ("$deleteFromPrimitiveList/a", json!(["x", 1])),
        ("$deleteFromPrimitiveList/b", json!({})),
    ]);
    (arbitrary::json(), vec((pointer(), directive), 0..4)).prop_map(|(mut document, directives)| {
        for (place, (key, value)) in directives {
            let at =
                if document.pointer(&place).is_some_and(Value::is_object) { place } else { String::new() };
            if let Some(Value::Object(map)) = document.pointer_mut(&at) {
                map.insert(key.to_owned(), value);
            }
        }
        document
    })
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn any_json_patch_gets_a_result_within_bounds(
        document in arbitrary::json(), operations in vec(operation(), 0..8), junk in arbitrary::json(),
    ) {
        _ = json::Patch::decode(junk.clone(), true);
        _ = json::Patch::decode(junk, false);
        let limit = size(&document) + operations.iter().map(size).sum::<usize>();
        let Ok(patch) = json::Patch::decode(operations.into(), true) else { return Ok(()) };
        _ = patch.unknown_fields();
        if let Ok(patched) = patch.apply(document) {
            prop_assert!(depth(&patched) <= MAX_DEPTH);
            // Each of eight copies can double the document.
            prop_assert!(size(&patched) <= limit << 8, "{} of {limit}", size(&patched));
        }
    }

    #[test]
    fn any_merge_patch_gets_a_result_no_larger_than_both(
        document in arbitrary::json(), patch in arbitrary::json(),
    ) {
        _ = merge::decode_error(&patch);
        let limit = size(&document) + size(&patch);
        if let Ok(patched) = merge::apply(document, patch) {
            prop_assert!(size(&patched) <= limit);
        }
    }

    #[test]
    fn any_strategic_merge_patch_gets_a_result(
        document in arbitrary::json(), patch in directed(), schema in arbitrary::schema(),
    ) {
        let Ok(schema) = Schema::from_json(&schema) else { return Ok(()) };
        let limit = size(&document) + size(&patch);
        if let Ok(patched) = strategic::apply(document, patch, &schema) {
            prop_assert!(size(&patched) <= 2 * limit, "{} of {limit}", size(&patched));
        }
    }
}

#[test]
fn copies_do_not_multiply_without_bound() {
    let doubling: Vec<Value> =
        (0..40).map(|n| json!({"op": "copy", "from": "", "path": format!("/{n}")})).collect();
    let patch = json::Patch::decode(doubling.into(), true).unwrap();
    assert!(patch.apply(json!({"a": "x".repeat(1000)})).is_err());
}
