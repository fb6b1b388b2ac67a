//! Sends ended spans in batches.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use capstan_cloud_http::Transport;
use http::{Method, Request, StatusCode, header};
use tokio::sync::mpsc::Receiver;

use crate::layer::Ended;
use crate::{Endpoint, Resource, otlp};

/// Most spans of a request.
const BATCH: usize = 512;
/// Longest time that an ended span waits for others.
const INTERVAL: Duration = Duration::from_secs(5);
/// Longest time of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Requests with the same spans, before they are dropped.
const TRIES: u32 = 3;
/// Longest time to send what is left when the process stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// Numbers for metrics.
#[derive(Debug, Default)]
pub struct Counts {
    sent: AtomicU64,
    dropped_full: AtomicU64,
    dropped_refused: AtomicU64,
}

impl Counts {
    pub(crate) fn dropped_full(&self, spans: u64) {
        self.dropped_full.fetch_add(spans, Ordering::Relaxed);
    }

    /// In Prometheus' text format.
    pub fn render(&self) -> String {
        let [sent, full, refused] = [&self.sent, &self.dropped_full, &self.dropped_refused]
            .map(|count| count.load(Ordering::Relaxed));
        format!(
            "# HELP capstan_trace_spans_sent_total Spans that the collector accepted.\n\
             # TYPE capstan_trace_spans_sent_total counter\n\
             capstan_trace_spans_sent_total {sent}\n\
             # HELP capstan_trace_spans_dropped_total Spans that were not sent: the queue was full, or the collector did not accept them.\n\
             # TYPE capstan_trace_spans_dropped_total counter\n\
             capstan_trace_spans_dropped_total{{reason=\"queue_full\"}} {full}\n\
             capstan_trace_spans_dropped_total{{reason=\"not_accepted\"}} {refused}\n"
        )
    }
}

/// Why a request failed. Repeating it may help or not.
struct Refused {
    why: String,
    retry: bool,
}

/// Sends what a [`SpanLayer`](crate::SpanLayer) records.
pub struct Exporter {
    queue: Receiver<Ended>,
    endpoint: Endpoint,
    transport: Arc<dyn Transport>,
    resource: Resource,
    counts: Arc<Counts>,
    /// The last request failed. Only changes are logged.
    failing: bool,
}

impl Exporter {
    pub(crate) fn new(
        queue: Receiver<Ended>,
        endpoint: Endpoint,
        transport: Arc<dyn Transport>,
        resource: Resource,
        counts: Arc<Counts>,
    ) -> Self {
        Self { queue, endpoint, transport, resource, counts, failing: false }
    }

    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Sends batches until `stop`, then what is left.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                () = &mut stop => break,
                open = self.fill_and_send(&mut batch) => if !open { break },
            }
        }
        let rest = async {
            loop {
                while batch.len() < BATCH
                    && let Ok(span) = self.queue.try_recv()
                {
                    batch.push(span);
                }
                if batch.is_empty() {
                    return;
                }
                self.send(&mut batch).await;
            }
        };
        if tokio::time::timeout(FAREWELL, rest).await.is_err() {
            tracing::warn!("traces: the last spans were not sent within {FAREWELL:?}");
        }
    }

    /// Collects a batch and sends it. False if no more spans can come. Spans of an unfinished call stay in the batch.
    async fn fill_and_send(&mut self, batch: &mut Vec<Ended>) -> bool {
        let mut open = true;
        if batch.is_empty() {
            open = self.queue.recv_many(batch, BATCH).await > 0;
        }
        let deadline = tokio::time::Instant::now() + INTERVAL;
        while open && batch.len() < BATCH {
            let room = BATCH - batch.len();
            match tokio::time::timeout_at(deadline, self.queue.recv_many(batch, room)).await {
                Ok(count) => open = count > 0,
                Err(_) => break,
            }
        }
        self.send(batch).await;
        open
    }

    /// Sends a batch and empties it, whatever the collector says.
    async fn send(&mut self, batch: &mut Vec<Ended>) {
        if batch.is_empty() {
            return;
        }
        let body = Bytes::from(otlp::request(&self.resource, batch));
        let all = batch.len() as u64;
        for attempt in 1..=TRIES {
            match self.post(body.clone()).await {
                Ok(rejected) => {
                    let rejected = rejected.min(all);
                    self.counts.sent.fetch_add(all - rejected, Ordering::Relaxed);
                    self.counts.dropped_refused.fetch_add(rejected, Ordering::Relaxed);
                    if std::mem::take(&mut self.failing) {
                        tracing::info!(endpoint = %self.endpoint, "traces: the collector accepts spans again");
                    }
                    break;
                }
                Err(refused) if refused.retry && attempt < TRIES => {
                    tokio::time::sleep(Duration::from_secs(1 << attempt)).await;
                }
                Err(refused) => {
                    self.counts.dropped_refused.fetch_add(all, Ordering::Relaxed);
                    if !std::mem::replace(&mut self.failing, true) {
                        tracing::warn!(
                            endpoint = %self.endpoint, error = refused.why,
                            "traces: the collector does not accept spans; they are dropped and counted until it does"
                        );
                    }
                    break;
                }
            }
        }
        batch.clear();
    }

    /// Returns how many spans were rejected.
    async fn post(&self, body: Bytes) -> Result<u64, Refused> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.uri.clone();
        *request.headers_mut() = self.endpoint.headers.clone();
        let json = header::HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
        let response = tokio::time::timeout(TIMEOUT, self.transport.send(request))
            .await
            .map_err(|_| Refused { why: format!("no answer within {TIMEOUT:?}"), retry: true })?
            .map_err(|error| Refused { why: error.to_string(), retry: true })?;
        match response.status() {
            status if status.is_success() => Ok(otlp::rejected(response.body())),
            status => Err(Refused { why: format!("it answers {status}"), retry: is_transient(status) }),
        }
    }
}

/// Codes of HTTP after which OTLP allows a client to try again.
fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}
