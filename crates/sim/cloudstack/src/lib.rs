//! A simulator of a CloudStack management server: the query API of version 4.22 over HTTP, with accounts, quotas, jobs
//! and background tasks, in memory and in simulated time.
//!
//! ```text
//!   Request ─▶ simulator.rs ── faults ─▶ front/ ── who, what, may they ─▶ call.rs ── parameters ─▶ commands/
//!                  │                                                                                  │
//!                  │ time                                                                             ▼
//!                  └────▶ jobs.rs: what is due, each at its time ──▶ cloud.rs, model/ ──▶ render/ ─▶ Response
//!                                                                      │
//!                                                                      └─ guests.rs ─▶ machines of a `Hypervisor` boot
//! ```
//!
//! Written from the API's documentation and from replies of a real server. No client of ours is imported here: they
//! meet this crate on the wire only. What its machines run on is a trait: no Kubernetes API server is imported either. Nothing reads a clock but through `Env`, and all ids come from its seed.

// Hosts and machines are shown with more fields than a macro of the default depth can take.
#![recursion_limit = "256"]

mod background;
mod bootstrap;
mod call;
mod catalog;
mod cloud;
mod commands;
mod complaints;
mod control;
mod error;
mod events;
mod faults;
mod floating;
mod front;
mod guests;
mod jobs;
mod leaks;
mod model;
mod params;
mod process;
mod render;
mod sessions;
mod settings;
mod simulator;

pub use complaints::Complaints;
pub use faults::{Fault, HostCommand};
pub use leaks::Leak;
pub use model::identity::RoleType;
pub use model::place::{OfferedSize, Size};
pub use params::{encode, sign};
pub use process::CloudStackSimulator;
pub use settings::{AccountLayout, DomainLayout, Layout, Settings, TemplateLayout, Timings, ZoneLayout};
pub use simulator::{ConnectionLost, Credentials, Simulator, UnknownAccount};

/// The version that is simulated.
pub(crate) const VERSION: &str = "4.22.1.1";
