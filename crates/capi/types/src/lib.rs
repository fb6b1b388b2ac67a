//! The kinds of Cluster API: their shape, their definitions, their rules.
//!
//! ```text
//! core  bootstrap  controlplane  addons  ipam  clusterctl     one folder per API group, one file per kind
//!   └──────┴───────────┴───────────┴──────┴───────┴── wire (how fields are written), schema (what may be in them)
//! definitions  CustomResourceDefinitions made from the types      admission  defaults and rules
//! v1beta1      the earlier version's shape                         conversion  each version into the other
//! ```
//!
//! Typed values follow the wire: a plain field that is empty, zero or all default is absent, as upstream writes
//! it; `Option` is used where absent and zero mean different things. Reading never fails for a missing field:
//! what is required is said by the schema and checked by the API server.
//!
//! No client, no server, no clock here.

// What the macros of `wire` write must mean the same here and in other crates.
extern crate self as capstan_capi_types;

pub mod addons;
pub mod admission;
pub mod bootstrap;
pub mod clusterctl;
pub mod controlplane;
pub mod conversion;
pub mod core;
pub mod definitions;
pub mod ipam;
pub mod kubernetes;
pub mod schema;
pub mod v1beta1;
pub mod version;
pub mod wire;
