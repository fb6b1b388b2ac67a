//! ClusterResourceSets.

use super::*;

#[test]
fn resource_sets() {
    let set = json!({
        "metadata": { "name": "one" },
        "spec": { "clusterSelector": { "matchLabels": { "a": "b" } }, "strategy": "ApplyOnce", "resources": [] },
    });
    created(
        ADDONS,
        "ClusterResourceSet",
        &set,
        &[(
            json!({ "spec": { "clusterSelector": { "matchLabels": null } } }),
            &["spec.clusterSelector: Invalid value: {}: selector must not be empty"],
        )],
    );
    updated(
        ADDONS,
        "ClusterResourceSet",
        &set,
        &[
            (json!({ "spec": { "resources": [{ "kind": "Secret", "name": "a" }] } }), &[]),
            (
                json!({ "spec": { "strategy": "Reconcile" } }),
                &["spec.strategy: Invalid value: \"Reconcile\": field is immutable"],
            ),
            (
                json!({ "spec": { "clusterSelector": { "matchLabels": { "a": "c" } } } }),
                &["spec.clusterSelector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable"],
            ),
        ],
    );
    assert_eq!(
        defaulted(ADDONS, "ClusterResourceSet", json!({ "spec": {} }), None)["spec"]["strategy"],
        "ApplyOnce"
    );
    updated(
        ADDONS,
        "ClusterResourceSetBinding",
        &json!({ "spec": { "clusterName": "one" } }),
        &[
            (json!({ "spec": { "bindings": [] } }), &[]),
            (
                json!({ "spec": { "clusterName": "two" } }),
                &["spec.clusterName: Invalid value: \"two\": field is immutable"],
            ),
        ],
    );
}
