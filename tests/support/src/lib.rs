//! Shared by `xtask`, the suites in `tests/interop` and the tests of the binary. Few dependencies: CI builds it before
//! anything else.
//!
//! `peers` builds the real programs, `node_image` the root file systems of real nodes, `cargo` our own programs. `ports`
//! finds free ones.

pub mod cargo;
pub mod node_image;
pub mod peers;
pub mod ports;
pub mod text;
