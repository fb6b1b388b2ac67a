use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::schema::{Additional, TypeName};

fn of(kind: TypeName) -> Schema {
    Schema::of(kind)
}

fn structure<const N: usize>(name: &str, fields: [(&str, Schema); N]) -> Schema {
    let properties = fields.into_iter().map(|(name, schema)| (name.to_owned(), Arc::new(schema))).collect();
    Schema { properties, title: name.to_owned(), ..of(TypeName::Object) }
}

fn list(strategy: Option<&str>, key: Option<&str>, items: Schema) -> Schema {
    Schema {
        items: Some(Arc::new(items)),
        patch_strategy: strategy.map(str::to_owned),
        patch_merge_key: key.map(str::to_owned),
        ..of(TypeName::Array)
    }
}

/// Something like a pod.
fn schema() -> Schema {
    let text = || of(TypeName::String);
    let texts = || Schema { additional: Additional::Schema(Arc::new(text())), ..of(TypeName::Object) };
    let env = structure("EnvVar", [("name", text()), ("value", text())]);
    let container = structure(
        "Container",
        [
            ("name", text()),
            ("image", text()),
            ("args", list(None, None, text())),
            ("env", list(Some("merge"), Some("name"), env)),
            ("resources", structure("Resources", [("limits", texts())])),
        ],
    );
    let volume =
        structure("Volume", [("name", text()), ("emptyDir", of(TypeName::Object)), ("hostPath", texts())]);
    let strategy = Schema {
        patch_strategy: Some("retainKeys".to_owned()),
        ..structure(
            "Strategy",
            [("type", text()), ("rollingUpdate", structure("Rolling", [("surge", text())]))],
        )
    };
    let replaced = Schema {
        patch_strategy: Some("replace".to_owned()),
        ..structure("Replaced", [("a", text()), ("b", text())])
    };
    structure(
        "Pod",
        [
            ("labels", texts()),
            ("finalizers", list(Some("merge"), None, text())),
            ("containers", list(Some("merge"), Some("name"), container)),
            ("volumes", list(Some("merge,retainKeys"), Some("name"), volume)),
            ("strategy", strategy),
            ("replaced", replaced),
            ("maps", Schema { additional: Additional::Schema(Arc::new(texts())), ..of(TypeName::Object) }),
        ],
    )
}

#[test]
fn patches_merge_by_strategy_and_directive() {
    for (document, patch, expected) in [
        (
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"b": "2", "a": null}}),
            json!({"labels": {"b": "2"}}),
        ),
        // Lists: by merge key, as sets, or as a whole.
        (
            json!({"containers": [{"name": "a", "image": "1", "args": ["x"]}]}),
            json!({"containers": [{"name": "b"}, {"name": "a", "image": "2", "args": ["y"]}]}),
            json!({"containers": [{"name": "b"}, {"name": "a", "image": "2", "args": ["y"]}]}),
        ),
        (
            json!({"finalizers": ["a", "b"]}),
            json!({"finalizers": ["c", "a"]}),
            json!({"finalizers": ["c", "a", "b"]}),
        ),
        (json!({"replaced": {"a": "1"}}), json!({"replaced": {"b": "2"}}), json!({"replaced": {"b": "2"}})),
        // Directives in an object.
        (
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"$patch": "replace", "b": "2"}}),
            json!({"labels": {"b": "2"}}),
        ),
        (json!({"labels": {"a": "1"}}), json!({"labels": {"$patch": "delete"}}), json!({"labels": {}})),
        (json!({}), json!({"labels": {"$patch": "delete"}}), json!({})),
        // Directives in a list.
        (
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "c"}]}),
            json!({"containers": [{"name": "c"}, {"name": "b"}]}),
        ),
        (
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "c"}, {"$patch": "replace"}]}),
            json!({"containers": [{"name": "c"}]}),
        ),
        // Parallel lists.
        (
            json!({"finalizers": ["a", "b", "c"]}),
            json!({"$deleteFromPrimitiveList/finalizers": ["a", "c"]}),
            json!({"finalizers": ["b"]}),
        ),
        (json!({}), json!({"$deleteFromPrimitiveList/finalizers": ["a"]}), json!({})),
        (
            json!({"finalizers": ["a", "b", "c"]}),
            json!({"finalizers": ["d"], "$setElementOrder/finalizers": ["c", "d", "a"]}),
            json!({"finalizers": ["b", "c", "d", "a"]}),
        ),
        (
            json!({"containers": [{"name": "a"}, {"name": "s"}, {"name": "b"}]}),
            json!({"containers": [{"name": "b", "image": "1"}], "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
            json!({"containers": [{"name": "s"}, {"name": "b", "image": "1"}, {"name": "a"}]}),
        ),
        (
            json!({"strategy": {"type": "Rolling", "rollingUpdate": {"surge": "1"}}}),
            json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
            json!({"strategy": {"type": "Recreate"}}),
        ),
        (
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
        ),
        // What is new comes without nulls, at any depth.
        (
            json!({}),
            json!({"containers": [{"name": "a", "image": null}], "labels": {"a": null}}),
            json!({"containers": [{"name": "a"}], "labels": {}}),
        ),
        // A value of another type is replaced.
        (json!({"labels": "x"}), json!({"labels": {"a": "1"}}), json!({"labels": {"a": "1"}})),
        (json!({"labels": {"a": "1"}}), json!(null), json!({"labels": {"a": "1"}})),
    ] {
        assert_eq!(apply(document.clone(), patch.clone(), &schema()), Ok(expected), "{document} + {patch}");
    }
}

