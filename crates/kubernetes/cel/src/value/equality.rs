//! Equality. The left side decides: typed data is stricter than computed values.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::list::ListIdentity;
use super::map::Repr;
use super::{List, Map, Value};
use crate::error::EvalError;
use crate::eval::Meter;

type Equality = Result<bool, EvalError>;

impl<'a> Value<'a> {
    /// `self == other`
    pub(crate) fn equals(&self, other: &Value<'a>, meter: &mut Meter) -> Equality {
        match (self, other) {
            (Self::Null, Self::Null) => Ok(true),
            (Self::Null, _) | (_, Self::Null) => Ok(false),
            (Self::Bool(a), Self::Bool(b)) => Ok(a == b),
            (Self::Int(_) | Self::Uint(_) | Self::Double(_), _) => {
                Ok(self.compare_number(other).is_some_and(|order| order.is_eq()))
            }
            (Self::String(a), Self::String(b)) | (Self::Type(a), Self::Type(b)) => Ok(a == b),
            (Self::Bytes(a), Self::Bytes(b)) => Ok(a == b),
            (Self::Timestamp(a), Self::Timestamp(b)) => Ok(a == b),
            (Self::Duration(a), Self::Duration(b)) => Ok(a == b),
            (Self::List(a), Self::List(b)) => a.equals(b, meter),
            (Self::List(a), _) if !a.is_plain() => Err(EvalError::no_such_overload()),
            (Self::Map(a), Self::Map(b)) => a.equals(b, meter),
            (Self::Map(a), _) if !a.is_plain() => Err(EvalError::no_such_overload()),
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b, meter),
                (None, None) => Ok(true),
                _ => Ok(false),
            },
            (Self::Opaque(a), Self::Opaque(b)) => a.equals(b),
            (Self::Opaque(_), _) => Err(EvalError::no_such_overload()),
            (Self::Preserved(a), _) => Ok(other.to_json().is_ok_and(|b| **a == b)),
            _ => Ok(false),
        }
    }
}

