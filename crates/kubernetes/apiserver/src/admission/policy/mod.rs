//! ValidatingAdmissionPolicies and MutatingAdmissionPolicies: admission by expressions, in this process.
//!
//! ```text
//! policies, bindings ─► set.rs: compiled once per change
//!                          │
//! request ─► matching.rs ─► params.rs ─► evaluation.rs ─┬─► validating.rs  deny, warn, audit
//!                                                        └─► mutating.rs, patch.rs  the changed object
//! ```
//!
//! A policy applies through its bindings. What cannot be evaluated rejects the request or is ignored, as the
//! policy's `failurePolicy` says. Policies and bindings themselves are exempt, or a bad one could not be removed.

mod access;
mod compiled;
mod evaluation;
mod matching;
mod mutating;
mod params;
mod patch;
pub(crate) mod references;
mod set;
pub(crate) mod type_checking;
mod validating;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

pub(super) use access::RequestAuthorizer;
use compiled::{Mutations, Validations};
pub(super) use evaluation::{OUT_OF_BUDGET, RequestBudget, Subject, Weight};
use set::PolicySet;

use super::{
    Admission, AdmissionAttributes, GroupVersionKind, GroupVersionResource, Representations, webhook,
};
use crate::auth::{Authorizer, ObjectSource, bucket};
use crate::status::{Result, Status};

/// Applies the policies that are stored.
pub struct Policies {
    source: Arc<dyn ObjectSource>,
    authorizer: Arc<dyn Authorizer>,
    validating: PolicySet<Validations>,
    mutating: PolicySet<Mutations>,
}

impl Policies {
    /// Reads policies, bindings and namespaces from `source`. Expressions may ask `authorizer`.
    pub fn new(source: Arc<dyn ObjectSource>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self {
            source,
            authorizer,
            validating: PolicySet::new(bucket::VALIDATING_POLICIES, bucket::VALIDATING_POLICY_BINDINGS),
            mutating: PolicySet::new(bucket::MUTATING_POLICIES, bucket::MUTATING_POLICY_BINDINGS),
        }
    }

    /// The namespace of the request as expressions see it; null if the object has none.
    fn namespace(&self, attributes: &AdmissionAttributes) -> Result<Value> {
        let kind = &attributes.kind;
        // The namespace of a Namespace is itself.
        let is_namespace = (kind.group.as_str(), kind.kind.as_str()) == ("", "Namespace");
        if attributes.namespace.is_empty() || is_namespace {
            return Ok(Value::Null);
        }
        let namespace = self.source.get(bucket::NAMESPACES, &attributes.namespace);
        let namespace =
            namespace.ok_or_else(|| Status::not_found("", "namespaces", &attributes.namespace))?;
        Ok(visible_namespace(&namespace))
    }
}

/// Without owners and managed fields, as upstream.
fn visible_namespace(namespace: &Value) -> Value {
    const METADATA: [&str; 12] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];
    let metadata: Map<String, Value> = METADATA
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), namespace["metadata"].get(key)?.clone())))
        .collect();
    let part = |key: &str| namespace.get(key).cloned().unwrap_or_else(|| json!({}));
    json!({"metadata": metadata, "spec": part("spec"), "status": part("status")})
}

fn request_variable(
    attributes: &AdmissionAttributes,
    resource: &GroupVersionResource,
    kind: &GroupVersionKind,
) -> Value {
    Value::Object(webhook::review::request(attributes, resource, kind))
}

/// Requests that no policy sees: the policies themselves, and questions about permissions.
fn is_exempt(attributes: &AdmissionAttributes) -> bool {
    let resource = &attributes.resource;
    match resource.group.as_str() {
        "admissionregistration.k8s.io" => matches!(
            resource.resource.as_str(),
            "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
        ),
        "authentication.k8s.io" | "authorization.k8s.io" => true,
        _ => false,
    }
}

impl Admission for Policies {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        representations: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        let set = self.mutating.current(&*self.source);
        if set.hooks.is_empty() || is_exempt(attributes) || attributes.object.is_none() {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(async move { mutating::run(self, &set.hooks, attributes, representations).await })
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        representations: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        let set = self.validating.current(&*self.source);
        if set.hooks.is_empty() || is_exempt(attributes) {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(async move { validating::run(self, &set.hooks, attributes, representations).await })
    }
}
