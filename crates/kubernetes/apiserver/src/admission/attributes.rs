//! A request as admission sees it.

use std::fmt;
use std::sync::Arc;

use capstan_schema::Schema;
use capstan_schema::memory::MemoryBudget;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{AuditAnnotations, Reinvocations, Warnings};
use crate::auth::User;
use crate::registry::api_version;
use crate::status::{Result, Status};

/// Operation of a request on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Create,
    /// Update, patch or apply on an existing object.
    Update,
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

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// API group; empty for core.
    pub group: String,
    pub version: String,
    pub kind: String,
}

impl GroupVersionKind {
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// From `apiVersion` and `kind` of an object.
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
    /// API group; empty for core.
    pub group: String,
    pub version: String,
    /// Plural name.
    pub resource: String,
}

impl GroupVersionResource {
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
    pub operation: Operation,
    /// Kind of the body. For a subresource such as `scale` it is the subresource's kind.
    pub kind: GroupVersionKind,
    /// Resource in the path, in the version of the request.
    pub resource: GroupVersionResource,
    /// Subresource, or empty.
    pub subresource: String,
    /// Object name; empty until a `generateName` is resolved.
    pub name: String,
    /// Namespace, or empty. For Namespace objects it is their own name, as upstream.
    pub namespace: String,
    /// The new object, in the version of the request; `None` on delete.
    pub object: Option<Value>,
    /// The current object, in the version of the request; `None` on create.
    pub old_object: Option<Arc<Value>>,
    /// `CreateOptions`, `UpdateOptions`, `PatchOptions` or `DeleteOptions` with `apiVersion` and `kind`.
    pub options: Option<Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    pub user: Arc<User>,
    pub warnings: Warnings,
    /// Annotations of the request's audit event.
    pub annotations: AuditAnnotations,
    /// What mutating plugins remember of their first pass.
    pub reinvocations: Reinvocations,
}

impl AdmissionAttributes {
    /// A rejection by admission: 403 with the object's name or `generateName`.
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

/// Conversions of the object of a request. The server implements it per resource. Admission uses it only when a
/// webhook needs another version than the client sent.
pub trait Representations: Send + Sync {
    /// Every served version of the resource, including the request's own, in order of preference.
    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)>;

    /// Converts the object to another version.
    fn convert<'a>(&'a self, object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value>>;

    /// Normalises a patched object: decodes it as a body of its kind, defaults and prunes it.
    fn normalise(&self, object: Value, kind: &GroupVersionKind) -> Result<Value>;

    /// Like [`Representations::normalise`], but rejects unknown fields of kinds that have Go types, as upstream does
    /// after a JSON patch.
    fn normalise_strictly(&self, object: Value, kind: &GroupVersionKind) -> Result<Value> {
        self.normalise(object, kind)
    }

    /// What may still be decoded for the request.
    fn memory(&self) -> MemoryBudget {
        MemoryBudget::default()
    }

    /// The schema of a version of the resource, for patches that merge.
    fn schema(&self, _kind: &GroupVersionKind) -> Option<Arc<Schema>> {
        None
    }

    /// Whether objects of a kind have a namespace; `None` if the kind is not served. Any kind can be the parameter of
    /// a policy.
    fn is_namespaced(&self, _kind: &GroupVersionKind) -> Option<bool> {
        None
    }

    /// Objects of a kind in that version: the named one, or all. `namespace` is empty for all namespaces and for
    /// cluster-scoped kinds.
    fn objects<'a>(
        &'a self,
        _kind: &'a GroupVersionKind,
        _namespace: &'a str,
        _name: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Value>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// An admission plugin: built in, or the webhooks.
pub trait Admission: Send + Sync {
    /// Changes the object, or rejects the request. Runs before [`Admission::validate`] of all plugins, and a second
    /// time if a policy or a webhook changed the object.
    fn mutate<'a>(
        &'a self,
        _attributes: &'a mut AdmissionAttributes,
        _representations: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Accepts or rejects the request. The object is final.
    fn validate<'a>(
        &'a self,
        _attributes: &'a AdmissionAttributes,
        _representations: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
