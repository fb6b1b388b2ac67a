//! Rejects creates in a namespace that does not exist or is terminating, and deletes of system namespaces.

use std::sync::Arc;

use capstan_store::Store;
use futures::future::BoxFuture;

use super::{Admission, AdmissionAttributes, Operation, Representations};
use crate::digest::Digest;
use crate::status::{Cause, Result, Status};

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The admission plugin.
pub struct NamespaceLifecycle {
    store: Store<Digest>,
}

impl NamespaceLifecycle {
    pub fn new(store: Store<Digest>) -> Arc<Self> {
        Arc::new(Self { store })
    }

    fn check(&self, attributes: &AdmissionAttributes) -> Result<()> {
        let is_namespace = attributes.kind.group.is_empty() && attributes.kind.kind == "Namespace";
        if is_namespace {
            if attributes.operation == Operation::Delete && IMMORTAL.contains(&attributes.name.as_str()) {
                return Err(attributes.forbidden("this namespace may not be deleted"));
            }
            return Ok(());
        }
        // Reviews are not stored; the authorizer decides who may create them.
        let transient = matches!(
            attributes.resource.resource.as_str(),
            "localsubjectaccessreviews" | "subjectaccessreviews" | "selfsubjectaccessreviews"
        );
        if attributes.namespace.is_empty() || attributes.operation != Operation::Create || transient {
            return Ok(());
        }
        let Some(namespace) = self.store.get("/namespaces", &attributes.namespace) else {
            return Err(Status::not_found("", "namespaces", &attributes.namespace));
        };
        if !namespace.digest().terminating {
            return Ok(());
        }
        let mut status = attributes.forbidden(format!(
            "unable to create new content in namespace {} because it is being terminated",
            attributes.namespace
        ));
        if let Some(details) = &mut status.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {} is being terminated", attributes.namespace),
                field: "metadata.namespace".into(),
            });
        }
        Err(status)
    }
}

impl Admission for NamespaceLifecycle {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(self.check(attributes)))
    }
}
