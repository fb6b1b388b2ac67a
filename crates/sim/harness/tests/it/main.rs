//! The harness and the runtime it runs, proven with a small provider: widgets that own machines in a cloud.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod broken;
mod cloud;
mod faulty;
mod reach;
mod story;
mod widget;
