//! Admission: policies, webhooks and built-in plugins between a decoded request and the store.
//!
//! ```text
//! mutate    built-in plugins ─► mutating policies ─► mutating webhooks ─► second pass, where reinvocation is needed
//! validate  built-in plugins ─► validating policies ─► validating webhooks
//! ```

mod annotations;
mod attributes;
mod certificates;
mod classes;
mod conditions;
pub mod lifecycle;
mod limit_ranges;
mod namespaces;
pub mod policy;
mod reinvocation;
mod rules;
mod scheduling;
mod service_accounts;
mod signers;
mod storage;
mod versioned_objects;
mod warnings;
pub mod webhook;

use std::sync::Arc;

pub use annotations::AuditAnnotations;
pub use attributes::{
    Admission, AdmissionAttributes, GroupVersionKind, GroupVersionResource, Operation, Representations,
};
pub use certificates::CertificateSubjectRestriction;
use classes::default_class;
pub use classes::{DefaultIngressClass, TaintNodes};
pub use limit_ranges::LimitRanger;
pub use reinvocation::Reinvocations;
pub use scheduling::{DefaultTolerationSeconds, Priority, RuntimeClasses};
pub use service_accounts::ServiceAccountAdmission;
pub use signers::SignerPermissions;
pub use storage::Storage;
pub(crate) use storage::{CLAIM_PROTECTION, CLASS_PROTECTION, VOLUME_PROTECTION};
pub use warnings::Warnings;

use crate::status::Result;

/// Runs mutating admission: all plugins, and again those that need it.
pub(crate) async fn mutate(
    plugins: &[Arc<dyn Admission>],
    attributes: &mut AdmissionAttributes,
    representations: &dyn Representations,
) -> Result<()> {
    for plugin in plugins {
        plugin.mutate(attributes, representations).await?;
    }
    if !attributes.reinvocations.needed() {
        return Ok(());
    }
    attributes.reinvocations.second_pass = true;
    for plugin in plugins {
        plugin.mutate(attributes, representations).await?;
    }
    Ok(())
}

/// Runs validating admission.
pub(crate) async fn validate(
    plugins: &[Arc<dyn Admission>],
    attributes: &AdmissionAttributes,
    representations: &dyn Representations,
) -> Result<()> {
    for plugin in plugins {
        plugin.validate(attributes, representations).await?;
    }
    Ok(())
}
