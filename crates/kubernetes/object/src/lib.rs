//! What every Kubernetes object has, as its clients see it: metadata, references, conditions, selectors, and
//! the [`Object`] trait by which a kind says what it is called.
//!
//! ```text
//! kind (capi/types, clouds/*/types) ── implements ──▶ Object ◀── reads and writes ── controller
//! ```
//!
//! Pure data: no client, no clock, no server. Typed values are for reading and for creating; changes to an
//! existing object are patches, so a field this crate does not know is never lost.

mod condition;
mod int_or_string;
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

/// Where objects of a kind live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In no namespace.
    Cluster,
}

/// A kind by its names, without its Rust type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind, as manifests write it.
    pub kind: &'static str,
    /// Plural, as paths write it.
    pub plural: &'static str,
    /// Where objects live.
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
    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The object's metadata, to change.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
    /// Namespace and name.
    fn key(&self) -> Key {
        self.metadata().key()
    }
}

/// The whole object as the API takes it, `apiVersion` and `kind` included.
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
