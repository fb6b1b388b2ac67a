//! Whole clusters in simulated time.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod broken;
mod disturbed;
mod saboteur;
mod stories;
