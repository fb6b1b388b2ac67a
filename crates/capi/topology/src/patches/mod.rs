//! Patches of a class, applied to the templates that a cluster is made from.
//!
//! ```text
//! Items (templates, where they are used, variables) ── each patch: selector, enabledIf, JSON patches ──▶ Items
//!                                                      or an extension's patches, which are asked for
//! ```

mod external;
mod selector;
#[cfg(test)]
mod tests;
pub mod value;

use capstan_capi_types::core::cluster_class::{ClusterClassPatch, DEFINED_INLINE, JsonPatch};
use capstan_capi_types::runtime::hook::HolderReference;
use capstan_schema::patch::json::Patch;
use serde_json::{Map, Value, json};

use crate::ask::{Answers, Stop};
pub use selector::Holder;

/// A template on its way through the patches.
#[derive(Debug, Clone)]
pub struct Item {
    pub holder: Holder,
    /// The object that uses it.
    pub held_by: HolderReference,
    pub template: Value,
    /// Values that are set for this part of the topology, by variable.
    pub overrides: Map<String, Value>,
    /// Builtin variables of this part.
    pub builtin: Value,
}

/// Why a class's patches cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFailed {
    pub patch: String,
    pub kind: String,
    pub why: String,
}

impl std::fmt::Display for PatchFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "patch {:?} cannot be applied to {}: {}", self.patch, self.kind, self.why)
    }
}

/// Variables of the whole cluster.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// Values by name.
    pub values: Map<String, Value>,
    pub builtin: Value,
    /// Names with who defines them.
    pub defined: Vec<(String, String)>,
}

impl Variables {
    fn is_defined(&self, name: &str, from: &str) -> bool {
        self.defined.iter().any(|(known, by)| known == name && by == from)
    }
}

/// Applies patches in order, and has extensions validate the result.
pub fn apply(
    patches: &[ClusterClassPatch],
    items: &mut [Item],
    variables: &Variables,
    answers: &Answers,
) -> Result<(), Stop> {
    for patch in patches {
        if let Some(external) = &patch.external {
            external::generate(patch, external, items, variables, answers)?;
            continue;
        }
        for item in items.iter_mut() {
            let kind = item.template["kind"].as_str().unwrap_or_default().to_owned();
            let failed = |why: String| PatchFailed { patch: patch.name.clone(), kind: kind.clone(), why };
            apply_one(patch, item, variables).map_err(|why| failed(why).to_string())?;
        }
    }
    let from = |patch: &ClusterClassPatch| match patch.external {
        Some(_) => patch.name.clone(),
        None => DEFINED_INLINE.to_owned(),
    };
    let last = patches.last().map(from).unwrap_or_default();
    patches.iter().try_for_each(|patch| external::validate(patch, items, variables, &last, answers))
}

fn apply_one(patch: &ClusterClassPatch, item: &mut Item, variables: &Variables) -> Result<(), String> {
    let matching: Vec<_> = patch
        .definitions
        .iter()
        .filter(|definition| item.holder.is_selected(&item.template, &definition.selector))
        .collect();
    if matching.is_empty() {
        return Ok(());
    }
    let data = data_for(item, variables);
    if !is_enabled(&patch.enabled_if, &data)? {
        return Ok(());
    }
    for definition in matching {
        let changes: Vec<Value> = definition
            .json_patches
            .iter()
            .map(|change| operation(change, &data))
            .collect::<Result<_, _>>()?;
        let decoded = Patch::decode(Value::Array(changes), false).map_err(|error| error.to_string())?;
        let patched = decoded.apply(item.template.clone()).map_err(|error| error.to_string())?;
        take_over(&mut item.template, &patched);
    }
    Ok(())
}

/// Only these can be patched: a template keeps its name and kind.
fn take_over(template: &mut Value, patched: &Value) {
    for path in [&["spec"][..], &["metadata", "labels"], &["metadata", "annotations"]] {
        if let Some(changed) = value::at(patched, path) {
            value::put(template, path, changed.clone());
        }
    }
}

/// Variables as patches of the class itself see them.
fn data_for(item: &Item, variables: &Variables) -> Value {
    let is_visible = |name: &str| variables.is_defined(name, DEFINED_INLINE);
    let values = variables.values.iter().chain(&item.overrides);
    let values = values.filter(|(name, _)| is_visible(name));
    let mut data: Map<String, Value> = values.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut builtin = variables.builtin.clone();
    if let (Value::Object(all), Value::Object(own)) = (&mut builtin, &item.builtin) {
        all.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    data.insert(capstan_capi_types::variables::BUILTIN.to_owned(), builtin);
    Value::Object(data)
}

/// Whether a condition renders to `true`.
pub fn is_enabled(condition: &str, data: &Value) -> Result<bool, String> {
    if condition.is_empty() {
        return Ok(true);
    }
    let rendered = rendered(condition, data).map_err(|error| format!("enabledIf: {error}"))?;
    Ok(rendered == Value::Bool(true))
}

/// A template rendered and read as YAML.
fn rendered(template: &str, data: &Value) -> Result<Value, String> {
    let text = capstan_go_template::render(template, data).map_err(|error| error.to_string())?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    // As Go's parser, by YAML 1.1: 0644 is octal, and of a key that is there twice the last value counts.
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
    };
    serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| format!("the template renders to no YAML: {error}"))
}

fn operation(change: &JsonPatch, data: &Value) -> Result<Value, String> {
    let mut operation = json!({"op": change.op, "path": change.path});
    if !["add", "replace"].contains(&&*change.op) {
        return Ok(operation);
    }
    let value = match (&change.value, &change.value_from) {
        (Some(value), None) => value.clone(),
        (None, Some(from)) if !from.variable.is_empty() && from.template.is_empty() => {
            value::of_variable(data, &from.variable)?
        }
        (None, Some(from)) if from.variable.is_empty() && !from.template.is_empty() => {
            rendered(&from.template, data).map_err(|error| format!("{}: {error}", change.path))?
        }
        _ => return Err(format!("{}: exactly one of value, variable and template must be set", change.path)),
    };
    operation["value"] = value;
    Ok(operation)
}
