//! The built-in Kubernetes kinds: names, fields, protobuf numbers, schemas. Static data shared by the whole process;
//! pure functions over `serde_json::Value`, no I/O, no clock.
//!
//! ```text
//! table ── the Go types ─────────────┬── schema    for patches, apply, OpenAPI
//! kinds ── names, verbs             ├── protobuf  wire format ↔ JSON
//!                                   └── decode    typed JSON: strictness, Go's zero values
//! ```

pub mod autoscaling;
pub mod decode;
pub mod defaults;
mod error;
pub mod expressions;
pub mod flowcontrol;
pub mod kinds;
pub mod protobuf;
pub mod quantity;
pub mod schema;
pub mod services;
pub mod strategy;
pub mod table;
pub mod text;
pub mod time;
pub mod validation;
pub mod warnings;
mod zero;

pub use error::Error;
pub use kinds::{Kind, Subresource, kind, kinds};
pub use schema::schema;
