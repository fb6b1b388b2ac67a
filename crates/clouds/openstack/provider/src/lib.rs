//! An infrastructure provider of Cluster API for OpenStack. It takes over from CAPO: its kinds, names, finalizers, tags and
//! rules, so that its manifests apply and its live clusters go on, and can be handed back.
//!
//! ```text
//! OpenStackCluster ──▶ network, subnet, router, security groups, load balancer with members, floating IP
//!     ▲ status: network, groups              ▲ addresses of the control plane
//! OpenStackMachine ── one each ──▶ OpenStackServer ──▶ ports, volumes, server
//! ```
//!
//! [`OpenStack`] is the plug-in. [`Clouds`] is the way to the services, over the client crate alone. Each folder is one
//! controller: it observes, decides and calls; intents are on the objects before calls are made. What the cloud has is read
//! by lists of whole projects that all objects share, so that a thousand idle clusters cost as many calls as one.

mod capacity;
mod catalog;
mod clouds;
mod cluster;
pub mod code;
pub mod condition;
mod console;
mod credentials;
mod error;
mod events;
mod fix;
mod floating_ip_pool;
mod init;
mod inventory;
mod listing;
mod lookup;
mod machine;
mod machine_template;
mod mark;
mod plugin;
mod project;
mod references;
mod server;
mod server_group;
mod server_spec;

use capstan_controller::Runtime;

pub use clouds::{Clouds, Connect, OverNetwork};
pub use cluster::OpenStackClusters;
pub use error::CloudError;
pub use floating_ip_pool::OpenStackFloatingIPPools;
pub use machine::OpenStackMachines;
pub use machine_template::OpenStackMachineTemplates;
pub use mark::ANNOTATION as MARK_ANNOTATION;
pub use plugin::OpenStack;
pub use server::{OpenStackServers, SERVER_ID};

/// Adds the provider's controllers.
pub fn add_controllers(runtime: &mut Runtime, clouds: &Clouds) {
    runtime.add(OpenStackClusters::new(clouds.clone()));
    runtime.add(OpenStackServers::new(clouds.clone()));
    runtime.add(OpenStackMachines);
    runtime.add(OpenStackFloatingIPPools::new(clouds.clone()));
    runtime.add(OpenStackMachineTemplates::new(clouds.clone()));
}
