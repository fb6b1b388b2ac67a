//! The simulator over its wire.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod balancers;
mod faults;
mod guests;
mod identity;
mod images;
mod networks;
mod servers;
mod world;
