//! An infrastructure provider of Cluster API whose machines are simulated: all of Cluster API without a cloud.
//!
//! ```text
//! SimCluster ── endpoint, members ──▶ load balancer ─┐
//!     ▲ addresses of the control plane               ├─ Site (capstan-guest): machines that execute their user data
//! SimMachine ── create, destroy ────▶ machine ───────┘
//! ```
//!
//! [`Simulated`] is the plug-in, [`types`] has the kinds, [`definitions`] and [`rules`] what an API server needs to know of
//! them, [`SimClusters`] and [`SimMachines`] the controllers. The provider follows the contract v1beta2 as a real one does: intents before
//! calls, marks on what it makes, and the site is asked, never assumed. How machines boot and form clusters is
//! none of its business.

mod admission;
mod cluster;
mod definitions;
mod machine;
mod plugin;
mod process;
mod site;
pub mod types;

pub use admission::rules;
pub use cluster::{FINALIZER as CLUSTER_FINALIZER, SimClusters};
pub use definitions::definitions;
pub use machine::{FINALIZER as MACHINE_FINALIZER, MACHINE_TAG, SimMachines};
pub use plugin::Simulated;
pub use process::SiteProcess;

/// Codes of this provider.
pub mod code {
    capstan_controller::codes! {
        BOOT_DATA = "E-SIM-BOOT-DATA", Cluster,
            "the boot data of a machine cannot be read",
            "check that the Secret named by the Machine is there and has a key `value`";
        REFUSED = "E-SIM-REFUSED", Cloud,
            "the site refuses what is asked of it",
            "read what it says";
        SITE = "E-SIM-SITE", Operator,
            "the site of simulated machines does not answer",
            "check that the process of `--simulator-url` runs: `capstan sim site`";
    }
}
