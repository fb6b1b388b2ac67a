//! An infrastructure provider of Cluster API whose machines are on this host.
//!
//! ```text
//! KVMCluster ── network, members ──▶ bridge, balancer ─┐
//!     ▲ addresses of the control plane                 ├─ Backend: namespace::Namespaces
//! KVMMachine ── create, destroy ───▶ machine ──────────┘
//! ```
//!
//! [`Kvm`] is the plug-in, [`types`] has the kinds, [`definitions`] and [`rules`] what an API server needs to know of them, [`KVMClusters`] and
//! [`KVMMachines`] the controllers, [`backend`] what they ask of whatever makes machines, [`namespace`] the one that
//! makes them of Linux namespaces, [`balancer`] what stands before the API servers of a cluster. A machine executes
//! the boot data it is given and nothing else: what makes it a node is none of this crate's business.

mod admission;
pub mod backend;
pub mod balancer;
mod cluster;
mod definitions;
mod machine;
pub mod namespace;
mod plugin;
pub mod types;

pub use admission::rules;
pub use cluster::{FINALIZER as CLUSTER_FINALIZER, KVMClusters};
pub use definitions::definitions;
pub use machine::{FINALIZER as MACHINE_FINALIZER, KVMMachines};
pub use plugin::Kvm;

/// Codes of this provider.
pub mod code {
    capstan_controller::codes! {
        BOOT_DATA = "E-KVM-BOOT-DATA", Cluster,
            "the boot data of a machine cannot be read",
            "check that the Secret named by the Machine is there and has a key `value`";
        HOST = "E-KVM-HOST", Cloud,
            "this host does not do what is asked of it",
            "read what it says; it says what is missing";
    }
}
