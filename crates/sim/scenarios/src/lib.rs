//! Lifecycles of whole clusters in simulated time: the production controllers on simulated machines, with a fault at
//! every effect.
//!
//! ```text
//!   ClusterScenario: acts of a user ──▶ World (capstan-harness) ── capstan-capi-plane, capstan-sim-provider ──▶ Site
//!                                │ every effect                                                       │
//!                                └──▶ check/: etcd keeps its quorum, versions their order, … ◀────────┘
//! ```
//!
//! A [`ClusterScenario`] runs in seconds. `cargo test` runs most of them, and some with a fault; `cargo xtask simulate`
//! (`examples/simulate`) runs all of them with faults at a sample of their effects, with `--all` at every one.

mod catalog;
pub mod check;
mod class;
mod expect;
mod kinds;
mod manifests;
mod scenario;

pub use catalog::{all, named};
pub use kinds::{core, in_guest};
pub use scenario::{Act, ClusterScenario, Extra, Outside};
