use serde_json::json;

use super::*;

fn rules(schema: Value) -> Rules {
    let schema = Arc::new(Schema::from_json(&schema).expect("valid schema"));
    Rules::compile(&schema, true).expect("has rules")
}

fn texts(outcome: &Outcome) -> Vec<String> {
    outcome.errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(schema: Value, new: Value, old: Option<Value>, expected: &[&str]) {
    assert_eq!(texts(&rules(schema).validate(&new, old.as_ref())), expected);
}

fn with_spec(spec: Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

#[test]
fn failures_show_their_message_reason_and_field() {
    let spec = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "x-kubernetes-validations": [
        {"rule": "self.a > 1"},
        {"rule": "self.a > 1", "message": " too small "},
        {"rule": "self.a > 1", "messageExpression": "'a is ' + string(self.a)", "fieldPath": ".a"},
        {"rule": "self.a > 1", "reason": "FieldValueForbidden", "message": "no"},
        {"rule": "self.a > 1", "reason": "FieldValueRequired", "message": "no"},
        {"rule": "self.a > 1", "reason": "FieldValueDuplicate", "message": "no"},
        {"rule": "self.a > 1", "messageExpression": "self.b", "message": "fallback"},
    ]});
    check(
        with_spec(spec),
        json!({"spec": {"a": 1}}),
        None,
        &[
            "spec: Invalid value: failed rule: self.a > 1",
            "spec: Invalid value: too small",
            "spec.a: Invalid value: a is 1",
            "spec: Forbidden: no",
            "spec: Required value: no",
            "spec: Duplicate value",
            "spec: Invalid value: fallback",
        ],
    );
}

#[test]
fn scalars_are_shown() {
    let spec = json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3", "message": "big"}]},
        "m": {"type": "object", "additionalProperties": {"type": "string",
            "x-kubernetes-validations": [{"rule": "self == 'x'", "message": "odd"}]}},
        "l": {"type": "array", "items": {"type": "string",
            "x-kubernetes-validations": [{"rule": "self == 'x'", "message": "odd"}]}},
    }});
    check(
        with_spec(spec),
        json!({"spec": {"n": 5, "m": {"k": "y"}, "l": ["x", "z"]}}),
        None,
        &[
            "spec.l[1]: Invalid value: \"z\": odd",
            "spec.m[k]: Invalid value: \"y\": odd",
            "spec.n: Invalid value: 5: big",
        ],
    );
}

#[test]
fn rules_see_identity_and_name() {
    let schema = json!({"type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name == 'a' && self.kind == 'K'", "message": "name"}]});
    check(schema.clone(), json!({"kind": "K", "apiVersion": "v1", "metadata": {"name": "a"}}), None, &[]);
    check(
        schema,
        json!({"kind": "K", "apiVersion": "v1", "metadata": {"name": "b"}}),
        None,
        &["<nil>: Invalid value: name"],
    );
}

#[test]
fn transition_rules_need_an_old_state() {
    let field = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]});
    let spec = json!({"type": "object", "properties": {"f": field}});
    check(with_spec(spec.clone()), json!({"spec": {"f": "a"}}), None, &[]);
    check(with_spec(spec.clone()), json!({"spec": {"f": "a"}}), Some(json!({"spec": {}})), &[]);
    check(with_spec(spec.clone()), json!({"spec": {"f": "a"}}), Some(json!({"spec": {"f": "a"}})), &[]);
    check(
        with_spec(spec),
        json!({"spec": {"f": "b"}}),
        Some(json!({"spec": {"f": "a"}})),
        &["spec.f: Invalid value: \"b\": fixed"],
    );
    let optional = json!({"type": "string", "x-kubernetes-validations": [
        {"rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": true, "message": "start new"}]});
    let spec = json!({"type": "object", "properties": {"f": optional}});
    check(
        with_spec(spec.clone()),
        json!({"spec": {"f": "a"}}),
        None,
        &["spec.f: Invalid value: \"a\": start new"],
    );
    check(with_spec(spec), json!({"spec": {"f": "a"}}), Some(json!({"spec": {"f": "b"}})), &[]);
}

#[test]
fn entries_of_keyed_lists_find_their_old_state() {
    let spec = json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {
        "k": {"type": "string"},
        "v": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "shrinks"}]},
    }}}}});
    check(
        with_spec(spec),
        json!({"spec": {"l": [{"k": "new", "v": 0}, {"k": "b", "v": 1}, {"k": "a", "v": 5}]}}),
        Some(json!({"spec": {"l": [{"k": "a", "v": 4}, {"k": "b", "v": 2}]}})),
        &["spec.l[1].v: Invalid value: 1: shrinks"],
    );
}

#[test]
fn failures_in_unchanged_parts_are_warnings_unless_the_rule_uses_old_self() {
    let field = json!({"type": "string", "x-kubernetes-validations": [
        {"rule": "self == 'x'", "message": "must be x"}, {"rule": "self != oldSelf", "message": "must change"}]});
    let schema = with_spec(json!({"type": "object", "properties": {"f": field, "g": {"type": "string"}}}));
    let rules = rules(schema);
    let outcome =
        rules.validate(&json!({"spec": {"f": "a", "g": "2"}}), Some(&json!({"spec": {"f": "a", "g": "1"}})));
    assert_eq!(texts(&outcome), ["spec.f: Invalid value: \"a\": must change"]);
    assert_eq!(outcome.warnings.entries(), ["spec.f: Invalid value: \"a\": must be x"]);
    let changed = rules.validate(&json!({"spec": {"f": "b"}}), Some(&json!({"spec": {"f": "a"}})));
    assert_eq!(texts(&changed), ["spec.f: Invalid value: \"b\": must be x"]);
}

#[test]
fn errors_of_expressions_name_the_rule() {
    let spec = json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.m['x'] == 'y'", "message": "text"}]});
    check(
        with_spec(spec),
        json!({"spec": {"m": {}}}),
        None,
        &["spec: Invalid value: \"object\": no such key: x evaluating rule: text"],
    );
}

#[test]
fn the_budget_is_shared_by_all_rules() {
    let spec = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer",
        "x-kubernetes-validations": [{"rule": "[1,2,3,4,5,6,7,8,9].all(x, [1,2,3,4,5,6,7,8,9].all(y, [1,2,3,4,5,6,7,8,9].all(z, x + y + z > self)))"}]}}}});
    let object = json!({"spec": {"l": [0, 0, 0, 0, 0]}});
    let errors = rules(with_spec(spec)).validate_at(&object, None, &mut Budget::new(20_000), &Path::ROOT);
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].ends_with(
        "Invalid value: \"integer\": validation failed due to running out of cost budget, no further validation rules will be run"
    ));
}

#[test]
fn a_schema_without_rules_has_nothing_to_run() {
    let schema = Arc::new(Schema::from_json(&json!({"type": "object"})).expect("valid"));
    assert!(Rules::compile(&schema, true).is_none());
}
