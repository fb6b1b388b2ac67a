//! Structural schemas, pruning, defaulting, validation, patches and server-side apply; pure: no I/O,
//! no clock, no randomness.

pub mod apply;
pub mod field;
pub mod golang;
pub mod meta;
pub mod patch;
pub mod path;
pub mod schema;
pub mod selector;

pub use schema::Schema;
