//! Why a reconcile failed.

use std::time::Duration;

use crate::ObserveError;
use crate::client::ApiError;
use crate::code::{Code, catalogue};

/// Why a reconcile ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    #[error("the state that the object depends on cannot be read")]
    Observe(#[from] ObserveError),
    #[error("the object cannot be written")]
    Write(#[source] ApiError),
    #[error("the object cannot be written as JSON")]
    Encode(#[source] serde_json::Error),
    #[error("an effect failed: {0}")]
    Effect(String),
    /// A conflict with another writer, which is expected.
    #[error("an effect conflicts with a newer version of its object: {0}")]
    Conflict(String),
    /// The same effects are decided again and again.
    #[error("{0}")]
    NotSettled(String),
    #[error("the outcome of {0} is not known yet")]
    Unresolved(String),
    #[error("observing took longer than {0:?}")]
    Slow(Duration),
}

impl ReconcileError {
    /// The code of what made the reconcile fail; `None` if its text has the codes of effects.
    pub(super) fn code(&self) -> Option<Code> {
        Some(match self {
            Self::Effect(_) | Self::Conflict(_) => return None,
            Self::Observe(ObserveError::Outside { code, .. }) => *code,
            Self::Observe(_) | Self::Slow(_) => catalogue::OBSERVE,
            Self::Write(error) if error.is_conflict() => catalogue::API_CONFLICT,
            Self::Write(ApiError::Transport(_)) => catalogue::API_UNREACHABLE,
            Self::Write(_) => catalogue::API_REFUSED,
            Self::Encode(_) => catalogue::ENCODE,
            Self::Unresolved(_) => catalogue::CALL_UNKNOWN,
            Self::NotSettled(_) => catalogue::NOT_SETTLED,
        })
    }

    /// A conflict: the object was changed by another writer, or is gone.
    pub(super) fn is_conflict(&self) -> bool {
        match self {
            Self::Write(error) => error.is_conflict() || error.is_not_found(),
            Self::Conflict(_) => true,
            _ => false,
        }
    }
}

/// An error and what caused it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
