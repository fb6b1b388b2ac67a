//! Servers on the other side of a network.
//!
//! ```text
//! kubeconfig ─▶ Access ─▶ Remote (Transport): one HTTP/2 connection for everything, or HTTP/1.1 connections
//!                            │
//!                            └─ Dial: TCP in production, a server in the same process in a simulation
//! ```
//!
//! TLS and HTTP are real in both cases, so a simulation proves certificates and tokens too. Kubeconfigs with
//! client certificates, tokens and passwords are understood here, and in the operator's own also files and credential
//! plugins; a Pod finds its server by its service account.

mod credential;
mod dial;
mod forward;
mod kubeconfig;
mod transport;

pub use credential::{Authorization, CredentialPlugin, PluginVariable};
pub use dial::{Dial, TcpDial};
pub use kubeconfig::{Access, KubeconfigError};
pub use transport::Remote;
pub(crate) use transport::Windows;
