//! `metav1.ObjectMeta` and references to owners.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Object, Time};

/// Namespace and name of an object; the namespace is empty for cluster-scoped objects.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// Standard object metadata. `managedFields` is not kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name, unique per kind and namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Prefix of a name that the server generates.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Namespace, empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Unique id: a recreated object has another.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Version of the stored object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Incremented when the spec changes.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// Set once the object is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Owners; the object is garbage collected when all of them are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Finalizers that must be removed before the object is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
}

impl JsonSchema for ObjectMeta {
    fn schema_name() -> Cow<'static, str> {
        "ObjectMeta".into()
    }

    /// A definition must not describe metadata further: the API server does.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl ObjectMeta {
    /// Metadata of a new object.
    pub fn named(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into(), ..Self::default() }
    }

    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }

    /// The object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner that controls this object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// Whether the object with this uid is an owner.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owner_references.iter().any(|owner| owner.uid == uid)
    }
}

/// A reference to an owner in the same namespace, or cluster-scoped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// The owner controls this object; at most one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// The owner's foreground deletion waits for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// A reference to `owner` without `controller`.
    pub fn to<T: Object>(owner: &T) -> Self {
        let meta = owner.metadata();
        Self {
            api_version: T::KIND.api_version(),
            kind: T::KIND.kind.to_owned(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            controller: None,
            block_owner_deletion: None,
        }
    }

    /// A reference to the controlling owner, which blocks its foreground deletion.
    pub fn controlled_by<T: Object>(owner: &T) -> Self {
        Self { controller: Some(true), block_owner_deletion: Some(true), ..Self::to(owner) }
    }

    /// API group without the version.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether both refer to the same owner, in any API version.
    pub fn same_owner(&self, other: &Self) -> bool {
        self.group() == other.group() && self.kind == other.kind && self.name == other.name
    }
}
