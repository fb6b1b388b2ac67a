//! A Kubernetes API server as a library: HTTP, discovery, admission, authentication, RBAC and watch
//! over `capstan-store` and `capstan-schema`.
//!
//! It knows no Cluster API. Other crates reach it through [`tower_service::Service`], in process or
//! behind TLS; nothing here opens a socket except the TLS front door and calls to webhooks.

pub mod admission;
pub mod auth;
pub mod conversion;
pub mod discovery;
pub mod env;
pub mod negotiation;
pub mod openapi;
pub mod pki;
pub mod registry;
pub mod status;
pub mod table;
pub mod webhook_client;
