use serde_json::{Value, json};

use super::*;
use crate::apply::fieldpath::Set;

fn schema() -> Schema {
    let text = json!({"type": "string"});
    let by_name = |items: Value| {
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": items,
        })
    };
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": text});
    let spec = json!({"type": "object", "properties": {
        "text": text,
        "count": {"type": "integer"},
        "flag": {"type": "boolean"},
        "when": {"type": "string", "format": "date-time"},
        "struct": {"type": "object", "properties": {"a": text, "b": text}},
        "leaf": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": text, "b": text}},
        "map": {"type": "object", "additionalProperties": text},
        "set": set,
        "list": by_name(json!({"type": "object", "properties": {"name": text, "value": text, "set": set}})),
        "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": text,
            }},
        },
        "atomic": {"type": "array", "items": text},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
        "object": {
            "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
        },
    }});
    Schema::from_json(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": spec})
}

fn paths(set: &Set) -> Value {
    set.to_fields_v1().get("f:spec").cloned().unwrap_or_default()
}

#[test]
fn mismatches_are_rejected_with_upstreams_texts() {
    let schema = schema();
    for (spec, text) in [
        (json!({"nope": 1}), ".spec.nope: field not declared in schema"),
        (json!({"text": 5}), ".spec.text: expected string, got &value.valueUnstructured{Value:5}"),
        (
            json!({"text": {"a": [null]}}),
            r#".spec.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{interface {}(nil)}}}"#,
        ),
        (json!({"count": "x"}), ".spec.count: expected numeric (int or float), got string"),
        (json!({"flag": 1.5}), ".spec.flag: expected boolean, got &{1.5}"),
        (json!({"when": {"a": "b"}}), ".spec.when: expected any scalar, got &{map[a:b]}"),
        (json!({"struct": ["x"]}), ".spec.struct: expected map, got &{[x]}"),
        (json!({"set": {"a": true}}), ".spec.set: expected list, got &{map[a:true]}"),
        (json!({"set": ["a", "a"]}), ".spec.set: duplicate entries for key [=\"a\"]"),
        (
            json!({"set": [null]}),
            ".spec.set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"set": [{}]}),
            ".spec.set: element 0: associative list without keys has an element that's a map type",
        ),
        (
            json!({"set": [[]]}),
            ".spec.set: element 0: not supported: associative list with lists as elements",
        ),
        (
            json!({"list": [null]}),
            ".spec.list: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({"list": ["a"]}),
            ".spec.list: element 0: associative list with keys may not have non-map elements",
        ),
        (
            json!({"list": [{}]}),
            ".spec.list: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"list": [{"name": "a", "value": 1}]}),
            ".spec.list[name=\"a\"].value: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}),
            ".spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]",
        ),
        (
            json!({"atomic": ["a", 1]}),
            ".spec.atomic[1]: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"count": "x", "text": 1}),
            "errors:\n  .spec.count: expected numeric (int or float), got string\n  .spec.text: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"object": {"metadata": {"labels": {"a": 1}}}}),
            ".spec.object.metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ] {
        let error = validate(&object(&spec), Type::object(&schema), Duplicates::Refused).unwrap_err();
        assert_eq!(error.to_string(), text, "{spec}");
    }
}

#[test]
fn null_is_of_any_kind_and_stored_objects_may_hold_duplicates() {
    let schema = schema();
    let of = Type::object(&schema);
    let nulls =
        json!({"text": null, "struct": null, "set": null, "list": null, "free": null, "either": null});
    assert_eq!(validate(&object(&nulls), of, Duplicates::Refused), Ok(()));
    let twice = json!({"set": ["a", "a"], "list": [{"name": "a"}, {"name": "a"}], "free": {"x": [{}]}, "either": "5"});
    assert_eq!(validate(&object(&twice), of, Duplicates::Allowed), Ok(()));
}

#[test]
fn writing_a_value_owns_its_leaves_entries_and_undeclared_keys() {
    let schema = schema();
    for (spec, owned) in [
        (json!({"text": "a", "struct": {"a": "x"}}), json!({"f:text": {}, "f:struct": {"f:a": {}}})),
        (json!({"struct": {}, "leaf": {"a": "x"}}), json!({"f:struct": {}, "f:leaf": {}})),
        (json!({"map": {"k": "v"}}), json!({"f:map": {"f:k": {}}})),
        (json!({"set": ["b", "a"]}), json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}})),
        (
            json!({"list": [{"name": "a", "value": "v"}]}),
            json!({"f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:value": {}}}}),
        ),
        // The default of an absent key field is used in the key, not added to the fields.
        (
            json!({"ports": [{"port": 80}]}),
            json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
        ),
        (
            json!({"free": {"a": {"b": 1}, "l": [1]}}),
            json!({"f:free": {"f:a": {".": {}, "f:b": {}}, "f:l": {}}}),
        ),
        // Entries with the same key are owned as one, without their fields.
        (json!({"list": [{"name": "a"}, {"name": "a"}]}), json!({"f:list": {"k:{\"name\":\"a\"}": {}}})),
        // An empty merged list has no fields.
        (json!({"set": [], "text": "a"}), json!({"f:text": {}})),
    ] {
        assert_eq!(paths(&field_set(&object(&spec), Type::object(&schema))), owned, "{spec}");
    }
}

