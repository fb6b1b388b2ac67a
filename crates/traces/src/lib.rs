//! Traces for OpenTelemetry: spans of `tracing` are sent to a collector as OTLP over HTTP, in JSON.
//!
//! ```text
//! span ends ──▶ SpanLayer ──▶ queue, bounded ──▶ Exporter ──▶ POST /v1/traces ──▶ collector
//!                  └─ full: dropped and counted      └─ refused or unreachable: retried, then dropped and counted
//! ```
//!
//! The crates of OpenTelemetry bring their own HTTP client, protobuf and clock. This needs what the program has anyway.
//!
//! Two fields of a span have a meaning: `otel.name` is its name instead of the static one, and `error` makes its status
//! an error with that message. All others are attributes.

mod endpoint;
mod export;
mod layer;
mod otlp;

pub use endpoint::{Endpoint, EndpointError};
pub use export::{Counts, Exporter};
pub use layer::SpanLayer;
pub use otlp::Resource;

use std::sync::Arc;

use capstan_cloud_http::Transport;
use capstan_env::Env;

/// Spans that wait for the exporter. Those beyond are dropped.
const QUEUE: usize = 4096;

/// A layer for the subscriber, and the task that sends what it records.
pub fn exporting(
    endpoint: Endpoint,
    transport: Arc<dyn Transport>,
    resource: Resource,
    env: Env,
) -> (SpanLayer, Exporter) {
    let (sender, receiver) = tokio::sync::mpsc::channel(QUEUE);
    let counts = Arc::new(Counts::default());
    let layer = SpanLayer::new(sender, counts.clone(), env);
    (layer, Exporter::new(receiver, endpoint, transport, resource, counts))
}
