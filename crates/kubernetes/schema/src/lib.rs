//! Structural schemas, pruning, defaulting, validation, patches and server-side apply; pure: no I/O,
//! no clock, no randomness.

pub mod field;

/// A compiled structural schema.
#[derive(Debug, Default)]
pub struct Schema {}
