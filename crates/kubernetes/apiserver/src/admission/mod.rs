//! Admission: webhooks and built-in plugins between a decoded request and the store.

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
