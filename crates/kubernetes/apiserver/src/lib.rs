//! A Kubernetes API server as a library: HTTP, discovery, admission, authentication, RBAC and watch
//! over `capstan-store` and `capstan-schema`.
//!
//! It knows no Cluster API and no controller runtime. Clients of the same process reach it through
//! [`Transport`](capstan_transport::Transport), others through [`tower_service::Service`] behind TLS; nothing here opens a
//! socket except the TLS front door and calls to webhooks.

pub mod admission;
mod audit;
pub mod auth;
pub mod backup;
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
mod forms;
pub mod front;
mod http;
mod in_flight;
mod local;
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
mod respond;
mod reviews;
mod route;
mod scale;
mod selection;
pub mod server;
pub mod status;
mod strategy;
mod subresources;
pub mod table;
mod verbs;
mod versions;
pub mod webhook_client;

pub use audit::Audit;
pub use config::Config;
pub use digest::Digest;
pub use in_flight::InFlightLimits;
pub use local::LocalTransport;
pub use reply::{Reply, ReplyBody};
pub use server::Server;
