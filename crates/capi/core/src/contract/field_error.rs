//! A field of a provider's object that does not follow the contract.

use std::borrow::Cow;
use std::fmt;

/// A field does not have the type that the contract requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    kind: String,
    path: Cow<'static, str>,
    expected: &'static str,
}

impl FieldError {
    pub(super) fn new(kind: &str, path: &'static str, expected: &'static str) -> Self {
        Self { kind: kind.to_owned(), path: path.into(), expected }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} is not {}", self.kind, self.path, self.expected)
    }
}

impl std::error::Error for FieldError {}
