//! Whether the patches of a server cover a change.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::core::{
    Bootstrap, ContractVersionedObjectReference, Machine, MachineSet, MachineSpec,
};
use capstan_capi_types::runtime::hook::{JSON_MERGE_PATCH, JSON_PATCH, UpdatePatch};
use capstan_object::to_value;
use capstan_schema::patch::{json::Patch, merge};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::contract::External;

/// Most fields that a message names.
const MOST_NAMED: usize = 8;

/// One object of a question, as it is and as it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its field in the request. That of its patch in the response is the same with `Patch`.
    field: &'static str,
    /// The field with the spec that counts.
    at: &'static [&'static str],
    /// The spec is a [`MachineSpec`].
    of_machine: bool,
    now: Value,
    wanted: Value,
}

const SPEC: &[&str] = &["spec"];
const TEMPLATE_SPEC: &[&str] = &["spec", "template", "spec"];

impl Part {
    pub fn machine_set(now: &MachineSet, wanted: &MachineSet) -> Self {
        // Plain data always serializes.
        let value = |set| sent(&to_value(set).unwrap_or_default());
        let (now, wanted) = (value(now), value(wanted));
        Self { field: "machineSet", at: TEMPLATE_SPEC, of_machine: true, now, wanted }
    }

    pub fn machine(now: &Machine, wanted: &Machine) -> Self {
        let value = |machine| sent(&to_value(machine).unwrap_or_default());
        Self { field: "machine", at: SPEC, of_machine: true, now: value(now), wanted: value(wanted) }
    }

    pub fn infrastructure_template(now: &External, wanted: &External) -> Self {
        Self::template("infrastructureMachineTemplate", now, wanted)
    }

    pub fn bootstrap_template(now: &External, wanted: &External) -> Self {
        Self::template("bootstrapConfigTemplate", now, wanted)
    }

    fn template(field: &'static str, now: &External, wanted: &External) -> Self {
        let (now, wanted) = (sent(&now.typed_value()), sent(&wanted.typed_value()));
        Self { field, at: TEMPLATE_SPEC, of_machine: false, now, wanted }
    }

    pub fn infrastructure_machine(now: &Value, wanted: &Value) -> Self {
        let (now, wanted) = (sent(now), sent(wanted));
        Self { field: "infrastructureMachine", at: SPEC, of_machine: false, now, wanted }
    }

    pub fn bootstrap_config(now: &Value, wanted: &Value) -> Self {
        let (now, wanted) = (sent(now), sent(wanted));
        Self { field: "bootstrapConfig", at: SPEC, of_machine: false, now, wanted }
    }

    /// The fields that differ after the patch; none if it covers everything.
    fn uncovered(&self, response: &Value) -> Result<Vec<String>, String> {
        let field = format!("{}Patch", self.field);
        let patch = match response.get(&field) {
            None | Some(Value::Null) => UpdatePatch::default(),
            Some(patch) => UpdatePatch::deserialize(patch).map_err(|error| format!("{field}: {error}"))?,
        };
        let mut now = at(&self.now, self.at).cloned().unwrap_or_default();
        if patch != UpdatePatch::default() {
            let patched = patched(&self.now, &patch).map_err(|why| format!("{field}: {why}"))?;
            // Only the spec of the object counts; one that the patch removes stays.
            if let Some(spec) = at(&patched, self.at) {
                now = spec.clone();
            }
        }
        let mut wanted = at(&self.wanted, self.at).cloned().unwrap_or_default();
        if self.of_machine {
            now = comparable(&now).map_err(|error| format!("{field}: {error}"))?;
            wanted = comparable(&wanted).map_err(|error| format!("{}: {error}", self.field))?;
        }
        let mut found = Vec::new();
        differences(&now, &wanted, &self.at.join("."), &mut found);
        let kind = self.wanted["kind"].as_str().unwrap_or(self.field);
        Ok(found.into_iter().map(|path| format!("{kind} {path}")).collect())
    }
}

/// May a change be made in place?
#[derive(Debug, Clone, PartialEq)]
pub struct Question(pub Vec<Part>);

impl Question {
    /// The request, without type and settings.
    pub fn request(&self) -> Value {
        let side = |of: fn(&Part) -> &Value| -> Value {
            let objects = self.0.iter().map(|part| (part.field.to_owned(), of(part).clone()));
            Value::Object(objects.collect::<Map<_, _>>())
        };
        json!({"current": side(|part| &part.now), "desired": side(|part| &part.wanted)})
    }

    /// Fields that the patches of a response do not cover, so that machines must be replaced; none if the change can be
    /// made in place. An error if a patch cannot be applied.
    pub fn uncovered(&self, response: &Value) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        for part in &self.0 {
            found.extend(part.uncovered(response)?);
        }
        found.truncate(MOST_NAMED);
        Ok(found)
    }
}

/// An object as servers get it: without status, and of its metadata only what users set.
pub fn sent(object: &Value) -> Value {
    let mut metadata = Map::new();
    for name in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = object["metadata"].get(name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let mut sent = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata});
    if let Some(spec) = object.get("spec") {
        sent["spec"] = spec.clone();
    }
    sent
}

fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| value.get(step))
}

