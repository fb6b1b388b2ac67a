//! PATCH: JSON, merge and strategic merge patches, and server-side apply.

use ::http::StatusCode;
use bytes::Bytes;
use capstan_builtin::decode::Words;
use capstan_schema::Schema;
use capstan_schema::bounded::Texts;
use capstan_schema::field::FieldError;
use capstan_schema::memory::MemoryBudget;
use capstan_schema::patch::{self, PatchError};
use serde_json::Value;

use crate::blocking;
use crate::call::{Call, go_type};
use crate::http::body::{self, MAX_CRD_DEPTH};
use crate::http::options::{FieldValidation, WriteKind, WriteOptions};
use crate::negotiation::{self, PatchKind};
use crate::object::Meta as _;
use crate::pipeline::{self, Change, Step};
use crate::status::{Result, Status};
use crate::verbs::Answer;

/// A patch with a longer body, or with more operations, takes long enough to keep other tasks waiting.
const LONG_BODY: usize = 64 * 1024;
const MANY_OPERATIONS: usize = 16;

pub(crate) async fn patch(call: &Call, body: &Bytes) -> Result<Answer> {
    let kind = negotiation::patch(call.content_type.as_deref(), call.endpoint())?;
    let write_kind = if kind == PatchKind::Apply { WriteKind::Apply } else { WriteKind::Patch };
    let options = call.query.write_options(write_kind)?;
    if kind == PatchKind::Apply {
        let parsed = body::yaml(body, MAX_CRD_DEPTH, call.memory.left()).map_err(|e| {
            Status::undecodable(e, |why| Status::bad_request(format!("error decoding YAML: {why}")))
        })?;
        call.memory.keep(parsed.memory);
        if !matches!(parsed.value, Value::Object(_) | Value::Null) {
            let found = go_type(&parsed.value);
            return Err(Status::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal \
                 {found} into Go value of type map[string]interface {{}}"
            )));
        }
        let applied =
            Applied { value: parsed.value, duplicates: parsed.duplicates, options: options.clone() };
        return pipeline::change(call, &applied, &options, write_kind).await;
    }
    // A patch that cannot be read is only reported for an object that exists.
    let (patch, duplicates) = match read(call, kind, body, options.field_validation) {
        Ok((patch, duplicates)) => (Ok(patch), duplicates),
        Err(status) => (Err(status), Texts::default()),
    };
    let takes_long =
        body.len() > LONG_BODY || matches!(&patch, Ok(Patch::Json(patch)) if patch.len() > MANY_OPERATIONS);
    let patched = Patched { patch, duplicates, options: options.clone(), takes_long };
    pipeline::change(call, &patched, &options, write_kind).await
}

/// Decodes a patch, with the strict decoding errors of its own.
fn read(call: &Call, kind: PatchKind, body: &Bytes, validation: FieldValidation) -> Result<(Patch, Texts)> {
    let parsed = body::json(body, MAX_CRD_DEPTH, call.memory.left()).map_err(|error| {
        Status::undecodable(error, |why| match (kind, validation) {
            // A strategic merge patch is decoded before options are validated.
            (PatchKind::Strategic, _) | (_, FieldValidation::Ignore) => Status::bad_request(why),
            _ => Status::bad_request(format!("error decoding patch: {why}")),
        })
    })?;
    call.memory.keep(parsed.memory);
    let checked = validation != FieldValidation::Ignore;
    if kind == PatchKind::Merge
        && checked
        && let Some(error) = patch::merge::decode_error(&parsed.value)
    {
        return Err(status(error));
    }
    let patch = Patch::read(kind, parsed.value)?;
    let mut strict = parsed.duplicates;
    if let Patch::Json(operations) = &patch {
        let mut own = Texts::default();
        strict.into_lines().iter().for_each(|line| own.push(format_args!("json patch {line}")));
        operations.unknown_fields().iter().for_each(|line| own.push(format_args!("{line}")));
        strict = own;
    }
    Ok((patch, strict))
}

struct Patched {
    patch: Result<Patch>,
    duplicates: Texts,
    options: WriteOptions,
    takes_long: bool,
}

impl Change for Patched {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        if self.takes_long { blocking::run(|| self.apply(call, current)) } else { self.apply(call, current) }
    }
}

