//! What would happen: recorded clusters are copied, an edit is made on the copy, and the same controllers run to rest
//! there, in simulated time.
//!
//! ```text
//!   records ── load.rs ──▶ store, API server, controllers (capstan-harness: one thread, time that jumps)
//!      │                            ▲ edit                    │ every Machine that comes, gets ready, goes
//!      └── revive.rs ──▶ guests ◀───┴── infrastructure.rs     └──▶ course.rs ──▶ Course
//!                        (capstan-guest)  a model of any provider, by the contract's fields
//! ```
//!
//! Nothing here reaches anything outside the process. The controllers of Cluster API are those that the binary runs;
//! the provider of infrastructure is a model of what all of them have in common, so that machines of every kind can be
//! rehearsed. What differs is in each provider's `MachineModel`; what one cloud does differently from another beyond that
//! is left out.

mod course;
mod fork;
mod infrastructure;
mod load;
mod revive;

pub use course::{Course, Load, MachineOf, Recorder, Step, What};
pub use fork::{Edit, Kinds, Records, Rehearsal, RehearsalError, rehearse};
