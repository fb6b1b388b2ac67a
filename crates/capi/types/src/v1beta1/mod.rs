//! The kinds as v1beta1 writes them: for schemas and for reading what is converted. Controllers use the stored
//! version alone, so nothing here has behaviour.

pub mod addons;
pub mod bootstrap;
pub mod cluster_class;
pub mod controlplane;
pub mod core;
pub mod ipam;
pub mod kubeadm;
pub mod topology;
