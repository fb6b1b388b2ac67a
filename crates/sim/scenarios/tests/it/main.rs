//! Whole clusters in simulated time.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod broken;
mod faults;
mod saboteur;
mod scenarios;
