//! PUT, and the part of PATCH and apply that changes an object that exists: read, change, admit,
//! validate, compare and swap.

use std::sync::Arc;

use ::http::StatusCode;
use bytes::Bytes;
use capstan_store::{Entry, Expect, Write};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::Operation;
use crate::call::Call;
use crate::digest::Digest;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::Meta;
use crate::ownership;
use crate::scale::Lens;
use crate::status::{Result, Status};
use crate::strategy;
use crate::verbs::Answer;
use crate::verbs::create::{clear_server_fields, create_object};

/// What upstream says when somebody else was faster.
pub(crate) const STALE: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// How a request changes what is there.
pub(crate) trait Change: Send + Sync {
    /// What becomes of the current object. Called again when somebody else was faster.
    fn step(&self, call: &Call, current: &Value) -> Result<Step>;

    /// What to create where there is nothing; `None`: that is an error.
    fn create(&self, _: &Call) -> Result<Option<Step>> {
        Ok(None)
    }
}

/// One change of one object.
pub(crate) enum Step {
    /// The object as it should become, whoever owns its fields.
    Edit(Value),
    /// The object as it should become; what differs is the manager's from now on.
    Write { object: Value, manager: String },
    /// A configuration to merge in.
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

/// Replaces the object.
pub(crate) async fn update(call: &Call, body: &Bytes) -> Result<Answer> {
    let options = call.query.write_options(WriteKind::Update)?;
    let mut object = call.decode(body, options.field_validation)?;
    call.place(&mut object)?;
    check_name(call, &object)?;
    strategy::dedup_owners(&mut object, &call.warnings, false);
    let manager = call.manager(&options.field_manager);
    let replacement = Replacement { object, manager };
    change(call, &replacement, &options, WriteKind::Update).await
}

struct Replacement {
    object: Value,
    manager: String,
}

impl Change for Replacement {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let uid = self.object.uid();
        if !uid.is_empty() && uid != current.uid() {
            return Err(call.conflict(format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                current.uid()
            )));
        }
        Ok(Step::Write { object: self.object.clone(), manager: self.manager.clone() })
    }

    fn create(&self, call: &Call) -> Result<Option<Step>> {
        if !strategy::allows_create_on_update(call.resource()) || !call.subresource().is_empty() {
            return Ok(None);
        }
        if !self.object.uid().is_empty() {
            return Err(call.conflict(format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: ",
                self.object.uid()
            )));
        }
        Ok(Some(Step::Write { object: self.object.clone(), manager: self.manager.clone() }))
    }
}

/// Checks that an object is the one the path names.
pub(crate) fn check_name(call: &Call, object: &Value) -> Result<()> {
    let name = object.name();
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name()
        )));
    }
    if name != call.name() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    Ok(())
}

/// Carries a change out, again from the start whenever somebody else was faster.
/// On the heap: the controllers of every idle server in a process would otherwise each set its state aside.
pub(crate) fn change<'a>(
    call: &'a Call,
    change: &'a dyn Change,
    options: &'a WriteOptions,
    kind: WriteKind,
) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(try_until_settled(call, change, options, kind))
}

async fn try_until_settled(
    call: &Call,
    change: &dyn Change,
    options: &WriteOptions,
    kind: WriteKind,
) -> Result<Answer> {
    loop {
        let Some(entry) = call.parts.store.get(&call.resource().bucket, &call.key()) else {
            let Some(step) = change.create(call)? else { return Err(call.not_found()) };
            let mut object = step.take(call, None, options).await?;
            call.place(&mut object)?;
            check_name(call, &object)?;
            call.parts.authorize(&call.attributes("create"))?;
            clear_server_fields(&mut object);
            match create_object(call, object, options, kind).await {
                Err(status) if status.reason == "AlreadyExists" => continue,
                other => return other,
            }
        };
        match attempt(call, change, options, kind, &entry).await? {
            Some(answer) => return Ok(answer),
            None => continue,
        }
    }
}

