//! Whole management clusters in simulated time: one thread, one seed, crashes and faults on request.
//!
//! ```text
//!   Scenario ── actions of a user ──▶ World ─────────────────────────────────────────────┐
//!                                     │ process (dies and restarts)                      │ outside (survives)
//!                                     │   Runtime: controllers ── effects ──▶ Gate ──▶ API server, simulated clouds
//!                                     │                                        │         │
//!                                     │                         Faults, Trace, Checkers   └─ store on a simulated disk
//!                                     ▼
//!   reference run: every effect has a number ──▶ for each number: crash after it, lose its response ──▶ run until idle
//! ```
//!
//! Time is Tokio's paused clock, which jumps to the next timer when no task is ready; randomness is one seed. The
//! same seed on the same commit gives the same [`Trace`], byte for byte. Faults, crashes and checks are all in one
//! place: the gate that every write and every call of a controller passes.
//!
//! A crash drops the tasks and memory of the process and the unsynced data of its disk; clouds and guests continue.
//! The gate of a dead process lets nothing pass.

mod check;
mod clock;
mod enumerate;
mod fault;
mod gate;
mod objects;
mod scenario;
mod trace;
mod watch_tap;
mod world;

pub use check::{
    Acknowledged, AtMost, Checker, Cloud, FinalizersGuard, FollowsOwnWrites, History, IntentsFirst, Mutation,
    NoChildrenWhileDeleting, NothingWhilePaused, OnlyOwned, Resource, Step, WatchStreams,
};
pub use clock::Clock;
pub use enumerate::{FaultRuns, Report, Sample, crash_points, inject_faults, run, run_with};
pub use fault::{Fault, FaultPlan};
pub use objects::Objects;
pub use scenario::{Scenario, Violation};
pub use trace::Trace;
pub use watch_tap::{Collection, WatchEvent};
pub use world::World;
