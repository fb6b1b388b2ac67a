//! Field ownership across the versions of a kind.
//!
//! Field ownership is computed by a pure function that may need the object in other versions, which may take webhook
//! calls. So the function runs, missing conversions are fetched, and it runs again. Most requests need none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use ::http::StatusCode;
use capstan_builtin::decode::Words;
use capstan_schema::Schema;
use capstan_schema::apply::{ApplyError, Ownership, Set, Versions};
use capstan_schema::bounded::Texts;
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::call::Call;
use crate::http::options::WriteOptions;
use crate::registry::Origin;
use crate::scale;
use crate::status::{Cause, Details, Result, Status};
use crate::strategy;

/// Limit of rounds of conversions: each step that prunes the object can need it again in every version.
const ROUNDS: usize = 16;

const SIGNING_REQUESTS: &str = "certificates.k8s.io/certificatesigningrequests";

/// The object with the `managedFields` that result from replacing the current one.
pub(crate) async fn update(
    call: &Call,
    current: Option<&Value>,
    object: Value,
    manager: &str,
) -> Result<Value> {
    if current.is_none() && &*call.resource().bucket == SIGNING_REQUESTS {
        // As upstream 1.36, which cannot track a new one. It starts with the first apply.
        return Ok(object);
    }
    let now = call.parts.env.now_rfc3339();
    with_versions(call, |ownership| {
        let empty;
        let live = match current {
            Some(current) => current,
            None => {
                empty = ownership.empty_object();
                &empty
            }
        };
        Ok(ownership.update(live, object.clone(), manager, &now))
    })
    .await
}

/// The current object with a configuration applied.
pub(crate) async fn apply(
    call: &Call,
    current: Option<&Value>,
    applied: &Value,
    options: &WriteOptions,
) -> Result<Value> {
    let now = call.parts.env.now_rfc3339();
    let force = options.force.unwrap_or(false);
    let mut merged = with_versions(call, |ownership| {
        let empty;
        let live = match current {
            Some(current) => current,
            None => {
                empty = ownership.empty_object();
                &empty
            }
        };
        ownership.apply(live, applied, &options.field_manager, force, &now)
    })
    .await?;
    // Removed fields may have defaults.
    let normalised = if call.subresource() == scale::NAME {
        call.normalise(Words::Decoder, &mut merged, &mut Texts::default())
    } else {
        strategy::normalise_applied(call.resource(), &mut merged)
    };
    normalised.map_err(|error| Status::undecodable(error, Status::bad_request))?;
    Ok(merged)
}

async fn with_versions(
    call: &Call,
    run: impl Fn(&Ownership<'_>) -> std::result::Result<Value, ApplyError>,
) -> Result<Value> {
    let mut known: Vec<Conversion> = Vec::new();
    let body = call.body_kind();
    let api_version = body.api_version();
    let reset = reset_fields(call);
    let mut round = 0;
    loop {
        round += 1;
        let (outcome, missing) = {
            let versions = KnownVersions { call, known: &known, missing: RefCell::default() };
            let ownership = Ownership {
                versions: &versions,
                api_version: &api_version,
                kind: body.kind,
                subresource: call.subresource(),
                reset: &reset,
            };
            let outcome = run(&ownership);
            (outcome, versions.missing.into_inner())
        };
        if missing.is_empty() || round > ROUNDS {
            return outcome.map_err(|error| refusal(call, error));
        }
        for (object, to) in missing {
            let version = to.rsplit('/').next().unwrap_or(&to);
            let converted = Box::pin(call.parts.convert(call.resource(), object.clone(), version)).await;
            known.push(Conversion { object, to, converted: converted.map_err(|s| s.message) });
        }
    }
}

/// An empty object of a built-in kind. Every create needs one, and there are few kinds.
fn empty_built_in(api_version: &str, kind: &str) -> Value {
    static KNOWN: RwLock<BTreeMap<String, Value>> = RwLock::new(BTreeMap::new());
    let key = [api_version, " ", kind].concat();
    if let Some(known) = KNOWN.read().get(&key) {
        return known.clone();
    }
    let mut object = json!({"apiVersion": api_version, "kind": kind});
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // An empty object of a built-in kind always decodes.
    let _ = capstan_builtin::decode::settle(group, version, kind, &mut object);
    KNOWN.write().insert(key, object.clone());
    object
}

struct Conversion {
    object: Value,
    to: String,
    converted: std::result::Result<Value, String>,
}

struct KnownVersions<'a> {
    call: &'a Call,
    known: &'a [Conversion],
    missing: RefCell<Vec<(Value, String)>>,
}

impl Versions for KnownVersions<'_> {
    fn schema(&self, api_version: &str) -> Option<Arc<Schema>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let body = self.call.body_kind();
        if (group, version) == (body.group, body.version) {
            return Some(self.call.body_schema());
        }
        let resource = self.call.registry.find(group, version, &self.call.resource().plural)?;
        Some(resource.schema.clone())
    }

    fn empty(&self, api_version: &str, kind: &str) -> Value {
        match self.call.body_kind().typed {
            true => empty_built_in(api_version, kind),
            false => json!({"apiVersion": api_version, "kind": kind}),
        }
    }

    fn convert(&self, object: &Value, to: &str) -> std::result::Result<Value, String> {
        if object["apiVersion"] == to {
            return Ok(object.clone());
        }
        if let Some(known) = self.known.iter().find(|k| k.to == to && k.object == *object) {
            return known.converted.clone();
        }
        let mut missing = self.missing.borrow_mut();
        if !missing.iter().any(|(o, t)| t == to && o == object) {
            missing.push((object.clone(), to.to_owned()));
        }
        Err("the object is not known in that version yet".into())
    }
}

/// Fields that a write through this endpoint cannot change, and therefore does not own.
fn reset_fields(call: &Call) -> Set {
    match (&call.resource().origin, call.subresource()) {
        (Origin::Custom(_), "status") => Set::of_fields(&[&["metadata"], &["spec"]]),
        (_, "status") if call.resource().plural == "deployments" => {
            Set::of_fields(&[&["spec"], &["metadata", "labels"]])
        }
        (_, "status") => Set::of_fields(&[&["spec"]]),
        (_, "") if strategy::has_status(call.resource()) => Set::of_fields(&[&["status"]]),
        _ => Set::new(),
    }
}

fn refusal(call: &Call, error: ApplyError) -> Status {
    match error {
        ApplyError::BadRequest(text) => Status::bad_request(text),
        ApplyError::Conflict(conflicts) => {
            let mut status = Status::new(StatusCode::CONFLICT, "Conflict", conflicts.message());
            let causes = conflicts.causes().into_iter();
            status.details = Some(Box::new(Details {
                causes: causes
                    .map(|c| Cause {
                        reason: "FieldManagerConflict".into(),
                        message: c.message,
                        field: c.field,
                    })
                    .collect(),
                ..Details::default()
            }));
            status
        }
        ApplyError::Internal(text) => {
            tracing::debug!(kind = call.resource().kind, "an apply configuration does not fit its schema");
            Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", text)
        }
    }
}
