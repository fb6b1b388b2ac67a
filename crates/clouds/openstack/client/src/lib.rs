//! A typed client of OpenStack's APIs, usable alone.
//!
//! ```text
//! clouds.yaml ── Cloud ── Client ─┬─ token (Keystone v3, renewed before it expires and after a 401)
//!  config                         ├─ catalog: service type, interface, region → URL
//!                                 ├─ microversion: what the call needs, what the service has
//!                                 └─ Transport ── fault ── Error: class, request id, may it have happened?
//! ```
//!
//! Things of the cloud are structs with OpenStack's own field names; [`Client::list`], [`Client::get`],
//! [`Client::create`], [`Client::update`] and [`Client::delete`] work on all of them, with an [`Id`] that knows what it is
//! the id of. What is no plain create, read, update or delete has a method of its own beside the struct.
//!
//! What is repeated and what is not: reads and deletes are repeated after anything that may pass. Other changes are
//! repeated only when the service certainly did not carry them out; otherwise the error says [`Error::is_ambiguous`] and
//! the caller looks. Waiting for a state is the caller's business.
//!
//! Links in answers are never followed: their marker is used with the URL of the catalog, so a token goes nowhere else.
//! Waiting is by Tokio's clock, and the wall clock that tokens expire by is a parameter, so everything runs in simulated
//! time. Environment variables are read only by [`config::Environment`]. Nothing here knows what the servers are for.
//!
//! Why not the `openstack_sdk` crate: it is well kept, but generated, one module per call and microversion, without types
//! of the answers, and six services of it are 269 packages with a second TLS stack. It brings its own HTTP client, so
//! simulated clouds could not answer in process. This client needs some forty calls.

#![warn(missing_docs)]

mod auth;
pub mod block_storage;
mod catalog;
mod client;
pub mod compute;
pub mod config;
mod error;
mod fault;
mod id;
pub mod identity;
pub mod image;
pub mod load_balancer;
mod loose;
mod metrics;
mod microversion;
pub mod network;
mod pages;
pub mod placement;
mod policy;
mod query;
mod resource;
mod service;
mod session;
#[cfg(test)]
mod tests;
mod token;

pub use auth::{Credentials, DomainRef, ProjectRef, Scope, UserRef};
pub use capstan_cloud_http::{Https, HttpsOptions, Secret, Transport, TransportError, Trust, TrustError};
pub use client::{Client, Clock};
pub use config::{Cloud, ConfigError, Interface};
pub use error::{Class, Error, ErrorKind, Refusal};
pub use fault::read_refusal;
pub use id::Id;
pub use loose::{Number, Time, Truth};
pub use metrics::Metrics;
pub use microversion::{Microversion, Wanted};
pub use pages::Paging;
pub use policy::Policy;
pub use resource::{Create, Delete, Deletion, List, Resource, Update};
pub use service::Service;
pub use token::{CatalogEndpoint, CatalogService, Named, Token};
