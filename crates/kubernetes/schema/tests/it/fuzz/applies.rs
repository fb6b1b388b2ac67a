//! Applies any configuration to any object: the result has owners that can be decoded, or there is an error.

use std::sync::Arc;

use capstan_schema::Schema;
use capstan_schema::apply::{Ownership, Set, Versions, check_entries, keep_times};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{arbitrary, config};

const NOW: &str = "2026-01-01T00:00:00Z";

/// One schema for `v1`; `v2` is the same, conversion to `v3` fails, and there are no others.
struct Kind(Arc<Schema>);

impl Versions for Kind {
    fn schema(&self, api_version: &str) -> Option<Arc<Schema>> {
        ["ex.io/v1", "ex.io/v2", "ex.io/v3"].contains(&api_version).then(|| self.0.clone())
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, String> {
        if to == "ex.io/v3" {
            return Err("there is no way".into());
        }
        let mut object = object.clone();
        object["apiVersion"] = to.into();
        Ok(object)
    }
}

/// Stored field sets, valid and invalid.
fn fields() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        6 => prop::sample::select(vec![
            ".", "f:a", "f:b", "f:spec", "f:metadata", "f:labels", "f:name", "k:{\"a\":1}", "k:{\"name\":\"x\"}",
            "v:\"x\"", "v:1", "v:{\"a\":null}", "i:0", "i:1",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["k:", "k:{}", "k:[1]", "v:", "v:nope", "i:x", "i:-1", "x:y", "", "f:", "f"])
            .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![9 => Just(json!({})), 1 => arbitrary::json()];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        proptest::collection::btree_map(key.clone(), inner, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    })
}

fn entry() -> impl Strategy<Value = Value> {
    let version = prop::sample::select(vec!["ex.io/v1", "ex.io/v2", "ex.io/v3", "ex.io/gone", ""]);
    let operation = prop::sample::select(vec!["Apply", "Update", "Other"]);
    let manager = prop::sample::select(vec!["me", "you", "kubectl-client-side-apply", "before-first-apply"]);
    let subresource = prop::sample::select(vec!["", "status"]);
    (manager, operation, version, subresource, fields()).prop_map(
        |(manager, operation, version, subresource, fields)| {
            json!({"manager": manager, "operation": operation, "apiVersion": version, "subresource": subresource,
                "time": NOW, "fieldsType": "FieldsV1", "fieldsV1": fields})
        },
    )
}

fn object(content: Value, entries: Vec<Value>, version: &str) -> Value {
    let mut object = if content.is_object() { content } else { json!({"spec": content}) };
    object["apiVersion"] = version.into();
    object["kind"] = "Foo".into();
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    if !entries.is_empty() {
        object["metadata"]["managedFields"] = entries.into();
    }
    object
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn any_write_over_any_object_leaves_readable_owners_or_an_error(
        schema in arbitrary::schema(),
        live in arbitrary::json(),
        owners in vec(entry(), 0..4),
        new in arbitrary::json(),
        claimed in vec(entry(), 0..2),
        version in prop::sample::select(vec!["ex.io/v1", "ex.io/v3", "ex.io/gone"]),
        subresource in prop::sample::select(vec!["", "status"]),
        force in any::<bool>(),
    ) {
        let Ok(schema) = Schema::from_json(&schema) else { return Ok(()) };
        let kind = Kind(Arc::new(schema));
        let reset = Set::of_fields(&[&["status"]]);
        let ownership =
            Ownership { versions: &kind, api_version: version, kind: "Foo", subresource, reset: &reset };
        let live = object(live, owners, version);
        let new = object(new, claimed, version);
        _ = check_entries(&live);
        let mut updated = ownership.update(&live, new.clone(), "me", NOW);
        prop_assert_eq!(check_entries(&updated), Ok(()));
        keep_times(&live, &mut updated);
        for manager in ["me", "kubectl"] {
            if let Ok(applied) = ownership.apply(&live, &new, manager, force, NOW) {
                prop_assert_eq!(check_entries(&applied), Ok(()));
            }
        }
        _ = ownership.apply(&ownership.empty_object(), &new, "me", force, NOW);
    }
}