#[test]
fn bad_patches_are_rejected_with_upstreams_codes_and_texts() {
    let document = json!({
        "containers": [{"name": "a", "env": [{"name": "e"}]}], "finalizers": ["a"], "labels": {"a": "1"},
        "strategy": {"type": "x"}, "maps": {"a": {"b": "c"}},
    });
    for (patch, status, text) in [
        (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (json!({"strategy": {"$retainKeys": 1}}), 400, "invalid patch format of retainKeys"),
        (
            json!({"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (json!({"$deleteFromPrimitiveList": ["a"]}), 400, "invalid patch format of primitive list"),
        (json!({"$setElementOrder": ["a"]}), 400, "invalid patch format of setElementOrder list"),
        (
            json!({"finalizers": [["a"]], "$setElementOrder/finalizers": []}),
            500,
            "list element types are not identical: [[a] [[a]]]",
        ),
        (
            json!({"containers": [{"image": "x"}]}),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "merge"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "frob"}]}),
            500,
            "unknown patch type: frob in map: map[$patch:frob name:a]",
        ),
        (json!({"labels": {"$patch": 1}}), 500, "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
        (
            json!({"containers": ["x"]}),
            500,
            "list element types are not identical: [[map[env:[map[name:e]] name:a]] [x]]",
        ),
        (json!({"finalizers": [{}]}), 500, "list element types are not identical: [[a] [map[]]]"),
        (
            json!({"containers": [{"name": "b"}, {"name": "a"}], "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}]}),
            500,
            "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:a] map[name:b]]\n",
        ),
        (
            json!({"$setElementOrder/finalizers": "x"}),
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"$setElementOrder/nope": ["x"]}),
            500,
            "unable to find api field in struct Pod for the json field \"nope\"",
        ),
        (
            json!({"maps": {"a": {"d": "e"}}}),
            500,
            "merging an object in json but data type is not struct, instead is: map",
        ),
    ] {
        let error = apply(document.clone(), patch.clone(), &schema()).unwrap_err();
        assert_eq!((error.status(), error.to_string().as_str()), (status, text), "{patch}");
    }
    let nested =
        apply(json!({"finalizers": [["a"]]}), json!({"finalizers": [["b"]]}), &schema()).unwrap_err();
    assert_eq!((nested.status(), nested.to_string().as_str()), (422, "lists of lists are not supported"));
}

#[test]
fn retained_keys_are_looked_up_not_searched() {
    let keys: Vec<String> = (0..150_000).map(|i| format!("k{i:06}")).collect();
    let fields: Object = keys.iter().map(|key| (key.clone(), json!(""))).collect();
    let mut patch = fields.clone();
    patch.insert(RETAIN_KEYS.to_owned(), json!(keys.iter().rev().collect::<Vec<_>>()));
    let began = std::time::Instant::now();
    let labels = json!({ "labels": fields });
    let merged = apply(labels.clone(), json!({ "labels": patch }), &schema());
    assert_eq!(merged, Ok(labels));
    // Half a second, or minutes if each key is compared with all others.
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn a_long_list_is_not_merged_for_each_of_many_entries() {
    let env: Vec<_> = (0..100).map(|i| json!({"name": format!("e{i}"), "value": vec![0; 100]})).collect();
    let document = json!({"containers": [{"name": "a", "env": env}]});
    for entry in [
        json!({"name": "a", "env": [{"name": "e0", "value": "1"}]}),
        json!({"name": "a", "$setElementOrder/env": [{"name": "e0"}]}),
    ] {
        let patch = |entries| json!({ "containers": vec![entry.clone(); entries] });
        assert!(apply(document.clone(), patch(100), &schema()).is_ok());
        let error = apply(document.clone(), patch(10_000), &schema()).unwrap_err();
        assert_eq!(error, PatchError::TooMuchWork { doing: "merge", limit: MAX_MERGED }, "{entry}");
    }
}
