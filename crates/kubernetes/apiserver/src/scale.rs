//! The `scale` subresource: one small object that stands for replicas, wherever a kind keeps them.

use std::sync::Arc;

use ::http::StatusCode;
use bytes::Bytes;
use capstan_schema::field::FieldError;
use serde_json::{Value, json};

use crate::call::Call;
use crate::http::body;
use crate::http::options::{WriteKind, WriteOptions};
use crate::negotiation::{self, PatchKind};
use crate::object::Meta;
use crate::registry::{ScalePaths, Subresource};
use crate::status::{Result, Status};
use crate::verbs::Answer;
use crate::verbs::patch::Patch;
use crate::verbs::update::{Change, Step, change};

/// Serves `scale`.
pub(crate) async fn serve(call: &Arc<Call>, subresource: &Subresource, bytes: &Bytes) -> Result<Answer> {
    let paths = subresource.scale.clone().unwrap_or_else(built_in_paths);
    if call.info.verb == "get" {
        let entry =
            call.shared.store.get(&call.resource.bucket, &call.key()).ok_or_else(|| call.not_found())?;
        let object = call.shared.load(call, &entry).await?;
        return Ok(Answer::object(StatusCode::OK, &view(&object, &paths)?));
    }
    let (edit, options, kind) = if call.info.verb == "update" {
        let options = call.query.write_options(WriteKind::Update)?;
        let encoding = negotiation::body(call.content_type.as_deref(), call.endpoint())?;
        let scale = call.parse(bytes, encoding)?.value;
        if scale.name() != call.info.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                scale.name(),
                call.info.name
            )));
        }
        (Edit::Replace(scale), options, WriteKind::Update)
    } else {
        let patch_kind = negotiation::patch(call.content_type.as_deref(), call.endpoint())?;
        let kind = if patch_kind == PatchKind::Apply { WriteKind::Apply } else { WriteKind::Patch };
        let options = call.query.write_options(kind)?;
        let parsed = match patch_kind {
            PatchKind::Apply => body::yaml(bytes, body::MAX_DEPTH),
            _ => body::json(bytes, body::MAX_DEPTH),
        };
        let patch = parsed.map_err(|e| Status::bad_request(format!("error decoding patch: {e}")))?.value;
        // A scale has one field to set: merging a configuration into it is what applying it means.
        let patch_kind = if patch_kind == PatchKind::Apply { PatchKind::Merge } else { patch_kind };
        (Edit::Patch(Patch::read(patch_kind, patch)?), options, kind)
    };
    let scaling = Scaling { edit, paths: paths.clone(), options: options.clone() };
    match change(call, &scaling, &options, kind).await? {
        Answer::Object { code, bytes } => {
            let object: Value = serde_json::from_slice(&bytes).map_err(Status::internal)?;
            Ok(Answer::object(code, &view(&object, &paths)?))
        }
        other => Ok(other),
    }
}

/// Where built-in kinds keep their replicas.
fn built_in_paths() -> ScalePaths {
    ScalePaths {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        label_selector: None,
    }
}

enum Edit {
    Replace(Value),
    Patch(Patch),
}

struct Scaling {
    edit: Edit,
    paths: ScalePaths,
    options: WriteOptions,
}

impl Change for Scaling {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let present = view(current, &self.paths)?;
        let scale = match &self.edit {
            Edit::Replace(scale) => scale.clone(),
            Edit::Patch(patch) => patch.apply(&call.resource.schema, &present)?,
        };
        let version = scale.resource_version();
        if !version.is_empty() && version != current.resource_version() {
            return Err(call.conflict(crate::verbs::update::STALE));
        }
        let replicas = match &scale["spec"]["replicas"] {
            Value::Null => 0,
            given => given
                .as_i64()
                .ok_or_else(|| Status::bad_request("spec.replicas: Invalid value: must be an integer"))?,
        };
        if replicas < 0 {
            let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
            return Err(Status::invalid("autoscaling", "Scale", &call.info.name, &[error]));
        }
        let mut object = current.clone();
        set(&mut object, &self.paths.spec_replicas, replicas.into());
        Ok(Step::Write { object, manager: call.manager(&self.options.field_manager) })
    }
}

/// The `Scale` of an object.
fn view(object: &Value, paths: &ScalePaths) -> Result<Value> {
    let read = |path: &str| at(object, path);
    let selector = match &paths.label_selector {
        Some(path) => read(path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => match object["spec"].get("selector") {
            Some(selector)
                if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() =>
            {
                capstan_schema::selector::LabelSelector::from_object(selector)
                    .map(|s| s.to_string())
                    .unwrap_or_default()
            }
            Some(Value::Object(map)) => {
                let pairs: Vec<String> =
                    map.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
                pairs.join(",")
            }
            _ => String::new(),
        },
    };
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": object.name(), "uid": object.uid(), "resourceVersion": object.resource_version(),
            "creationTimestamp": object.meta_str("creationTimestamp"),
        },
        "spec": {},
        "status": {"replicas": read(&paths.status_replicas).and_then(Value::as_i64).unwrap_or(0)},
    });
    if !object.namespace().is_empty() {
        scale.set_meta("namespace", object.namespace());
    }
    if let Some(replicas) = read(&paths.spec_replicas).and_then(Value::as_i64) {
        scale["spec"]["replicas"] = replicas.into();
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    Ok(scale)
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|p| !p.is_empty()).try_fold(object, |value, part| value.get(part))
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut slot = object;
    for part in path.split('.').filter(|p| !p.is_empty()) {
        if !slot.is_object() {
            *slot = json!({});
        }
        slot = &mut slot[part];
    }
    *slot = value;
}
