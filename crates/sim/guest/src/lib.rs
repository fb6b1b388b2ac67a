//! Simulated machines: a machine boots by executing its user data, and what comes of it is a node of a cluster
//! whose API is real: TLS, our API server in memory, etcd's gRPC.
//!
//! ```text
//!   machine/   one machine: user data ─▶ files, users, commands ─▶ kubeadm init | join ─▶ console log
//!                                                                      │ request.rs
//!   cluster/   what machines form: API server, etcd members, Nodes, static Pods, kube-proxy, CoreDNS, workloads
//!   site/      all machines and clusters of a world, their addresses and load balancers, and ways to reach them
//! ```
//!
//! Nothing here knows Cluster API or any cloud: a simulated cloud hands user data to a [`Site`] and asks
//! what became of the machine. A site is not part of the plane's process: it lives on when that crashes.

mod cluster;
mod console;
mod machine;
pub mod request;
mod site;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod vm;

pub use cluster::{EtcdAlarm, EtcdMember, GuestCluster};
pub use site::{Balancer, Revival, Revived, Site, SiteError, SiteOptions, Timings};
