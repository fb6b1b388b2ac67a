use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::negotiation::Shape;
use crate::registry::{Column, CustomResource, Origin};

const NOW: &str = "2026-01-02T00:00:00Z";
const BORN: &str = "2026-01-01T22:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn options(include: Include) -> Options {
    Options { version: MetaVersion::V1, include }
}

/// A minimal resource.
fn resource(group: &str, kind: &str, columns: Option<Vec<Column>>) -> Resource {
    let origin = match &columns {
        None => Origin::BuiltIn,
        Some(_) => Origin::Custom(Arc::new(CustomResource {
            name: "widgets.example.com".into(),
            uid: String::new(),
            spec: Value::Null,
            preserve_unknown: false,
            schema_epoch: 0,
            terminating: false,
        })),
    };
    Resource {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: format!("{}s", kind.to_lowercase()),
        singular: kind.to_lowercase(),
        short_names: vec![],
        categories: vec![],
        namespaced: true,
        verbs: vec![],
        subresources: vec![],
        schema: Arc::default(),
        columns: columns.unwrap_or_default(),
        storage_version: "v1".into(),
        bucket: "".into(),
        behaviour: None,
        origin,
    }
}

/// Cells of an object of a built-in kind as one line. Checks that they match the columns.
fn line(group: &str, kind: &str, mut object: Value) -> String {
    object["metadata"]["name"] = "x".into();
    object["metadata"]["creationTimestamp"] = BORN.into();
    let table = Printer::new(&resource(group, kind, None)).object_table(
        &object,
        true,
        &options(Include::None),
        now(),
    );
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), table["columnDefinitions"].as_array().unwrap().len(), "{kind}");
    let cells: Vec<String> = cells.iter().map(read::scalar).collect();
    cells.join(" | ")
}

#[test]
fn built_in_kinds_print_as_upstream() {
    let cases = include_str!("builtin/cases.yaml");
    let cases: Vec<Value> = serde_saphyr::from_str(cases).unwrap();
    for case in cases {
        let of = |key: &str| case[key].as_str().unwrap_or("").to_owned();
        let printed = line(&of("group"), &of("kind"), case["object"].clone());
        assert_eq!(printed, of("prints"), "{}", case["kind"]);
    }
}

#[test]
fn a_custom_resource_shows_its_columns_or_its_age() {
    let object = json!({"metadata": {"name": "w", "creationTimestamp": BORN}, "spec": {"replicas": 3}});
    let columns = vec![Column {
        name: "Replicas".into(),
        kind: "integer".into(),
        format: "int32".into(),
        description: String::new(),
        priority: 1,
        json_path: ".spec.replicas".into(),
    }];
    let with = Printer::new(&resource("example.com", "Widget", Some(columns)));
    insta::assert_json_snapshot!(with.object_table(&object, true, &options(Include::None), now()));
    let without = Printer::new(&resource("example.com", "Widget", Some(vec![])));
    let table = without.object_table(&object, true, &options(Include::None), now());
    assert_eq!(table["columnDefinitions"][1]["type"], "date");
    assert_eq!(table["rows"][0]["cells"], json!(["w", "120m"]));
}

#[test]
fn rows_carry_what_was_asked_for() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "labels": {"a": "b"}}, "data": {"k": "v"},
    });
    let printer = Printer::new(&resource("", "ConfigMap", None));
    let carried = |include| printer.row(&object, &options(include), now())["object"].clone();
    assert_eq!(carried(Include::None), Value::Null);
    assert_eq!(carried(Include::Object), object);
    assert_eq!(
        carried(Include::Metadata),
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": "c", "labels": {"a": "b"}},
        })
    );
}

#[test]
fn the_bookmark_that_ends_initial_events_keeps_its_annotation() {
    let bookmark = json!({"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}});
    let printer = Printer::new(&resource("", "ConfigMap", None));
    let row = printer.row(&bookmark, &options(Include::None), now());
    assert_eq!(row["object"]["metadata"], bookmark["metadata"]);
}

#[test]
fn a_list_hands_on_where_it_continues() {
    let list = json!({
        "metadata": {"resourceVersion": "7", "continue": "abc", "remainingItemCount": 2, "selfLink": "x"},
        "items": [{"metadata": {"name": "a"}}],
    });
    let printer = Printer::new(&resource("", "ServiceAccount", None));
    let table = printer.list_table(&list, &options(Include::None), now());
    let expected = json!({"resourceVersion": "7", "continue": "abc", "remainingItemCount": 2});
    assert_eq!(table["metadata"], expected);
    assert_eq!(table["rows"][0]["cells"], json!(["a", "<unknown>"]));
    let partial = metadata_list(&list, MetaVersion::V1);
    assert_eq!(partial["metadata"], expected);
    assert_eq!(partial["items"][0]["kind"], "PartialObjectMetadata");
}

#[test]
fn later_watch_events_repeat_no_headers() {
    let printer = Printer::new(&resource("", "ServiceAccount", None));
    let table = printer.object_table(&json!({}), false, &options(Include::None), now());
    assert_eq!(table["columnDefinitions"], Value::Null);
}

#[test]
fn include_object_is_checked() {
    let error = Options::new(MetaVersion::V1, Some("All")).unwrap_err();
    assert_eq!(
        error.message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": \
         must be 'Metadata', 'Object', 'None', or empty"
    );
}

#[test]
fn objects_have_metadata_and_lists_have_metadata_lists() {
    let config_map = resource("", "ConfigMap", None);
    let widget = resource("example.com", "Widget", Some(vec![]));
    let (one, many) = (Shape::Metadata(MetaVersion::V1), Shape::MetadataList(MetaVersion::V1));
    assert!(check_shape(one, &config_map, false).is_ok());
    assert!(check_shape(many, &config_map, true).is_ok());
    assert!(check_shape(Shape::Table(MetaVersion::V1), &config_map, true).is_ok());
    assert_eq!(
        check_shape(one, &config_map, true).unwrap_err().message,
        "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
    );
    assert_eq!(
        check_shape(many, &config_map, false).unwrap_err().message,
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"
    );
    let refused = check_shape(many, &widget, false).unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (500, "content is not a list"));
}

/// Values of unexpected types.
fn strays() -> [Value; 6] {
    [json!(null), json!(1), json!("x"), json!([]), json!({}), json!([{"name": [1]}])]
}

/// Every value that differs from `value` in one field.
fn mutations(value: &Value) -> Vec<Value> {
    let mut out = strays().to_vec();
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                for mutated in mutations(child) {
                    let mut map = map.clone();
                    map.insert(key.clone(), mutated);
                    out.push(map.into());
                }
            }
        }
        Value::Array(list) => {
            for (index, child) in list.iter().enumerate() {
                for mutated in mutations(child) {
                    let mut list = list.clone();
                    list[index] = mutated;
                    out.push(list.into());
                }
            }
        }
        _ => {}
    }
    out
}

#[test]
fn a_malformed_object_still_gets_a_row_of_all_columns() {
    let cases: Vec<Value> = serde_saphyr::from_str(include_str!("builtin/cases.yaml")).unwrap();
    for case in cases {
        let of = |key: &str| case[key].as_str().unwrap_or("").to_owned();
        let printer = Printer::new(&resource(&of("group"), &of("kind"), None));
        for object in mutations(&case["object"]) {
            let table = printer.object_table(&object, true, &options(Include::Metadata), now());
            let columns = table["columnDefinitions"].as_array().unwrap().len();
            assert_eq!(table["rows"][0]["cells"].as_array().unwrap().len(), columns, "{object}");
        }
    }
}
