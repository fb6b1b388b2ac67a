//! Validates any object against any schema.

use std::sync::Arc;

use capstan_schema::correlate::Correlated;
use capstan_schema::custom::{Decode, Validator, decode};
use capstan_schema::jsonpath::Path as JsonPath;
use capstan_schema::path::Path;
use capstan_schema::selector::{FieldSelector, LabelSelector};
use capstan_schema::{Schema, crd, meta, prune};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{arbitrary, config};

fn definition(schema: Value) -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    })
}

fn object(content: Value) -> Value {
    let mut object = match content {
        Value::Object(fields) => Value::Object(fields),
        other => json!({"spec": other}),
    };
    object["apiVersion"] = "example.com/v1".into();
    object["kind"] = "Widget".into();
    object
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn any_definition_is_accepted_or_rejected(schema in arbitrary::schema(), junk in arbitrary::json()) {
        let mut new = definition(schema);
        crd::default(&mut new);
        _ = crd::validate(&new, None);
        _ = crd::structural_errors(&new);
        let mut wild = json!({"metadata": junk.clone(), "spec": junk.clone(), "status": junk});
        crd::default(&mut wild);
        _ = crd::validate(&wild, Some(&new));
        _ = crd::validate(&new, Some(&wild));
    }

    #[test]
    fn any_object_is_accepted_or_rejected(
        schema in arbitrary::schema(), new in arbitrary::json(), old in arbitrary::json(),
    ) {
        let Ok(mut schema) = Schema::from_json(&schema) else { return Ok(()) };
        crd::prune_defaults(&mut schema);
        let schema = Arc::new(schema);
        let validator = Validator::new("example.com", "v1", "Widget", true, schema.clone(), None);
        let (mut new, mut old) = (object(new), object(old));
        let lenient = Decode { drop_malformed: true, ..Decode::default() };
        if decode(&mut new, &schema, Decode::default()).is_ok() && decode(&mut old, &schema, lenient).is_ok() {
            _ = validator.validate(&new);
            _ = validator.validate_update(&new, &old);
            _ = validator.validate_status_update(&new, &old);
        }
    }

    #[test]
    fn decoding_twice_changes_nothing(schema in arbitrary::schema(), content in arbitrary::json()) {
        let Ok(schema) = Schema::from_json(&schema) else { return Ok(()) };
        let mut once = object(content);
        if decode(&mut once, &schema, Decode::default()).is_ok() {
            // Defaults are pruned on the next pass, so compare from there on.
            prune::prune(&mut once, &schema);
            let mut twice = once.clone();
            prop_assert!(prune::prune(&mut twice, &schema).is_empty());
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn an_unchanged_object_breaks_nothing_new(schema in arbitrary::schema(), content in arbitrary::json()) {
        let Ok(schema) = Schema::from_json(&schema) else { return Ok(()) };
        let pair = Correlated { new: &content, old: &content, schema: &schema };
        if pair.unchanged() {
            let errors = capstan_schema::validate::validate_update(pair, &schema, &Path::ROOT);
            prop_assert!(errors.is_empty(), "{:?}", errors);
        }
    }

    #[test]
    fn any_metadata_is_accepted_or_rejected(new in arbitrary::json(), old in arbitrary::json()) {
        let path = Path::at("metadata");
        _ = meta::validate_object_meta(&new, true, meta::name_is_dns_subdomain, &path);
        _ = meta::validate_object_meta_update(&new, &old, &path);
        _ = meta::decode_object_meta(&new, false);
        if let Ok(decoded) = meta::decode_object_meta(&new, true) {
            let again = meta::decode_object_meta(&decoded.metadata.clone().into(), false);
            prop_assert_eq!(again.map(|d| d.metadata), Ok(decoded.metadata));
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in ".{0,40}", labels in arbitrary::json()) {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector.clone()));
            selector.matches_labels(labels.as_object());
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
        _ = LabelSelector::from_object(&labels);
        if let Ok(path) = JsonPath::parse(&text) {
            path.find(&labels);
        }
        _ = meta::parse_rfc3339(&text);
    }

    #[test]
    fn paths_made_of_path_characters_are_parsed_or_refused(
        text in r#"[.\[\]?()@'"a:*,0-9=<>! \\-]{0,24}"#, value in arbitrary::json(),
    ) {
        if let Ok(path) = JsonPath::parse(&text) {
            path.find(&value);
        }
        _ = LabelSelector::parse(&text);
    }
}
