//! The controllers on the embedded API server, in simulated time, with a provider that does only what the contract
//! asks of it: the test itself.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod filter;
mod kinds;
mod life;
mod plane;
mod reviews;
