//! Structural schemas, pruning, defaulting, validation, patches and server-side apply; pure: no I/O,
//! no clock, no randomness.
//!
//! ```text
//!                 Schema ◀── crd (definitions, checked) ── builtin tables
//!                   │
//!  body ──▶ custom::decode ──▶ custom::Validator ──▶ stored
//!            meta, prune,        meta, validate, embedded,
//!            default, embedded   lists, rules (CEL), correlate (what may stay as it was)
//!
//!  patch, apply ── change objects        selector, jsonpath, fieldpath ── find things in them
//!  field, path, golang ── say what is wrong in upstream's words
//!  bounded, memory ── keep what a request makes the server hold within bounds
//! ```

#![warn(missing_docs)]

pub mod apply;
pub mod bounded;
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
pub mod memory;
pub mod meta;
pub mod patch;
pub mod path;
pub mod prune;
pub mod rules;
pub mod schema;
pub mod selector;
pub mod validate;

pub use schema::Schema;
