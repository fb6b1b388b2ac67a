//! Ids that know what they are the id of.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The id of an `R`. Not always a UUID: flavors have any text, projects and users 32 hexadecimal digits.
pub struct Id<R>(String, PhantomData<fn() -> R>);

impl<R> Id<R> {
    /// An id, whatever its form.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into(), PhantomData)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Nothing has an empty id; services write one where there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<R> From<&str> for Id<R> {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl<R> From<String> for Id<R> {
    fn from(id: String) -> Self {
        Self::new(id)
    }
}

impl<R> Clone for Id<R> {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl<R> Default for Id<R> {
    fn default() -> Self {
        Self::new("")
    }
}

impl<R> PartialEq for Id<R> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<R> Eq for Id<R> {}

impl<R> PartialOrd for Id<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> Ord for Id<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<R> Hash for Id<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<R> fmt::Debug for Id<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<R> fmt::Display for Id<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<R> Serialize for Id<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de, R> Deserialize<'de> for Id<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}
