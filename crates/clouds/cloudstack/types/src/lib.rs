//! The kinds of the CloudStack provider: their shape, their definitions, their rules.
//!
//! ```text
//! v1beta3      what is stored and what controllers use      names        what the provider's things are called
//! v1beta2  v1beta1   earlier versions                       conversion   each of them into v1beta3 and back
//! definitions  CustomResourceDefinitions made from types    admission    rules
//! ```
//!
//! They take over from the provider that clusters on CloudStack were made with so far, CAPC: the same fields, names,
//! finalizers and rules, so that its manifests apply and its live clusters go on. What is new is the status that Cluster
//! API's contract v1beta2 asks for.
//!
//! No client, no server, no clock here.

pub mod admission;
pub mod conversion;
pub mod definitions;
pub mod names;
#[cfg(test)]
mod tests;
pub mod v1beta1;
pub mod v1beta2;
pub mod v1beta3;

/// The API group of the kinds.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
