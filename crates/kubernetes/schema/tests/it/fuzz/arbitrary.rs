//! Random JSON, and random schemas that use every keyword, correctly and incorrectly.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Few names, so that schemas and objects have some in common.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a",
        "b",
        "c",
        "kind",
        "apiVersion",
        "metadata",
        "spec",
        "name",
        "labels",
        "x-y",
        "é",
    ])
    .prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..10).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        prop::sample::select(vec![
            "2020-01-01T00:00:00Z",
            "1h",
            "10.0.0.0/8",
            "::1",
            "a@b",
            "http://a/b?c",
            "v1",
            "a/b/c",
            "x y",
            "5%",
            "[a-",
            "(",
            ".spec.a",
            ".metadata",
            "self.a == oldSelf.b",
            "self > 1",
            "set",
            "map",
            "array",
            "object",
            "string",
            "integer",
            "v1beta1",
            "date-time",
            "int32",
        ])
        .prop_map(Value::from),
    ]
}

/// Any JSON value of moderate depth.
pub fn json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 64, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(name(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A keyword without a nested schema.
fn plain_keyword() -> impl Strategy<Value = (String, Value)> {
    let keyword = |key: &'static str, values: Vec<Value>| {
        prop::sample::select(values).prop_map(move |value| (key.to_owned(), value))
    };
    prop_oneof![
        keyword("nullable", vec![json!(true), json!(false)]),
        keyword("maximum", vec![json!(5), json!(1.5), json!(1e19)]),
        keyword("minimum", vec![json!(1), json!(-2.5)]),
        keyword("exclusiveMinimum", vec![json!(true)]),
        keyword("multipleOf", vec![json!(2), json!(0.5), json!(0)]),
        keyword("maxLength", vec![json!(2), json!(-1)]),
        keyword("minLength", vec![json!(1)]),
        keyword("maxItems", vec![json!(2)]),
        keyword("minProperties", vec![json!(1)]),
        keyword("maxProperties", vec![json!(1)]),
        keyword("pattern", vec![json!("^a"), json!("["), json!(r"\d+")]),
        keyword(
            "format",
            vec![json!("date-time"), json!("int32"), json!("odd"), json!("duration"), json!("ipv4")]
        ),
        keyword("required", vec![json!(["a"]), json!(["b", "c"])]),
        keyword("enum", vec![json!(["a", 1, null]), json!([{"a": 1}])]),
        keyword("x-kubernetes-preserve-unknown-fields", vec![json!(true), json!(false)]),
        keyword("x-kubernetes-embedded-resource", vec![json!(true)]),
        keyword("x-kubernetes-int-or-string", vec![json!(true)]),
        keyword("x-kubernetes-list-type", vec![json!("set"), json!("map"), json!("atomic")]),
        keyword("x-kubernetes-list-map-keys", vec![json!(["a"]), json!(["a", "b"])]),
        keyword("x-kubernetes-map-type", vec![json!("atomic"), json!("granular")]),
        keyword(
            "x-kubernetes-validations",
            vec![
                json!([{"rule": "self == oldSelf", "message": "fixed"}]),
                json!([{"rule": "has(self.a)"}, {"rule": "self.size() > 1", "messageExpression": "'m'"}]),
                json!([{"rule": "self.all(x, x != '')", "fieldPath": ".a", "reason": "FieldValueForbidden"}]),
            ]
        ),
        json().prop_map(|value| ("default".to_owned(), value)),
    ]
}

fn kind() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["object", "array", "string", "integer", "number", "boolean"])
        .prop_map(Value::from)
}

/// A schema, structural or not.
pub fn schema() -> impl Strategy<Value = Value> {
    let leaf = (kind(), btree_map(Just(()), plain_keyword(), 0..2)).prop_map(|(kind, keywords)| {
        let mut schema = Map::from_iter(keywords.into_values());
        schema.insert("type".into(), kind);
        Value::Object(schema)
    });
    leaf.prop_recursive(4, 48, 6, |inner| {
        let properties = btree_map(name(), inner.clone(), 0..5)
            .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>()));
        let list = vec(inner.clone(), 1..3).prop_map(Value::from);
        let child = prop_oneof![
            properties.prop_map(|p| ("properties".to_owned(), p)),
            inner.clone().prop_map(|s| ("items".to_owned(), s)),
            inner.clone().prop_map(|s| ("additionalProperties".to_owned(), s)),
            any::<bool>().prop_map(|b| ("additionalProperties".to_owned(), b.into())),
            list.clone().prop_map(|l| ("anyOf".to_owned(), l)),
            list.clone().prop_map(|l| ("allOf".to_owned(), l)),
            list.prop_map(|l| ("oneOf".to_owned(), l)),
            inner.prop_map(|s| ("not".to_owned(), s)),
        ];
        (kind(), vec(prop_oneof![child, plain_keyword()], 0..5)).prop_map(|(kind, keywords)| {
            let mut schema: Map<String, Value> = keywords.into_iter().collect();
            schema.insert("type".into(), kind);
            Value::Object(schema)
        })
    })
}
