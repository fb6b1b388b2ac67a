//! Bootstrap data of machines: its content (kubeadm command, files with their content, users with their
//! passwords) and its formats, cloud-config and Ignition.

mod cloud_config;
mod data;
mod discovery_file;
mod ignition;
mod join;
mod render;
mod resolve;
mod template;

pub use data::{BootstrapData, KubeadmCommand};
pub use discovery_file::discovery_kubeconfig;
pub use join::{as_control_plane, as_worker, token, uses_token, with_discovery};
pub use resolve::{needed_secrets, resolve_files, resolve_users};
