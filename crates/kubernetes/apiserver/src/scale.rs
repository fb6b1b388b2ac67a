//! The `scale` subresource: a small object with the replicas of any scalable kind.
//!
//! ```text
//! stored object ── open ──► Scale ── patch, replace, apply, mutating admission ──► Scale
//!                                                                                    │
//! stored object ◄─────────────────────────────── fold ◄──────────────────────────────┘
//! ```
//!
//! Clients and admission only see and write the `Scale`, with the owners of its replicas. The result is written back
//! to the object, which is then validated and stored like after any other update.

use std::sync::Arc;

use ::http::StatusCode;
use bytes::Bytes;
use capstan_builtin as builtin;
use capstan_builtin::decode::Words;
use capstan_schema::Schema;
use capstan_schema::apply::scale::{ReplicasPaths, replicas_path, to_parent, to_scale};
use capstan_schema::bounded::Texts;
use capstan_schema::field::FieldError;
use capstan_schema::memory::Undecodable;
use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::{Value, json};

use crate::call::Call;
use crate::object::Meta;
use crate::registry::{Origin, ScalePaths, Subresource, api_version};
use crate::route::Verb;
use crate::status::{Result, Status};
use crate::verbs::{self, Answer};

pub(crate) const NAME: &str = "scale";
pub(crate) const GROUP: &str = "autoscaling";
pub(crate) const VERSION: &str = "v1";
pub(crate) const KIND: &str = "Scale";

/// Invalid for a new count: upstream's marker of an object without replicas.
const NOT_SET: i64 = i32::MIN as i64;

pub(crate) async fn serve(call: &Arc<Call>, subresource: &Subresource, body: &Bytes) -> Result<Answer> {
    let scale_view = ScaleView::new(call, subresource);
    let answer = match call.verb() {
        Verb::Get => {
            let entry =
                call.parts.store.get(&call.resource().bucket, &call.key()).ok_or_else(|| call.not_found())?;
            let object = call.load(&entry).await?;
            if call.resource().custom().is_some() && scale_view.replicas(&object).is_none() {
                let path = &scale_view.paths.spec_replicas;
                return Err(Status::internal(format!("the spec replicas field {path:?} does not exist")));
            }
            return Ok(Answer::object(StatusCode::OK, &scale_view.view(&object)));
        }
        Verb::Update => verbs::update::update(call, body).await?,
        _ => verbs::patch::patch(call, body).await?,
    };
    match answer {
        Answer::Object { code, bytes } => {
            let object: Value = serde_json::from_slice(&bytes).map_err(Status::internal)?;
            Ok(Answer::object(code, &scale_view.view(&object)))
        }
        other => Ok(other),
    }
}

pub(crate) fn schema() -> Option<Arc<Schema>> {
    builtin::schema(GROUP, VERSION, KIND)
}

/// Normalises a `Scale` to Go's encoding; see [`builtin::decode::settle`].
pub(crate) fn normalise(words: Words, scale: &mut Value) -> std::result::Result<Texts, Undecodable> {
    builtin::decode::settle_with(words, GROUP, VERSION, KIND, scale)
}

/// Converts between an object and its `Scale`.
pub(crate) struct ScaleView {
    paths: ScalePaths,
    /// Paths of replicas in each version of the kind.
    replicas_paths: ReplicasPaths,
    is_custom: bool,
}

impl ScaleView {
    /// The view of a request to `scale`; `None` for any other.
    pub fn of(call: &Call) -> Option<Self> {
        if call.subresource() != NAME {
            return None;
        }
        call.resource().subresources.iter().find(|s| s.name == NAME).map(|s| Self::new(call, s))
    }

    fn new(call: &Call, subresource: &Subresource) -> Self {
        let paths = subresource.scale.clone().unwrap_or_else(|| ScalePaths {
            spec_replicas: ".spec.replicas".into(),
            status_replicas: ".status.replicas".into(),
            label_selector: None,
        });
        let replicas_paths = match &call.resource().origin {
            Origin::BuiltIn => {
                [(call.resource().api_version(), Some(replicas_path(&paths.spec_replicas)))].into()
            }
            Origin::Custom(custom) => {
                let versions = custom.spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
                let path_of = |version: &Value| {
                    version["subresources"]["scale"]["specReplicasPath"].as_str().map(replicas_path)
                };
                let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
                versions.iter().map(|v| (api_version(&call.resource().group, &name(v)), path_of(v))).collect()
            }
        };
        Self { paths, replicas_paths, is_custom: call.resource().custom().is_some() }
    }

    /// The `Scale` of an object, for readers and validating admission.
    pub fn view(&self, object: &Value) -> Value {
        let mut scale = json!({
            "kind": KIND, "apiVersion": api_version(GROUP, VERSION),
            "metadata": {
                "name": object.name(), "namespace": object.namespace(), "uid": object.uid(),
                "resourceVersion": object.resource_version(),
                "creationTimestamp": object.meta_str("creationTimestamp"),
            },
            "spec": {"replicas": self.replicas(object).unwrap_or(0)},
            "status": {
                "replicas": at(object, &self.paths.status_replicas).and_then(Value::as_i64).unwrap_or(0),
                "selector": self.selector(object),
            },
        });
        // The counts were validated when the object was written.
        let _ = normalise(Words::Decoder, &mut scale);
        scale
    }

    /// The `Scale` that a write starts from: with the owners of the replicas.
    pub fn open(&self, object: &Value) -> Result<Value> {
        let mut scale = self.view(object);
        if self.is_custom && self.replicas(object).is_none() {
            scale["spec"]["replicas"] = NOT_SET.into();
        }
        let owners = to_scale(object, &self.replicas_paths).map_err(Status::internal)?;
        if !owners.is_null() {
            scale.set_meta("managedFields", owners);
        }
        Ok(scale)
    }

    /// The object with the written `Scale` applied.
    pub fn fold(&self, call: &Call, current: &Value, scale: &Value) -> Result<Value> {
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        if self.is_custom {
            if replicas == NOT_SET {
                let path = &self.paths.spec_replicas;
                return Err(Status::bad_request(format!("the spec replicas field {path:?} cannot be empty")));
            }
        } else {
            let mut errors = meta::validate_object_meta(
                &scale["metadata"],
                true,
                meta::name_is_dns_subdomain,
                &Path::at("metadata"),
            );
            if replicas < 0 {
                let why = "must be greater than or equal to 0";
                errors.push(FieldError::invalid("spec.replicas", replicas, why));
            }
            if !errors.is_empty() {
                return Err(Status::invalid(GROUP, KIND, call.name(), errors));
            }
        }
        let mut object = current.clone();
        set(&mut object, &self.paths.spec_replicas, replicas.into());
        if !(self.is_custom && scale.resource_version().is_empty()) {
            object.set_meta("resourceVersion", scale.resource_version());
        }
        let owners = to_parent(current, scale, &call.resource().api_version(), &self.replicas_paths);
        object.set_meta("managedFields", owners.map_err(Status::internal)?);
        Ok(object)
    }

    fn replicas(&self, object: &Value) -> Option<i64> {
        at(object, &self.paths.spec_replicas).and_then(Value::as_i64)
    }

    fn selector(&self, object: &Value) -> String {
        if let Some(path) = &self.paths.label_selector {
            return at(object, path).and_then(Value::as_str).unwrap_or_default().to_owned();
        }
        match object["spec"].get("selector") {
            _ if self.is_custom => String::new(),
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
        }
    }
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
