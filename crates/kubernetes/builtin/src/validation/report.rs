//! Common code of the validators: an error list, and accessors for objects whose types are already checked.

use capstan_schema::field::{BadValue, ErrorKind, FieldError, FieldErrors};
use capstan_schema::golang;
use capstan_schema::path::Path;
use serde_json::{Map, Value};

use crate::expressions::ExpressionError;

/// Errors found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) errors: FieldErrors,
}

impl Report {
    pub(super) fn required(&mut self, path: Path<'_>, detail: impl Into<String>) {
        self.errors.push(FieldError::required(path, detail));
    }

    pub(super) fn invalid(&mut self, path: Path<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    /// A value that upstream formats from its internal type.
    pub(super) fn invalid_as(&mut self, path: Path<'_>, shown: impl Into<String>, detail: impl Into<String>) {
        let shown = BadValue::Text(shown.into());
        self.errors.push(FieldError::new(ErrorKind::Invalid, path, shown, detail));
    }

    pub(super) fn forbidden(&mut self, path: Path<'_>, detail: impl Into<String>) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    pub(super) fn not_supported(&mut self, path: Path<'_>, value: impl Into<Value>, supported: &[&str]) {
        self.errors.push(FieldError::not_supported(path, value, supported));
    }

    /// An unsupported value that upstream formats from its internal type.
    pub(super) fn not_supported_as(&mut self, path: Path<'_>, shown: impl Into<String>, supported: &[&str]) {
        let mut error = FieldError::not_supported(path, Value::Null, supported);
        error.bad_value = BadValue::Text(shown.into());
        self.errors.push(error);
    }

    pub(super) fn duplicate(&mut self, path: Path<'_>, value: impl Into<Value>) {
        self.errors.push(FieldError::duplicate(path, value));
    }

    /// A duplicate that upstream formats from its internal type.
    pub(super) fn duplicate_as(&mut self, path: Path<'_>, shown: impl Into<String>) {
        self.duplicate_with(path, shown, "");
    }

    pub(super) fn duplicate_with(&mut self, path: Path<'_>, shown: impl Into<String>, detail: &str) {
        let shown = BadValue::Text(shown.into());
        self.errors.push(FieldError::new(ErrorKind::Duplicate, path, shown, detail));
    }

    pub(super) fn not_found(&mut self, path: Path<'_>, value: impl Into<Value>) {
        self.errors.push(FieldError::not_found(path, value));
    }

    pub(super) fn too_long(&mut self, path: Path<'_>, max: usize) {
        self.errors.push(FieldError::too_long(path, max as i64));
    }

    pub(super) fn too_many(&mut self, path: Path<'_>, actual: usize, max: usize) {
        self.errors.push(FieldError::too_many(path, actual as i64, max as i64));
    }

    pub(super) fn extend(&mut self, errors: FieldErrors) {
        self.errors.extend(errors);
    }

    /// One error per message.
    pub(super) fn each(&mut self, path: Path<'_>, value: &str, messages: Vec<String>) {
        for message in messages {
            self.invalid(path, value, message);
        }
    }

    /// The field is immutable.
    pub(super) fn immutable(&mut self, path: Path<'_>, new: Option<&Value>, old: Option<&Value>) {
        if !same(new, old) {
            let value = new.cloned().unwrap_or(Value::Null);
            self.invalid(path, value, capstan_schema::meta::IMMUTABLE);
        }
    }

    /// Like [`Report::invalid`], for a label selector.
    pub(super) fn invalid_selector(&mut self, path: Path<'_>, selector: &Value, detail: impl Into<String>) {
        self.invalid_as(path, selector_text(selector), detail);
    }

    /// Like [`Report::immutable`], for a label selector.
    pub(super) fn immutable_selector(&mut self, path: Path<'_>, new: Option<&Value>, old: Option<&Value>) {
        if !same(new, old) {
            let shown = selector_text(new.unwrap_or(&Value::Null));
            self.invalid_as(path, shown, capstan_schema::meta::IMMUTABLE);
        }
    }

    /// An expression that cannot be used.
    pub(super) fn expression(&mut self, path: Path<'_>, expression: &str, error: ExpressionError) {
        match error {
            ExpressionError::Invalid(why) => self.invalid(path, expression, why),
            ExpressionError::Internal(why) => self.internal(path, why),
        }
    }

    pub(super) fn internal(&mut self, path: Path<'_>, detail: impl Into<String>) {
        self.errors.push(FieldError::internal(path, detail));
    }

    /// One of a closed set, listed in the given order.
    pub(super) fn one_of(&mut self, path: Path<'_>, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.not_supported(path, value, supported);
        }
    }

    /// A number of 1 to 65535.
    pub(super) fn port(&mut self, path: Path<'_>, value: i64) {
        if !(1..=65535).contains(&value) {
            self.invalid(path, value, PORT_RANGE);
        }
    }

    pub(super) fn not_negative(&mut self, path: Path<'_>, value: i64) {
        if value < 0 {
            self.invalid(path, value, NOT_NEGATIVE);
        }
    }
}

pub(super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Equal, where absent, null and empty are the same.
pub(super) fn same(new: Option<&Value>, old: Option<&Value>) -> bool {
    let full = |v: &&Value| match v {
        Value::Null => false,
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
        _ => true,
    };
    new.filter(full) == old.filter(full)
}

/// A field that exists and is not null.
pub(super) fn get<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|v| !v.is_null())
}

pub(super) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    value.pointer(pointer).filter(|v| !v.is_null())
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn int(value: &Value, key: &str) -> i64 {
    value.get(key).and_then(Value::as_i64).unwrap_or_default()
}

pub(super) fn maybe_int(value: &Value, key: &str) -> Option<i64> {
    value.get(key).and_then(Value::as_i64)
}

pub(super) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    list(value, key).iter().filter_map(Value::as_str).collect()
}

pub(super) fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flatten()
}

pub(super) fn map<'a>(value: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    value.get(key).and_then(Value::as_object)
}

/// A label selector as Go writes it: labels before expressions.
fn selector_text(selector: &Value) -> String {
    let parts: Vec<String> = ["matchLabels", "matchExpressions"]
        .into_iter()
        .filter_map(|key| Some(format!("\"{key}\":{}", golang::json(get(selector, key)?))))
        .collect();
    if selector.is_null() { "null".to_owned() } else { format!("{{{}}}", parts.join(",")) }
}

/// A struct as `encoding/json` formats upstream's internal type: Go's names, in order, every field.
pub(super) fn internal(fields: &[(&str, &Value)]) -> String {
    let parts: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\":{}", golang::json(value))).collect();
    format!("{{{}}}", parts.join(","))
}
