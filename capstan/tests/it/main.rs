//! The binary as a user runs it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod adopt;
mod adopt_anywhere;
mod audits;
mod backups;
mod cloudstack;
mod demo;
mod encryption;
mod init;
mod manager;
mod older;
mod output;
mod plan;
mod plan_openstack;
mod program;
mod sample;
mod schemas;
mod site;
mod stores;
mod supervised;
mod terminal;
mod topologies;
mod traces;
mod undo;
mod verbs;
mod why;
