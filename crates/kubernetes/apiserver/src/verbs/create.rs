//! POST to a collection.

use bytes::Bytes;
use serde_json::Value;

use crate::call::Call;
use crate::http::options::WriteKind;
use crate::object::Meta;
use crate::ownership;
use crate::pipeline::create_object;
use crate::status::{Result, Status};
use crate::strategy;
use crate::verbs::Answer;

/// Creates the object in the body.
pub(crate) async fn create(call: &Call, body: &Bytes) -> Result<Answer> {
    let options = call.query.write_options(WriteKind::Create)?;
    let mut object = call.decode(body, options.field_validation)?;
    // Upstream returns 500 here; a client error should be a 4xx.
    if !object.resource_version().is_empty() && !options.dry_run {
        return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
    }
    clear_server_fields(&mut object);
    call.set_namespace(&mut object)?;
    strategy::dedup_owners(&mut object, &call.warnings, false);
    let manager = call.manager(&options.field_manager);
    let object = ownership::update(call, None, object, &manager).await?;
    create_object(call, object, &options, WriteKind::Create).await
}

/// Removes the fields of an object that only the server sets.
pub(crate) fn clear_server_fields(object: &mut Value) {
    for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object.meta_mut().remove(field);
    }
}
