//! Structural schemas, pruning, defaulting, validation, patches and server-side apply; pure: no I/O,
//! no clock, no randomness.

pub mod field;
pub mod schema;

pub use schema::Schema;
