//! The Runtime SDK of Cluster API: extension servers that users run, and calls to them.
//!
//! ```text
//! ExtensionConfig ── extension_config (controller): discovery ──▶ status.handlers
//!                                                                      │
//! topology controllers ── Extensions: call, call_all ── Registry ◀─────┤
//! owners of machines ── InPlaceUpdates ── Extensions ──────────────────┘
//!                              └── dyn Post: one HTTPS request, bounded in time and size
//! ```
//!
//! [`Registry`] is computed from cached ExtensionConfigs, so it is known after a restart without calls.
//! [`Extensions`] caches responses of hooks without side effects, and how long a hook that blocks is not called again.
//! TLS is not here: [`Post`] is implemented where the controllers are assembled.

mod discovery;
pub mod extension_config;
mod extensions;
mod in_place;
mod kept;
mod namespace;
mod post;
mod registry;
mod retry;

pub use discovery::handlers;
pub use extension_config::ExtensionConfigs;
pub use extensions::{CachePolicy, ExtensionError, Extensions, HookAnswer, Reply};
pub use in_place::InPlaceUpdates;
pub use post::{Post, PostError};
pub use registry::{Registration, Registry};
pub use retry::Retries;
