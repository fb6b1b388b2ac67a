//! `Content-Type` of bodies and patches.

use super::{Encoding, Endpoint, JSON, PROTOBUF, YAML, from_router};
use crate::status::Status;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// Strategic merge patch; not for custom resources.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// The encoding of a request body. An absent or empty `Content-Type` means JSON.
pub fn body(content_type: Option<&str>, endpoint: Endpoint) -> Result<Encoding, Status> {
    let media_type = bare(content_type.unwrap_or("")).trim().to_ascii_lowercase();
    match media_type.as_str() {
        "" | JSON => Ok(Encoding::Json),
        YAML => Ok(Encoding::Yaml),
        // Upstream claims to accept protobuf for custom resources and then drops the connection.
        PROTOBUF if endpoint != Endpoint::Custom => Ok(Encoding::Protobuf),
        PROTOBUF => Err(unsupported(&[JSON, YAML])),
        _ => Err(unsupported(&[JSON, YAML, PROTOBUF])),
    }
}

/// The type of a patch body.
pub fn patch(content_type: Option<&str>, endpoint: Endpoint) -> Result<PatchKind, Status> {
    const JSON_PATCH: &str = "application/json-patch+json";
    const MERGE: &str = "application/merge-patch+json";
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    const APPLY: &str = "application/apply-patch+yaml";
    let custom = endpoint == Endpoint::Custom;
    match bare(content_type.unwrap_or("")) {
        JSON_PATCH => Ok(PatchKind::Json),
        MERGE => Ok(PatchKind::Merge),
        STRATEGIC if !custom => Ok(PatchKind::Strategic),
        APPLY => Ok(PatchKind::Apply),
        _ if custom => Err(unsupported(&[JSON_PATCH, MERGE, APPLY])),
        // Built-in kinds fail in upstream's router, which does not list the supported types.
        _ => Err(from_router(Status::unsupported_media_type("415: Unsupported Media Type"))),
    }
}

fn unsupported(accepted: &[&str]) -> Status {
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}

/// A media type without its parameters.
fn bare(content_type: &str) -> &str {
    match content_type.find(';') {
        Some(at) if at > 0 => &content_type[..at],
        _ => content_type,
    }
}
