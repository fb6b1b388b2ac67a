//! Records spans and hands them to the exporter when they end.

use std::fmt;
use std::sync::Arc;

use capstan_env::Env;
use jiff::Timestamp;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::Counts;

/// Longest value of an attribute, in bytes; the rest is cut off.
const LONGEST: usize = 1024;

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Bool(bool),
}

/// A span that has ended. Ids are in hexadecimal, as OTLP writes them in JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub trace: String,
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Value)>,
    pub error: Option<String>,
}

/// A span that has not ended. It is in the span's extensions.
struct Open {
    span: Ended,
    /// Wall clocks may be set back; a duration is never negative.
    began: Instant,
}

/// A layer of `tracing` subscribers. Filter what it receives: every span is recorded.
pub struct SpanLayer {
    queue: Sender<Ended>,
    counts: Arc<Counts>,
    env: Env,
}

impl SpanLayer {
    pub(crate) fn new(queue: Sender<Ended>, counts: Arc<Counts>, env: Env) -> Self {
        Self { queue, counts, env }
    }

    fn random(&self, digits: usize) -> String {
        let mut hex = self.env.uuid().replace('-', "");
        // The last digits of a UUID have no version in them.
        hex.drain(..hex.len().saturating_sub(digits));
        hex
    }
}

impl<S> tracing_subscriber::Layer<S> for SpanLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let above = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Open>().map(|open| (open.span.trace.clone(), open.span.id.clone()))
        });
        let (trace, parent) = match above {
            Some((trace, parent)) => (trace, Some(parent)),
            None => (self.random(32), None),
        };
        let start = self.env.now();
        let mut open = Open {
            span: Ended {
                trace,
                id: self.random(16),
                parent,
                name: attributes.metadata().name().to_owned(),
                start,
                end: start,
                attributes: Vec::new(),
                error: None,
            },
            began: Instant::now(),
        };
        attributes.record(&mut open);
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            values.record(open);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Open { span: mut ended, began }) = span.extensions_mut().remove::<Open>() else { return };
        ended.end = ended.start.checked_add(began.elapsed()).unwrap_or(ended.start);
        if self.queue.try_send(ended).is_err() {
            self.counts.dropped_full(1);
        }
    }
}

impl Open {
    fn set(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("otel.name", Value::Text(name)) => self.span.name = name,
            ("error", Value::Text(message)) => self.span.error = Some(message),
            (name, value) => match self.span.attributes.iter_mut().find(|known| known.0 == name) {
                Some(known) => known.1 = value,
                None => self.span.attributes.push((name, value)),
            },
        }
    }
}

impl Visit for Open {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Value::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Value::Integer(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Value::Text(cut(value).to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}
