//! Simulated machines: a machine boots by executing its user data and becomes a node of a cluster with a real API:
//! TLS, our API server in memory, etcd's gRPC.
//!
//! ```text
//!   machine/   one machine: user data ─▶ files, users, commands ─▶ kubeadm init | join ─▶ console log
//!                                                                      │ request.rs
//!   cluster/   the clusters: API server, etcd members, Nodes, static Pods, kube-proxy, CoreDNS, workloads
//!   site/      all machines and clusters, their addresses and load balancers, and connections to them
//! ```
//!
//! Nothing here knows Cluster API or any cloud: a simulated cloud knows a [`Site`] as its
//! [`Hypervisor`](capstan_hypervisor::Hypervisor). A site is not part of the management cluster's process and survives its crashes.

mod cluster;
mod console;
mod hypervisor;
mod machine;
pub mod request;
mod site;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use capstan_hypervisor::vm;
pub use cluster::{EtcdAlarm, EtcdMember, GuestCluster};
pub use site::{Balancer, RecordedCluster, RecordedMachine, Site, SiteError, SiteOptions, Timings};
