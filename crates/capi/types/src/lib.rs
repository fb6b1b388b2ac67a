//! The kinds of Cluster API: types, definitions, admission rules.
//!
//! ```text
//! core  bootstrap  controlplane  addons  ipam  runtime  clusterctl     one folder per API group, one file per kind
//!   └──────┴───────────┴───────────┴──────┴───────┴───────┴── wire (serialization), schema (constraints)
//! definitions  CustomResourceDefinitions from the types            admission  defaulting and validation
//! v1beta1, v1alpha1  types of the earlier versions                 conversion  between the versions
//! ```
//!
//! Typed values follow the wire format: a field that is empty, zero or default is absent, as upstream writes it;
//! `Option` is used where absent and zero differ. Decoding never fails for a missing field: required fields are in
//! the schema and checked by the API server.
//!
//! No client, no server, no clock here.

// The macros of `wire` are also used in other crates.
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
pub mod runtime;
pub mod schema;
pub mod v1alpha1;
pub mod v1beta1;
pub mod variables;
pub mod version;
pub mod wire;
