//! The pipeline of a write, from request to response.
//!
//! ```text
//! decode ──► mutate ──► complete ──► validate ──► commit ──► respond
//!
//! decode     verbs/, call.rs   the body becomes an object of the kind: known fields, defaults, strictness; a patch
//!                              or a configuration becomes a Change of the current object
//! mutate     admission/        built-in plugins, then webhooks, change the object or reject it
//! complete   strategy.rs       what only the server sets: metadata, generations, fields this request may not change
//! validate   strategy.rs       the rules of the kind; then admission; then quota/, which counts what will be stored
//! commit     versions.rs       the storage version, encoded once, compared and swapped
//! respond    respond.rs        the stored bytes in the version and shape the client asked for
//! ```
//!
//! [`create_object`] runs it for a new object and [`change`] for an existing one, which starts over on a conflict.
//! Deletion ([`crate::verbs::delete`]) has no object to complete and validate, and uses the same admission and
//! commit.

use std::sync::Arc;

use ::http::StatusCode;
use capstan_store::{Entry, Expect, Stamped, Write, WriteError, Written};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::{self, AdmissionAttributes, Operation};
use crate::call::Call;
use crate::conversion::builtin::BuiltInConversion;
use crate::digest::Digest;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::{self, Meta};
use crate::quota::{self, QuotaLock};
use crate::registry::Origin;
use crate::representations::RequestRepresentations;
use crate::scale::ScaleView;
use crate::status::{Result, Status};
use crate::verbs::Answer;
use crate::verbs::create::clear_server_fields;
use crate::verbs::update::{check_name, check_version};
use crate::{ownership, services, strategy};

/// Largest stored object in bytes.
pub const MAX_OBJECT: usize = 3 * 1024 * 1024 / 2;

/// Attempts with a new generated name when it is taken.
const NAME_ATTEMPTS: usize = 8;

/// Upstream's message for a conflict.
pub(crate) const STALE: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// How a request changes an object.
pub(crate) trait Change: Send + Sync {
    /// Computes the new object from the current one. Called again after a conflict.
    fn step(&self, call: &Call, current: &Value) -> Result<Step>;

    /// The object to create if it does not exist; `None` is an error.
    fn create(&self, _: &Call) -> Result<Option<Step>> {
        Ok(None)
    }
}

/// One change of one object.
pub(crate) enum Step {
    /// The new object; field ownership is not updated.
    Edit(Value),
    /// The new object; the manager owns the differences.
    Write { object: Value, manager: String },
    /// A configuration to apply.
    Apply(Value),
}

impl Step {
    async fn take(self, call: &Call, current: Option<&Value>, options: &WriteOptions) -> Result<Value> {
        match self {
            Self::Edit(object) => Ok(object),
            Self::Write { object, manager } => ownership::update(call, current, object, &manager).await,
            Self::Apply(applied) => ownership::apply(call, current, &applied, options).await,
        }
    }
}

/// Stores a new object that already has field owners. Boxed: otherwise the controllers of every idle server in a
/// process would each reserve space for its state.
pub(crate) fn create_object<'a>(
    call: &'a Call,
    object: Value,
    options: &'a WriteOptions,
    kind: WriteKind,
) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move { create(call, object, options, kind, &mut None).await })
}

/// Changes the object of the request, and starts over on a conflict. Boxed, as [`create_object`].
pub(crate) fn change<'a>(
    call: &'a Call,
    change: &'a dyn Change,
    options: &'a WriteOptions,
    kind: WriteKind,
) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(try_until_settled(call, change, options, kind))
}

/// The pipeline of a new object.
async fn create(
    call: &Call,
    object: Value,
    options: &WriteOptions,
    kind: WriteKind,
    quota_lock: &mut Option<QuotaLock>,
) -> Result<Answer> {
    let create_options = options.to_json(WriteKind::Create);
    let attributes = |object, options_seen| {
        call.admission(Operation::Create, Some(object), None, options_seen, options.dry_run)
    };
    let mut object = mutate(call, attributes(object, create_options.clone())).await?;

    // Only a generated name can be retried, so only then the object is needed again.
    let generated = kind == WriteKind::Create && !object.meta_str("generateName").is_empty();
    let mut attempts = if generated { NAME_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let mut object = if attempts > 0 { object.clone() } else { object.take() };
        complete_metadata(call, &mut object);
        let _reservation = services::allocate(call, &mut object, None, options.dry_run)?;
        strategy::prepare_create(call, &mut object)?;

        strategy::validate_create(call, &object)?;
        let mut admitted = attributes(object, create_options.clone());
        validate(call, &admitted, quota_lock).await?;
        let object = admitted.object.take().unwrap_or_default();

        let name = object.name().to_owned();
        let key = object::key(call.namespace(), &name);
        let exists = || Status::already_exists(&call.resource().group, &call.resource().plural, &name);
        if options.dry_run {
            return match call.parts.store.get(&call.resource().bucket, &key) {
                Some(_) => Err(exists()),
                None => call.preview(StatusCode::CREATED, object).await,
            };
        }
        let put = |value| Write::Put {
            bucket: call.resource().bucket.clone(),
            key: key.as_str().into(),
            value,
            expect: Expect::Absent,
        };
        let recorded = services::record(call, &object, None).await?;
        match call.commit(object, put).await {
            Ok(written) => return call.answer(StatusCode::CREATED, written).await,
            Err(status) => {
                recorded.undo(call).await;
                match &*status.reason {
                    "Conflict" if attempts > 0 => {}
                    "Conflict" => return Err(exists()),
                    _ => return Err(status),
                }
            }
        }
    }
}

