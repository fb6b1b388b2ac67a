//! Machines set up by kubeadm: the certificates of their cluster, their boot data, and the control plane that
//! they form.
//!
//! ```text
//! KubeadmConfig + Cluster + Machine ──▶ config (kubeadm's YAML) ──┐
//!                  certificates (Secrets of the cluster) ─────────┼─▶ cloud_config │ ignition ──▶ data Secret
//!                                  files, users, disks, commands ─┘
//! ```
//!
//! Everything here is a function of what was observed: time and randomness ([`certificates::Seed`]) are facts
//! among others, so that a simulation gives one trace for one seed. No client and no clock. Secrets are kept out
//! of errors and `Debug`.

pub mod boot;
pub mod certificates;
mod cloud_config;
pub mod config;
mod error;
mod ignition;
pub mod secret;
#[cfg(test)]
mod testing;
pub mod yaml;

pub use error::Error;
