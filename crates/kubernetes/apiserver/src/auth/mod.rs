//! Who is asking, and may they.

use std::collections::BTreeMap;

/// An authenticated user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// `admin`, `system:serviceaccount:ns:name`, `system:anonymous`.
    pub name: String,
    /// Stable id, if the authenticator has one.
    pub uid: String,
    /// Groups, `system:authenticated` among them.
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What a request is about, as authorizers and admission see it.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    /// Who asks.
    pub user: User,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, …
    pub verb: String,
    /// API group of the resource.
    pub group: String,
    /// API version of the resource.
    pub version: String,
    /// Plural name; empty for non-resource requests.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Object name, or empty.
    pub name: String,
    /// URL path, for non-resource requests.
    pub path: String,
}
