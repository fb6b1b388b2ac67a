//! The tree of a cluster, tables, and chains of causes, from objects as the API serves them.

#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod add_ons;
mod cluster;
mod marks;
mod reasons;
mod tables;
mod topologies;
mod tree;
