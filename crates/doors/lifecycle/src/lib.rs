//! The lifecycle API: EKS Anywhere's manifests for clusters on CloudStack, as a front end of Cluster API.
//!
//! ```text
//! Cluster ─────────────────────┐
//! CloudStackDatacenterConfig ──┼─▶ generate (pure) ─▶ Cluster API objects in eksa-system ─▶ core, kubeadm, CloudStack
//! CloudStackMachineConfig ─────┘         ▲
//!                                  releases, CNI: configured at the server
//! ```
//!
//! [`types`] are the kinds, [`admission`] what a manifest may contain, [`generate`] what a cluster consists of; all are
//! pure. The controllers are folders: [`datacenter`] asks CloudStack whether a datacenter is valid, [`cluster`] runs the
//! phases of a cluster, [`machine_config`] reports whether clusters have taken up a config. [`Lifecycle`] is the plug-in.

pub mod admission;
mod adoption;
mod cloud;
pub mod cluster;
pub mod cni;
pub mod code;
pub mod credentials;
pub mod datacenter;
pub mod definitions;
pub mod endpoint;
pub mod generate;
pub mod machine_config;
pub mod names;
mod plugin;
pub mod release;
pub mod types;
pub mod version;

use std::sync::Arc;

use capstan_cloudstack_provider::Clouds;
use capstan_controller::{Dial, Runtime};

pub use plugin::Lifecycle;

/// Adds the controllers. `dial` checks whether an endpoint is in use.
pub fn add_controllers(
    runtime: &mut Runtime,
    clouds: &Clouds,
    dial: Arc<dyn Dial>,
    settings: &cluster::Settings,
) {
    runtime.add(datacenter::Datacenters::new(clouds.clone()));
    runtime.add(machine_config::MachineConfigs);
    runtime.add(cluster::Clusters::new(clouds.clone(), dial, settings.clone()));
}
