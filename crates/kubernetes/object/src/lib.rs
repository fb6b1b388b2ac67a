//! Common types of Kubernetes objects, as clients see them: metadata, references, conditions, selectors, and the
//! [`Object`] trait with the names of a kind.
//!
//! ```text
//! kind (capi/types, clouds/*/types) ── implements ──▶ Object ◀── reads and writes ── controller
//! ```
//!
//! Pure data: no client, no clock, no server. Typed values are for reading and for creating; changes to an existing
//! object are patches, so unknown fields are never lost.

mod condition;
mod int_or_string;
pub mod kstatus;
mod meta;
mod selector;
mod time;

pub use condition::{Condition, ConditionStatus, Conditions};
pub use int_or_string::IntOrString;
pub use meta::{Key, ObjectMeta, OwnerReference};
pub use selector::{LabelSelector, LabelSelectorRequirement, SelectorError, SelectorOperator};
pub use time::Time;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Scope of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// The names of a kind, without its Rust type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub scope: Scope,
}

impl Kind {
    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A typed object of one kind. `apiVersion` and `kind` are not fields: [`to_value`] writes them.
pub trait Object: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The kind's names.
    const KIND: Kind;
    fn metadata(&self) -> &ObjectMeta;
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
    fn key(&self) -> Key {
        self.metadata().key()
    }
}

/// The object as JSON, including `apiVersion` and `kind`.
pub fn to_value<T: Object>(object: &T) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(object)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), T::KIND.api_version().into());
        fields.insert("kind".to_owned(), T::KIND.kind.into());
    }
    Ok(value)
}

/// Implements [`Object`] for a struct with a `metadata` field.
#[macro_export]
macro_rules! object {
    ($type:ty, $group:literal / $version:literal, $kind:literal, $plural:literal, $scope:ident) => {
        impl $crate::Object for $type {
            const KIND: $crate::Kind = $crate::Kind {
                group: $group,
                version: $version,
                kind: $kind,
                plural: $plural,
                scope: $crate::Scope::$scope,
            };
            fn metadata(&self) -> &$crate::ObjectMeta {
                &self.metadata
            }
            fn metadata_mut(&mut self) -> &mut $crate::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
