//! The binary as a user runs it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod backups;
mod demo;
mod manager;
mod program;
mod sample;
mod verbs;
mod why;
