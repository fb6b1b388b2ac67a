//! Audit of an API server: a policy that decides how much of a request is recorded, the events, and a log.
//!
//! ```text
//! request ──▶ Policy::decide ──▶ level, stages ──▶ Event, once per stage ──▶ AuditLog: chained lines, rotated files
//!                                                                               │    └─ verify: nothing changed, nothing gone
//!                                                                               └▶ Webhook: batches over HTTPS
//! ```
//!
//! Policies and events are Kubernetes' own (`audit.k8s.io/v1`), so that its tools and rules work here.

mod event;
mod log;
mod policy;
mod webhook;

pub use event::{Document, Event, Level, ObjectReference, ResponseStatus, Stage, UserInfo};
pub use log::verify::{Report, VerifyError, verify};
pub use log::{AuditLog, LogError, LogOptions};
pub use policy::{Decision, Policy, PolicyError, Request};
pub use webhook::{Webhook, WebhookCounts, WebhookError, WebhookOptions};
