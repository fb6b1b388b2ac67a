//! Spans of reconciles, for whoever subscribes to [`TARGET`]. Without a subscriber they are not made.
//!
//! ```text
//! reconcile CONTROLLER
//! ├─ observe
//! ├─ write            the own object, or its status
//! └─ effect           one per effect, in order
//! ```

use capstan_object::Key;
use tracing::Span;
use tracing::field::Empty;

/// Target of all spans here. Logs leave it out: their lines name the object themselves.
pub const TARGET: &str = "capstan_trace";

/// The root of a trace.
pub(crate) fn reconcile(controller: &str, kind: &str, key: &Key) -> Span {
    tracing::info_span!(
        target: TARGET,
        parent: None,
        "reconcile",
        otel.name = %format_args!("reconcile {controller}"),
        controller,
        object.kind = kind,
        object.namespace = key.namespace.as_str(),
        object.name = key.name.as_str(),
        requeue_after_ms = Empty,
        error = Empty,
    )
}

pub(crate) fn observe() -> Span {
    tracing::info_span!(target: TARGET, "observe")
}

/// A write of the own object.
pub(crate) fn write(subresource: Option<&str>) -> Span {
    tracing::info_span!(target: TARGET, "write", subresource, error = Empty)
}

/// `summary` is made only if somebody subscribes.
pub(crate) fn effect(summary: impl FnOnce() -> String) -> Span {
    let span = tracing::info_span!(target: TARGET, "effect", summary = Empty, error = Empty);
    if !span.is_disabled() {
        span.record("summary", summary());
    }
    span
}

/// Marks a span as failed.
pub(crate) fn failed(span: &Span, error: impl FnOnce() -> String) {
    if !span.is_disabled() {
        span.record("error", error());
    }
}
