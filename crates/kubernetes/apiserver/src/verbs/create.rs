//! POST to a collection.

use ::http::StatusCode;
use bytes::Bytes;
use capstan_store::{Expect, Write};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::Operation;
use crate::call::Call;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::{self, Meta};
use crate::ownership;
use crate::status::{Result, Status};
use crate::strategy;
use crate::verbs::Answer;

/// How often a generated name is tried anew when it is taken.
const NAME_ATTEMPTS: usize = 8;

/// Creates the object in the body.
pub(crate) async fn create(call: &Call, body: &Bytes) -> Result<Answer> {
    let options = call.query.write_options(WriteKind::Create)?;
    let mut object = call.decode(body, options.field_validation)?;
    // Upstream answers 500 here; a mistake of the client's is better told as one.
    if !object.resource_version().is_empty() && !options.dry_run {
        return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
    }
    clear_server_fields(&mut object);
    call.place(&mut object)?;
    strategy::dedup_owners(&mut object, &call.warnings, false);
    let manager = call.manager(&options.field_manager);
    let object = ownership::update(call, None, object, &manager).await?;
    create_object(call, object, &options, WriteKind::Create).await
}

/// Admits, completes, validates and stores a new object whose fields are already owned by someone.
/// On the heap: the controllers of every idle server in a process would otherwise each set its state aside.
pub(crate) fn create_object<'a>(
    call: &'a Call,
    object: Value,
    options: &'a WriteOptions,
    kind: WriteKind,
) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(admit_and_store(call, object, options, kind))
}

async fn admit_and_store(
    call: &Call,
    object: Value,
    options: &WriteOptions,
    kind: WriteKind,
) -> Result<Answer> {
    let create_options = options.to_json(WriteKind::Create);
    let attributes =
        call.admission(Operation::Create, Some(object), None, create_options.clone(), options.dry_run);
    let mut object = call.parts.mutate(call, attributes).await?;
    strategy::dedup_owners(&mut object, &call.warnings, true);

    // Only a generated name can be tried anew, so that only then the object is needed again.
    let generated = kind == WriteKind::Create && !object.meta_str("generateName").is_empty();
    let mut attempts = if generated { NAME_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let mut object = if attempts > 0 { object.clone() } else { object.take() };
        complete_metadata(call, &mut object);
        strategy::prepare_create(call, &mut object)?;
        strategy::validate_create(call, &object)?;
        let options_seen = create_options.clone();
        let mut attributes =
            call.admission(Operation::Create, Some(object), None, options_seen, options.dry_run);
        call.parts.validate(call, &attributes).await?;
        let object = attributes.object.take().unwrap_or_default();

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
        match call.parts.commit(call, object, put).await {
            Ok(written) => return call.answer(StatusCode::CREATED, written).await,
            Err(status) if status.reason == "Conflict" && attempts > 0 => {}
            Err(status) if status.reason == "Conflict" => return Err(exists()),
            Err(status) => return Err(status),
        }
    }
}

/// Takes out of an object what only the server says of it.
pub(crate) fn clear_server_fields(object: &mut Value) {
    for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object.meta_mut().remove(field);
    }
}

fn complete_metadata(call: &Call, object: &mut Value) {
    let env = &call.parts.env;
    object.set_meta("creationTimestamp", env.now_rfc3339());
    object.set_meta("uid", env.uuid());
    if object.name().is_empty() && !object.meta_str("generateName").is_empty() {
        // Names are cut so that the suffix always fits into 63 characters.
        let base: String = object.meta_str("generateName").chars().take(58).collect();
        object.set_meta("name", format!("{base}{}", env.name_suffix()));
    }
}
