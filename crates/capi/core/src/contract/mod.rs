//! The contract between Cluster API and its providers: which version of it a provider's kind follows, where an
//! object named by `{apiGroup, kind, name}` is found, and where in that object the contract's fields are.
//!
//! ```text
//! reference ──▶ definition (by name) ──labels──▶ contract and API version ──▶ object ──▶ External
//!                                                                                        │
//!              InfrastructureCluster  InfrastructureMachine  InfrastructurePool  BootstrapConfig  ControlPlane ◀┘ typed accessors
//! ```
//!
//! A field that is absent is `Ok(None)`; a field of the wrong type is a [`FieldError`]. Nothing else is an error:
//! providers set their fields over time.

mod definition;
mod external;
mod field_error;
mod fields;
mod ownership;

pub use definition::{ContractVersion, Definition, definition_name, kind_name, served};
pub use external::{External, Lookup, contract_version, look_up};
pub use field_error::FieldError;
pub use fields::{
    BootstrapConfig, ControlPlane, InfrastructureCluster, InfrastructureMachine, InfrastructurePool,
};
pub use ownership::{Claim, claim};
