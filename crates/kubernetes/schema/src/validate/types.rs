//! JSON types, and how formats change their check.

use serde_json::{Number, Value};

use super::Dialect;
use super::findings::{Findings, Name};
use super::number::is_json_integer;
use crate::Schema;
use crate::format::Format;
use crate::golang;
use crate::schema::{Checks, TypeName};

/// The type of a value, with the name that Go's decoder gives to numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Null,
    Boolean,
    String,
    Integer,
    /// A number with a fraction or beyond 64 bits.
    Float,
    Array,
    Object,
}

impl Shape {
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::String(_) => Self::String,
            Value::Number(n) if n.is_i64() => Self::Integer,
            Value::Number(_) => Self::Float,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Float => "number",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    fn format_name(self) -> &'static str {
        match self {
            Self::Integer => "int64",
            Self::Float => "float64",
            _ => "",
        }
    }
}

/// The types a schema allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Types {
    Any,
    One(TypeName),
    IntegerOrString,
}

impl Types {
    pub fn of(schema: &Schema, dialect: Dialect) -> Self {
        match (schema.kind, dialect) {
            (_, Dialect::Object) if schema.int_or_string => Self::IntegerOrString,
            (Some(kind), _) => Self::One(kind),
            (None, _) => Self::Any,
        }
    }

    pub fn is_empty(self) -> bool {
        self == Self::Any
    }

    pub fn single(self) -> Option<TypeName> {
        match self {
            Self::One(kind) => Some(kind),
            Self::Any | Self::IntegerOrString => None,
        }
    }

    fn contains(self, kind: TypeName) -> bool {
        match self {
            Self::Any => false,
            Self::One(one) => one == kind,
            Self::IntegerOrString => matches!(kind, TypeName::Integer | TypeName::String),
        }
    }

    fn contains_shape(self, shape: Shape) -> bool {
        TypeName::from_name(shape.type_name()).is_some_and(|kind| self.contains(kind))
    }

    fn text(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::One(kind) => kind.as_str(),
            Self::IntegerOrString => "integer,string",
        }
    }

    /// The effective format: objects ignore formats that the server does not support for their type.
    pub fn format(self, checks: &Checks, dialect: Dialect) -> Option<&str> {
        let format = checks.format.as_deref()?;
        let supported = match (dialect, self) {
            (Dialect::Definition, _) => true,
            (_, Self::Any | Self::IntegerOrString | Self::One(TypeName::String)) => {
                Format::find(format).is_some()
            }
            (_, Self::One(TypeName::Integer)) => matches!(format, "int32" | "int64"),
            (_, Self::One(TypeName::Number)) => matches!(format, "float" | "double"),
            (_, Self::One(_)) => false,
        };
        supported.then_some(format)
    }

    /// Whether the value has one of the types.
    pub fn check(
        self,
        schema: &Schema,
        value: &Value,
        shape: Shape,
        format: Option<&str>,
        name: &Name<'_>,
        out: &mut Findings<'_>,
    ) -> bool {
        let mut refuse = |wanted: &str, found: &str| {
            let detail = format!("{name} in body must be of type {wanted}: {}", golang::quote(found));
            out.type_invalid(name, found.into(), detail);
            false
        };
        if shape == Shape::Null {
            return self.is_empty() || schema.nullable || refuse(self.text(), "null");
        }
        let numeric = self.contains(TypeName::Number) || self.contains(TypeName::Integer);
        let whole = shape == Shape::Float
            && self.contains(TypeName::Integer)
            && value.as_number().and_then(Number::as_f64).is_some_and(is_json_integer);
        let widened = shape == Shape::Integer && self.contains(TypeName::Number);
        let listed = self.contains_shape(shape) || whole || widened;
        if let Some(format) = format {
            // Strings and lists are left to the format's own check, which never sees lists.
            if matches!(shape, Shape::String | Shape::Array) {
                if !numeric {
                    return true;
                }
            } else if !(listed || shape.format_name() == format) {
                return refuse(format, shape.format_name());
            }
        }
        listed || refuse(self.text(), shape.type_name())
    }
}
