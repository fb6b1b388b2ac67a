//! What admission sees of a request.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::Warnings;
use crate::auth::User;
use crate::registry::api_version;
use crate::status::{Result, Status};

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object: update, patch or apply on an object that exists.
    Update,
    /// An object goes away.
    Delete,
    /// A connection to an object (`exec`, `proxy`).
    Connect,
}

impl Operation {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Group, version and kind of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// API group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl GroupVersionKind {
    /// Puts the three together.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// What `apiVersion` and `kind` of an object say.
    pub fn of(object: &Value) -> Self {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, object["kind"].as_str().unwrap_or_default())
    }

    /// `group/version`, or `version` in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

/// As Go prints it: `apps/v1, Kind=Deployment`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// Group, version and plural name of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// API group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name.
    pub resource: String,
}

impl GroupVersionResource {
    /// Puts the three together.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }
}

/// As Go prints it: `apps/v1, Resource=deployments`.
impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

/// One request as admission sees it.
#[derive(Debug, Clone)]
pub struct AdmissionAttributes {
    /// What happens.
    pub operation: Operation,
    /// Kind of the body; of a subresource such as `scale` the subresource's kind.
    pub kind: GroupVersionKind,
    /// Resource in the path, in the version of the request.
    pub resource: GroupVersionResource,
    /// Subresource, or empty.
    pub subresource: String,
    /// Object name; empty while a `generateName` is still open.
    pub name: String,
    /// Namespace, or empty. For Namespace objects their own name, as upstream.
    pub namespace: String,
    /// The object as it shall become, in the version of the request; none on delete.
    pub object: Option<Value>,
    /// The object as it is, in the version of the request; none on create.
    pub old_object: Option<Arc<Value>>,
    /// `CreateOptions`, `UpdateOptions`, `PatchOptions` or `DeleteOptions` with `apiVersion` and `kind`.
    pub options: Option<Value>,
    /// Nothing will be stored.
    pub dry_run: bool,
    /// Who asks.
    pub user: User,
    /// Where warnings for the client go.
    pub warnings: Warnings,
}

impl AdmissionAttributes {
    /// A refusal by admission: 403 naming the object, or what its name will begin with.
    pub fn forbidden(&self, why: impl fmt::Display) -> Status {
        let metadata = |field: &str| {
            let text = self.object.as_ref()?["metadata"][field].as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let name = match self.name.as_str() {
            "" => metadata("name").or_else(|| metadata("generateName")).unwrap_or_else(|| "Unknown".into()),
            name => name.to_owned(),
        };
        Status::forbidden(&self.resource.group, &self.resource.resource, &name, why)
    }
}

/// The other forms an object of a request can take. The server implements it per resource; admission only
/// asks when a webhook wants another version than the client sent.
pub trait Representations: Send + Sync {
    /// Every served form of the same objects, the request's own included, in order of preference.
    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)>;

    /// The object in another version.
    fn convert<'a>(&'a self, object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value>>;

    /// A patched object made whole again: decoded as a body of its kind, defaulted, pruned.
    fn settle(&self, object: Value, kind: &GroupVersionKind) -> Result<Value>;
}

/// A check or change compiled into the server, or the webhooks.
pub trait Admission: Send + Sync {
    /// Changes the object, or refuses the request. Runs before [`Admission::validate`] of all others.
    fn mutate<'a>(
        &'a self,
        _attributes: &'a mut AdmissionAttributes,
        _forms: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Refuses the request or lets it pass. The object is final.
    fn validate<'a>(
        &'a self,
        _attributes: &'a AdmissionAttributes,
        _forms: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
