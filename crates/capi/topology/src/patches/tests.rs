//! Tables of patches: a template and variables in, a template out.

use capstan_capi_types::core::cluster_class::ClusterClassPatch;
use serde_json::{Map, Value, json};

use super::*;

/// Without extensions.
fn apply(patches: &[ClusterClassPatch], items: &mut [Item], variables: &Variables) -> Result<(), String> {
    super::apply(patches, items, variables, &Answers::default()).map_err(|stop| stop.to_string())
}

fn item(holder: Holder, kind: &str) -> Item {
    Item {
        holder,
        held_by: HolderReference::default(),
        template: json!({
            "apiVersion": "infra/v1", "kind": kind,
            "metadata": {"name": "t", "labels": {"a": "1"}},
            "spec": {"template": {"spec": {"flavor": "small", "list": ["x"]}}},
        }),
        overrides: Map::new(),
        builtin: json!({"machineDeployment": {"class": "default-worker", "version": "v1.35.2"}}),
    }
}

fn variables() -> Variables {
    let values = json!({"flavor": "big", "deep": {"list": [{"name": "first"}]}, "count": 3, "off": false});
    let defined = ["flavor", "deep", "count", "off"].map(|name| (name.to_owned(), "inline".to_owned()));
    Variables {
        values: values.as_object().cloned().unwrap_or_default(),
        builtin: json!({"cluster": {"name": "one"}}),
        defined: defined.to_vec(),
    }
}

fn patch(enabled_if: &str, matches: Value, changes: Value) -> ClusterClassPatch {
    serde_json::from_value(json!({
        "name": "p",
        "enabledIf": enabled_if,
        "definitions": [{
            "selector": {"apiVersion": "infra/v1", "kind": "T", "matchResources": matches},
            "jsonPatches": changes,
        }],
    }))
    .expect("a patch")
}

#[test]
fn a_patch_changes_the_templates_it_selects() {
    let change = json!([{"op": "replace", "path": "/spec/template/spec/flavor", "value": "new"}]);
    let deployment = |class: &str| Holder::Deployment { class: class.to_owned() };
    let pool = |class: &str| Holder::Pool { class: class.to_owned() };
    for (holder, matches, expected) in [
        (Holder::InfrastructureCluster, json!({"infrastructureCluster": true}), true),
        (Holder::InfrastructureCluster, json!({"controlPlane": true}), false),
        (Holder::ControlPlane, json!({"controlPlane": true}), true),
        (Holder::ControlPlaneMachines, json!({"controlPlane": true}), true),
        (Holder::ControlPlaneMachines, json!({"controlPlane": false}), false),
        (
            deployment("default-worker"),
            json!({"machineDeploymentClass": {"names": ["default-worker"]}}),
            true,
        ),
        (
            deployment("default-worker"),
            json!({"machineDeploymentClass": {"names": ["other", "default-*"]}}),
            true,
        ),
        (deployment("default-worker"), json!({"machineDeploymentClass": {"names": ["*-worker"]}}), true),
        (deployment("default-worker"), json!({"machineDeploymentClass": {"names": ["*"]}}), true),
        (deployment("default-worker"), json!({"machineDeploymentClass": {"names": ["other"]}}), false),
        (deployment("default-worker"), json!({"machinePoolClass": {"names": ["*"]}}), false),
        (pool("p"), json!({"machinePoolClass": {"names": ["p"]}}), true),
    ] {
        let mut items = [item(holder.clone(), "T"), item(holder.clone(), "Other")];
        apply(&[patch("", matches.clone(), change.clone())], &mut items, &variables()).expect("applied");
        let flavors = items.map(|item| item.template["spec"]["template"]["spec"]["flavor"] == "new");
        assert_eq!(flavors, [expected, false], "{holder:?} {matches}");
    }
}

