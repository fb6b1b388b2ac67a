//! PUT to an object.

use bytes::Bytes;
use serde_json::Value;

use crate::call::Call;
use crate::http::options::WriteKind;
use crate::object::Meta;
use crate::pipeline::{Change, STALE, Step, change};
use crate::status::{Result, Status};
use crate::strategy;
use crate::verbs::Answer;

/// Replaces the object.
pub(crate) async fn update(call: &Call, body: &Bytes) -> Result<Answer> {
    let options = call.query.write_options(WriteKind::Update)?;
    let mut object = call.decode(body, options.field_validation)?;
    call.set_namespace(&mut object)?;
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

/// Checks that an object has the name of the path.
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

/// Checks the resource version of an object against the current one; it may be absent where that is allowed.
pub(crate) fn check_version(call: &Call, object: &Value, current: u64) -> Result<()> {
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