async fn try_until_settled(
    call: &Call,
    change: &dyn Change,
    options: &WriteOptions,
    kind: WriteKind,
) -> Result<Answer> {
    // Held over all attempts: no other request may take the quota that this one has counted.
    let mut quota_lock = None;
    loop {
        let Some(entry) = call.parts.store.get(&call.resource().bucket, &call.key()) else {
            let Some(step) = change.create(call)? else { return Err(call.not_found()) };
            let mut object = step.take(call, None, options).await?;
            call.set_namespace(&mut object)?;
            check_name(call, &object)?;
            call.parts.authorize(&call.attributes("create"))?;
            clear_server_fields(&mut object);
            match create(call, object, options, kind, &mut quota_lock).await {
                Err(status) if status.reason == "AlreadyExists" => continue,
                other => return other,
            }
        };
        if let Some(answer) = update(call, change, options, kind, &entry, &mut quota_lock).await? {
            return Ok(answer);
        }
    }
}

/// The pipeline of an existing object; `None` on a conflict.
async fn update(
    call: &Call,
    change: &dyn Change,
    options: &WriteOptions,
    kind: WriteKind,
    entry: &Arc<Entry<Digest>>,
    quota_lock: &mut Option<QuotaLock>,
) -> Result<Option<Answer>> {
    let current = Arc::new(call.load(entry).await?);
    let scale = ScaleView::of(call);
    let before = match &scale {
        Some(scale_view) => Arc::new(scale_view.open(&current)?),
        None => current.clone(),
    };
    let mut object = change.step(call, &before)?.take(call, Some(&before), options).await?;
    call.set_namespace(&mut object)?;
    check_name(call, &object)?;

    let update_options = options.to_json(match kind {
        WriteKind::Create => WriteKind::Update,
        other => other,
    });
    let attributes = |object, old| {
        call.admission(Operation::Update, Some(object), Some(old), update_options.clone(), options.dry_run)
    };
    let mut object = mutate(call, attributes(object, before.clone())).await?;
    if let Some(scale_view) = &scale {
        object = scale_view.fold(call, &current, &object)?;
    }

    check_version(call, &object, entry.revision)?;
    // From here on the object has the current version, whether the request named it or not.
    object.set_meta("resourceVersion", current.resource_version());
    let _reservation = services::allocate(call, &mut object, Some(&current), options.dry_run)?;
    strategy::prepare_update(call, &mut object, &current)?;
    if !options.dry_run {
        // As upstream, it is never stored, and a dry run repeats it.
        object.meta_mut().remove("selfLink");
    }

    strategy::validate_update(call, &object, &current)?;
    capstan_schema::apply::keep_times(&current, &mut object);
    let (shown, seen) = match &scale {
        Some(scale_view) => (scale_view.view(&object), Arc::new(scale_view.view(&current))),
        None => (std::mem::take(&mut object), current.clone()),
    };
    let mut admitted = attributes(shown, seen);
    validate(call, &admitted, quota_lock).await?;
    if scale.is_none() {
        object = admitted.object.take().unwrap_or_default();
    }

    if strategy::is_finished(call.resource(), &object) {
        // The last finalizer was removed: the update deletes the object.
        if options.dry_run {
            return Ok(Some(Answer::object(StatusCode::OK, &object)));
        }
        let remove = |last| Write::Delete {
            bucket: call.resource().bucket.clone(),
            key: entry.key.clone(),
            last,
            expect: Expect::Revision(entry.revision),
        };
        // As upstream, the removal is not stored: the event of the deletion has the finalizers, and the response has
        // the version that the object was read in.
        let mut removed = call.commit((*current).clone(), remove).await;
        if removed.as_ref().is_err_and(|status| status.code == StatusCode::INSUFFICIENT_STORAGE.as_u16()) {
            // On a full disk a smaller event may still fit.
            removed = call.commit(object.clone(), remove).await;
        }
        return match removed {
            Ok(_) => {
                services::after_delete(call, &object).await;
                Ok(Some(Answer::object(StatusCode::OK, &object)))
            }
            Err(status) if status.reason == "Conflict" => Ok(None),
            Err(status) => Err(status),
        };
    }
    if object == *current {
        // Nothing changed: nothing is written, no event is sent.
        return Ok(Some(Answer::object(StatusCode::OK, &object)));
    }
    if options.dry_run {
        return call.preview(StatusCode::OK, object).await.map(Some);
    }
    let put = |value| Write::Put {
        bucket: call.resource().bucket.clone(),
        key: entry.key.clone(),
        value,
        expect: Expect::Revision(entry.revision),
    };
    let recorded = services::record(call, &object, Some(&current)).await?;
    let given_up = services::given_up(call, &object, &current);
    match call.commit(object, put).await {
        Ok(written) => {
            services::release(call, &given_up).await;
            call.answer(StatusCode::OK, written).await.map(Some)
        }
        Err(status) => {
            recorded.undo(call).await;
            if status.reason == "Conflict" { Ok(None) } else { Err(status) }
        }
    }
}

