//! Patches that extensions make.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::core::cluster_class::{ClusterClassPatch, ExternalPatchDefinition};
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::hook::{
    GeneratedPatch, HolderReference, JSON_MERGE_PATCH, JSON_PATCH, TopologyRequest, TopologyRequestItem,
    Variable,
};
use capstan_capi_types::variables::BUILTIN;
use capstan_schema::patch::{json::Patch, merge};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Item, Variables, take_over};
use crate::ask::{Answers, Ask, Stop};

/// Applies the patches of an extension, or asks for them.
pub(super) fn generate(
    patch: &ClusterClassPatch,
    external: &ExternalPatchDefinition,
    items: &mut [Item],
    variables: &Variables,
    answers: &Answers,
) -> Result<(), Stop> {
    if external.generate_patches_extension.is_empty() {
        return Ok(());
    }
    let Some(generated) = answers.patches.get(&patch.name) else {
        let request = request(items, variables, &patch.name, true);
        let handler = &external.generate_patches_extension;
        return Err(ask(Hook::GeneratePatches, handler, patch, external, &request)?);
    };
    let failed = |why: String| {
        Stop::Failed(format!("patch {:?} of an extension cannot be applied: {why}", patch.name))
    };
    for change in &**generated {
        let found = items.iter_mut().find(|item| uid(&item.held_by) == change.uid);
        let item = found.ok_or_else(|| failed(format!("the request has no template {:?}", change.uid)))?;
        apply(item, change).map_err(failed)?;
    }
    Ok(())
}

/// Has the extension of a patch validate the patched templates. `last` is where variables of the last patch come from,
/// which are what upstream sends.
pub(super) fn validate(
    patch: &ClusterClassPatch,
    items: &[Item],
    variables: &Variables,
    last: &str,
    answers: &Answers,
) -> Result<(), Stop> {
    let Some(external) = patch.external.as_ref().filter(|it| !it.validate_topology_extension.is_empty())
    else {
        return Ok(());
    };
    if answers.validated.contains(&patch.name) {
        return Ok(());
    }
    let request = request(items, variables, last, false);
    Err(ask(Hook::ValidateTopology, &external.validate_topology_extension, patch, external, &request)?)
}

fn ask(
    hook: Hook,
    handler: &str,
    patch: &ClusterClassPatch,
    external: &ExternalPatchDefinition,
    request: &TopologyRequest,
) -> Result<Stop, Stop> {
    let request = serde_json::to_value(request).map_err(|error| Stop::Failed(error.to_string()))?;
    Ok(Stop::Ask(Box::new(Ask::Templates {
        hook,
        handler: handler.to_owned(),
        patch: patch.name.clone(),
        settings: external.settings.clone(),
        request,
    })))
}

/// All templates, with the variables that `from` defines.
fn request(items: &[Item], variables: &Variables, from: &str, named: bool) -> TopologyRequest {
    let listed = |values: &Map<String, Value>, builtin: &Value| {
        let visible = values.iter().filter(|(name, _)| variables.is_defined(name, from));
        let mut list: Vec<Variable> =
            visible.map(|(name, value)| Variable { name: name.clone(), value: value.clone() }).collect();
        if builtin.as_object().is_some_and(|builtin| !builtin.is_empty()) {
            list.push(Variable { name: BUILTIN.to_owned(), value: builtin.clone() });
        }
        list
    };
    let item = |item: &Item| TopologyRequestItem {
        uid: if named { uid(&item.held_by) } else { String::new() },
        holder_reference: item.held_by.clone(),
        object: without_managed_fields(&item.template),
        variables: listed(&item.overrides, &item.builtin),
    };
    TopologyRequest {
        variables: listed(&variables.values, &variables.builtin),
        items: items.iter().map(item).collect(),
    }
}

