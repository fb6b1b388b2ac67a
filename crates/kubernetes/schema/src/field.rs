//! Field errors, worded as apimachinery's `field.Error` so that clients and people see what they know.

use std::fmt;

use serde_json::Value;

use crate::golang;

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
    /// A text is too short.
    TooShort,
    /// A list or map has too many entries.
    TooMany,
    /// A list or map has too few entries.
    TooFew,
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

    /// A value that refers to nothing.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::NotFound, field, BadValue::Json(value.into()), "")
    }

    /// A text of more than `max` bytes.
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

    /// The server could not tell.
    pub fn internal(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, field, BadValue::Omitted, detail)
    }

    /// The message without the field: a cause's text.
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
