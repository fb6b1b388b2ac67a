//! Whole planes in simulated time: one thread, one seed, crashes and faults to order.
//!
//! ```text
//!   Scenario ── what a user does ──▶ World ──────────────────────────────────────────────┐
//!                                     │ process (dies and starts again)                  │ outside (lives on)
//!                                     │   Runtime: controllers ── effects ──▶ Gate ──▶ API server, simulated clouds
//!                                     │                                        │         │
//!                                     │                         Faults, Trace, Checkers   └─ store on a simulated disk
//!                                     ▼
//!   reference run: every effect has a number ──▶ for each number: crash after it, lose its answer ──▶ run to rest
//! ```
//!
//! Time is Tokio's paused clock, which jumps to the next timer when nothing else is to do; randomness is one
//! seed. The same seed on the same commit gives the same [`Trace`], byte for byte. Faults, crashes and checks all
//! stand in one place: the gate that every write and every call of a controller passes.
//!
//! A crash drops the process's tasks and memory and whatever its disk had not synced; clouds and guests go on. A
//! process that is dead stays dead: its gate lets nothing through any more.

mod check;
mod clock;
mod enumerate;
mod fault;
mod gate;
mod objects;
mod scenario;
mod trace;
mod wire;
mod world;

pub use check::{
    Acknowledged, AtMost, Checker, Cloud, FinalizersGuard, FollowsOwnWrites, Heard, History, IntentsFirst,
    Mutation, NoChildrenOfTheDying, NothingWhilePaused, OnlyOurs, Resource, Step,
};
pub use clock::Clock;
pub use enumerate::{Report, Sample, Survey, crash_points, run, run_with, survey};
pub use fault::{Fault, Misfortune};
pub use objects::Objects;
pub use scenario::{Scenario, Violation};
pub use trace::Trace;
pub use wire::{Collection, Told};
pub use world::World;
