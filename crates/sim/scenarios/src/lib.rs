//! Lives of whole clusters in simulated time: what the binary runs, on simulated machines, with a misfortune at
//! every moment.
//!
//! ```text
//!   Story: acts of a user ──▶ World (capstan-harness) ── capstan-capi-plane, capstan-sim-provider ──▶ Site
//!                                │ every effect                                                       │
//!                                └──▶ check/: etcd keeps its quorum, versions their order, … ◀────────┘
//! ```
//!
//! A [`Story`] runs in seconds. `cargo test` plays most of them, and some with a misfortune; `cargo xtask simulate`
//! (`examples/simulate`) plays them all and disturbs a sample of their effects, with `--all` every one.

pub mod check;
mod expect;
mod kinds;
mod manifests;
mod stories;
mod story;

pub use kinds::{core, in_guest};
pub use stories::{all, named};
pub use story::{Act, Extra, Outside, Story};
