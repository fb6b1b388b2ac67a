//! Tests of the harness and the controller runtime with a small provider: widgets that own machines in a cloud.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod broken;
mod cloud;
mod faulty;
mod lifecycle;
mod reach;
mod widget;