#[test]
fn values_come_from_variables_and_templates() {
    for (change, path, expected) in [
        (json!({"op": "add", "value": {"a": [1]}}), "/x", json!({"a": [1]})),
        (json!({"op": "add", "valueFrom": {"variable": "flavor"}}), "/x", json!("big")),
        (json!({"op": "add", "valueFrom": {"variable": "deep.list[0].name"}}), "/x", json!("first")),
        (json!({"op": "add", "valueFrom": {"variable": "builtin.cluster.name"}}), "/x", json!("one")),
        (
            json!({"op": "add", "valueFrom": {"variable": "builtin.machineDeployment.version"}}),
            "/x",
            json!("v1.35.2"),
        ),
        (
            json!({"op": "add", "valueFrom": {"template": "{{ .builtin.cluster.name }}-{{ .flavor }}"}}),
            "/x",
            json!("one-big"),
        ),
        (
            json!({"op": "add", "valueFrom": {"template": "- a\n- b: {{ .count }}\n"}}),
            "/x",
            json!(["a", {"b": 3}]),
        ),
        (json!({"op": "add", "valueFrom": {"template": "\"{{ .count }}\""}}), "/x", json!("3")),
        (
            json!({"op": "add", "valueFrom": {"template": "{a: 0644, b: yes, a: 0600}"}}),
            "/x",
            json!({"a": 384, "b": true}),
        ),
        (json!({"op": "add", "value": "first"}), "/list/0", json!("first")),
        (json!({"op": "remove"}), "/flavor", Value::Null),
    ] {
        let mut change = change;
        change["path"] = format!("/spec/template/spec{path}").into();
        let mut items = [item(Holder::ControlPlane, "T")];
        let patches = [patch("", json!({"controlPlane": true}), json!([change]))];
        apply(&patches, &mut items, &variables()).expect("applied");
        let found = items[0].template["spec"]["template"]["spec"].pointer(path).cloned();
        assert_eq!(found.unwrap_or_default(), expected, "{change}");
    }
}

#[test]
fn a_patch_is_in_force_if_its_condition_renders_to_true() {
    for (condition, expected) in [
        ("", true),
        ("{{ if .flavor }}true{{ end }}", true),
        ("{{ .off }}", false),
        ("{{ eq .flavor \"big\" }}", true),
        ("{{ semverCompare \">= v1.36.0\" .builtin.machineDeployment.version }}", false),
        ("{{ if .missing }}true{{ end }}", false),
        ("\"true\"", false),
    ] {
        let mut items = [item(Holder::ControlPlane, "T")];
        let change = json!([{"op": "add", "path": "/spec/template/spec/x", "value": 1}]);
        apply(&[patch(condition, json!({"controlPlane": true}), change)], &mut items, &variables())
            .expect(condition);
        assert_eq!(items[0].template["spec"]["template"]["spec"]["x"] == 1, expected, "{condition}");
    }
}

#[test]
fn overrides_win_and_undefined_variables_are_invisible() {
    let mut items = [item(Holder::ControlPlane, "T")];
    items[0].overrides.insert("flavor".to_owned(), json!("mine"));
    let change = json!([{"op": "add", "path": "/spec/template/spec/x", "valueFrom": {"variable": "flavor"}}]);
    let patches = [patch("", json!({"controlPlane": true}), change)];
    apply(&patches, &mut items, &variables()).expect("applied");
    assert_eq!(items[0].template["spec"]["template"]["spec"]["x"], "mine");

    let mut other = variables();
    other.defined.retain(|(name, _)| name != "flavor");
    let error = apply(&patches, &mut items, &other).expect_err("not defined");
    assert_eq!(error.to_string(), "patch \"p\" cannot be applied to T: variable \"flavor\" does not exist");
}

#[test]
fn only_spec_and_metadata_can_be_patched() {
    let mut items = [item(Holder::ControlPlane, "T")];
    let change = json!([
        {"op": "replace", "path": "/kind", "value": "Other"},
        {"op": "add", "path": "/metadata/labels/b", "value": "2"},
    ]);
    apply(&[patch("", json!({"controlPlane": true}), change)], &mut items, &variables()).expect("applied");
    assert_eq!(
        (&items[0].template["kind"], &items[0].template["metadata"]["labels"]["b"]),
        (&json!("T"), &json!("2"))
    );
}

#[test]
fn what_cannot_be_applied_names_the_patch() {
    for (change, why) in [
        (json!({"op": "add", "path": "/spec/no/such", "value": 1}), "doc is missing path"),
        (
            json!({"op": "add", "path": "/spec/x", "valueFrom": {"template": "{{ fail \"no\" }}"}}),
            "error calling fail",
        ),
        (json!({"op": "add", "path": "/spec/x", "valueFrom": {"template": "a: b: c"}}), "renders to no YAML"),
        (
            json!({"op": "add", "path": "/spec/x", "valueFrom": {"variable": "deep.list[9]"}}),
            "does not have index 9",
        ),
        (json!({"op": "add", "path": "/spec/x"}), "exactly one of"),
    ] {
        let mut items = [item(Holder::ControlPlane, "T")];
        let patches = [patch("", json!({"controlPlane": true}), json!([change]))];
        let error = apply(&patches, &mut items, &variables()).expect_err(why).to_string();
        assert!(error.starts_with("patch \"p\" cannot be applied to T: ") && error.contains(why), "{error}");
    }
}
