//! GET of one object.

use ::http::StatusCode;

use crate::call::Call;
use crate::status::Result;
use crate::verbs::{Answer, list};

/// Reads one object.
pub(crate) async fn get(call: &Call) -> Result<Answer> {
    let wanted = call.query.get("resourceVersion").unwrap_or_default();
    list::wait_for_version(call, wanted).await?;
    let entry = call.parts.store.get(&call.resource().bucket, &call.key()).ok_or_else(|| call.not_found())?;
    let bytes = call.render(&entry).await?;
    Ok(Answer::Object { code: StatusCode::OK, bytes })
}
