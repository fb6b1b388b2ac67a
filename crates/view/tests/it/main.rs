//! The picture of a cluster, and the chain of causes, from objects as the API serves them.

#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod cluster;
mod picture;
mod reasons;
mod tables;
