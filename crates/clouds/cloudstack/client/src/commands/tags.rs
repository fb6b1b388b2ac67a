//! Tags.

use serde::Serialize;

use super::Scope;
use crate::command::{jobs, lists};
use crate::id::NoId;
use crate::model::{Done, ResourceType, Tag};

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TagPair {
    /// Unique per resource, whatever its case.
    pub key: String,
    /// Not empty.
    pub value: String,
}

impl TagPair {
    /// A key and its value.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.into() }
    }
}

/// Tags. What the caller may not see has none.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListTags {
    /// On this resource.
    pub resourceid: Option<String>,
    /// On this kind of resource.
    pub resourcetype: Option<ResourceType>,
    /// With this key.
    pub key: Option<String>,
    /// With this value.
    pub value: Option<String>,
    /// Owner of the tags.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Adds tags. A key that is there already fails the whole command, and nothing is added.
#[derive(Debug, Clone, Serialize)]
pub struct CreateTags {
    /// To these resources.
    pub resourceids: Vec<String>,
    /// Of this kind.
    pub resourcetype: ResourceType,
    /// The tags.
    pub tags: Vec<TagPair>,
}

/// Removes tags. One that is not there with this value fails the command.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteTags {
    /// From these resources.
    pub resourceids: Vec<String>,
    /// Of this kind.
    pub resourcetype: ResourceType,
    /// The tags; all if empty.
    pub tags: Vec<TagPair>,
}

lists! { ListTags: "listTags" => "tag" Tag; }
jobs! {
    CreateTags: "createTags" [NoId] => Done;
    DeleteTags: "deleteTags" [NoId] => Done;
}
