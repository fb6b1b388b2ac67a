//! A Kubernetes API server as a library: HTTP, discovery, admission, authentication, RBAC and watch on top of
//! `capstan-store` and `capstan-schema`.
//!
//! It depends neither on Cluster API nor on a controller runtime. Clients of the same process use
//! [`Transport`](capstan_transport::Transport), others [`tower_service::Service`] behind TLS. Only the TLS listener
//! and webhook calls open sockets.

pub mod admission;
mod audit;
pub mod auth;
pub mod backup;
mod blocking;
mod bootstrap;
mod call;
mod compression;
pub mod config;
mod controllers;
pub mod conversion;
mod crd;
mod digest;
pub mod discovery;
mod disruption;
mod documents;
mod events;
mod fields;
mod flow_control;
#[cfg(test)]
mod fuzz;

pub mod front;
mod health;
mod http;
mod listing;
mod local;
mod memory;
mod metrics;
pub mod negotiation;
mod object;
pub mod openapi;
mod ownership;
mod parts;
mod pipeline;
mod portforward;
mod quota;
pub mod registry;
mod reply;
mod representations;
mod respond;
mod reviews;
mod route;
mod scale;
mod selection;
pub mod server;
mod services;
pub mod status;
mod strategy;
mod subresources;
pub mod table;
mod verbs;
mod versions;
mod watches;
pub mod webhook_client;
mod yaml;

pub use audit::Audit;
pub use config::Config;
pub use digest::Digest;
pub use flow_control::InFlightLimits;
pub use local::LocalTransport;
pub use reply::{Reply, ReplyBody};
pub use server::Server;
pub use services::{ServiceRange, ServiceRangeError};
pub use watches::WatchLimits;