impl Patched {
    fn apply(&self, call: &Call, current: &Value) -> Result<Step> {
        let schema = call.body_schema();
        let patch = self.patch.as_ref().map_err(Clone::clone)?;
        let mut object = patch.apply(&schema, current, call.memory.budget())?;
        let mut strict = self.duplicates.clone();
        // Computes the patched object again for the message: errors are rare.
        let invalid = |why: String| {
            let shown = match patch {
                Patch::Strategic(patch) => Ok(go_map(patch)),
                Patch::Json(_) | Patch::Merge(_) => {
                    patch.apply(&schema, current, call.memory.budget()).map(|object| object.to_string())
                }
            };
            let invalid =
                |shown: String| Status::invalid("", "", "", [FieldError::invalid("patch", shown, why)]);
            shown.map_or_else(|status| status, invalid)
        };
        let words = match patch {
            Patch::Strategic(_) => Words::Converter,
            Patch::Json(_) | Patch::Merge(_) => Words::Decoder,
        };
        let typed = call.body_kind().typed;
        if object["kind"].is_null() && !typed {
            return Err(invalid(format!("Object 'Kind' is missing in '{object}'")));
        }
        if typed && let Value::Object(fields) = &mut object {
            for field in ["kind", "apiVersion"] {
                let absent = fields.get(field).is_none_or(Value::is_null);
                if absent {
                    fields.insert(field.into(), current[field].clone());
                }
            }
        }
        if typed && (object["kind"] != current["kind"] || object["apiVersion"] != current["apiVersion"]) {
            let (kind, version) = (&object["kind"], &object["apiVersion"]);
            let why = format!("a patch cannot make it kind {kind} of apiVersion {version}");
            return Err(invalid(why));
        }
        call.normalise(words, &mut object, &mut strict)
            .map_err(|error| Status::undecodable(error, invalid))?;
        if !strict.is_empty() {
            match self.options.field_validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => strict.into_lines().iter().for_each(|text| call.warn(text)),
                FieldValidation::Strict => {
                    let why = format!("strict decoding error: {}", strict.join(", "));
                    return Err(invalid(why));
                }
            }
        }
        Ok(Step::Write { object, manager: call.manager(&self.options.field_manager) })
    }
}

/// A value as Go prints maps and slices: upstream shows a strategic merge patch that way.
fn go_map(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_map).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<_> = map.iter().map(|(key, value)| format!("{key}:{}", go_map(value))).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

/// A parsed patch that can be applied repeatedly.
pub(crate) enum Patch {
    Json(patch::json::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    pub fn read(kind: PatchKind, body: Value) -> Result<Self> {
        Ok(match kind {
            PatchKind::Json => Self::Json(patch::json::Patch::decode(body, true).map_err(status)?),
            PatchKind::Merge => Self::Merge(body),
            PatchKind::Strategic => Self::Strategic(body),
            PatchKind::Apply => return Err(Status::bad_request("an apply configuration is not a patch")),
        })
    }

    /// `memory` limits what a JSON patch may copy.
    pub fn apply(&self, schema: &Schema, current: &Value, memory: MemoryBudget) -> Result<Value> {
        match self {
            Self::Json(patch) => patch.apply_within(current.clone(), memory),
            Self::Merge(patch) => patch::merge::apply(current.clone(), patch.clone()),
            Self::Strategic(patch) => patch::strategic::apply(current.clone(), patch.clone(), schema),
        }
        .map_err(status)
    }
}

fn status(error: PatchError) -> Status {
    match error.status() {
        400 => Status::bad_request(error.to_string()),
        413 => Status::too_large(format!("Request entity too large: {error}")),
        422 => {
            // Upstream hides the error of its patch library; we add the cause.
            let text = "the server rejected our request due to an error in our request";
            let mut status = Status::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", text);
            status.details = Some(Box::default());
            status
        }
        _ => Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", error.to_string()),
    }
}

struct Applied {
    value: Value,
    duplicates: Texts,
    options: WriteOptions,
}

impl Applied {
    fn validate_duplicates(&self, call: &Call) -> Result<()> {
        if self.duplicates.is_empty() {
            return Ok(());
        }
        match self.options.field_validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => {
                self.duplicates.entries().iter().for_each(|text| call.warn(text));
            }
            FieldValidation::Strict => {
                return Err(Status::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: {}",
                    self.duplicates.join(", ")
                )));
            }
        }
        Ok(())
    }
}

impl Change for Applied {
    fn step(&self, call: &Call, _: &Value) -> Result<Step> {
        self.validate_duplicates(call)?;
        Ok(Step::Apply(self.value.clone()))
    }

    fn create(&self, call: &Call) -> Result<Option<Step>> {
        if !call.subresource().is_empty() {
            return Ok(None);
        }
        let uid = self.value.uid();
        if !uid.is_empty() {
            return Err(call.conflict(format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            )));
        }
        self.validate_duplicates(call)?;
        Ok(Some(Step::Apply(self.value.clone())))
    }
}
