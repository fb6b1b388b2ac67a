//! The interface of infrastructure providers to the program, and code that providers have in common.
//!
//! ```text
//! capstan (the binary) ── a list of Plugin ──▶ Provider: kinds, rules, error codes, flags; for `plan`, `orphans`,
//! `doctor`
//!                                    │             └─ open ──▶ RunningProvider: controllers, metrics, dialling
//!                                    └────────▶ Simulator: `capstan sim <name>`, the cloud of `capstan demo`
//! ```
//!
//! The rest is for the controllers of providers: the [`Infrastructure`] contract, common [`decisions`], owner
//! relations, boot data, [`definitions`], [`admission`], and `testing` for their tests.
//!
//! A cloud implements [`Provider`] and is added to the list; the program names it nowhere else.
//! `docs/dev/providers.md` shows how to write one. This crate imports no cloud and no simulator.

pub mod admission;
mod adoption;
mod boot_data;
mod capacity;
pub mod console;
mod contract;
pub mod decisions;
pub mod definitions;
mod doctor;
mod error;
mod fix;
mod frame;
mod installed;
mod inventory;
pub mod mark;
mod networks;
pub mod order;
mod patience;
mod plugin;
mod problem;
pub mod proposal;
mod relations;
mod resolution;
pub mod retry;
mod simulator;
mod survey;
#[cfg(feature = "testing")]
pub mod testing;
mod versions;

pub use adoption::{Adoption, CredentialRef, FrontEnd, Observer};
pub use boot_data::{BootData, BootDataError, BootDataRef, boot_data};
pub use capacity::{
    Amount, Capacity, CapacityAnswer, CapacityQuestion, Left, MachineModel, OtherLimit, PlannedMachine,
    Quota, Refusal, Size,
};
pub use capstan_capi_core::secret::{Secret, SecretOutline};
pub use contract::{Infrastructure, InfrastructureCluster, InfrastructureMachine, InitializationStatus};
pub use doctor::{Finding, Severity};
pub use error::ProviderError;
pub use fix::{Failure, MachineGroup};
pub use frame::{decide_cluster, decide_machine, decide_pool};
pub use installed::Installed;
pub use inventory::{
    Comparison, Counted, Difference, DifferenceKind, Drift, Inventory, Kept, Removed, Unrecorded, served,
};
pub use networks::MachineNetwork;
pub use patience::within_patience;
pub use plugin::{ConsoleReader, OpenedProvider, Plugin, Provider, RunningProvider, Subcommand, Terminal};
pub use problem::problem;
pub use relations::{
    ClusterMembers, cluster_of_machine, infrastructure_of_cluster, infrastructure_of_machine, watch_cluster,
    watch_machine,
};
pub use resolution::resolution;
pub use simulator::{OpenSimulator, Simulator, SimulatorOptions};
pub use survey::{Answers, Choice, CredentialField, CredentialValues, Flavor, Question, Shape, Surveyor};
pub use versions::ProviderVersions;