#[test]
fn comparing_returns_added_modified_and_removed_fields() {
    let schema = schema();
    let changes = |old: Value, new: Value| {
        let c = compare(&object(&old), &object(&new), Type::object(&schema)).unwrap();
        [paths(&c.added), paths(&c.modified), paths(&c.removed)]
    };
    let nothing = Value::Null;
    for (old, new, expected) in [
        (
            json!({"text": "a"}),
            json!({"text": "b"}),
            [nothing.clone(), json!({"f:text": {}}), nothing.clone()],
        ),
        (json!({"count": 1}), json!({"count": 1.0}), [nothing.clone(), nothing.clone(), nothing.clone()]),
        // The parent is added with its first child.
        (
            json!({}),
            json!({"struct": {"a": "x"}}),
            [json!({"f:struct": {".": {}, "f:a": {}}}), nothing.clone(), nothing.clone()],
        ),
        // Absent, null and empty are different.
        (
            json!({"struct": null}),
            json!({"struct": {}}),
            [nothing.clone(), json!({"f:struct": {}}), nothing.clone()],
        ),
        (
            json!({"leaf": {"a": "x"}}),
            json!({"leaf": {"a": "y"}}),
            [nothing.clone(), json!({"f:leaf": {}}), nothing.clone()],
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["b", "c"]}),
            [json!({"f:set": {"v:\"c\"": {}}}), nothing.clone(), json!({"f:set": {"v:\"a\"": {}}})],
        ),
        // The order of a merged list is not a change.
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["b", "a"]}),
            [nothing.clone(), nothing.clone(), nothing.clone()],
        ),
        (
            json!({"atomic": ["a", "b"]}),
            json!({"atomic": ["b", "a"]}),
            [nothing.clone(), json!({"f:atomic": {}}), nothing.clone()],
        ),
        // An undeclared value that changes its kind is modified, and its content is removed.
        (
            json!({"free": {"a": {"b": 1}}}),
            json!({"free": {"a": [1]}}),
            [nothing.clone(), json!({"f:free": {"f:a": {}}}), json!({"f:free": {"f:a": {"f:b": {}}}})],
        ),
        (
            json!({"list": [{"name": "a", "value": "1"}]}),
            json!({"list": [{"name": "a", "value": "2"}, {"name": "a", "value": "3"}]}),
            [
                json!({"f:list": {"k:{\"name\":\"a\"}": {}}}),
                nothing.clone(),
                json!({"f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:value": {}}}}),
            ],
        ),
    ] {
        assert_eq!(changes(old.clone(), new.clone()), expected, "{old} to {new}");
    }
}

