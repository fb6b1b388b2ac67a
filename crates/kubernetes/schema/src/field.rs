//! Field errors with the texts of apimachinery's `field.Error`.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use crate::bounded::{MAX_TEXT, cut_text};
use crate::{golang, memory};

/// Kind of a field error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A referenced value does not exist.
    NotFound,
    /// A required value is missing.
    Required,
    /// A value must be unique and is not.
    Duplicate,
    /// A value is malformed or out of bounds.
    Invalid,
    /// A value is not among the supported ones.
    NotSupported,
    /// A value may not be set here.
    Forbidden,
    /// A text is too long.
    TooLong,
    /// A text is too short.
    TooShort,
    /// A list or map has too many entries.
    TooMany,
    /// A list or map has too few entries.
    TooFew,
    /// The server could not validate the field.
    Internal,
    /// A value has the wrong JSON type.
    TypeInvalid,
}

impl ErrorKind {
    /// The reason in `details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }
}

/// The invalid value in the message.
#[derive(Debug, Clone, PartialEq)]
pub enum BadValue {
    /// Not shown.
    Omitted,
    /// Shown as JSON (strings quoted).
    Json(Value),
    /// Shown verbatim.
    Text(String),
}

/// One field error.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What kind of error it is.
    pub kind: ErrorKind,
    /// Path, for example `spec.containers[0].name`.
    pub field: String,
    /// The invalid value.
    pub bad_value: BadValue,
    /// Explanation, such as what is allowed.
    pub detail: String,
}

