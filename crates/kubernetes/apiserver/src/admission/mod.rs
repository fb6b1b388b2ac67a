//! What stands between a decoded request and the store: webhooks and the checks compiled in.

mod attributes;
mod certificates;
pub mod lifecycle;
mod warnings;
pub mod webhook;

pub use attributes::{
    Admission, AdmissionAttributes, GroupVersionKind, GroupVersionResource, Operation, Representations,
};
pub use certificates::CertificateSubjectRestriction;
pub use warnings::Warnings;
