//! An infrastructure provider of Cluster API whose machines are on this host.
//!
//! ```text
//! KVMCluster ── network, members ──▶ bridge, balancer ─┐
//!     ▲ addresses of the control plane                 ├─ Backend: namespace::Namespaces
//! KVMMachine ── create, destroy ───▶ machine ──────────┘
//! ```
//!
//! [`Kvm`] is the plug-in, [`types`] has the kinds, [`definitions`] and [`rules`] are for the API server,
//! [`KVMClusters`], [`KVMMachines`] and
//! [`KVMMachineTemplates`] are the controllers, [`backend`] is their interface to the host, [`namespace`]
//! implements it with Linux namespaces, [`balancer`] is the load balancer of a cluster's API servers. A machine
//! executes its boot data and nothing else.

mod admission;
pub mod backend;
pub mod balancer;
mod cluster;
mod definitions;
mod machine;
pub mod namespace;
mod plugin;
mod template;
pub mod types;

pub use admission::rules;
pub use cluster::{FINALIZER as CLUSTER_FINALIZER, KVMClusters};
pub use definitions::definitions;
pub use machine::{FINALIZER as MACHINE_FINALIZER, KVMMachines};
pub use plugin::Kvm;
pub use template::KVMMachineTemplates;

/// Error codes of this provider.
pub mod code {
    capstan_controller::codes! {
        BOOT_DATA = "E-KVM-BOOT-DATA", Cluster,
            "the bootstrap data of a machine cannot be read",
            "check that the Secret in spec.bootstrap.dataSecretName of the Machine exists and has the key `value`";
        HOST = "E-KVM-HOST", Cloud,
            "an operation on this host failed",
            "the message names what is missing on the host; install or enable it";
    }
}
