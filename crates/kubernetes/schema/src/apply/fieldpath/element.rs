//! One element of a path.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::value;
use crate::bounded::{MAX_TEXT, cut};

/// Selects one child of a value.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of an object.
    Field(Arc<str>),
    /// The entry of a list whose key fields have these values, sorted by name.
    Key(Arc<[(String, Value)]>),
    /// The entry of a set with this value.
    Value(Arc<Value>),
    /// The entry of a list at this position.
    Index(i64),
}

/// Path from the root of an object.
pub type Path = Vec<PathElement>;

impl PathElement {
    /// A field of an object.
    pub fn field(name: impl Into<Arc<str>>) -> Self {
        Self::Field(name.into())
    }

    /// The list entry with these key fields, in any order.
    pub fn key(mut fields: Vec<(String, Value)>) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => a
                .iter()
                .zip(b.iter())
                .map(|((an, av), (bn, bv))| an.cmp(bn).then_with(|| value::compare(av, bv)))
                .find(|o| o.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            (Self::Value(a), Self::Value(b)) => value::compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// Equality is consistent with the order, in which `80` and `80.0` are one key.
impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{name}={}", value::text(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", value::text(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path as in messages: `.spec.ports[port=80,protocol="TCP"].name`, truncated to [`MAX_TEXT`] bytes.
#[derive(Debug, Clone, Copy)]
pub struct PathText<'a>(pub &'a [PathElement]);

impl fmt::Display for PathText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cut(Whole(self.0), MAX_TEXT))
    }
}

struct Whole<'a>(&'a [PathElement]);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
