//! The kubeadm providers: cluster certificates, bootstrap data of machines, and control planes.
//!
//! ```text
//! KubeadmConfig + Cluster + Machine ──▶ config (kubeadm's YAML) ──┐
//!                  certificates (Secrets of the cluster) ─────────┼─▶ cloud-config │ Ignition ──▶ data Secret
//!                                  files, users, disks, commands ─┘
//!
//! machines, etcd members, health ──▶ control_plane: the next step: add, replace or remove a machine
//! ```
//!
//! Everything here is a function of observed state, which includes time and randomness ([`certificates::Seed`]), so a
//! simulation gives one trace for one seed. Only [`bootstrap`], [`cluster_kubeconfig`] and [`control_plane`]
//! access API servers, through the controller runtime. Errors and `Debug` never contain secrets.

pub mod bootstrap;
pub mod bootstrap_data;
pub mod certificates;
pub mod cluster_kubeconfig;
pub mod config;
pub mod control_plane;
pub mod corefile;
mod error;
#[cfg(test)]
mod testing;
pub mod yaml;

pub use error::Error;
