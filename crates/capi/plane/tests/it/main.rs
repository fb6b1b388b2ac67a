//! The controllers on the embedded API server, with a minimal provider: the test itself. Time is simulated, except where
//! calls leave the process.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod class_edits;
mod class_of_fakes;
mod extensions;
mod filter;
mod kinds;
mod lifecycle;
mod plane;
mod rebase;
mod reviews;
mod secrets;
mod topologies;
