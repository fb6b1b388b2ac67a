//! Structural schemas, pruning, defaulting, validation, patches and server-side apply; pure: no I/O,
//! no clock, no randomness.

pub mod apply;
pub mod correlate;
pub mod crd;
pub mod custom;
pub mod default;
pub mod embedded;
pub mod field;
pub mod fieldpath;
pub mod format;
pub mod golang;
pub mod jsonpath;
pub mod lists;
pub mod meta;
pub mod patch;
pub mod path;
pub mod prune;
pub mod rules;
pub mod schema;
pub mod selector;
pub mod validate;

pub use schema::Schema;
