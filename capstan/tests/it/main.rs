//! The binary as a user runs it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod backups;
#[path = "../../src/client.rs"]
mod client;
mod manager;
mod program;
