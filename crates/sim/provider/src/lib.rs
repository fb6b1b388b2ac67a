//! An infrastructure provider of Cluster API with simulated machines: Cluster API without a cloud.
//!
//! ```text
//! SimCluster ── endpoint, members ──▶ load balancer ─┐
//!     ▲ addresses of the control plane               ├─ Site (capstan-guest): machines that execute their user data
//! SimMachine ── create, destroy ────▶ machine ───────┘
//!     ▲ as many as the MachinePool wants
//! SimMachinePool
//! ```
//!
//! [`Simulated`] is the plug-in, [`types`] has the kinds, [`definitions`] and [`rules`] are for the API server,
//! [`SimClusters`], [`SimMachines`], [`SimMachinePools`] and
//! [`SimMachineTemplates`] are the controllers. The provider follows the contract v1beta2 like any other:
//! intents before calls, ownership marks on what it creates, and state is read from the site. How machines boot and
//! form clusters is up to the site.

mod admission;
mod cluster;
mod definitions;
mod machine;
mod plugin;
mod pool;
mod process;
mod site;
mod template;
pub mod types;

pub use admission::rules;
pub use cluster::{FINALIZER as CLUSTER_FINALIZER, SimClusters};
pub use definitions::definitions;
pub use machine::{FINALIZER as MACHINE_FINALIZER, MACHINE_TAG, SimMachines};
pub use plugin::Simulated;
pub use pool::{FINALIZER as POOL_FINALIZER, SimMachinePools};
pub use process::SiteProcess;
pub use template::SimMachineTemplates;

/// Error codes of this provider.
pub mod code {
    capstan_controller::codes! {
        BOOT_DATA = "E-SIM-BOOT-DATA", Cluster,
            "the bootstrap data of a machine cannot be read",
            "check that the Secret in spec.bootstrap.dataSecretName of the Machine exists and has the key `value`";
        REFUSED = "E-SIM-REFUSED", Cloud,
            "the simulated site refused a request",
            "read the site's error in the message and correct the manifest";
        SITE = "E-SIM-SITE", Operator,
            "the simulated site is unreachable",
            "start `capstan sim site`, or correct `--simulator-url`";
    }
}