/// One attempt; `None` if somebody else was faster.
async fn attempt(
    call: &Call,
    change: &dyn Change,
    options: &WriteOptions,
    kind: WriteKind,
    entry: &Arc<Entry<Digest>>,
) -> Result<Option<Answer>> {
    let current = Arc::new(call.parts.load(call, entry).await?);
    let scale = Lens::of(call);
    let before = match &scale {
        Some(lens) => Arc::new(lens.open(&current)?),
        None => current.clone(),
    };
    let mut object = change.step(call, &before)?.take(call, Some(&before), options).await?;
    call.place(&mut object)?;
    check_name(call, &object)?;

    let update_options = options.to_json(match kind {
        WriteKind::Create => WriteKind::Update,
        other => other,
    });
    let attributes = call.admission(
        Operation::Update,
        Some(object),
        Some(before.clone()),
        update_options.clone(),
        options.dry_run,
    );
    let mut object = call.parts.mutate(call, attributes).await?;
    strategy::dedup_owners(&mut object, &call.warnings, true);
    if let Some(lens) = &scale {
        object = lens.fold(call, &current, &object)?;
    }
    check_version(call, &object, entry.revision)?;
    // From here on the object counts as written over the current version, whether it named it or not.
    object.set_meta("resourceVersion", current.resource_version());

    strategy::prepare_update(call, &mut object, &current)?;
    strategy::validate_update(call, &object, &current)?;
    capstan_schema::apply::keep_times(&current, &mut object);
    let (shown, seen) = match &scale {
        Some(lens) => (lens.view(&object), Arc::new(lens.view(&current))),
        None => (std::mem::take(&mut object), current.clone()),
    };
    let mut attributes =
        call.admission(Operation::Update, Some(shown), Some(seen), update_options, options.dry_run);
    call.parts.validate(call, &attributes).await?;
    if scale.is_none() {
        object = attributes.object.take().unwrap_or_default();
    }

    if strategy::is_finished(call.resource(), &object) {
        // The last finalizer went: the update is the delete.
        if options.dry_run {
            return Ok(Some(Answer::object(StatusCode::OK, &object)));
        }
        let remove = |last| Write::Delete {
            bucket: call.resource().bucket.clone(),
            key: entry.key.clone(),
            last,
            expect: Expect::Revision(entry.revision),
        };
        return match call.parts.commit(call, object.clone(), remove).await {
            Ok(written) => {
                object.set_meta("resourceVersion", written.revision.to_string());
                Ok(Some(Answer::object(StatusCode::OK, &object)))
            }
            Err(status) if status.reason == "Conflict" => Ok(None),
            Err(status) => Err(status),
        };
    }

    if object == *current {
        // Nothing changes: nothing is written, no event is sent.
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
    match call.parts.commit(call, object, put).await {
        Ok(written) => call.answer(StatusCode::OK, written).await.map(Some),
        Err(status) if status.reason == "Conflict" => Ok(None),
        Err(status) => Err(status),
    }
}

fn check_version(call: &Call, object: &Value, current: u64) -> Result<()> {
    let given = object.resource_version();
    match given {
        "" | "0" if strategy::allows_unconditional_update(call.resource()) => Ok(()),
        "" | "0" => Err(Status::invalid(
            &call.resource().group,
            &call.resource().plural,
            call.name(),
            [capstan_schema::field::FieldError::invalid(
                "metadata.resourceVersion",
                0,
                "must be specified for an update",
            )],
        )),
        version if version == current.to_string() => Ok(()),
        version if version.parse::<u64>().is_ok() => Err(call.conflict(STALE)),
        version => Err(Status::invalid(
            &call.resource().group,
            &call.resource().kind,
            call.name(),
            [capstan_schema::field::FieldError::invalid(
                "metadata.resourceVersion",
                version,
                format!("strconv.ParseUint: parsing {version:?}: invalid syntax"),
            )],
        )),
    }
}
