//! The lifecycle API on a whole plane, against a simulated CloudStack that it meets on the wire only, in simulated time.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod cloud;
mod manifests;
mod stories;
mod story;
