//! A typed client of the CloudStack API, usable alone.
//!
//! ```text
//! command ── parameters ── sign ── Transport ── envelope ── reply
//!    │                       │        │             │
//! typed request        Credentials  HTTPS, or    Error: code, class,
//! (commands, model)    (rotate)     in process   may it have happened?
//! ```
//!
//! [`Endpoint`] is one management server: transport, limits, metrics. [`Client`] speaks to it with one account's keys.
//! Commands are plain structs whose fields carry CloudStack's own parameter names:
//!
//! - [`Client::list`] reads every page of a list; [`Client::cached`] remembers what changes rarely;
//! - [`Client::call`] runs a command that answers at once;
//! - [`Client::start`] begins a job and returns its id, which the caller may write down; [`Client::poll`] and
//!   [`Client::wait`] go on from the id alone, after a restart too; [`Client::run`] is both.
//!
//! What is repeated and what is not: commands that only read are repeated after anything that may pass. Commands that
//! change something are repeated only when the server certainly did not carry them out; otherwise the error says
//! [`Error::is_ambiguous`] and the caller looks.
//!
//! All waiting is by Tokio's clock, and the wall clock that signatures need is a parameter, so everything runs in
//! simulated time. Nothing here knows what the machines are for.

#![warn(missing_docs)]

mod account;
mod cache;
mod client;
mod command;
pub mod commands;
mod credentials;
mod endpoint;
mod envelope;
mod error;
mod id;
mod jobs;
mod loose;
mod metrics;
pub mod model;
mod pages;
mod parameters;
mod policy;
mod read_only;
pub mod sign;
#[cfg(test)]
mod tests;
mod url_hint;
mod user_data;

pub use capstan_cloud_http::{Https, HttpsOptions, Secret, Transport, TransportError, Trust, TrustError};
pub use client::Client;
pub use command::{Call, Command, Effect, Job, List, Stable};
pub use credentials::{CredentialSource, Credentials, Rotating};
pub use endpoint::{Clock, Endpoint, Limits, UrlError};
pub use error::{Class, Code, Error, ErrorKind, Refusal};
pub use id::*;
pub use jobs::{JobState, Submitted};
pub use metrics::{Metrics, render_metrics};
pub use parameters::flatten;
pub use policy::{Patience, Policy};
pub use read_only::{ReadOnly, RefusedCommands};
pub use user_data::{UserData, UserDataError};
