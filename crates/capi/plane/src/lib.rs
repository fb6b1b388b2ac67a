//! Cluster API on an API server: what the binary runs, and the tests with it.
//!
//! ```text
//! our own server:  Config ── configure ──▶ rules and conversion in process ─┐
//! any other:       webhooks call Rules and Converter ───────────────────────┤
//!                                                                           ▼
//! install: definitions, only where they differ ──▶ add_controllers: core, addons, kubeadm ──▶ Runtime
//! ```
//!
//! Nothing is decided here: which parts there are and how they meet, no more. Infrastructure providers stand above
//! and bring their own definitions and controllers.

mod admission;
mod controllers;
mod conversion;
mod install;
mod inventory;
mod kinds;
mod review;
mod rules;

pub use controllers::{Group, Settings, UnknownGroup, add_controllers, options, workloads};
pub use conversion::Versions;
pub use install::{InstallError, establish, install, set_conversion};
pub use inventory::{CLUSTER_API_RELEASE, ensure_namespace, providers, register};
pub use kinds::{ClusterApi, configure, definitions, definitions_for};
pub use review::{NoReview, Reviewer};
pub use rules::{Others, Rules, Subject};
