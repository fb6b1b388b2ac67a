//! An infrastructure provider of Cluster API for CloudStack. It takes over from CAPC: its kinds, names, finalizers and
//! tags, so that its manifests apply and its live clusters go on.
//!
//! ```text
//! CloudStackCluster ── one each ──▶ CloudStackFailureDomain ── if isolated ──▶ CloudStackIsolatedNetwork
//!     ▲ endpoint, ready                  zone, network                          network, address, rules
//! CloudStackMachine ── placed in ────────────┘                                        ▲ member of its load balancer
//!     └── kept together or apart by ──▶ CloudStackAffinityGroup ──────────────────────┘ (control planes)
//! ```
//!
//! [`CloudStack`] is the plug-in. [`Clouds`] is the way to the management servers, over the client crate alone. Each folder is one controller: it
//! observes, decides and calls; intents are on the objects before calls are made. What is made carries a mark or is
//! recorded on its object, and nothing else is ever deleted.

mod account_cache;
mod adoption;
mod affinity_group;
mod balancers;
mod capacity;
mod clouds;
mod cluster;
pub mod code;
mod deployments;
mod drift;
mod error;
mod failure_domain;
mod fix;
mod init;
mod inventory;
mod isolated_network;
mod leaving;
mod machine;
mod machine_template;
mod named;
mod outlook;
mod plugin;
mod quota;
mod removal;
mod state_checker;
mod survey;

use capstan_controller::Runtime;
use capstan_provider_kit::within_patience;

pub use affinity_group::AffinityGroups;
pub use balancers::Balancer;
pub use clouds::{Clouds, Connect, OverNetwork};
pub use cluster::CloudStackClusters;
pub use error::CloudError;
pub use failure_domain::FailureDomains;
pub use isolated_network::IsolatedNetworks;
pub use machine::CloudStackMachines;
pub use machine_template::MachineTemplates;
pub use outlook::{OrderOutlook, Outlook, Prospect};
pub use plugin::CloudStack;
pub use removal::{Removal, Removed};
pub use state_checker::StateCheckers;
pub use survey::{Leftover, LeftoverKind, Survey, Thing};

/// Adds the provider's controllers.
pub fn add_controllers(runtime: &mut Runtime, clouds: &Clouds) {
    runtime.add(CloudStackClusters::new(clouds.clone()));
    runtime.add(FailureDomains::new(clouds.clone()));
    runtime.add(IsolatedNetworks::new(clouds.clone()));
    runtime.add(AffinityGroups::new(clouds.clone()));
    runtime.add(CloudStackMachines::new(clouds.clone()));
    runtime.add(MachineTemplates::new(clouds.clone()));
    runtime.add(StateCheckers);
}

/// What a cloud answers to a command in time, or why it does not.
pub(crate) async fn answered<T>(asked: impl Future<Output = Result<T, CloudError>>) -> Result<T, String> {
    within_patience("it", asked).await?.map_err(|error| error.text())
}

/// Annotations on the provider's objects.
pub mod annotation {
    /// On CloudStackClusters: who may reach the API server, as CIDRs separated by commas; everybody without it.
    pub const ALLOWED_CIDRS: &str = "capstan.dev/api-server-cidrs";
    /// On CloudStackClusters: `true` has a public port from 2222 up lead to port 22 of every machine.
    pub const SSH_FORWARDING: &str = "capstan.dev/ssh-port-forwarding";
    /// On CloudStackClusters: `true` keeps load balancers and addresses that the cloud controller inside made on networks
    /// that stay.
    pub const KEEP_LOAD_BALANCERS: &str = "capstan.dev/keep-load-balancers";
    /// On CloudStackClusters: `vm.userdata.max.length` of the server where it is not 32768, in characters of base64.
    pub const USER_DATA_LIMIT: &str = "capstan.dev/user-data-limit";
    /// On CloudStackIsolatedNetworks: what was made for them in CloudStack.
    pub const MADE: &str = "capstan.dev/cloudstack-made";
    /// On CloudStackIsolatedNetworks: the last deletion of the network that CloudStack refused. On CloudStackMachines: that
    /// of the virtual machine or its data disk. On CloudStackAffinityGroups: that of the group.
    pub const DELETE_REFUSED: &str = "capstan.dev/cloudstack-delete-refused";
    /// On CloudStackMachines: ids of the data disks that the machine was ordered with, separated by commas. CloudStack does
    /// not report them any more once the machine is destroyed.
    pub const DISKS: &str = "capstan.dev/cloudstack-disks";
    /// On CloudStackMachines: the public port that is forwarded to SSH, and the firewall rules that were created for it.
    pub const SSH_RECORD: &str = "capstan.dev/cloudstack-ssh";
    /// On CloudStackMachines: since when the virtual machine, which nobody saw run, is not in the account.
    pub const MISSING: &str = "capstan.dev/cloudstack-missing";
    /// On CloudStackMachines: the job that deploys the machine.
    pub const DEPLOY_JOB: &str = "capstan.dev/cloudstack-deploy-job";
    /// On CloudStackMachines: orders that came to nothing, from the first order on. Names are made of it.
    pub const ORDERS: &str = "capstan.dev/cloudstack-orders";
    /// On CloudStackMachines, CloudStackIsolatedNetworks and CloudStackAffinityGroups: the last order that CloudStack refused.
    pub const ORDER_REFUSED: &str = "capstan.dev/cloudstack-order-refused";
    /// On CloudStackIsolatedNetworks: the last refusals of orders for what is on the network, by order.
    pub const SETUP_REFUSED: &str = "capstan.dev/cloudstack-setup-refused";
    /// On CloudStackMachines: the last deployment that failed.
    pub const DEPLOY_FAILED: &str = "capstan.dev/cloudstack-deploy-failed";
}
