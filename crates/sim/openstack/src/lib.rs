//! A simulator of an OpenStack cloud: Keystone, Nova, Neutron, Glance, Cinder, Octavia and Placement over HTTP, with
//! projects, roles, quotas and work that takes time, in memory and in simulated time.
//!
//! ```text
//!   Request ─▶ simulator.rs ── faults ─▶ front.rs ── token, who ─▶ keystone/ neutron/ nova/ glance/ cinder/ octavia/ placement.rs
//!                  │                                                        │
//!                  │ time                                                   ▼
//!                  └────▶ work.rs: what is due, each at its time ──▶ cloud.rs: tables of JSON objects ──▶ Response
//!                                                                           │
//!                                                                           └─ guests.rs ─▶ servers boot on a `Hypervisor`
//! ```
//!
//! Written from the APIs' documentation and from replies of a real deployment (2026.1). No client of ours is imported
//! here: they meet this crate on the wire only. Nothing reads a clock but through `Env`, and all ids come from its seed.

// Versions and limits are literals with more fields than a macro of the default depth can take.
#![recursion_limit = "512"]

mod admin;
mod bootstrap;
mod cinder;
mod cloud;
mod faults;
mod front;
mod glance;
mod guests;
mod keystone;
mod leaks;
mod neutron;
mod nova;
mod octavia;
mod placement;
mod process;
mod service;
mod settings;
mod simulator;
mod table;
mod wire;
mod work;

pub use faults::{Fault, Target};
pub use leaks::Leak;
pub use process::OpenStackSimulator;
pub use service::{Endpoints, Service};
pub use settings::{
    ExternalLayout, FlavorLayout, HostLayout, ImageLayout, Layout, RegionLayout, Settings, Timings,
    UserLayout,
};
pub use simulator::{ConnectionLost, RestoreError, Simulator, UnknownServer};
