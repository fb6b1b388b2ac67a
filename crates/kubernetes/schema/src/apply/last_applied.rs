//! The annotation of client-side `kubectl apply`. When `kubectl` changes to server-side apply, fields that the
//! annotation shows as its own are not conflicts, and the annotation is kept up to date for users who change back.

use serde_json::Value;

use super::fieldpath::Set;
use super::typed::{self, Duplicates, Type};
use crate::Schema;
use crate::golang;

/// The manager that owns the annotation.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Largest total size of annotations in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The fields that the annotation shows as applied and that are unchanged since.
pub(super) fn owned(live: &Value, api_version: &str, schema: &Schema) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    last.get("kind").and_then(Value::as_str).filter(|kind| !kind.is_empty())?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    let of = Type::object(schema);
    typed::validate(live, of, Duplicates::Refused).ok()?;
    typed::validate(&last, of, Duplicates::Refused).ok()?;
    let changed = typed::compare(&last, live, of).ok()?;
    let set = typed::field_set(&last, of);
    Some(set.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
}

/// Updates the annotation with the applied configuration, if the object has it.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let mut text = golang::json(&applied);
    text.push('\n');
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}
