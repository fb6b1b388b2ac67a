//! Cluster API on an API server, assembled for the binary and for tests.
//!
//! ```text
//! our own server:   Config ── configure ──▶ rules and conversion in process ─┐
//! any other server: webhooks call Rules and Converter ──────────────────────┤
//!                                                                           ▼
//! install: definitions, only if they differ ──▶ add_controllers: core, addons, kubeadm, extensions ──▶ Runtime
//! ```
//!
//! This crate only assembles parts. Infrastructure providers build on it and add their own definitions and
//! controllers.

mod admission;
mod arrival;
mod class;
mod controllers;
mod conversion;
mod extensions;
mod install;
mod inventory;
mod kinds;
mod review;
mod rules;
mod secrets;

pub use capstan_capi_runtime::Extensions;
pub use controllers::{Group, Settings, UnknownGroup, add_controllers, options, workloads};
pub use conversion::Versions;
pub use extensions::over_https;
pub use install::{InstallError, establish, install, set_conversion};
pub use inventory::{CLUSTER_API_RELEASE, ensure_namespace, providers, register};
pub use kinds::{ClusterApi, configure, definitions, definitions_for};
pub use review::{NotAReview, Reviewer};
pub use rules::{RelatedObjects, Rules, Subject};
pub use secrets::ALLOWED_NAMESPACES;
