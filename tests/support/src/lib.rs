//! Shared by `xtask` and the suites in `tests/interop`. Few dependencies: CI builds it before anything else.
//!
//! `peers` builds the real programs, `node_image` the root file systems of real nodes, `cargo` our own programs.

pub mod cargo;
pub mod node_image;
pub mod peers;
pub mod text;
