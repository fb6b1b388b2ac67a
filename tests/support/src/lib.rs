//! What `xtask` and the suites of `tests/interop` share. Few dependencies: CI builds it before anything else.
//!
//! `peers` builds and finds the real programs, `node_image` the root file systems of real nodes, `cargo` our own
//! programs.

pub mod cargo;
pub mod node_image;
pub mod peers;
pub mod text;
