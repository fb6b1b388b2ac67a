//! Claims about the simulator, made over its own wire.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod accounts;
mod envelope;
mod faults;
mod filters;
mod guests;
mod machines;
mod networks;
mod scopes;
mod world;
