//! Any answer to a ConversionReview is the same object in another version, or an error.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::answer;
use crate::fuzz::{config, mutated};

fn sent() -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {
        "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
        "labels": {"l": "1"}, "annotations": {"a": "1"}}})
}

fn review() -> impl Strategy<Value = Value> {
    let mut converted = sent();
    converted["apiVersion"] = "ex.io/v2".into();
    mutated(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": "u", "result": {"status": "Success"}, "convertedObjects": [converted]},
    }))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_converted_object_keeps_its_identity_whatever_was_answered(review in review(), old: bool) {
        let version = if old { "v1beta1" } else { "v1" };
        for mut object in answer::objects(version, "u", review).unwrap_or_default() {
            if answer::check(&sent(), &object, "ex.io/v2").is_err() {
                continue;
            }
            if answer::restore_metadata(&sent(), &mut object).is_ok() {
                for field in ["name", "namespace", "uid", "resourceVersion", "finalizers"] {
                    prop_assert_eq!(&object["metadata"][field], &sent()["metadata"][field], "{}", field);
                }
            }
        }
    }
}
