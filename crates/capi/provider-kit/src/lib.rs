//! What an infrastructure provider is to the program, and what every provider needs.
//!
//! ```text
//! capstan (the binary) ── a list of Plugin ──▶ Provider: kinds, rules, codes, flags, what `plan`, `orphans`, `doctor` ask
//!                                    │             └─ open ──▶ RunningProvider: controllers, metrics, dialling
//!                                    └────────▶ Simulator: `capstan sim <name>`, the cloud of `capstan demo`
//! ```
//!
//! The rest is what the controllers of every provider need: the [`Infrastructure`] contract, [`decisions`] that all make in
//! the same way, who belongs to whom, boot data, [`definitions`], [`admission`], and `testing` for their tests.
//!
//! A cloud implements [`Provider`] and stands in the list; the program names no cloud anywhere else. `docs/dev/providers.md`
//! walks through writing one. No cloud and no simulator is imported here.

pub mod admission;
mod boot_data;
mod capacity;
pub mod console;
mod contract;
pub mod decisions;
pub mod definitions;
mod doctor;
mod error;
mod frame;
mod installed;
mod inventory;
pub mod order;
mod plugin;
mod relations;
mod simulator;
#[cfg(feature = "testing")]
pub mod testing;
mod versions;

pub use boot_data::{BootData, BootDataError, BootDataRef, boot_data};
pub use capacity::{
    Amount, Capacity, CapacityAnswer, CapacityQuestion, Left, MachineModel, PlannedMachine, Quota, Size,
};
pub use capstan_capi_core::secret::{Secret, SecretOutline};
pub use contract::{Infrastructure, InfrastructureCluster, InfrastructureMachine, InitializationStatus};
pub use doctor::{Finding, Severity};
pub use error::ProviderError;
pub use frame::{decide_cluster, decide_machine};
pub use installed::Installed;
pub use inventory::{
    Counted, Difference, DifferenceKind, Drift, Inventory, Kept, Removed, Unrecorded, served,
};
pub use plugin::{ConsoleReader, OpenedProvider, Plugin, Provider, RunningProvider, Subcommand, Terminal};
pub use relations::{
    ClusterMembers, cluster_of_machine, infrastructure_of_cluster, infrastructure_of_machine, watch_cluster,
    watch_machine,
};
pub use simulator::{OpenSimulator, Simulator, SimulatorOptions};
pub use versions::ProviderVersions;
