//! Machines set up by kubeadm: the certificates of their cluster, their boot data, and the control plane that
//! they form.
//!
//! ```text
//! KubeadmConfig + Cluster + Machine ──▶ config (kubeadm's YAML) ──┐
//!                  certificates (Secrets of the cluster) ─────────┼─▶ cloud_config │ ignition ──▶ data Secret
//!                                  files, users, disks, commands ─┘
//!
//! machines, etcd members, health ──▶ control_plane: what is added, replaced or removed next
//! ```
//!
//! Everything here is a function of what was observed: time and randomness ([`certificates::Seed`]) are facts
//! among others, so that a simulation gives one trace for one seed. Only [`bootstrap`] and [`control_plane`] meet API
//! servers, through the controller runtime. Secrets are kept out of errors and `Debug`.

pub mod boot;
pub mod bootstrap;
pub mod certificates;
pub mod config;
pub mod control_plane;
pub mod corefile;
mod error;
pub mod secret;
#[cfg(test)]
mod testing;
pub mod yaml;

pub use error::Error;
