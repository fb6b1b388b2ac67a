//! What can go wrong with a request, and what that says about whether it happened.

use capstan_transport::TransportError;
use serde::Deserialize;

use super::limits::LimitExceeded;

/// Bytes of a server's message that are kept: it ends up in conditions and logs.
const LONGEST_MESSAGE: usize = 16 * 1024;
/// Bytes of a server's reason that are kept.
const LONGEST_REASON: usize = 256;
/// Causes of a refusal that are kept.
const MOST_CAUSES: usize = 32;

/// A failed request.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The server answered with a `Status`.
    #[error("{message}")]
    Status {
        /// HTTP status code.
        code: u16,
        /// Machine-readable reason, such as `NotFound`.
        reason: String,
        /// Text for people.
        message: String,
        /// Seconds after which a retry makes sense.
        retry_after: Option<u32>,
    },
    /// No answer.
    #[error("the API server did not answer")]
    Transport(#[from] TransportError),
    /// The answer is larger than this server may send, or took longer.
    #[error(transparent)]
    Limit(LimitExceeded),
    /// The answer is not what it should be.
    #[error("the API server's answer cannot be read")]
    Decode(#[source] serde_json::Error),
    /// The body cannot be written as JSON.
    #[error("the object cannot be written as JSON")]
    Encode(#[source] serde_json::Error),
    /// The request cannot be put together.
    #[error("the request is malformed: {0}")]
    Request(String),
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawStatus {
    reason: String,
    message: String,
    details: RawDetails,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawDetails {
    retry_after_seconds: Option<u32>,
    causes: Vec<RawCause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawCause {
    message: String,
}

/// A text cut off after so many bytes.
pub(crate) fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

/// A refusal for now, with what it is about: which budget forbids an eviction is only in its cause.
fn with_causes(code: u16, message: String, causes: &[RawCause]) -> String {
    let causes = causes.iter().take(MOST_CAUSES);
    let missing = causes.filter(|cause| code == 429 && !message.contains(&cause.message));
    missing.fold(message.clone(), |text, cause| format!("{text} {}", cause.message))
}

impl ApiError {
    /// A failure from the answer's code and body.
    pub fn from_body(code: u16, body: &[u8]) -> Self {
        let status: RawStatus = serde_json::from_slice(body).unwrap_or_default();
        let message = if status.message.is_empty() {
            format!(
                "the server answered {code}: {}",
                String::from_utf8_lossy(&body[..body.len().min(200)]).trim()
            )
        } else {
            with_causes(code, status.message, &status.details.causes)
        };
        Self::Status {
            code,
            reason: shortened(status.reason, LONGEST_REASON),
            message: shortened(message, LONGEST_MESSAGE),
            retry_after: status.details.retry_after_seconds,
        }
    }

    /// A failure as the server would have answered it.
    pub fn status(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self::Status { code, reason: reason.to_owned(), message: message.into(), retry_after: None }
    }

    fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Status { reason, .. } if reason == wanted)
    }

    /// There is no such object, or no such kind.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { code: 404, .. })
    }

    /// The object has changed in the meantime.
    pub fn is_conflict(&self) -> bool {
        self.is("Conflict")
    }

    /// An object of the name exists.
    pub fn is_already_exists(&self) -> bool {
        self.is("AlreadyExists")
    }

    /// The version asked for is too old: list again.
    pub fn is_expired(&self) -> bool {
        matches!(self, Self::Status { code: 410, .. }) || self.is("Expired") || self.is("Gone")
    }

    /// The object is wrong and stays wrong: a retry changes nothing.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Status { code: 400 | 422, .. })
    }

    /// Whether the request was served is unknown: no response, or a response of a proxy.
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Self::Transport(error) => !error.never_sent,
            Self::Status { code, .. } => matches!(code, 500 | 502 | 504),
            Self::Decode(_) | Self::Limit(_) => true,
            Self::Encode(_) | Self::Request(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_eviction_names_its_budget() {
        let body = br#"{"reason": "TooManyRequests", "message": "Cannot evict pod.",
                        "details": {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget web"}]}}"#;
        assert_eq!(ApiError::from_body(429, body).to_string(), "Cannot evict pod. The disruption budget web");
        assert_eq!(ApiError::from_body(422, body).to_string(), "Cannot evict pod.");
    }

    #[test]
    fn a_refusal_of_any_length_is_cut_to_what_a_condition_holds() {
        let body =
            serde_json::json!({"reason": "r".repeat(1 << 20), "message": "ä".repeat(1 << 20)}).to_string();
        let ApiError::Status { reason, message, .. } = ApiError::from_body(403, body.as_bytes()) else {
            panic!("a status")
        };
        assert!(reason.len() < 300 && message.len() < 17_000 && message.ends_with("ä…"));
    }

    #[test]
    fn what_may_have_happened_is_distinguished_from_what_did_not() {
        let answered = |code, reason: &str| ApiError::status(code, reason, "");
        for (error, ambiguous) in [
            (answered(504, "Timeout"), true),
            (answered(500, "InternalError"), true),
            (answered(409, "Conflict"), false),
            (answered(429, "TooManyRequests"), false),
            (TransportError::ambiguous("reset").into(), true),
            (TransportError::never_sent("refused").into(), false),
        ] {
            assert_eq!(error.is_ambiguous(), ambiguous, "{error:?}");
        }
    }
}
