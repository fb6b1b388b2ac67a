//! kubeadm's configuration files, rendered for a machine's kubeadm version.
//!
//! Our kinds follow kubeadm v1beta4. v1beta3, for Kubernetes before 1.31, has flags as maps and fewer timeouts in
//! other places. Fields that a version does not have are omitted, as upstream does.

mod kubeadm_api;
mod render;
#[cfg(test)]
mod tests;

pub use kubeadm_api::{KubeadmApi, kubernetes_version};
pub use render::{cluster_configuration, init_configuration, join_configuration};
