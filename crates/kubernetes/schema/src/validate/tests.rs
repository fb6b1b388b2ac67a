use serde_json::json;

use super::*;

#[track_caller]
fn check(schema: Value, value: Value, expected: &[&str]) {
    let schema =
        Schema::from_json(&json!({"type": "object", "properties": {"f": schema}})).expect("valid schema");
    let errors: Vec<String> = validate(&schema, &json!({"f": value}), Dialect::Object, &Path::ROOT)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(errors, expected, "{value}");
}

#[test]
fn types_are_checked() {
    let integer = json!({"type": "integer"});
    check(integer.clone(), json!(1), &[]);
    check(integer.clone(), json!(1.0), &[]);
    check(
        integer.clone(),
        json!("1"),
        &[r#"f: Invalid value: "string": f in body must be of type integer: "string""#],
    );
    check(
        integer.clone(),
        Value::Null,
        &[r#"f: Invalid value: "null": f in body must be of type integer: "null""#],
    );
    check(
        integer,
        json!(1.5),
        &[
            r#"f: Invalid value: "number": f in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in f"#,
        ],
    );
    check(json!({"type": "integer", "nullable": true}), Value::Null, &[]);
    check(json!({"type": "number"}), json!(1), &[]);
    check(
        json!({"type": "object"}),
        json!([]),
        &[r#"f: Invalid value: "array": f in body must be of type object: "array""#],
    );
    check(json!({"x-kubernetes-int-or-string": true}), json!("5%"), &[]);
    check(json!({"x-kubernetes-int-or-string": true}), json!(5), &[]);
    check(
        json!({"x-kubernetes-int-or-string": true}),
        json!(true),
        &[r#"f: Invalid value: "boolean": f in body must be of type integer,string: "boolean""#],
    );
    check(json!({"x-kubernetes-preserve-unknown-fields": true}), json!({"a": [1]}), &[]);
}

#[test]
fn formats_change_the_type_check() {
    let time = json!({"type": "string", "format": "date-time"});
    check(time.clone(), json!("2020-01-01T00:00:00Z"), &[]);
    check(time.clone(), json!("x"), &[r#"f: Invalid value: "x": f in body must be of type date-time: "x""#]);
    check(
        time.clone(),
        json!(5),
        &[r#"f: Invalid value: "int64": f in body must be of type date-time: "int64""#],
    );
    check(time.clone(), json!(true), &[r#"f: Invalid value: "": f in body must be of type date-time: """#]);
    check(time, json!([1]), &[]);
    check(json!({"type": "string", "format": "made-up"}), json!("x"), &[]);
    let int32 = json!({"type": "integer", "format": "int32"});
    check(int32.clone(), json!(5), &[]);
    check(
        int32,
        json!(4_294_967_296_i64),
        &[r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in f"#],
    );
}

#[test]
fn numbers_have_bounds() {
    check(
        json!({"type": "integer", "minimum": 1, "maximum": 3}),
        json!(0),
        &["f: Invalid value: 0: f in body should be greater than or equal to 1"],
    );
    check(
        json!({"type": "integer", "minimum": 1, "maximum": 3}),
        json!(4),
        &["f: Invalid value: 4: f in body should be less than or equal to 3"],
    );
    check(
        json!({"type": "number", "exclusiveMinimum": true, "minimum": 1.5}),
        json!(1.5),
        &["f: Invalid value: 1.5: f in body should be greater than 1.5"],
    );
    check(
        json!({"type": "integer", "multipleOf": 2}),
        json!(3),
        &["f: Invalid value: 3: f in body should be a multiple of 2"],
    );
    check(
        json!({"type": "number", "multipleOf": 0.1}),
        json!(0.35),
        &["f: Invalid value: 0.35: f in body should be a multiple of 0.1"],
    );
    check(json!({"type": "number", "multipleOf": 0.01}), json!(0.35), &[]);
}

#[test]
fn texts_have_lengths_and_patterns() {
    check(json!({"type": "string", "maxLength": 2}), json!("日本"), &[]);
    check(
        json!({"type": "string", "maxLength": 2}),
        json!("abc"),
        &["f: Too long: may not be more than 2 bytes"],
    );
    check(
        json!({"type": "string", "minLength": 1}),
        json!(""),
        &[r#"f: Invalid value: "": f in body should be at least 1 chars long"#],
    );
    check(
        json!({"type": "string", "pattern": "^a+$"}),
        json!("ab"),
        &[r#"f: Invalid value: "ab": f in body should match '^a+$'"#],
    );
    check(
        json!({"type": "string", "enum": ["a", "b"]}),
        json!("c"),
        &[r#"f: Unsupported value: "c": supported values: "a", "b""#],
    );
    check(json!({"type": "integer", "enum": [1, 2]}), json!(1.0), &[]);
    check(
        json!({"enum": [1, "x", null]}),
        Value::Null,
        &[r#"f: Unsupported value: null: supported values: "1", "x", "null""#],
    );
}

#[test]
fn lists_and_objects_have_sizes() {
    let list = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}});
    check(list.clone(), json!([]), &["f: Invalid value: 0: f in body should have at least 1 items"]);
    check(list.clone(), json!(["a", "b", "c"]), &["f: Too many: 3: must have at most 2 items"]);
    check(
        list,
        json!(["a", 1]),
        &[r#"f[1]: Invalid value: "integer": f[1] in body must be of type string: "integer""#],
    );
    let map = json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "string"}});
    check(map.clone(), json!({}), &["f: Invalid value: 0: f in body should have at least 1 properties"]);
    check(map.clone(), json!({"a": "1", "b": "2"}), &["f: Too many: 2: must have at most 1 item"]);
    check(
        map,
        json!({"a": 1}),
        &[r#"f.a: Invalid value: "integer": f.a in body must be of type string: "integer""#],
    );
    check(
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": {}}}),
        json!({"a": 1}),
        &["f.b: Required value"],
    );
    check(
        json!({"type": "object", "additionalProperties": false}),
        json!({"a": 1}),
        &[r#"f: Invalid value: "a": f.a in body is a forbidden property"#],
    );
    check(
        json!({"type": "array", "uniqueItems": true}),
        json!([1, 1]),
        &[r#"f: Invalid value: "": f in body shouldn't contain duplicates"#],
    );
}

#[test]
fn combinations_complain_without_a_field() {
    let one = json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    check(one.clone(), json!({"a": 1}), &[]);
    check(
        one.clone(),
        json!({"a": 1, "b": 1}),
        &[
            r#"<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        one,
        json!({}),
        &[
            r#"<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). Found none valid"#,
            "f.a: Required value",
        ],
    );
    check(
        json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}),
        json!(3),
        &[
            r#"<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)"#,
            "f: Invalid value: 3: f in body should be greater than or equal to 5",
        ],
    );
    check(
        json!({"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 1}, {"maximum": 1}]}),
        json!(3),
        &[
            "f: Invalid value: 3: f in body should be greater than or equal to 5",
            "f: Invalid value: 3: f in body should be less than or equal to 1",
            r#"<nil>: Invalid value: "": "f" must validate all the schemas (allOf). None validated"#,
        ],
    );
    check(
        json!({"type": "integer", "not": {"minimum": 1}}),
        json!(3),
        &[r#"<nil>: Invalid value: "": "f" must not validate the schema (not)"#],
    );
}

#[test]
fn the_branch_that_matched_most_is_complained_about() {
    check(
        json!({"type": "object", "anyOf": [
            {"properties": {"a": {"enum": ["x"]}}},
            {"properties": {"a": {"enum": ["y"]}, "b": {"minimum": 5}, "c": {"minimum": 1}}},
        ]}),
        json!({"a": "z", "b": 6, "c": 2}),
        &[
            r#"<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)"#,
            r#"f.a: Unsupported value: "z": supported values: "y""#,
        ],
    );
}

#[test]
fn errors_of_the_root_have_no_field() {
    let schema = Schema::from_json(&json!({"type": "object", "required": ["spec"], "maxProperties": 0}))
        .expect("valid");
    let texts = |at: &Path<'_>| -> Vec<String> {
        validate(&schema, &json!({"a": 1}), Dialect::Object, at).iter().map(ToString::to_string).collect()
    };
    assert_eq!(texts(&Path::ROOT), ["<nil>: Too many: 1: must have at most 0 items", "spec: Required value"]);
    assert_eq!(
        texts(&Path::at("status")),
        ["status: Too many: 1: must have at most 0 items", "status.spec: Required value"]
    );
}

#[track_caller]
fn check_update(schema: Value, old: Value, new: Value, expected: &[&str]) {
    let schema = Schema::from_json(&schema).expect("valid schema");
    let pair = Correlated { new: &new, old: &old, schema: &schema };
    let errors: Vec<String> =
        validate_update(pair, &schema, &Path::ROOT).iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected);
}

#[test]
fn errors_in_unchanged_parts_are_dropped() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1},
        "o": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 5}, "y": {"type": "string"}},
              "required": ["z"]},
        "kind": {"type": "string", "maxLength": 1},
    }});
    check_update(
        schema.clone(),
        json!({"a": "long", "o": {"x": 1, "y": "1"}, "kind": "Long"}),
        json!({"a": "long", "o": {"x": 1, "y": "2"}, "kind": "Long"}),
        &["kind: Too long: may not be more than 1 byte", "o.z: Required value"],
    );
    check_update(
        schema,
        json!({"a": "long"}),
        json!({"a": "longer"}),
        &["a: Too long: may not be more than 1 byte"],
    );
}

#[test]
fn unchanged_entries_of_keyed_lists_are_accepted_one_by_one() {
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}});
    let keyed = json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"], "items": item}}});
    let atomic = json!({"type": "object", "properties": {"l": {"type": "array", "items": item}}});
    let old = json!({"l": [{"k": "a", "v": "long"}]});
    let new = json!({"l": [{"k": "b", "v": "x"}, {"k": "a", "v": "long"}]});
    check_update(keyed, old.clone(), new.clone(), &[]);
    check_update(atomic.clone(), old.clone(), new, &["l[1].v: Too long: may not be more than 1 byte"]);
    check_update(atomic, old.clone(), old, &[]);
}

/// A value that counts its comparisons.
struct Compared<'c>(usize, &'c std::cell::Cell<usize>);

impl PartialEq for Compared<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.1.set(self.1.get() + 1);
        self.0 == other.0
    }
}

impl Eq for Compared<'_> {}

impl std::hash::Hash for Compared<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn uniqueness_of_items_is_checked_in_linear_time() {
    for count in [1_000, 4_000] {
        let comparisons = std::cell::Cell::new(0);
        let items: Vec<Compared<'_>> = (0..count).map(|n| Compared(n, &comparisons)).collect();
        assert!(super::all_differ(&items));
        assert!(comparisons.get() < count, "{} comparisons of {count} items", comparisons.get());
    }
    assert!(!super::all_differ(&["a", "b", "a"]));
}
