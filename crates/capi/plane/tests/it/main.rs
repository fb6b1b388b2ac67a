//! The controllers on the embedded API server, in simulated time, with a minimal provider: the test itself.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod filter;
mod kinds;
mod lifecycle;
mod plane;
mod reviews;
mod secrets;
