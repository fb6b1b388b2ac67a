//! What a release installs beside the program.

pub mod alerts;
pub mod install_deb;
