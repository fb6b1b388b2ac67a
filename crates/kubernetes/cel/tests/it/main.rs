//! Expressions from text to value, against facts gathered from cel-go and Kubernetes 1.36.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking, as tests do")]

mod bounds;
mod data;
mod facts;
mod fuzz;
mod schema;
mod show;
