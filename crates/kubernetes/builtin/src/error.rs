//! Errors of protobuf bodies.

use capstan_schema::memory::{TooLarge, Undecodable};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The protobuf envelope is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// The kind is not built in.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind { api_version: String, kind: String },
    /// A message is truncated or has a field of the wrong wire type.
    #[error("proto: {message}: {reason}")]
    Malformed { message: &'static str, reason: &'static str },
    /// An embedded JSON text is invalid.
    #[error("proto: {message}: embedded json: {reason}")]
    EmbeddedJson { message: &'static str, reason: String },
    /// A quantity is malformed.
    #[error(transparent)]
    Quantity(#[from] crate::quantity::QuantityError),
    /// Messages are nested too deep.
    #[error("proto: exceeded max depth")]
    TooDeep,
    /// The body would take too much memory.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

impl From<Error> for Undecodable {
    fn from(error: Error) -> Self {
        match error {
            Error::TooLarge(error) => Self::TooLarge(error),
            other => Self::Malformed(other.to_string()),
        }
    }
}
