//! kubeadm's own configuration files, rendered for the kubeadm that a machine has.
//!
//! Our kinds are shaped after kubeadm v1beta4; v1beta3, for Kubernetes before 1.31, says flags as maps, knows
//! fewer timeouts and has them elsewhere. What a version cannot say is left out, as upstream does.

mod kubeadm_api;
mod render;
#[cfg(test)]
mod tests;

pub use kubeadm_api::{KubeadmApi, kubernetes_version};
pub use render::{cluster_configuration, init_configuration, join_configuration};