/// Runs mutating admission.
async fn mutate(call: &Call, mut attributes: AdmissionAttributes) -> Result<Value> {
    admission::mutate(&call.parts.admission, &mut attributes, &RequestRepresentations { call }).await?;
    let object = attributes.object.ok_or_else(|| Status::internal("admission took the object away"));
    let mut object = object?;
    strategy::dedup_owners(&mut object, &call.warnings, true);
    // The request was authorized for this namespace: a webhook cannot move the object to another one.
    call.set_namespace(&mut object)?;
    Ok(object)
}

/// Runs validating admission, then the quotas.
async fn validate(
    call: &Call,
    attributes: &AdmissionAttributes,
    quota_lock: &mut Option<QuotaLock>,
) -> Result<()> {
    admission::validate(&call.parts.admission, attributes, &RequestRepresentations { call }).await?;
    // Last, as upstream: counts exactly what is stored.
    quota::admit(call, attributes, quota_lock).await
}

/// Runs all admission for a delete.
pub(crate) async fn admit_delete(call: &Call, mut attributes: AdmissionAttributes) -> Result<()> {
    let representations = RequestRepresentations { call };
    admission::mutate(&call.parts.admission, &mut attributes, &representations).await?;
    admission::validate(&call.parts.admission, &attributes, &representations).await
}

fn complete_metadata(call: &Call, object: &mut Value) {
    let env = &call.parts.env;
    object.set_meta("creationTimestamp", env.now_rfc3339());
    object.set_meta("uid", env.uuid());
    if object.name().is_empty() && !object.meta_str("generateName").is_empty() {
        // Truncated so that the suffix always fits into 63 characters.
        let base: String = object.meta_str("generateName").chars().take(58).collect();
        object.set_meta("name", format!("{base}{}", env.name_suffix()));
    }
}

impl Call {
    /// Converts an object to its storage version and commits it. A lost race is a `Conflict`.
    pub async fn commit(
        &self,
        object: Value,
        write: impl FnOnce(Stamped) -> Write,
    ) -> Result<Written<Digest>> {
        let resource = self.resource();
        // All writes of a deletion, from its timestamp to the removal of the last finalizer, work on a full disk.
        let leads_to_less = object.is_terminating();
        let stored = self.parts.storage_form(resource, object).await?;
        let digest = Digest::of_object(&stored);
        let mut value = object::stamped(stored);
        if let Origin::Custom(custom) = &resource.origin
            && resource.version == resource.storage_version
        {
            // Set before the commit: watchers see the object earlier than its writer.
            value.mark = custom.schema_epoch;
        }
        let size = value.head.len() + value.tail.len();
        if size > MAX_OBJECT {
            return Err(Status::too_large(format!(
                "Request entity too large: the object has {size} bytes, the limit is {MAX_OBJECT}"
            )));
        }
        let write = write(value);
        let (bucket, key) = match &write {
            Write::Put { bucket, key, .. } | Write::Delete { bucket, key, .. } => {
                (bucket.clone(), key.clone())
            }
        };
        let store = &self.parts.store;
        let written = if leads_to_less { store.reclaim(write).await } else { store.write(write).await };
        let written = written.map_err(|error| match error {
            WriteError::Conflict { .. } => self.conflict(STALE),
            WriteError::Full => {
                Status::insufficient_storage(format!("the object could not be stored: {error}"))
            }
            other => {
                tracing::error!(error = %other, "a write failed");
                Status::unavailable(format!("the object could not be stored: {other}"))
            }
        })?;
        // Nobody has to parse what was an object a moment ago.
        if let Some(entry) = &written.entry {
            entry.remember(digest);
        }
        self.parts.notify_controllers(bucket, key, &written);
        Ok(written)
    }

    /// The response to a write: the stored object in the version of the request.
    async fn answer(&self, code: StatusCode, written: Written<Digest>) -> Result<Answer> {
        let Some(entry) = &written.entry else { return Err(Status::internal("nothing was written")) };
        let bytes = self.render(entry).await?;
        Ok(Answer::Object { code, bytes })
    }

    /// The response to a dry run: the object as it would be read from the store.
    async fn preview(&self, code: StatusCode, object: Value) -> Result<Answer> {
        let resource = self.resource();
        if resource.version == resource.storage_version || BuiltInConversion::of(resource).is_some() {
            return Ok(Answer::object(code, &object));
        }
        let stored = self.parts.storage_form(resource, object).await?;
        let object = self.parts.read_back(resource, stored).await?;
        Ok(Answer::object(code, &object))
    }
}
