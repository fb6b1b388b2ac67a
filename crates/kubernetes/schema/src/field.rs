//! Field errors, worded as apimachinery's `field.Error` so that clients and people see what they know.

use std::fmt;

use serde_json::Value;

/// What is wrong with a field.
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
    /// A list or map has too many entries.
    TooMany,
    /// The server could not tell.
    Internal,
    /// A value has the wrong JSON type.
    TypeInvalid,
}

impl ErrorKind {
    /// `details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
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
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// The offending value as the message shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum BadValue {
    /// Not shown.
    Omitted,
    /// Shown as JSON (texts quoted).
    Json(Value),
    /// Shown verbatim: a rendering that is not JSON.
    Text(String),
}

/// One field error.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Path, such as `spec.containers[0].name`.
    pub field: String,
    /// The offending value.
    pub bad_value: BadValue,
    /// What it should be.
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

    /// A value outside of a closed set; `supported` is shown in the order given.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorKind::NotSupported, field, BadValue::Json(value.into()), detail)
    }

    /// The message without the field: a cause's text.
    pub fn body(&self) -> String {
        let mut out = self.kind.text().to_owned();
        let shows_value = match self.kind {
            ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong | ErrorKind::Internal => false,
            _ => self.bad_value != BadValue::Omitted,
        };
        if shows_value {
            out.push_str(": ");
            match &self.bad_value {
                BadValue::Json(Value::Null) => out.push_str("\"null\""),
                BadValue::Json(value) => out.push_str(&value.to_string()),
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
