//! The kinds of the OpenStack provider: their shape, their definitions, their rules.
//!
//! ```text
//! v1beta2      stored, and what controllers use      v1alpha1     kinds with one version
//! v1beta1      what most manifests are written in    conversion   v1beta1 into v1beta2 and back
//! definitions  CustomResourceDefinitions from types  admission    rules
//! names        what the provider's things are called
//! ```
//!
//! They take over from CAPO: the same fields, names, finalizers and rules, so that its manifests apply and its live
//! clusters go on.
//!
//! No client, no server, no clock here.

pub mod admission;
mod common;
pub mod conversion;
pub mod definitions;
pub mod names;
mod schema;
#[cfg(test)]
mod tests;
pub mod v1alpha1;
pub mod v1beta1;
pub mod v1beta2;

pub use common::{ManagedSecurityGroupName, NodeAddress, Quantity};

/// The API group of the kinds.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
