//! What an infrastructure provider is to the program, and what every provider needs.
//!
//! ```text
//! capstan (the binary) ── a list of Plugin ──▶ Provider: kinds, rules, codes, flags, what `plan`, `orphans`, `doctor` ask
//!                                    │             └─ open ──▶ RunningProvider: controllers, metrics, dialling
//!                                    └────────▶ Simulator: `capstan sim <name>`, the cloud of `capstan demo`
//! ```
//!
//! A cloud implements [`Provider`] and stands in the list; the program names no cloud anywhere else. `docs/dev/providers.md`
//! walks through writing one. No cloud and no simulator is imported here.

mod capacity;
mod doctor;
mod error;
mod installed;
mod inventory;
mod plugin;
mod simulator;
mod versions;

pub use capacity::{
    Amount, Capacity, CapacityAnswer, CapacityQuestion, Left, MachineModel, PlannedMachine, Quota, Size,
};
pub use capstan_capi_core::secret::{Secret, SecretOutline};
pub use doctor::{Finding, Severity};
pub use error::ProviderError;
pub use installed::Installed;
pub use inventory::{
    Counted, Difference, DifferenceKind, Drift, Inventory, Kept, Removed, Unrecorded, served,
};
pub use plugin::{ConsoleReader, OpenedProvider, Plugin, Provider, RunningProvider, Subcommand, Terminal};
pub use simulator::{OpenSimulator, Simulator, SimulatorOptions};
pub use versions::ProviderVersions;
