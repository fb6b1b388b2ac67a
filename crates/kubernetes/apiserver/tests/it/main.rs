//! The whole server in process: requests in, answers and events out.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod backups;
mod client;
mod crds;
mod lifecycle;
mod objects;
mod watches;