#[test]
fn a_merged_list_takes_the_order_of_the_configuration_where_it_has_one() {
    let schema = schema();
    for (live, config, merged) in [
        (json!(["a", "b", "c"]), json!(["c", "a"]), json!(["b", "c", "a"])),
        (json!(["a", "b"]), json!(["c"]), json!(["a", "b", "c"])),
        (json!(["a", "b", "c"]), json!(["b", "d"]), json!(["a", "b", "c", "d"])),
        (json!(["a", "x", "b"]), json!(["b", "a"]), json!(["x", "b", "a"])),
        (json!(["a", "a", "b"]), json!(["b"]), json!(["a", "a", "b"])),
        (json!(["a", "a"]), json!(["a"]), json!(["a"])),
        (json!([]), json!(["a"]), json!(["a"])),
        (json!(null), json!(["b", "a"]), json!(["b", "a"])),
        (json!(["a"]), json!(null), json!(["a"])),
        (json!([]), json!(null), json!(null)),
    ] {
        let of = Type::object(&schema);
        let out =
            merge(&object(&json!({"set": live})), &object(&json!({"set": config})), of).unwrap().unwrap();
        assert_eq!(out["spec"]["set"], merged, "{live} + {config}");
    }
}

#[test]
fn leaves_are_replaced_and_the_rest_is_merged() {
    let schema = schema();
    let live = json!({
        "struct": {"a": "1", "b": "1"}, "leaf": {"a": "1", "b": "1"}, "atomic": ["a"], "map": {"x": "1"},
        "list": [{"name": "a", "value": "1", "set": ["x"]}], "free": {"a": {"b": 1}, "c": 1},
    });
    let config = json!({
        "struct": {"a": "2"}, "leaf": {"a": "2"}, "atomic": ["b"], "map": {"y": "2"},
        "list": [{"name": "a", "set": ["y"]}], "free": {"a": {"d": 2}},
    });
    let out = merge(&object(&live), &object(&config), Type::object(&schema)).unwrap().unwrap();
    assert_eq!(
        out["spec"],
        json!({
            "struct": {"a": "2", "b": "1"}, "leaf": {"a": "2"}, "atomic": ["b"], "map": {"x": "1", "y": "2"},
            "list": [{"name": "a", "value": "1", "set": ["x", "y"]}], "free": {"a": {"b": 1, "d": 2}, "c": 1},
        })
    );
}

#[test]
fn fields_are_taken_out_or_kept_by_path() {
    let schema = schema();
    let of = Type::object(&schema);
    let value = object(&json!({
        "struct": {"a": "1", "b": "1"}, "set": ["x", "y"], "list": [{"name": "a", "value": "1"}, {"name": "b"}],
    }));
    let fields = Set::from_fields_v1(&json!({"f:spec": {
        "f:struct": {"f:a": {}, "f:b": {}},
        "f:set": {"v:\"x\"": {}},
        "f:list": {"k:{\"name\":\"a\"}": {"f:value": {}}, "k:{\"name\":\"b\"}": {".": {}, "f:name": {}}},
    }}))
    .unwrap();
    // What becomes empty becomes null; removing it is another step.
    assert_eq!(
        remove(&value, &fields, of)["spec"],
        json!({"struct": null, "set": ["y"], "list": [{"name": "a"}]})
    );
    assert_eq!(
        extract(&value, &fields, of),
        json!({"spec": {"struct": {"a": "1", "b": "1"}, "set": ["x"], "list": [{"value": "1"}, {"name": "b"}]}})
    );
}

#[test]
fn owning_parts_of_what_became_a_leaf_is_owning_the_leaf() {
    let schema = schema();
    let of = Type::object(&schema);
    let was = Set::from_fields_v1(&json!({"f:spec": {
        "f:leaf": {".": {}, "f:a": {}}, "f:atomic": {"v:\"x\"": {}}, "f:struct": {"f:a": {}},
        "f:free": {"f:a": {"f:b": {}}}, "f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:value": {}}},
    }}))
    .unwrap();
    let is = reconcile(&was, of).unwrap();
    assert_eq!(
        paths(&is),
        json!({
            "f:leaf": {}, "f:atomic": {}, "f:struct": {"f:a": {}},
            "f:free": {"f:a": {"f:b": {}}}, "f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:value": {}}},
        })
    );
    assert_eq!(reconcile(&is, of), None);
}
