//! Validates responses of conversion webhooks: the same objects, in the requested version, with changes only to
//! labels and annotations of the metadata.

use capstan_schema::meta::{validate_annotations, validate_labels};
use capstan_schema::path::Path;
use serde_json::{Map, Value};

use super::{Batch, ConversionError};
use crate::admission::GroupVersionKind;
use crate::auth::aggregate_text;

/// The converted objects of a response.
pub(super) fn objects(version: &str, uid: &str, mut answer: Value) -> Result<Vec<Value>, String> {
    if version == "v1" {
        let expected = GroupVersionKind::new("apiextensions.k8s.io", "v1", "ConversionReview");
        let got = GroupVersionKind::of(&answer);
        if got != expected {
            return Err(format!("expected webhook response of {expected}, got {got}"));
        }
    }
    let Some(response) = answer.get_mut("response").filter(|response| response.is_object()) else {
        return Err("no response provided".into());
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let got = text(&response["uid"]);
    if version == "v1" && got != uid {
        return Err(format!("expected response.uid={uid:?}, got {got:?}"));
    }
    let status = text(&response["result"]["status"]);
    if status != "Success" {
        return Err(match text(&response["result"]["message"]).as_str() {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// Why a converted object is invalid.
pub(super) enum ConversionProblem {
    /// It has another version or kind than requested.
    Kind(String),
    /// It has another identity.
    Identity(String),
}

impl ConversionProblem {
    pub(super) fn describe(self, subject: &GroupVersionKind, batch: Batch, index: usize) -> ConversionError {
        let by = format!("conversion webhook for {subject} returned invalid");
        ConversionError(match (batch, self) {
            (Batch::List, Self::Kind(why) | Self::Identity(why)) => {
                format!("{by} converted object at index {index}: {why}")
            }
            (Batch::One, Self::Kind(why)) => format!("{by} object at index 0: {why}"),
            (Batch::One, Self::Identity(why)) => format!("{by} object: {why}"),
        })
    }
}

/// Checks that a converted object has the same identity and the requested version.
pub(super) fn check(sent: &Value, converted: &Value, wanted: &str) -> Result<(), ConversionProblem> {
    let (before, after) = (GroupVersionKind::of(sent), GroupVersionKind::of(converted));
    if after.api_version() != wanted {
        return Err(ConversionProblem::Kind(format!(
            "invalid groupVersion (expected {wanted}, received {})",
            after.api_version()
        )));
    }
    if after.kind != before.kind {
        let (expected, received) = (&before.kind, &after.kind);
        return Err(ConversionProblem::Kind(format!(
            "invalid kind (expected {expected}, received {received})"
        )));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let text = |object: &Value| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (before, after) = (text(sent), text(converted));
        if before != after {
            return Err(ConversionProblem::Identity(format!(
                "must have the same {name}: {before} != {after}"
            )));
        }
    }
    Ok(())
}

/// Restores the original metadata except for labels and annotations.
pub(super) fn restore_metadata(sent: &Value, converted: &mut Value) -> Result<(), String> {
    let answered = match converted.get_mut("metadata").map(Value::take) {
        None => return Err("missing metadata in converted object".into()),
        Some(Value::Object(answered)) => answered,
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(&other)));
        }
    };
    let mut metadata = sent["metadata"].as_object().cloned().unwrap_or_else(Map::new);
    for field in ["labels", "annotations"] {
        let texts = match answered.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
                continue;
            }
            Some(Value::Object(texts)) => texts,
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in converted object",
                    go_type(other)
                ));
            }
        };
        if let Some((key, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!(
                "metadata.{field}[{key}] must be a string, but is {} in converted object",
                go_type(value)
            ));
        }
        // Unchanged entries are not validated again.
        if metadata.get(field).and_then(Value::as_object) != Some(texts) {
            let value = answered.get(field);
            let errors = match field {
                "labels" => validate_labels(value, &Path::at("metadata.labels")),
                _ => validate_annotations(value, &Path::at("metadata.annotation")),
            };
            if !errors.is_empty() {
                return Err(aggregate_text(errors.iter().map(ToString::to_string).collect()));
            }
        }
        metadata.insert(field.into(), Value::Object(texts.clone()));
    }
    converted["metadata"] = Value::Object(metadata);
    Ok(())
}

/// Name of the Go type of a JSON value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