fn patched(object: &Value, patch: &UpdatePatch) -> Result<Value, String> {
    let bytes = STANDARD.decode(&patch.patch).map_err(|error| format!("the patch is not base64: {error}"))?;
    let body = match bytes.is_empty() {
        true => None,
        false => {
            let body = serde_json::from_slice::<Value>(&bytes);
            Some(body.map_err(|error| format!("the patch is not JSON: {error}"))?)
        }
    };
    let patched = match (patch.patch_type.as_str(), body) {
        (JSON_PATCH | JSON_MERGE_PATCH, None) => Ok(object.clone()),
        (JSON_PATCH, Some(body)) => {
            let patch = Patch::decode(body, false).map_err(|error| error.to_string())?;
            patch.apply(object.clone())
        }
        (JSON_MERGE_PATCH, Some(body)) => merge::apply(object.clone(), body),
        ("", _) => return Err("patchType is not set".to_owned()),
        (other, _) => {
            return Err(format!("patch type {other:?} is neither {JSON_PATCH} nor {JSON_MERGE_PATCH}"));
        }
    };
    patched.map_err(|error| error.to_string())
}

/// A machine's spec without what is never a server's task: references, what is set later, and what is changed without a
/// rollout.
fn comparable(spec: &Value) -> Result<Value, serde_json::Error> {
    let mut spec = if spec.is_null() { MachineSpec::default() } else { MachineSpec::deserialize(spec)? };
    spec.cluster_name = String::new();
    spec.bootstrap = Bootstrap::default();
    spec.infrastructure_ref = ContractVersionedObjectReference::default();
    spec.provider_id = String::new();
    spec.min_ready_seconds = None;
    spec.readiness_gates = Vec::new();
    spec.deletion = Default::default();
    spec.taints = Vec::new();
    serde_json::to_value(&spec)
}

/// Paths of the fields that differ; values are not repeated.
fn differences(now: &Value, wanted: &Value, path: &str, found: &mut Vec<String>) {
    if now == wanted || found.len() >= MOST_NAMED {
        return;
    }
    let (Value::Object(now), Value::Object(wanted)) = (now, wanted) else {
        found.push(path.to_owned());
        return;
    };
    let removed = now.keys().filter(|key| !wanted.contains_key(*key));
    for key in wanted.keys().chain(removed) {
        let side = |fields: &Map<String, Value>| fields.get(key).cloned().unwrap_or_default();
        differences(&side(now), &side(wanted), &format!("{path}.{key}"), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        let (mut now, mut wanted) = (Machine::default(), Machine::default());
        now.spec.version = "v1.35.0".to_owned();
        now.spec.provider_id = "p".to_owned();
        wanted.spec.version = "v1.36.0".to_owned();
        wanted.spec.min_ready_seconds = Some(3);
        let infrastructure = |size: &str| {
            json!({
                "apiVersion": "infra.x/v1", "kind": "SimMachine", "status": {"ready": true},
                "metadata": {"name": "m", "uid": "u", "labels": {"a": "b"}}, "spec": {"size": size},
            })
        };
        Question(vec![
            Part::machine(&now, &wanted),
            Part::infrastructure_machine(&infrastructure("small"), &infrastructure("large")),
        ])
    }

    #[test]
    fn a_request_has_both_states_and_no_status() {
        let request = question().request();
        assert_eq!(request["current"]["machine"]["spec"]["version"], "v1.35.0");
        assert_eq!(request["desired"]["machine"]["kind"], "Machine");
        assert_eq!(
            request["desired"]["infrastructureMachine"],
            json!({
                "apiVersion": "infra.x/v1", "kind": "SimMachine",
                "metadata": {"name": "m", "labels": {"a": "b"}}, "spec": {"size": "large"},
            })
        );
    }

    fn patch(kind: &str, body: &Value) -> Value {
        json!({"patchType": kind, "patch": STANDARD.encode(body.to_string())})
    }

    #[test]
    fn a_change_is_made_in_place_if_patches_cover_all_of_it() {
        let version =
            patch(JSON_PATCH, &json!([{"op": "replace", "path": "/spec/version", "value": "v1.36.0"}]));
        let size = patch(JSON_MERGE_PATCH, &json!({"spec": {"size": "large"}, "kind": "Other"}));
        let uncovered: fn(&[&str]) -> Result<Vec<String>, String> =
            |paths| Ok(paths.iter().map(|path| (*path).to_owned()).collect());
        for (response, expected) in [
            (json!({}), uncovered(&["Machine spec.version", "SimMachine spec.size"])),
            (json!({"machinePatch": version}), uncovered(&["SimMachine spec.size"])),
            (json!({"machinePatch": version, "infrastructureMachinePatch": size}), uncovered(&[])),
            (
                json!({"machinePatch": version, "infrastructureMachinePatch": patch(JSON_PATCH, &json!([]))}),
                uncovered(&["SimMachine spec.size"]),
            ),
            (
                json!({"machinePatch": version, "infrastructureMachinePatch": null}),
                uncovered(&["SimMachine spec.size"]),
            ),
            (
                json!({"machinePatch": {"patch": "e30="}}),
                Err("machinePatch: patchType is not set".to_owned()),
            ),
            (
                json!({"machinePatch": patch("Other", &json!({}))}),
                Err("machinePatch: patch type \"Other\" is neither JSONPatch nor JSONMergePatch".to_owned()),
            ),
        ] {
            assert_eq!(question().uncovered(&response), expected, "{response}");
        }
        for (body, problem) in [
            (json!({"machinePatch": {"patchType": JSON_PATCH, "patch": "%"}}), "not base64"),
            (json!({"machinePatch": {"patchType": JSON_PATCH, "patch": STANDARD.encode("{")}}), "not JSON"),
            (
                json!({"machinePatch": patch(JSON_PATCH, &json!([{"op": "remove", "path": "/spec/no"}]))}),
                "machinePatch: ",
            ),
        ] {
            let error = question().uncovered(&body).expect_err(problem);
            assert!(error.contains(problem), "{error}");
        }
    }
}
