//! Values at run time. JSON is viewed through its declared type, not copied.

mod compare;
mod equality;
mod json;
mod list;
mod map;
pub(crate) mod number;
mod text;
pub(crate) mod time;

use std::fmt;
use std::sync::Arc;

pub use list::List;
pub use map::Map;
pub(crate) use map::{Key, OwnedMap};
pub use text::Text;
pub use time::Timestamp;

use crate::library::Opaque;

/// A value of an expression, borrowing from the JSON of its variables.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `uint`
    Uint(u64),
    /// `double`
    Double(f64),
    /// `string`
    String(Text<'a>),
    /// `bytes`
    Bytes(Arc<[u8]>),
    /// `google.protobuf.Timestamp`
    Timestamp(Timestamp),
    /// `google.protobuf.Duration`, in nanoseconds
    Duration(i64),
    /// `list`
    List(List<'a>),
    /// `map`, and objects of declared types
    Map(Map<'a>),
    /// a type, by its name
    Type(Text<'a>),
    /// `optional_type`
    Optional(Option<Arc<Value<'a>>>),
    /// a value of one of Kubernetes' libraries, e.g. a quantity
    Opaque(Opaque),
    /// data kept without a schema
    Preserved(&'a serde_json::Value),
}

impl<'a> Value<'a> {
    /// The bool, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(s) => Some(s),
            _ => None,
        }
    }

    /// A map with keys of text.
    #[must_use]
    pub fn map(entries: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (Key::String(Text::Borrowed(key)), value));
        Self::Map(Map::owned(entries.collect()))
    }

    pub(crate) fn string(s: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(s.into()))
    }

    pub(crate) fn strings<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Self {
        Self::List(List::owned(items.into_iter().map(|s| Self::string(s.as_ref())).collect()))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The name of the type at run time.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(map) => map.constructed_type().unwrap_or("map"),
            Self::Type(_) => "type",
            Self::Optional(_) => crate::types::OPTIONAL,
            Self::Opaque(opaque) => opaque.type_name(),
            Self::Preserved(_) => "unknown",
        }
    }

    /// Name of the corresponding Go type, which some messages contain.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Duration(_) => "types.Duration",
            Self::List(list) if list.is_plain() => "*types.baseList",
            Self::List(_) => "*common.unstructuredList",
            Self::Map(map) if map.is_plain() => "*types.baseMap",
            Self::Map(_) => "*common.unstructuredMap",
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            Self::Opaque(opaque) => opaque.go_type(),
            Self::Preserved(_) => "*common.unknownPreserved",
        }
    }

    /// The data without its declared type; the content of an optional.
    pub(crate) fn raw(&self) -> Self {
        match self {
            Self::Map(map) => Self::Map(map.raw()),
            Self::List(list) => Self::List(list.raw()),
            Self::Optional(Some(value)) => value.raw(),
            Self::Optional(None) => Self::Null,
            value => value.clone(),
        }
    }

    /// The result of `size()`, for the types that have one.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::String(s) => Some(s.chars().count() as u64),
            Self::Bytes(b) => Some(b.len() as u64),
            Self::List(list) => Some(list.len()),
            Self::Map(map) => Some(map.len()),
            Self::Opaque(opaque) => opaque.size(),
            _ => None,
        }
    }

    /// Whether `optional.ofNonZeroValue` drops it. As upstream, views of typed JSON never count as zero.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(b) => !b,
            Self::Int(i) => *i == 0,
            Self::Uint(u) => *u == 0,
            Self::Double(d) => *d == 0.0,
            Self::String(s) => s.is_empty(),
            Self::Bytes(b) => b.is_empty(),
            Self::Timestamp(t) => t.is_zero(),
            Self::Duration(d) => *d == 0,
            Self::List(list) => list.is_plain() && list.is_empty(),
            Self::Map(map) => map.is_plain() && map.is_empty(),
            _ => false,
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl From<i64> for Value<'_> {
    fn from(i: i64) -> Self {
        Self::Int(i)
    }
}

/// Formats like Go's `%v`, which error messages contain.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // In Go the null type is a numeric enum.
            Self::Null => f.write_str("0"),
            Self::Bool(b) => b.fmt(f),
            Self::Int(i) => i.fmt(f),
            Self::Uint(u) => u.fmt(f),
            Self::Double(d) => f.write_str(&number::format_g(*d)),
            Self::String(s) | Self::Type(s) => f.write_str(s),
            Self::Bytes(bytes) => {
                f.write_str("[")?;
                for (i, byte) in bytes.iter().enumerate() {
                    if i > 0 {
                        f.write_str(" ")?;
                    }
                    byte.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Timestamp(t) => f.write_str(&t.to_go_string()),
            Self::Duration(d) => f.write_str(&time::format_go_duration(*d)),
            Self::List(list) => {
                f.write_str("[")?;
                for (i, item) in list.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    match item {
                        Ok(item) => item.fmt(f)?,
                        Err(error) => error.fmt(f)?,
                    }
                }
                f.write_str("]")
            }
            Self::Map(map) => {
                f.write_str("{")?;
                for (i, key) in map.keys().into_iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{key}: ")?;
                    match map.find(&key) {
                        Ok(Some(value)) => value.fmt(f)?,
                        Ok(None) => {}
                        Err(error) => error.fmt(f)?,
                    }
                }
                f.write_str("}")
            }
            Self::Optional(Some(value)) => write!(f, "optional({value})"),
            Self::Optional(None) => f.write_str("optional.none()"),
            Self::Opaque(opaque) => opaque.fmt(f),
            Self::Preserved(json) => json.fmt(f),
        }
    }
}