impl<'a> List<'a> {
    fn equals(&self, other: &Self, meter: &mut Meter) -> Equality {
        if self.len() != other.len() {
            return Ok(false);
        }
        meter.work(self.len())?;
        match self.identity() {
            ListIdentity::Set => self.set_equals(other),
            ListIdentity::Keyed(keys) => self.keyed_equals(other, keys, meter),
            ListIdentity::Atomic => {
                for (a, b) in self.iter().zip(other.iter()) {
                    if !a?.equals(&b?, meter)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListIdentity::Plain => {
                let mut first_error = None;
                for (a, b) in self.iter().zip(other.iter()) {
                    // Elements whose comparison fails count as equal in a plain list, as in cel-go.
                    match a.and_then(|a| a.equals(&b?, meter)) {
                        Ok(true) => {}
                        Ok(false) => return Ok(false),
                        Err(error) if !error.is_absorbable() => return Err(error),
                        Err(error) => first_error = first_error.or(Some(error)),
                    }
                }
                match first_error {
                    Some(error) if self.is_concat() => Err(error),
                    _ => Ok(true),
                }
            }
        }
    }

    fn set_equals(&self, other: &Self) -> Equality {
        let mut members = BTreeSet::new();
        for item in self.iter() {
            members.insert(scalar_key(&item?));
        }
        for item in other.iter() {
            if !members.contains(&scalar_key(&item?)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn keyed_equals(&self, other: &Self, keys: &[String], meter: &mut Meter) -> Equality {
        let mut by_key = std::collections::BTreeMap::new();
        for item in self.iter() {
            let item = item?;
            by_key.insert(element_key(&item, keys), item);
        }
        for item in other.iter() {
            let item = item?;
            match by_key.get(&element_key(&item, keys)) {
                None => return Ok(false),
                Some(mine) => {
                    if !mine.equals(&item, meter)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// `self + other` by the semantics of the left list: append, union or merge.
    pub(crate) fn add(&self, other: &Self, meter: &mut Meter) -> Result<Self, EvalError> {
        let key: Box<dyn Fn(&Value<'a>) -> String> = match self.identity() {
            ListIdentity::Plain | ListIdentity::Atomic => return self.concat(other, meter),
            ListIdentity::Set => Box::new(|item| scalar_key(item)),
            ListIdentity::Keyed(keys) => Box::new(move |item| element_key(item, keys)),
        };
        meter.work(self.len().saturating_add(other.len()))?;
        let is_set = matches!(self.identity(), ListIdentity::Set);
        let mut items = Vec::with_capacity(self.len() as usize);
        let mut positions = std::collections::BTreeMap::new();
        for item in self.iter() {
            let item = item?;
            positions.insert(key(&item), items.len());
            items.push(item);
        }
        for item in other.iter() {
            let item = item?;
            let item_key = key(&item);
            match positions.get(&item_key) {
                Some(_) if is_set => {}
                Some(position) => items[*position] = item,
                None => {
                    // A repeated key among the added elements is appended again, as upstream.
                    if is_set {
                        positions.insert(item_key, items.len());
                    }
                    items.push(item);
                }
            }
        }
        Ok(Self::owned_as(items, self.identity()))
    }

    /// `value in self`
    pub(crate) fn contains(&self, value: &Value<'a>, meter: &mut Meter) -> Equality {
        let mut first_error = None;
        meter.work(self.len())?;
        for item in self.iter() {
            let equal = if self.is_plain() {
                item.and_then(|item| value.equals(&item, meter))
            } else {
                item.and_then(|item| item.equals(value, meter))
            };
            match equal {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if !error.is_absorbable() => return Err(error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) if !self.is_plain() => Err(error),
            _ => Ok(false),
        }
    }
}

/// A key for a scalar, distinct by type and value.
fn scalar_key(value: &Value<'_>) -> String {
    format!("{}\0{value}", value.type_name())
}

/// The values of the key properties of an element of a map list.
fn element_key(value: &Value<'_>, keys: &[String]) -> String {
    let mut key = String::new();
    let Value::Map(map) = value else { return scalar_key(value) };
    for property in keys {
        let identifier = crate::escape::escape(property);
        match map.get(identifier.as_deref().unwrap_or(property)) {
            Some(Ok(value)) => key.push_str(&scalar_key(&value)),
            _ => key.push('\x01'),
        }
        key.push('\0');
    }
    key
}

impl<'a> Map<'a> {
    fn equals(&self, other: &Self, meter: &mut Meter) -> Equality {
        if self.len() != other.len() || self.constructed_type() != other.constructed_type() {
            return Ok(false);
        }
        meter.work(self.len())?;
        match &self.0 {
            Repr::Object { entries, object } => {
                for (property, mine) in *entries {
                    if object.property(property).is_none() {
                        // Unknown fields compare as plain data, and only if both sides have them.
                        let Some(theirs) = other.json() else { return Err(EvalError::no_such_overload()) };
                        if theirs.get(property).is_some_and(|theirs| mine != theirs) {
                            return Ok(false);
                        }
                        continue;
                    }
                    // Fields are looked up by their raw name here, so one whose name needs escaping is not found on
                    // either side.
                    match (self.get(property), other.get(property)) {
                        (None, None) => {}
                        (Some(mine), Some(theirs)) => {
                            if !mine?.equals(&theirs?, meter)? {
                                return Ok(false);
                            }
                        }
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            Repr::Typed { .. } => {
                for key in self.keys() {
                    match (self.find(&key)?, other.find(&key)?) {
                        (Some(mine), Some(theirs)) => {
                            if !mine.equals(&theirs, meter)? {
                                return Ok(false);
                            }
                        }
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            Repr::Untyped(_) | Repr::Owned(_) | Repr::Constructed { .. } => {
                for key in self.keys() {
                    let theirs = match other.find(&key) {
                        Ok(Some(theirs)) => theirs,
                        Ok(None) | Err(_) => return Ok(false),
                    };
                    let Some(mine) = self.find(&key)? else { return Ok(false) };
                    match mine.equals(&theirs, meter) {
                        Ok(false) => return Ok(false),
                        Err(error) if !error.is_absorbable() => return Err(error),
                        _ => {}
                    }
                }
                Ok(true)
            }
        }
    }

    fn json(&self) -> Option<&'a serde_json::Map<String, Json>> {
        match &self.0 {
            Repr::Object { entries, .. } | Repr::Typed { entries, .. } | Repr::Untyped(entries) => {
                Some(entries)
            }
            Repr::Owned(_) | Repr::Constructed { .. } => None,
        }
    }
}
