//! Routing: resolves a request to a resource, a scope, an optional subresource and a verb.
//!
//! Every request to a resource is resolved here, once, and handlers see only the result. A path that does not match
//! the scope of its resource reaches no handler, whatever the caller's permissions: permissions in a namespace are
//! checked against the namespace in the path, and must not lead to objects outside of it.
//!
//! ```text
//! path                                      namespaced resource    cluster-scoped resource
//! <resource>, watch/<resource>              list, watch            collection
//! <resource>/<name>[/<subresource>]         404                    item
//! namespaces/<ns>/<resource>                collection             404
//! namespaces/<ns>/<resource>/<name>[/…]     item                   404
//! ```
//!
//! As upstream, requests are authorized first, by their path: a caller without permission learns nothing about what
//! is served.

use std::sync::Arc;

use ::http::{Method, StatusCode};

use crate::auth::{Attributes, User};
use crate::http::info::RequestInfo;
use crate::registry::{Resource, Subresource};
use crate::reply::{self, Reply};
use crate::status::{Details, Status};
use crate::strategy::is_namespace;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    /// The verb in roles and discovery.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == word)
    }
}

/// Scope of the objects of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Cluster-scoped.
    Cluster,
    /// In one namespace.
    Namespace(String),
    /// In all namespaces: a list or a watch.
    AllNamespaces,
}

/// A resolved request.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    resource: Arc<Resource>,
    verb: Verb,
    scope: Scope,
    name: String,
    /// Index into the resource's subresources.
    subresource: Option<usize>,
}

/// Why a request cannot be routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing is served there.
    NotFound,
    /// A custom resource has no such subresource.
    Subresource,
    /// The method is not supported there.
    Method,
    /// The collection of a custom resource does not support the verb without a name.
    Nameless,
}

impl Route {
    pub fn resolve(resource: &Arc<Resource>, info: &RequestInfo) -> Result<Self, Refusal> {
        let scope = Self::scope_of(resource, info)?;
        if !info.rest.is_empty() || info.verb == "proxy" {
            return Err(Refusal::NotFound);
        }
        // Watches by path prefix were GETs too.
        let verb = Verb::parse(&info.verb)
            .filter(|verb| *verb != Verb::Watch || matches!(info.method, Method::GET | Method::HEAD))
            // Upstream's router has no HEAD; custom resources are served without it.
            .filter(|_| info.method != Method::HEAD || resource.custom().is_some());
        let mut subresource = None;
        let allowed = if !info.subresource.is_empty() {
            let index = resource.subresources.iter().position(|s| s.name == info.subresource);
            // Subresources were never watched by path prefix.
            let missing = if resource.custom().is_some() { Refusal::Subresource } else { Refusal::NotFound };
            let index = index.filter(|_| info.verb != "watch").ok_or(missing)?;
            subresource = Some(index);
            verb.filter(|verb| resource.subresources[index].verbs.contains(&verb.as_str()))
        } else {
            let here: &[Verb] = match (&scope, info.is_item) {
                (_, true) => &[Verb::Get, Verb::Update, Verb::Patch, Verb::Delete, Verb::Watch],
                (Scope::AllNamespaces, false) => &[Verb::List, Verb::Watch],
                (_, false) => &[Verb::List, Verb::Watch, Verb::Create, Verb::DeleteCollection],
            };
            let served = |verb: &Verb| resource.verbs.contains(&verb.as_str());
            if !here.iter().any(served) {
                return Err(Refusal::NotFound);
            }
            let is_custom = resource.custom().is_some();
            match verb {
                // Upstream has no routes for custom resources: their handler rejects with another error.
                verb if is_custom
                    && scope == Scope::AllNamespaces
                    && verb.is_none_or(|verb| !here.contains(&verb)) =>
                {
                    return Err(Refusal::NotFound);
                }
                Some(Verb::Update | Verb::Patch) if is_custom && !info.is_item => {
                    return Err(Refusal::Nameless);
                }
                verb => verb.filter(|verb| here.contains(verb) && served(verb)),
            }
        };
        let verb = allowed.ok_or(Refusal::Method)?;
        Ok(Self { resource: resource.clone(), verb, scope, name: info.name.clone(), subresource })
    }

