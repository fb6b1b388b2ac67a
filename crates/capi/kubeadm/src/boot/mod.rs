//! What a machine's boot data says, before it is written in a format: the part of `kubeadm`'s run it is for,
//! files with their content, users with their passwords.

mod cloud_config;
mod data;
mod discovery_file;
mod ignition;
mod join;
mod render;
mod resolve;
mod template;

pub use data::{BootData, Run};
pub use discovery_file::discovery_kubeconfig;
pub use join::{as_control_plane, as_worker, token, uses_token, with_discovery};
pub use resolve::{needed_secrets, resolve_files, resolve_users};