fn without_managed_fields(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(metadata) = template["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    template
}

/// The name of a template in a request. Upstream's is random; this one is the same each time, so that equal requests
/// have equal answers.
fn uid(holder: &HolderReference) -> String {
    let digest = Sha256::digest(format!("{}\0{}\0{}", holder.kind, holder.name, holder.field_path));
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn apply(item: &mut Item, change: &GeneratedPatch) -> Result<(), String> {
    let bytes =
        STANDARD.decode(&change.patch).map_err(|error| format!("the patch is not base64: {error}"))?;
    if bytes.is_empty() {
        return Ok(());
    }
    let body: Value =
        serde_json::from_slice(&bytes).map_err(|error| format!("the patch is not JSON: {error}"))?;
    let patched = match change.patch_type.as_str() {
        JSON_PATCH => {
            let patch = Patch::decode(body, false).map_err(|error| error.to_string())?;
            patch.apply(item.template.clone())
        }
        JSON_MERGE_PATCH => merge::apply(item.template.clone(), body),
        other => return Err(format!("patch type {other:?} is neither {JSON_PATCH} nor {JSON_MERGE_PATCH}")),
    };
    take_over(&mut item.template, &patched.map_err(|error| error.to_string())?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::{Holder, apply};
    use super::*;

    fn items() -> Vec<Item> {
        let item = |kind: &str, builtin: Value| Item {
            holder: Holder::ControlPlane,
            held_by: HolderReference {
                api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
                kind: "Cluster".to_owned(),
                namespace: "ns".to_owned(),
                name: "one".to_owned(),
                field_path: kind.to_owned(),
            },
            template: json!({
                "apiVersion": "infra/v1", "kind": kind,
                "metadata": {"name": "t", "managedFields": []},
                "spec": {"flavor": "small"},
            }),
            overrides: Map::from_iter([("flavor".to_owned(), json!("mine"))]),
            builtin,
        };
        vec![item("A", json!({})), item("B", json!({"controlPlane": {"version": "v1.35.0"}}))]
    }

    fn variables() -> Variables {
        let defined = [("flavor", "ext"), ("inner", "inline")];
        Variables {
            values: Map::from_iter([("flavor".to_owned(), json!("big")), ("inner".to_owned(), json!(1))]),
            builtin: json!({"cluster": {"name": "one"}}),
            defined: defined.map(|(name, from)| (name.to_owned(), from.to_owned())).to_vec(),
        }
    }

    fn class_patches() -> Vec<ClusterClassPatch> {
        let patches = json!([
            {"name": "first", "definitions": [{
                "selector": {"apiVersion": "infra/v1", "kind": "A", "matchResources": {"controlPlane": true}},
                "jsonPatches": [{"op": "add", "path": "/spec/first", "value": true}],
            }]},
            {"name": "ext", "external": {
                "generatePatchesExtension": "g.e", "validateTopologyExtension": "v.e", "settings": {"k": "v"},
            }},
        ]);
        serde_json::from_value(patches).expect("patches")
    }

    fn generated(items: &[Item], kind: &str, body: &Value) -> GeneratedPatch {
        GeneratedPatch {
            uid: uid(&items[0].held_by),
            patch_type: kind.to_owned(),
            patch: STANDARD.encode(body.to_string()),
        }
    }

    #[test]
    fn an_extension_sees_earlier_patches_and_its_own_variables() {
        let mut templates = items();
        let stop = apply(&class_patches(), &mut templates, &variables(), &Answers::default());
        let Err(Stop::Ask(ask)) = stop else { panic!("a question: {stop:?}") };
        let Ask::Templates { hook, handler, settings, request, .. } = *ask else { panic!("about templates") };
        assert_eq!((hook, handler.as_str(), settings["k"].as_str()), (Hook::GeneratePatches, "g.e", "v"));
        assert_eq!(
            request["variables"],
            json!([{"name": "flavor", "value": "big"}, {"name": "builtin", "value": {"cluster": {"name": "one"}}}])
        );
        let [first, second] = [&request["items"][0], &request["items"][1]];
        assert_eq!(first["object"]["spec"], json!({"flavor": "small", "first": true}));
        assert_eq!(first["object"]["metadata"], json!({"name": "t"}));
        assert_eq!(first["variables"], json!([{"name": "flavor", "value": "mine"}]));
        assert_eq!(second["variables"][1]["value"]["controlPlane"]["version"], "v1.35.0");
        assert_eq!(second["holderReference"]["fieldPath"], "B");
        assert!(first["uid"] != second["uid"] && first["uid"].as_str().is_some_and(|uid| uid.len() == 36));
    }

    #[test]
    fn patches_of_an_extension_are_applied_and_then_validated() {
        for (kind, body) in [
            (
                JSON_PATCH,
                json!([{"op": "replace", "path": "/spec/flavor", "value": "new"}, {"op": "replace", "path": "/kind", "value": "C"}]),
            ),
            (JSON_MERGE_PATCH, json!({"spec": {"flavor": "new"}, "kind": "C"})),
        ] {
            let mut templates = items();
            let change = generated(&templates, kind, &body);
            let mut answers = Answers::default();
            answers.patches.insert("ext".to_owned(), Arc::new(vec![change]));
            let stop = apply(&class_patches(), &mut templates, &variables(), &answers);
            let Err(Stop::Ask(ask)) = stop else { panic!("a question: {stop:?}") };
            let Ask::Templates { hook, handler, request, .. } = *ask else { panic!("about templates") };
            assert_eq!((hook, handler.as_str()), (Hook::ValidateTopology, "v.e"));
            assert_eq!(request["items"][0]["object"]["spec"]["flavor"], "new");
            assert_eq!(request["items"][0].get("uid"), None);
            answers.validated.push("ext".to_owned());
            let mut templates = items();
            apply(&class_patches(), &mut templates, &variables(), &answers).expect("valid");
            assert_eq!(templates[0].template["spec"], json!({"flavor": "new", "first": true}));
            assert_eq!(templates[0].template["kind"], "A", "only spec and metadata can be patched");
        }
    }

    #[test]
    fn what_an_extension_gets_wrong_is_reported() {
        let templates = items();
        let good = |body: &Value| generated(&templates, JSON_PATCH, body);
        let cases = [
            (GeneratedPatch { uid: "x".to_owned(), ..good(&json!([])) }, "the request has no template \"x\""),
            (GeneratedPatch { patch: "%".to_owned(), ..good(&json!([])) }, "not base64"),
            (GeneratedPatch { patch: STANDARD.encode("{"), ..good(&json!([])) }, "not JSON"),
            (GeneratedPatch { patch_type: "Other".to_owned(), ..good(&json!([])) }, "patch type \"Other\""),
            (good(&json!([{"op": "replace", "path": "/spec/no/such", "value": 1}])), "missing path"),
        ];
        for (change, problem) in cases {
            let mut answers = Answers::default();
            answers.patches.insert("ext".to_owned(), Arc::new(vec![change]));
            let error = apply(&class_patches(), &mut items(), &variables(), &answers).expect_err(problem);
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
