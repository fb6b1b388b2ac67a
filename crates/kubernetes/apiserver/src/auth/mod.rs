//! Authentication and authorization.
//!
//! ```text
//! headers, client certificate ──► Authenticator ──► User ──► impersonation ──► Attributes ──► Authorizer ──►
//! Decision
//!                                     │                                                          │
//!                                     └── ServiceAccounts, Secrets ◄── ObjectSource ──► RBAC objects
//! ```
//!
//! This module depends neither on the store nor on the HTTP server: stored objects are read through [`ObjectSource`],
//! time and randomness come from [`capstan_env::Env`].

mod authenticator;
mod decision;
mod forbidden;
mod impersonation;
mod jwt;
pub mod rbac;
pub mod review;
pub mod service_account;
mod source;
#[cfg(test)]
pub(crate) mod testing;
mod tokens;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use authenticator::Authenticator;
pub(crate) use authenticator::Peer;
pub use capstan_pki::MASTERS;
pub use decision::{AlwaysAllow, Authorizer, Decision, NonResourceRule, ResourceRule, RulesForUser};
pub use forbidden::forbidden;
pub use impersonation::impersonated;
pub(crate) use rbac::aggregate as aggregate_text;
pub use source::{ObjectSource, StoredEntry, bucket, key};
pub use tokens::{ServiceAccountTokens, TokenIdentity, TokenSecret};

/// Group of every authenticated user.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of anonymous users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Name of anonymous users.
pub const ANONYMOUS: &str = "system:anonymous";

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct User {
    /// `admin`, `system:serviceaccount:ns:name`, `system:anonymous`.
    pub name: String,
    /// Stable id, if the authenticator has one.
    pub uid: String,
    /// Groups, including `system:authenticated`.
    pub groups: Vec<String>,
    /// Extra attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    pub fn new<G: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = G>) -> Self {
        Self { name: name.into(), groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// The server itself, for internal requests.
    pub fn privileged(name: impl Into<String>) -> Self {
        Self::new(name, [MASTERS, AUTHENTICATED])
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// Attributes of a request for authorizers and admission.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    pub user: Arc<User>,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, …; for a non-resource
    /// request the HTTP method in lower case.
    pub verb: Cow<'static, str>,
    pub group: String,
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

impl Attributes {
    /// Whether the request is for a resource rather than a path.
    pub fn is_resource_request(&self) -> bool {
        !self.resource.is_empty()
    }
}
