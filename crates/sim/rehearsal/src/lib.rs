//! Preview of a change: recorded clusters are copied, the edit is applied to the copy, and the same controllers run
//! there in simulated time until idle.
//!
//! ```text
//!   records ── load.rs ──▶ store, API server, controllers (capstan-harness: one thread, time that jumps)
//!      │                            ▲ edit                    │ every Machine that is created, ready, deleted
//!      └── restore.rs ──▶ guests ◀───┴── infrastructure.rs     └──▶ events.rs ──▶ Preview
//!                        (capstan-guest)  pools.rs: a model of any provider, by the contract's fields
//! ```
//!
//! Nothing here connects to anything outside the process. The Cluster API controllers are the production ones; the
//! infrastructure provider is a model of what all providers have in common, so that machines of every kind can be
//! rehearsed. Each provider adds its `MachineModel`; other differences between clouds are not modelled.
//!
//! [`serve_copy`] is the copy alone, in real time: a caller runs controllers on it that only read their cloud.

mod copy;
mod events;
mod fork;
mod infrastructure;
mod load;
mod pools;
mod restore;

pub use copy::serve_copy;
pub use events::{Load, MachineEvent, MachineEventKind, MachineInfo, Preview, Recorder};
pub use fork::{Edit, Kinds, Records, Rehearsal, RehearsalError, rehearse};