    fn scope_of(resource: &Resource, info: &RequestInfo) -> Result<Scope, Refusal> {
        match (resource.namespaced, info.in_namespace) {
            (true, true) => Ok(Scope::Namespace(info.namespace.clone())),
            (true, false) if !info.is_item => Ok(Scope::AllNamespaces),
            // Only Namespaces are addressed with a namespace that they are not in. Otherwise another resource of that
            // name could be reached with permissions that are meant for a namespace.
            (false, false) if info.namespace.is_empty() || is_namespace(resource) => Ok(Scope::Cluster),
            _ => Err(Refusal::NotFound),
        }
    }

    /// The route of an internal request to one object; `namespace` is empty for cluster-scoped kinds.
    pub fn internal(resource: Arc<Resource>, namespace: &str, name: &str) -> Self {
        let scope = if resource.namespaced { Scope::Namespace(namespace.to_owned()) } else { Scope::Cluster };
        Self { resource, verb: Verb::Update, scope, name: name.to_owned(), subresource: None }
    }

    /// The subresource of the same object; the object itself if there is none of that name.
    pub fn on(mut self, subresource: &str) -> Self {
        self.subresource = self.resource.subresources.iter().position(|s| s.name == subresource);
        self
    }

    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// Name of the object, or the name that a collection is filtered by, or empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Namespace of the objects; empty for cluster-scoped kinds and for all namespaces.
    pub fn namespace(&self) -> &str {
        match &self.scope {
            Scope::Namespace(namespace) => namespace,
            Scope::Cluster | Scope::AllNamespaces => "",
        }
    }

    pub fn subresource(&self) -> Option<&Subresource> {
        self.subresource.and_then(|index| self.resource.subresources.get(index))
    }

    /// Name of the subresource, or empty.
    pub fn subresource_name(&self) -> &str {
        self.subresource().map_or("", |s| s.name.as_str())
    }

    /// Authorization attributes of this route with a verb.
    pub fn attributes(&self, user: Arc<User>, verb: &str) -> Attributes {
        let namespace = if is_namespace(&self.resource) { &self.name } else { self.namespace() };
        Attributes {
            user,
            verb: verb.to_owned().into(),
            group: self.resource.group.clone(),
            version: self.resource.version.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.subresource_name().to_owned(),
            namespace: namespace.to_owned(),
            name: self.name.clone(),
            path: String::new(),
        }
    }
}

impl Refusal {
    /// The error response.
    pub fn reply(self, resource: &Resource, info: &RequestInfo) -> Result<Reply, Status> {
        match self {
            Self::NotFound => not_found(info),
            Self::Subresource => Err(Status::not_found(&resource.group, &resource.plural, &info.name)),
            Self::Method if resource.custom().is_some() => {
                Err(Status::method_not_supported(&resource.group, &resource.plural, &info.verb))
            }
            Self::Method => Err(method_not_allowed()),
            Self::Nameless => Err(Status::bad_request("name must be provided")),
        }
    }
}

/// 404 for an unknown path. Upstream's API groups respond with a `Status`, everything else with plain text.
pub(crate) fn not_found(info: &RequestInfo) -> Result<Reply, Status> {
    let mut parts = info.path.split('/').skip(1);
    let in_api = match parts.next() {
        Some("api") => true,
        Some("apis") => is_builtin_group(parts.next().unwrap_or_default()),
        // Its router has these too, and answers for what is below them.
        _ => ["/version/", "/openid/v1/jwks/"].iter().any(|root| info.path.starts_with(root)),
    };
    if in_api { Err(Status::no_such_path()) } else { Ok(page_not_found()) }
}

/// 404 outside of the API.
pub(crate) fn page_not_found() -> Reply {
    reply::text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// Whether a group has built-in kinds.
pub(crate) fn is_builtin_group(group: &str) -> bool {
    !group.is_empty() && capstan_builtin::kinds().iter().any(|kind| kind.group == group)
}

/// 405 of upstream's router.
pub(crate) fn method_not_allowed() -> Status {
    let mut status = Status::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
    status.details = Some(Box::new(Details::default()));
    status
}
