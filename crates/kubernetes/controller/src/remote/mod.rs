//! Servers on the other side of a network.
//!
//! ```text
//! kubeconfig ─▶ Access ─▶ Remote (Transport): one HTTP/2 connection for everything, or HTTP/1.1 connections
//!                            │
//!                            └─ Dial: TCP in life, a server in the same process in a simulation
//! ```
//!
//! TLS and HTTP are real in both cases, so a simulation proves certificates and tokens too. Kubeconfigs with
//! client certificates, tokens and passwords are understood here; credential plugins are not.

mod dial;
mod forward;
mod kubeconfig;
mod transport;

pub use dial::{Dial, TcpDial};
pub use kubeconfig::{Access, KubeconfigError};
pub use transport::Remote;
