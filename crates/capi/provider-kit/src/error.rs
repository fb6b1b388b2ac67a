//! Errors of providers, as the program prints them.

use std::error::Error;

/// Why a provider failed: a message with its causes. Contains no secret.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ProviderError {
    /// `message` has what failed, on which object or flag, and the fix.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Like [`Self::new`], with a cause, which is printed after the message.
    pub fn caused_by(message: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { message: message.into(), source: Some(source.into()) }
    }
}

impl From<capstan_controller::ApiError> for ProviderError {
    fn from(error: capstan_controller::ApiError) -> Self {
        Self::caused_by("the management cluster", error)
    }
}

impl From<std::io::Error> for ProviderError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}
