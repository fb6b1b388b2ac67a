//! Maps: JSON objects and maps viewed through their type, and computed ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Text, Timestamp, Value, number};
use crate::decl::{DeclType, Object};
use crate::error::EvalError;
use crate::escape::{escape, unescape};

type JsonMap = serde_json::Map<String, Json>;

/// A map, or an object of a declared type.
#[derive(Clone, Debug)]
pub struct Map<'a>(pub(super) Repr<'a>);

#[derive(Clone, Debug)]
pub(super) enum Repr<'a> {
    Object {
        entries: &'a JsonMap,
        object: &'a Object,
    },
    Typed {
        entries: &'a JsonMap,
        value: &'a DeclType,
    },
    Untyped(&'a JsonMap),
    Owned(Arc<OwnedMap<'a>>),
    /// An object of a named type, built by the expression.
    Constructed {
        name: Arc<str>,
        fields: Arc<OwnedMap<'a>>,
    },
}

/// A map built by the expression.
pub(crate) type OwnedMap<'a> = BTreeMap<Key<'a>, Value<'a>>;

/// A map key. Numbers of different types are different keys; lookups also try the other types.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// By its bits, which is exact equality except for zeros, which are one key.
    Double(u64),
    String(Text<'a>),
    Timestamp(i64, u32),
    Duration(i64),
}

impl<'a> Key<'a> {
    pub(crate) fn of(value: &Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Bool(b) => Self::Bool(*b),
            Value::Int(i) => Self::Int(*i),
            Value::Uint(u) => Self::Uint(*u),
            Value::Double(d) => Self::Double(if *d == 0.0 { 0 } else { d.to_bits() }),
            Value::String(s) => Self::String(s.clone()),
            Value::Timestamp(t) => Self::Timestamp(t.seconds, t.nanos),
            Value::Duration(nanos) => Self::Duration(*nanos),
            _ => return None,
        })
    }

    pub(crate) fn to_value(&self) -> Value<'a> {
        match self {
            Self::Bool(b) => Value::Bool(*b),
            Self::Int(i) => Value::Int(*i),
            Self::Uint(u) => Value::Uint(*u),
            Self::Double(bits) => Value::Double(f64::from_bits(*bits)),
            Self::String(s) => Value::String(s.clone()),
            Self::Timestamp(seconds, nanos) => {
                Value::Timestamp(Timestamp { seconds: *seconds, nanos: *nanos, offset: 0 })
            }
            Self::Duration(nanos) => Value::Duration(*nanos),
        }
    }

    /// The keys of other numeric types with the same value.
    fn alternatives(&self) -> [Option<Self>; 2] {
        match self {
            Self::Double(bits) => {
                let double = f64::from_bits(*bits);
                [
                    number::double_to_int_lossless(double).map(Self::Int),
                    number::double_to_uint_lossless(double).map(Self::Uint),
                ]
            }
            Self::Int(i) => [u64::try_from(*i).ok().map(Self::Uint), None],
            Self::Uint(u) => [i64::try_from(*u).ok().map(Self::Int), None],
            _ => [None, None],
        }
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

impl<'a> Map<'a> {
    pub(crate) fn owned(entries: OwnedMap<'a>) -> Self {
        Self(Repr::Owned(Arc::new(entries)))
    }

    pub(crate) fn constructed(name: Arc<str>, fields: OwnedMap<'a>) -> Self {
        Self(Repr::Constructed { name, fields: Arc::new(fields) })
    }

    /// The type of an object that the expression built.
    #[must_use]
    pub fn constructed_type(&self) -> Option<&str> {
        match &self.0 {
            Repr::Constructed { name, .. } => Some(name),
            _ => None,
        }
    }

    pub(crate) fn object(entries: &'a JsonMap, object: &'a Object) -> Self {
        Self(Repr::Object { entries, object })
    }

    pub(crate) fn typed(entries: &'a JsonMap, value: &'a DeclType) -> Self {
        Self(Repr::Typed { entries, value })
    }

    pub(crate) fn untyped(entries: &'a JsonMap) -> Self {
        Self(Repr::Untyped(entries))
    }

    /// The same data without its declared type.
    pub(crate) fn raw(&self) -> Self {
        match &self.0 {
            Repr::Object { entries, .. } | Repr::Typed { entries, .. } => Self::untyped(entries),
            _ => self.clone(),
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.0, Repr::Owned(_) | Repr::Untyped(_))
    }

    /// The number of entries, including unknown fields of an object.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Repr::Object { entries, .. } | Repr::Typed { entries, .. } | Repr::Untyped(entries) => {
                entries.len() as u64
            }
            Repr::Owned(entries) | Repr::Constructed { fields: entries, .. } => entries.len() as u64,
        }
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a string key, or of a field by its identifier. `None` if absent.
    pub fn get(&self, key: &str) -> Option<Result<Value<'a>, EvalError>> {
        match &self.0 {
            Repr::Object { entries, object } => {
                let (found, field) = if key.contains("__") {
                    let property = unescape(key)?;
                    (entries.get(&property)?, object.property(&property)?)
                } else {
                    (entries.get(key)?, object.property(key)?)
                };
                // A null field of an object counts as absent.
                if found.is_null() {
                    return None;
                }
                Some(Value::from_json(found, field.decl()))
            }
            Repr::Typed { entries, value } => Some(Value::from_json(entries.get(key)?, value)),
            Repr::Untyped(entries) => Some(Ok(Value::from_untyped(entries.get(key)?))),
            Repr::Owned(entries) | Repr::Constructed { fields: entries, .. } => {
                entries.get(&Key::String(Text::Shared(Arc::from(key)))).cloned().map(Ok)
            }
        }
    }

    /// Looks up a key. Fails if the key of typed data is not a string.
    pub(crate) fn find(&self, key: &Value<'a>) -> Result<Option<Value<'a>>, EvalError> {
        match (&self.0, key) {
            (Repr::Owned(entries) | Repr::Constructed { fields: entries, .. }, _) => {
                let Some(key) = Key::of(key) else { return Ok(None) };
                if let Some(found) = entries.get(&key) {
                    return Ok(Some(found.clone()));
                }
                Ok(key.alternatives().iter().flatten().find_map(|key| entries.get(key)).cloned())
            }
            (_, Value::String(s)) => self.get(s).transpose(),
            (Repr::Untyped(_), _) => Ok(None),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// Keys and values, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (Value<'a>, Result<Value<'a>, EvalError>)> + '_ {
        self.keys().into_iter().filter_map(|key| {
            let value = self.find(&key).transpose()?;
            Some((key, value))
        })
    }

    /// The keys, in order.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match &self.0 {
            Repr::Object { entries, object } => entries
                .keys()
                .filter(|property| object.property(property).is_some())
                .map(|property| match escape(property) {
                    Some(identifier) if identifier != *property => Value::string(identifier),
                    _ => Value::String(Text::Borrowed(property)),
                })
                .collect(),
            Repr::Typed { entries, .. } | Repr::Untyped(entries) => {
                entries.keys().map(|key| Value::String(Text::Borrowed(key))).collect()
            }
            Repr::Owned(entries) | Repr::Constructed { fields: entries, .. } => {
                entries.keys().map(Key::to_value).collect()
            }
        }
    }

    /// Adds an entry with a new key, in place if the map is not shared.
    pub(crate) fn insert(self, key: &Value<'a>, value: Value<'a>) -> Result<Self, EvalError> {
        if self.find(key)?.is_some() {
            return Err(EvalError::new(format!("insert failed: key {key} already exists")));
        }
        let Some(key) = Key::of(key) else {
            return Err(EvalError::new(format!("unsupported key type: {}", key.type_name())));
        };
        let mut entries = match self.0 {
            Repr::Owned(entries) => Arc::unwrap_or_clone(entries),
            _ => {
                let mut entries = OwnedMap::new();
                for key in self.keys() {
                    if let (Some(value), Some(key)) = (self.find(&key)?, Key::of(&key)) {
                        entries.insert(key, value);
                    }
                }
                entries
            }
        };
        entries.insert(key, value);
        Ok(Self::owned(entries))
    }
}
