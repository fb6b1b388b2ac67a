//! Edits that are rehearsed on a copy and then applied to the original.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod classes;
mod edits;
mod original;