impl FieldError {
    /// A field error of any kind.
    pub fn new(
        kind: ErrorKind,
        field: impl Into<String>,
        bad_value: BadValue,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, field: field.into(), bad_value, detail: detail.into() }
    }

    /// A missing required value.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, field, BadValue::Omitted, detail)
    }

    /// A malformed value.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, field, BadValue::Json(value.into()), detail)
    }

    /// A value that may not be set.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, field, BadValue::Omitted, detail)
    }

    /// A value outside of a closed set. `supported` is shown in the given order.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| golang::quote(s)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorKind::NotSupported, field, BadValue::Json(value.into()), detail)
    }

    /// A value of the wrong JSON type.
    pub fn type_invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::TypeInvalid, field, BadValue::Json(value.into()), detail)
    }

    /// A value that must be unique and is not.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::Duplicate, field, BadValue::Json(value.into()), "")
    }

    /// A reference to something that does not exist.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::NotFound, field, BadValue::Json(value.into()), "")
    }

    /// A string of more than `max` bytes.
    pub fn too_long(field: impl Into<String>, max: i64) -> Self {
        let detail = match max {
            i64::MIN..=-1 => "value is too long".into(),
            1 => "may not be more than 1 byte".into(),
            _ => format!("may not be more than {max} bytes"),
        };
        Self::new(ErrorKind::TooLong, field, BadValue::Omitted, detail)
    }

    /// A list or map of `actual` entries where `max` are allowed.
    pub fn too_many(field: impl Into<String>, actual: i64, max: i64) -> Self {
        let detail = match max {
            i64::MIN..=-1 => "has too many items".into(),
            1 => "must have at most 1 item".into(),
            _ => format!("must have at most {max} items"),
        };
        let bad_value = if actual < 0 { BadValue::Omitted } else { BadValue::Json(actual.into()) };
        Self::new(ErrorKind::TooMany, field, bad_value, detail)
    }

    /// The server could not validate the field.
    pub fn internal(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, field, BadValue::Omitted, detail)
    }

    /// The message without the field, as in a cause.
    pub fn body(&self) -> String {
        let mut out = self.kind.text().to_owned();
        let shows_value = match self.kind {
            ErrorKind::Required
            | ErrorKind::Forbidden
            | ErrorKind::TooLong
            | ErrorKind::TooShort
            | ErrorKind::Internal => false,
            _ => self.bad_value != BadValue::Omitted,
        };
        if shows_value {
            out.push_str(": ");
            match &self.bad_value {
                BadValue::Json(value) => out.push_str(&golang::bad_value(value)),
                BadValue::Text(text) => out.push_str(text),
                BadValue::Omitted => {}
            }
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Longest value and longest detail of a field error, in bytes.
const MAX_SHOWN: usize = 16 * 1024;

impl FieldError {
    /// Truncates value and detail.
    fn bounded(mut self) -> Self {
        self.field = cut_text(self.field, MAX_TEXT);
        self.detail = cut_text(self.detail, MAX_SHOWN);
        self.bad_value = match self.bad_value {
            BadValue::Json(value) if memory::tree(&value) > MAX_SHOWN => {
                BadValue::Text(cut_text(golang::bad_value(&value), MAX_SHOWN))
            }
            BadValue::Text(text) => BadValue::Text(cut_text(text, MAX_SHOWN)),
            shown => shown,
        };
        self
    }

    fn bytes(&self) -> usize {
        let shown = match &self.bad_value {
            BadValue::Omitted => 0,
            BadValue::Json(value) => memory::tree(value),
            BadValue::Text(text) => text.len(),
        };
        self.field.len() + self.detail.len() + shown
    }
}

/// Field errors of one object. After [`FieldErrors::MAX_ENTRIES`] or [`FieldErrors::MAX_BYTES`] they are only
/// counted, because the client decides how many there are, and how long.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldErrors {
    /// Never empty if there was any error.
    kept: Vec<FieldError>,
    bytes: usize,
    more: usize,
}

impl FieldErrors {
    /// Most errors that are kept.
    pub const MAX_ENTRIES: usize = 1_000;
    /// Size of paths, values and details after which no more errors are kept, in bytes.
    pub const MAX_BYTES: usize = 256 * 1024;

    /// An empty list.
    pub const fn new() -> Self {
        Self { kept: Vec::new(), bytes: 0, more: 0 }
    }

    /// Adds an error, or only counts it beyond the limit.
    pub fn push(&mut self, error: FieldError) {
        if self.kept.len() >= Self::MAX_ENTRIES || self.bytes >= Self::MAX_BYTES {
            self.more += 1;
            return;
        }
        let error = error.bounded();
        self.bytes += error.bytes();
        self.kept.push(error);
    }

    /// Adds all of another list.
    pub fn extend(&mut self, errors: impl Into<Self>) {
        let errors = errors.into();
        if self.kept.is_empty() {
            *self = Self { more: self.more + errors.more, ..errors };
            return;
        }
        errors.kept.into_iter().for_each(|error| self.push(error));
        self.more += errors.more;
    }

    /// Number of errors, kept or not.
    pub fn found(&self) -> usize {
        self.kept.len() + self.more
    }

    /// Number of errors that were not kept.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Size of the kept paths, values and details in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps only the first `found` errors.
    pub fn truncate(&mut self, found: usize) {
        if found >= self.kept.len() {
            self.more = self.more.min(found - self.kept.len());
            return;
        }
        self.kept.truncate(found);
        self.more = 0;
        self.bytes = self.kept.iter().map(FieldError::bytes).sum();
    }

    /// Removes all errors.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Keeps only the errors for which the predicate holds, of those that were kept.
    pub fn retain(&mut self, wanted: impl FnMut(&FieldError) -> bool) {
        self.kept.retain(wanted);
        self.bytes = self.kept.iter().map(FieldError::bytes).sum();
    }
}

impl Deref for FieldErrors {
    type Target = [FieldError];

    fn deref(&self) -> &[FieldError] {
        &self.kept
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> Self {
        let mut out = Self::new();
        errors.into_iter().for_each(|error| out.push(error));
        out
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldErrors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

impl From<Vec<FieldError>> for FieldErrors {
    fn from(errors: Vec<FieldError>) -> Self {
        errors.into_iter().collect()
    }
}

impl From<Option<FieldError>> for FieldErrors {
    fn from(error: Option<FieldError>) -> Self {
        error.into_iter().collect()
    }
}

impl From<&[FieldError]> for FieldErrors {
    fn from(errors: &[FieldError]) -> Self {
        errors.iter().cloned().collect()
    }
}

impl From<&Vec<FieldError>> for FieldErrors {
    fn from(errors: &Vec<FieldError>) -> Self {
        errors.as_slice().into()
    }
}

impl<const N: usize> From<&[FieldError; N]> for FieldErrors {
    fn from(errors: &[FieldError; N]) -> Self {
        errors.as_slice().into()
    }
}

impl<const N: usize> From<[FieldError; N]> for FieldErrors {
    fn from(errors: [FieldError; N]) -> Self {
        errors.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_once_there_are_too_many() {
        let errors: FieldErrors = (0..5_000).map(|n| FieldError::invalid("a", n, "wrong")).collect();
        assert_eq!((errors.len(), errors.more()), (FieldErrors::MAX_ENTRIES, 4_000));
    }

    #[test]
    fn neither_long_paths_nor_large_values_are_kept() {
        let long = "x".repeat(1 << 20);
        let large = serde_json::json!(vec![vec![0]; 100_000]);
        let errors: FieldErrors = (0..100)
            .flat_map(|_| {
                let value = BadValue::Text(long.clone());
                [
                    FieldError::invalid(long.as_str(), large.clone(), long.as_str()),
                    FieldError::new(ErrorKind::Invalid, "a", value, ""),
                ]
            })
            .collect();
        assert!(errors.bytes() < FieldErrors::MAX_BYTES + 3 * MAX_SHOWN, "{}", errors.bytes());
        assert_eq!(errors.found(), 200);
    }

    #[test]
    fn what_is_forgotten_again_makes_room() {
        let error = || FieldError::required("a", "");
        let mut errors: FieldErrors = (0..FieldErrors::MAX_ENTRIES + 10).map(|_| error()).collect();
        errors.truncate(FieldErrors::MAX_ENTRIES + 5);
        assert_eq!(errors.found(), FieldErrors::MAX_ENTRIES + 5);
        errors.truncate(3);
        errors.push(error());
        assert_eq!((errors.len(), errors.more()), (4, 0));
    }
}
