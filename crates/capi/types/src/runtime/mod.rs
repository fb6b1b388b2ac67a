//! `runtime.cluster.x-k8s.io/v1beta2`: extensions that are called over HTTPS.
//!
//! [`extension_config`] is the kind that registers an extension server; [`hook`] has the calls that such a server
//! may answer, with the responses; [`pending`] tracks calls that are due, in an annotation of the Cluster.

pub mod extension_config;
pub mod hook;
pub mod pending;

pub use extension_config::{
    ClientConfig, ExtensionConfig, ExtensionConfigSpec, ExtensionConfigStatus, ExtensionHandler,
    FailurePolicy, GroupVersionHook, ServiceReference,
};
pub use hook::Hook;
