//! Kubernetes `Status` errors: clients match `code`, `reason` and `details`, people read `message`. Constructors
//! mirror apimachinery's `errors` package so that texts agree.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use ::http::StatusCode;
use capstan_schema::bounded::cut_text;
use capstan_schema::field::FieldErrors;
use capstan_schema::memory::Undecodable;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// Longest message in bytes. It may contain parts of the request.
const MAX_MESSAGE: usize = 512 * 1024;

/// A failed request, ready to be sent as a `v1.Status`.
#[derive(Debug, Clone)]
pub struct Status {
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`. Webhooks may use their own.
    pub reason: Cow<'static, str>,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// Extra response headers (`Retry-After`).
    pub retry_after: Option<u32>,
    /// `metadata.continue`: a token to continue an expired list.
    pub continue_token: Option<String>,
}

/// `details` of a [`Status`].
#[derive(Debug, Clone, Default)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// Kind, or resource for some reasons, as upstream mixes them.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
}

/// One entry of `details.causes`.
#[derive(Debug, Clone, Default)]
pub struct Cause {
    /// Reason, such as `FieldValueInvalid`.
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// Result of request handling.
pub type Result<T, E = Status> = std::result::Result<T, E>;

impl Status {
    pub fn new(code: StatusCode, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            code: code.as_u16(),
            reason: reason.into(),
            message: cut_text(message.into(), MAX_MESSAGE),
            details: None,
            retry_after: None,
            continue_token: None,
        }
    }

    fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403 for an object: `secrets "x" is forbidden: why`.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: impl fmt::Display) -> Self {
        let qualified = qualified(group, resource);
        let message = match (resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (_, true) => format!("{qualified} is forbidden: {why}"),
            (_, false) => format!("{qualified} {name:?} is forbidden: {why}"),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with_details(Details {
            name: name.into(),
            group: group.into(),
            kind: resource.into(),
            ..Details::default()
        })
    }

    /// 404 for an object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("{} {name:?} not found", qualified(group, resource)),
        )
        .with_details(Details {
            name: name.into(),
            group: group.into(),
            kind: resource.into(),
            ..Details::default()
        })
    }

    /// 404 for an unknown path.
    pub fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    /// 409 on create.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "AlreadyExists",
            format!("{} {name:?} already exists", qualified(group, resource)),
        )
        .with_details(Details {
            name: name.into(),
            group: group.into(),
            kind: resource.into(),
            ..Details::default()
        })
    }

    /// 409 on a stale update.
    pub fn conflict(group: &str, resource: &str, name: &str, why: impl fmt::Display) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "Conflict",
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(group, resource)),
        )
        .with_details(Details {
            name: name.into(),
            group: group.into(),
            kind: resource.into(),
            ..Details::default()
        })
    }

    /// 422 with one cause per field error, in their order.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: impl Into<FieldErrors>) -> Self {
        let errors = errors.into();
        let qualified = qualified(group, kind);
        let mut texts: Vec<String> = dedup(errors.iter().map(ToString::to_string));
        let mut causes: Vec<Cause> = errors
            .iter()
            .map(|e| Cause { reason: e.kind.reason().into(), message: e.body(), field: e.field.clone() })
            .collect();
        if errors.more() > 0 {
            let message = format!("and {} more errors", errors.more());
            texts.push(message.clone());
            causes.push(Cause { message, ..Cause::default() });
        }
        let body = match texts.as_slice() {
            [] => "<nil>".to_owned(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{qualified} {name:?} is invalid: {body}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with_details(Details {
            name: name.into(),
            group: group.into(),
            kind: kind.into(),
            causes,
            ..Details::default()
        })
    }

    /// 413 for a body that exceeds the memory limit; otherwise the caller's error.
    pub fn undecodable(error: Undecodable, malformed: impl FnOnce(String) -> Self) -> Self {
        match error {
            Undecodable::Malformed(why) => malformed(why),
            Undecodable::TooLarge(why) => Self::too_large(format!("Request entity too large: {why}")),
        }
    }

    /// 405.
    pub fn method_not_supported(group: &str, resource: &str, action: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            format!("{action} is not supported on resources of kind {:?}", qualified(group, resource)),
        )
        .with_details(Details { group: group.into(), kind: resource.into(), ..Details::default() })
    }

    /// 410: the requested history was compacted.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 406, with the supported types.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 415.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 500. The text must not contain secrets: it is sent to the client and logged.
    pub fn internal(why: impl fmt::Display) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {why}"),
        )
        .with_details(Details {
            causes: vec![Cause { message: why.to_string(), ..Cause::default() }],
            ..Details::default()
        })
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 507: no space left. kube-apiserver returns 500 when etcd has no space; a code of its own shows the cause.
    pub fn insufficient_storage(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", message)
    }

    /// 504.
    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let message = message.into();
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", format!("Timeout: {message}"))
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// The `v1.Status` object.
    pub fn to_json(&self) -> Value {
        // A status is made of texts and numbers, which always have a JSON form.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The `v1.Status` object with its fields in upstream's order, which a JSON map of ours does not keep.
impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("kind", "Status")?;
        out.serialize_entry("apiVersion", "v1")?;
        let token = self.continue_token.iter().map(|token| ("continue", token));
        out.serialize_entry("metadata", &token.collect::<BTreeMap<_, _>>())?;
        out.serialize_entry("status", "Failure")?;
        if !self.message.is_empty() {
            out.serialize_entry("message", &self.message)?;
        }
        if !self.reason.is_empty() {
            out.serialize_entry("reason", &self.reason)?;
        }
        if let Some(details) = &self.details {
            out.serialize_entry("details", details)?;
        }
        out.serialize_entry("code", &self.code)?;
        out.end()
    }
}

impl Serialize for Details {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        let texts = [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)];
        for (key, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
            out.serialize_entry(key, value)?;
        }
        if !self.causes.is_empty() {
            out.serialize_entry("causes", &self.causes)?;
        }
        if self.retry_after_seconds > 0 {
            out.serialize_entry("retryAfterSeconds", &self.retry_after_seconds)?;
        }
        out.end()
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        let texts = [("reason", &self.reason), ("message", &self.message), ("field", &self.field)];
        for (key, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
            out.serialize_entry(key, value)?;
        }
        out.end()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// `resource.group`, or `resource` in the core group.
pub fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.into() } else { format!("{resource}.{group}") }
}

fn dedup(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    texts.filter(|t| seen.insert(t.clone())).collect()
}
