//! Expressions from text to value, compared with recorded results of cel-go and Kubernetes 1.36.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking, as tests do")]

mod admission;
mod bounds;
mod data;
mod fuzz;
mod recorded;
mod schema;
mod show;
