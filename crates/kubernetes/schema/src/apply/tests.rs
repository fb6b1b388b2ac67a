use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const THEN: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-01T00:00:05Z";

/// Versions `v1` and `v2`; `spec.text` of the first is `spec.words` of the second.
struct Foo(BTreeMap<String, Arc<Schema>>);

impl Foo {
    fn new() -> Self {
        let schema = |name: &str| {
            let text = json!({"type": "string"});
            let spec = json!({"type": "object", "properties": {
                name: text,
                "count": {"type": "integer"},
                "struct": {"type": "object", "properties": {"a": text, "b": text}},
                "map": {"type": "object", "additionalProperties": text},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
                "list": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": text, "value": text}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }});
            let status = json!({"type": "object", "properties": {"phase": text}});
            let root = json!({"type": "object", "properties": {"spec": spec, "status": status}});
            Arc::new(Schema::from_json(&root).unwrap())
        };
        Self([("ex.io/v1".to_owned(), schema("text")), ("ex.io/v2".to_owned(), schema("words"))].into())
    }
}

impl Versions for Foo {
    fn schema(&self, api_version: &str) -> Option<Arc<Schema>> {
        self.0.get(api_version).cloned()
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, String> {
        let mut object = object.clone();
        let (from_name, to_name) = if to == "ex.io/v1" { ("words", "text") } else { ("text", "words") };
        object["apiVersion"] = to.into();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
            && let Some(value) = spec.remove(from_name)
        {
            spec.insert(to_name.to_owned(), value);
        }
        Ok(object)
    }
}

/// An object and the requests that change it.
struct TestObject {
    foo: Foo,
    reset: Set,
    live: Option<Value>,
    now: &'static str,
}

impl TestObject {
    fn new() -> Self {
        Self { foo: Foo::new(), reset: Set::of_fields(&[&["status"]]), live: None, now: THEN }
    }

    fn ownership(&self) -> Ownership<'_> {
        let reset = &self.reset;
        Ownership { versions: &self.foo, api_version: "ex.io/v1", kind: "Foo", subresource: "", reset }
    }

    fn live_or_empty(&self) -> Value {
        self.live.clone().unwrap_or_else(|| self.ownership().empty_object())
    }

    fn stored(&mut self, mut object: Value) -> &Value {
        object["metadata"]["uid"] = "u".into();
        self.live.insert(object)
    }

    fn update(&mut self, manager: &str, spec: &Value) {
        let mut new = object("ex.io/v1", spec);
        if self.live.is_some() {
            new["metadata"]["uid"] = "u".into();
        }
        let object = self.ownership().update(&self.live_or_empty(), new, manager, self.now);
        self.stored(object);
    }

    fn try_apply(&self, manager: &str, spec: &Value, force: bool) -> Result<Value, ApplyError> {
        self.ownership().apply(&self.live_or_empty(), &object("ex.io/v1", spec), manager, force, self.now)
    }

    fn apply(&mut self, manager: &str, spec: &Value) {
        let object = self.try_apply(manager, spec, false).unwrap();
        self.stored(object);
    }

    fn spec(&self) -> &Value {
        &self.live.as_ref().unwrap()["spec"]
    }

    /// `manager operation [subresource] time fields-of-spec`, one per entry.
    fn owners(&self) -> Vec<String> {
        owners(self.live.as_ref().unwrap())
    }
}

fn owners(object: &Value) -> Vec<String> {
    let text = |e: &Entry| {
        let fields = e.fields.clone().unwrap_or_default();
        let fields = fields.get("f:spec").unwrap_or(&fields).to_string();
        let time = e.time.as_deref().map_or("-", |t| if t == NOW { "now" } else { "then" });
        let subresource =
            if e.subresource.is_empty() { String::new() } else { format!(" {}", e.subresource) };
        format!("{} {}{subresource} {time} {fields}", e.manager, e.operation)
    };
    entries(object).unwrap_or_default().iter().map(text).collect()
}

fn object(api_version: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": "Foo", "metadata": {"name": "x"}, "spec": spec})
}

#[test]
fn an_object_of_another_kind_has_no_owners() {
    let mut bed = TestObject::new();
    bed.update("a", &json!({"text": "x"}));
    assert_eq!(bed.owners().len(), 1);
    let mut new = bed.live_or_empty();
    new["kind"] = "Other".into();
    let object = bed.ownership().update(&bed.live_or_empty(), new, "b", NOW);
    assert_eq!(owners(&object), Vec::<String>::new());
}

#[test]
fn the_creator_of_an_object_owns_its_fields() {
    let mut bed = TestObject::new();
    bed.update("kubectl", &json!({"text": "a", "struct": {"a": "1"}}));
    assert_eq!(bed.owners(), [r#"kubectl Update then {".":{},"f:struct":{".":{},"f:a":{}},"f:text":{}}"#]);

    let mut bed = TestObject::new();
    bed.apply("m", &json!({"text": "a", "struct": {"a": "1"}}));
    assert_eq!(bed.owners(), [r#"m Apply then {"f:struct":{"f:a":{}},"f:text":{}}"#]);
}

#[test]
fn an_update_takes_what_it_changes_and_nothing_else() {
    let mut bed = TestObject::new();
    bed.update("a", &json!({"text": "a", "count": 1, "map": {"x": "1"}}));
    bed.now = NOW;
    bed.update("b", &json!({"text": "b", "count": 1, "map": {"y": "1"}}));
    assert_eq!(
        bed.owners(),
        [
            r#"a Update then {".":{},"f:count":{},"f:map":{}}"#,
            r#"b Update now {"f:map":{"f:y":{}},"f:text":{}}"#,
        ]
    );
}

#[test]
fn applying_a_field_of_another_manager_is_a_conflict_unless_forced_or_equal() {
    let mut bed = TestObject::new();
    bed.apply("a", &json!({"text": "a", "count": 1}));
    bed.update("kubectl", &json!({"text": "a", "count": 2}));
    bed.now = NOW;

    // Equal values are shared. A manager that joins without changing anything has no time.
    let shared = bed.try_apply("c", &json!({"text": "a"}), false).unwrap();
    assert_eq!(
        owners(&shared),
        [
            r#"c Apply - {"f:text":{}}"#,
            r#"a Apply then {"f:text":{}}"#,
            r#"kubectl Update then {"f:count":{}}"#
        ]
    );

    let error = bed.try_apply("c", &json!({"count": 3}), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl\" using ex.io/v1: .spec.count"
    );
    let error = bed.try_apply("c", &json!({"text": "c", "count": 3}), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.text\nconflicts with \"kubectl\" using ex.io/v1:\n- .spec.count"
    );
    let ApplyError::Conflict(conflicts) = error else { panic!("a conflict") };
    assert_eq!(
        conflicts.causes()[1],
        Cause {
            reason: "FieldManagerConflict",
            message: "conflict with \"kubectl\" using ex.io/v1".to_owned(),
            field: ".spec.count".to_owned(),
        }
    );

    let forced = bed.try_apply("c", &json!({"text": "c", "count": 3}), true).unwrap();
    assert_eq!(owners(&forced), [r#"c Apply now {"f:count":{},"f:text":{}}"#]);
}

#[test]
fn a_field_no_longer_applied_is_removed_unless_another_manager_owns_it() {
    let mut bed = TestObject::new();
    bed.apply(
        "a",
        &json!({"text": "a", "struct": {"a": "1", "b": "1"}, "set": ["x", "y"], "list": [{"name": "n"}]}),
    );
    bed.apply("b", &json!({"set": ["y"], "struct": {"b": "1"}}));
    bed.apply("a", &json!({"count": 1}));
    assert_eq!(*bed.spec(), json!({"count": 1, "set": ["y"], "struct": {"b": "1"}}));
    // An entry is removed together with fields of other managers if none of them owns the entry itself. A list in
    // which others own something becomes null, which validation then rejects as upstream does.
    bed.apply("b", &json!({"list": [{"name": "n"}]}));
    bed.update("c", &json!({"count": 1, "list": [{"name": "n", "value": "v"}]}));
    bed.apply("b", &json!({}));
    assert_eq!(*bed.spec(), json!({"count": 1, "list": null}));
}

#[test]
fn applying_nothing_new_keeps_the_time_of_the_entry() {
    let mut bed = TestObject::new();
    bed.apply("a", &json!({"text": "a"}));
    bed.now = NOW;
    let before = bed.live.clone().unwrap();
    bed.apply("a", &json!({"text": "a"}));
    assert_eq!(bed.live, Some(before));
}

#[test]
fn fields_from_before_the_first_apply_belong_to_an_unknown_manager() {
    let mut bed = TestObject::new();
    bed.live = Some(object("ex.io/v1", &json!({"text": "a", "count": 1})));
    bed.live.as_mut().unwrap()["metadata"]["uid"] = "u".into();
    bed.update("m", &json!({"text": "b", "count": 1}));
    assert_eq!(bed.owners(), Vec::<String>::new(), "updates of an object without owners are not tracked");
    let error = bed.try_apply("m", &json!({"text": "c"}), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using ex.io/v1: .spec.text"
    );
    bed.apply("m", &json!({"text": "b"}));
    assert_eq!(
        bed.owners(),
        [r#"m Apply - {"f:text":{}}"#, r#"before-first-apply Update then {".":{},"f:count":{},"f:text":{}}"#]
    );
}

#[test]
fn a_request_may_replace_or_forget_owners_but_not_break_them() {
    let sent = json!([{
        "manager": "x", "operation": "Update", "apiVersion": "ex.io/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:count": {}}},
    }]);
    for (entries, subresource, expected) in [
        (json!([]), "", vec![]),
        (json!([{}]), "", vec![]),
        (json!(null), "", vec![r#"m Update then {".":{},"f:count":{}}"#]),
        (json!([{"manager": "x"}]), "", vec![r#"m Update then {".":{},"f:count":{}}"#]),
        (sent.clone(), "", vec![r#"x Update - {"f:count":{}}"#]),
        (sent, "status", vec![r#"m Update then {".":{},"f:count":{}}"#]),
    ] {
        let mut bed = TestObject::new();
        bed.update("m", &json!({"count": 1}));
        let live = bed.live.clone().unwrap();
        let mut new = live.clone();
        new["metadata"]["managedFields"] = entries.clone();
        let ownership = Ownership { subresource, ..bed.ownership() };
        assert_eq!(owners(&ownership.update(&live, new, "n", NOW)), expected, "{entries} {subresource}");
    }
}

#[test]
fn fields_an_endpoint_does_not_reach_are_not_owned_through_it() {
    let bed = TestObject::new();
    let mut new = object("ex.io/v1", &json!({"count": 1}));
    new["status"] = json!({"phase": "up"});
    let created = bed.ownership().update(&bed.live_or_empty(), new.clone(), "m", THEN);
    assert_eq!(entries(&created).unwrap()[0].fields, Some(json!({"f:spec": {".": {}, "f:count": {}}})));

    let reset = Set::of_fields(&[&["metadata"], &["spec"]]);
    let status = Ownership { subresource: "status", reset: &reset, ..bed.ownership() };
    let written = status.update(&bed.live_or_empty(), new, "m", THEN);
    let entry = entries(&written).unwrap().remove(0);
    assert_eq!(entry.fields, Some(json!({"f:status": {".": {}, "f:phase": {}}})));
    assert_eq!(entry.subresource, "status");
}

#[test]
fn an_object_that_does_not_fit_its_schema_has_no_owners_after_an_update() {
    let mut bed = TestObject::new();
    bed.update("m", &json!({"count": 1}));
    bed.update("m", &json!({"count": "one"}));
    assert_eq!(bed.owners(), Vec::<String>::new());
}

#[test]
fn configurations_of_another_type_or_with_entries_are_bad_requests() {
    let bed = TestObject::new();
    let apply =
        |applied: &Value| bed.ownership().apply(&bed.live_or_empty(), applied, "m", false, NOW).unwrap_err();
    for (applied, text) in [
        (object("ex.io/v2", &json!({})), "invalid object type: ex.io/v2, Kind=Foo"),
        (json!({"apiVersion": "v1", "kind": "Pod"}), "invalid object type: /v1, Kind=Pod"),
        (json!({}), "invalid object type: /, Kind="),
    ] {
        assert_eq!(apply(&applied), ApplyError::BadRequest(text.to_owned()));
    }
    let mut applied = object("ex.io/v1", &json!({}));
    applied["metadata"]["managedFields"] = json!([]);
    assert_eq!(apply(&applied), ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    applied["metadata"] = json!({"namespace": "ns", "name": "x"});
    applied["spec"]["nope"] = json!(1);
    assert_eq!(
        apply(&applied),
        ApplyError::Internal(
            "failed to create typed patch object (ns/x; ex.io/v1, Kind=Foo): .spec.nope: field not declared in schema"
                .to_owned()
        )
    );
}

#[test]
fn ownership_follows_fields_through_versions() {
    let mut bed = TestObject::new();
    bed.apply("a", &json!({"text": "a", "count": 1}));
    let live = bed.foo.convert(bed.live.as_ref().unwrap(), "ex.io/v2").unwrap();
    let v2 = Ownership { api_version: "ex.io/v2", ..bed.ownership() };
    let error = v2.apply(&live, &object("ex.io/v2", &json!({"words": "b"})), "b", false, NOW).unwrap_err();
    // The path is in the owner's own version.
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"a\": .spec.text");
    // An applier that changes versions keeps its identity, and what it applied before is removed.
    let moved = v2.apply(&live, &object("ex.io/v2", &json!({"count": 1})), "a", false, NOW).unwrap();
    assert_eq!(moved["spec"], json!({"count": 1}));
    assert_eq!(owners(&moved), [r#"a Apply now {"f:count":{}}"#]);
}

#[test]
fn entries_of_versions_that_are_gone_are_dropped() {
    let mut bed = TestObject::new();
    bed.apply("a", &json!({"text": "a"}));
    bed.apply("b", &json!({"count": 1}));
    bed.live.as_mut().unwrap()["metadata"]["managedFields"][0]["apiVersion"] = "ex.io/v0".into();
    bed.update("c", &json!({"text": "a", "count": 2}));
    assert_eq!(bed.owners(), [r#"c Update then {"f:count":{}}"#]);
}

#[test]
fn the_oldest_of_many_updaters_are_merged() {
    let mut bed = TestObject::new();
    let mut map = serde_json::Map::new();
    for i in 0..13 {
        map.insert(format!("k{i:02}"), "v".into());
        bed.update(&format!("m{i:02}"), &json!({"map": map}));
    }
    let owners = bed.owners();
    assert_eq!(owners.len(), 10);
    assert_eq!(
        owners[0],
        r#"ancient-changes Update then {".":{},"f:map":{".":{},"f:k00":{},"f:k01":{},"f:k02":{},"f:k03":{}}}"#
    );
    assert_eq!(owners[9], r#"m12 Update then {"f:map":{"f:k12":{}}}"#);
}

#[test]
fn kubectl_may_take_over_what_its_annotation_shows_as_its_own() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last = object("ex.io/v1", &json!({"text": "a", "count": 1}));
    let mut bed = TestObject::new();
    let mut created = object("ex.io/v1", &json!({"text": "a", "count": 2}));
    created["metadata"]["annotations"] = json!({annotation: last.to_string()});
    let live = bed.ownership().update(&bed.live_or_empty(), created, "kubectl-client-side-apply", THEN);
    bed.stored(live);

    // Only while the field is as in the annotation.
    let error = bed.try_apply("kubectl", &json!({"text": "b", "count": 3}), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using ex.io/v1: .spec.count"
    );
    assert!(bed.try_apply("other", &json!({"text": "b"}), false).is_err());
    let applied = bed.try_apply("kubectl", &json!({"text": "<b>"}), false).unwrap();
    assert_eq!(applied["spec"], json!({"text": "<b>", "count": 2}));
    assert_eq!(
        applied["metadata"]["annotations"][annotation],
        "{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Foo\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"text\":\"\\u003cb\\u003e\"}}\n"
    );
}

#[test]
fn a_write_that_changes_nothing_but_times_keeps_them() {
    let mut bed = TestObject::new();
    bed.update("m", &json!({"count": 1}));
    let old = bed.live.clone().unwrap();
    let later = |spec: &Value| {
        let mut new = old.clone();
        new["spec"] = spec.clone();
        new["metadata"]["managedFields"][0]["time"] = NOW.into();
        keep_times(&old, &mut new);
        owners(&new)[0].contains(" now ")
    };
    assert!(!later(&json!({"count": 1})));
    assert!(later(&json!({"count": 2})));
}

#[test]
fn a_manager_is_named_by_its_request_or_its_user_agent() {
    for (field_manager, user_agent, name) in [
        ("m", "kubectl/v1.36.3", "m"),
        ("", "kubectl/v1.36.3 (linux/amd64)", "kubectl"),
        ("", "a\u{7}b c", "ab c"),
        ("", "", ""),
    ] {
        assert_eq!(manager_name(field_manager, user_agent), name);
    }
    assert_eq!(manager_name("", &"é".repeat(100)).len(), 128);
    let mut bed = TestObject::new();
    bed.update("", &json!({"count": 1}));
    assert_eq!(bed.owners(), [r#"unknown Update then {".":{},"f:count":{}}"#]);
}

#[test]
fn scaling_moves_the_replicas_of_the_parent_to_who_scaled() {
    let parent = json!({"metadata": {"managedFields": [
        {"manager": "a", "operation": "Apply", "apiVersion": "apps/v1", "time": THEN, "fieldsType": "FieldsV1",
         "fieldsV1": {"f:spec": {"f:replicas": {}, "f:paused": {}}}},
        {"manager": "b", "operation": "Update", "apiVersion": "apps/v0", "time": THEN, "fieldsType": "FieldsV1",
         "fieldsV1": {"f:spec": {"f:paused": {}}}},
    ]}});
    let paths = [("apps/v1".to_owned(), Some(scale::replicas_path(".spec.replicas")))].into();
    let shown = json!({"metadata": {"managedFields": scale::to_scale(&parent, &paths).unwrap()}});
    assert_eq!(owners(&shown), [r#"a Apply then {"f:replicas":{}}"#]);
    assert_eq!(shown["metadata"]["managedFields"][0]["apiVersion"], "autoscaling/v1");

    let after = |scale: &Value| {
        let entries = scale::to_parent(&parent, scale, "apps/v1", &paths).unwrap();
        owners(&json!({"metadata": {"managedFields": entries}}))
    };
    assert_eq!(after(&shown), [r#"a Apply then {"f:paused":{},"f:replicas":{}}"#]);
    let scaled = json!({"metadata": {"managedFields": [
        {"manager": "s", "operation": "Update", "apiVersion": "autoscaling/v1", "subresource": "scale", "time": NOW,
         "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
    ]}});
    // Upstream loses the time on the way.
    assert_eq!(after(&scaled), [r#"a Apply then {"f:paused":{}}"#, r#"s Update scale - {"f:replicas":{}}"#]);
}

fn config() -> impl Strategy<Value = Value> {
    let text = || "[ab]".prop_map(Value::from);
    let unique = || prop::collection::btree_set("[a-d]", 0..4);
    let free = prop_oneof![text(), Just(json!([1, {"x": null}])), Just(json!({"x": 1, "y": {"z": "q"}}))];
    (
        prop::option::of(text()),
        prop::option::of(prop::collection::btree_map("[ab]", text(), 0..3)),
        prop::option::of(prop::collection::btree_map("[a-c]", text(), 0..3)),
        prop::option::of(unique()),
        prop::option::of(prop::collection::btree_map("[a-c]", prop::option::of(text()), 0..3)),
        prop::option::of(prop::collection::btree_map("[a-c]", free, 0..3)),
    )
        .prop_map(|(text, object, map, set, list, free)| {
            let mut spec = serde_json::Map::new();
            let mut put = |name: &str, value: Option<Value>| {
                if let Some(value) = value {
                    spec.insert(name.to_owned(), value);
                }
            };
            put("text", text);
            put("struct", object.map(|m| json!(m)));
            put("map", map.map(|m| json!(m)));
            put("set", set.map(|s| json!(s)));
            let entry = |(name, value): (String, Option<Value>)| match value {
                Some(value) => json!({"name": name, "value": value}),
                None => json!({"name": name}),
            };
            put("list", list.map(|l| l.into_iter().map(entry).collect()));
            put("free", free.map(|m| json!(m)));
            Value::Object(spec)
        })
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(live in config(), other in config(), mine in config()) {
        let mut bed = TestObject::new();
        bed.update("u", &live);
        let forced = bed.try_apply("o", &other, true).unwrap();
        bed.stored(forced);
        let once = bed.try_apply("m", &mine, true).unwrap();
        bed.stored(once.clone());
        bed.now = NOW;
        let twice = bed.try_apply("m", &mine, false).unwrap();
        prop_assert_eq!(twice, bed.live.clone().unwrap());
    }

    #[test]
    fn a_field_with_one_applier_is_removed_when_nothing_is_applied(mine in config()) {
        let mut bed = TestObject::new();
        bed.apply("m", &mine);
        let gone = bed.try_apply("m", &json!({}), false).unwrap();
        let of = bed.foo.schema("ex.io/v1").unwrap();
        let left = typed::field_set(&gone["spec"], typed::Type::of(&of.properties["spec"]));
        let had = typed::field_set(&mine, typed::Type::of(&of.properties["spec"]));
        prop_assert!(left.intersection(&had.leaves()).is_empty(), "{} left of {}", gone["spec"], mine);
    }

    #[test]
    fn fields_of_another_applier_stay_when_nothing_is_applied(theirs in config(), mine in config()) {
        let mut bed = TestObject::new();
        bed.apply("they", &theirs);
        let Ok(both) = bed.try_apply("me", &mine, false) else { return Ok(()) };
        bed.stored(both);
        let after = bed.try_apply("me", &json!({}), false).unwrap();
        let of = bed.foo.schema("ex.io/v1").unwrap();
        let of = typed::Type::object(&of);
        let leaves = typed::field_set(&object("ex.io/v1", &theirs), of).leaves();
        let theirs = |object: &Value| content(&typed::extract(object, &leaves, of));
        prop_assert_eq!(theirs(&after), theirs(bed.live.as_ref().unwrap()));
    }
}

/// The value without nulls and empty values.
fn content(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().filter_map(content).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(map) => {
            let map: serde_json::Map<String, Value> =
                map.iter().filter_map(|(key, value)| Some((key.clone(), content(value)?))).collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        other => Some(other.clone()),
    }
}
