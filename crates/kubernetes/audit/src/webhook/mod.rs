//! Events sent to a webhook in batches, as kube-apiserver's `batch` mode does.
//!
//! ```text
//! record ─▶ bounded queue ─▶ batch: full, or old enough ─▶ POST EventList ─▶ sent
//!             └─ full: dropped                              └─ failed: back off and retry ─▶ dropped after the last
//! ```
//!
//! A request never waits for the webhook. Events that it cannot take in time are dropped and counted; the log on disk,
//! if there is one, has them.

mod config;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::Event;
use config::Endpoint;
pub use config::WebhookError;

/// Bytes of events that may wait, whatever their number: one with both bodies can have megabytes.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Bytes of a batch, as kube-apiserver truncates.
const MAX_BATCH_BYTES: usize = 10 << 20;
/// Bytes that are read of an answer, so that its connection can be used again.
const MAX_ANSWER: usize = 64 << 10;
/// Retries of a batch, and by how much the wait before each grows; both as kube-apiserver's.
const RETRIES: u32 = 4;
const GROWTH: f64 = 1.5;
/// Time for what waits when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// How often failures are reported.
const REPORT: Duration = Duration::from_secs(60);

const HEAD: &[u8] = br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#;
const TAIL: &[u8] = b"]}";

/// How events are gathered and sent.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// A kubeconfig with the webhook's address and credentials.
    pub config: PathBuf,
    /// Most events that wait; further ones are dropped.
    pub buffer: usize,
    /// Most events of a batch.
    pub batch: usize,
    /// Longest wait for a batch to fill.
    pub wait: Duration,
    /// Wait before the first retry.
    pub backoff: Duration,
    /// Time limit of one request.
    pub timeout: Duration,
}

impl WebhookOptions {
    /// kube-apiserver's defaults.
    pub fn new(config: &Path) -> Self {
        Self {
            config: config.to_owned(),
            buffer: 10_000,
            batch: 400,
            wait: Duration::from_secs(30),
            backoff: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
        }
    }
}

/// Events by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookCounts {
    pub sent: u64,
    pub dropped: u64,
    /// Requests that failed and were repeated or given up.
    pub failed_requests: u64,
    /// Events that wait.
    pub queued: u64,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    dropped: AtomicU64,
    failed_requests: AtomicU64,
    queued: AtomicU64,
    queued_bytes: AtomicUsize,
}

/// The webhook. Clones share its queue. When the last is dropped, what waits is sent once, without retries, within seconds.
#[derive(Clone)]
pub struct Webhook(Arc<Inner>);

struct Inner {
    events: Option<mpsc::Sender<Bytes>>,
    counters: Arc<Counters>,
    /// When everything ends; set when the server stops. Nothing is retried then.
    stopping: watch::Sender<Option<Instant>>,
    thread: Option<JoinHandle<()>>,
}

impl Webhook {
    /// Reads the configuration and starts a thread. Does not connect.
    pub fn open(options: WebhookOptions) -> Result<Self, WebhookError> {
        let Endpoint { uri, connector, authorization } = Endpoint::read(&options.config)?;
        let (events, received) = mpsc::channel(options.buffer.max(1));
        let (stopping, stopped) = watch::channel(None);
        let counters = Arc::new(Counters::default());
        let counted = counters.clone();
        let thread = std::thread::Builder::new().name("audit-webhook".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime.inspect_err(|error| tracing::error!(%error, "no audit webhook")) else {
                return;
            };
            runtime.block_on(async move {
                let client = Client::builder(TokioExecutor::new()).build(connector);
                let sender = Sender {
                    client,
                    uri,
                    authorization,
                    options,
                    counters: counted,
                    stopped,
                    reported: None,
                };
                sender.run(received).await;
            });
        });
        let thread = Some(thread.map_err(WebhookError::Thread)?);
        Ok(Self(Arc::new(Inner { events: Some(events), counters, stopping, thread })))
    }

    /// Queues an event, or drops it if the queue is full.
    pub fn record(&self, event: &Event) {
        let Inner { events, counters, .. } = &*self.0;
        let queued = match (serde_json::to_vec(event), events) {
            (Ok(json), Some(events)) => {
                let size = json.len();
                // Counted first, so that the thread never subtracts what was not added.
                counters.queued.fetch_add(1, Ordering::Relaxed);
                let before = counters.queued_bytes.fetch_add(size, Ordering::Relaxed);
                let queued = before + size <= MAX_QUEUED_BYTES && events.try_send(json.into()).is_ok();
                if !queued {
                    counters.queued.fetch_sub(1, Ordering::Relaxed);
                    counters.queued_bytes.fetch_sub(size, Ordering::Relaxed);
                }
                queued
            }
            _ => false,
        };
        if !queued {
            counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn counts(&self) -> WebhookCounts {
        let Counters { sent, dropped, failed_requests, queued, .. } = &*self.0.counters;
        WebhookCounts {
            sent: sent.load(Ordering::Relaxed),
            dropped: dropped.load(Ordering::Relaxed),
            failed_requests: failed_requests.load(Ordering::Relaxed),
            queued: queued.load(Ordering::Relaxed),
        }
    }
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Webhook").field(&self.counts()).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.stopping.send(Some(Instant::now() + GRACE));
        self.events = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: http::Uri,
    authorization: Option<http::HeaderValue>,
    options: WebhookOptions,
    counters: Arc<Counters>,
    stopped: watch::Receiver<Option<Instant>>,
    reported: Option<Instant>,
}

/// Returns when the time after a stop is over.
async fn stop_deadline(mut stopped: watch::Receiver<Option<Instant>>) {
    let deadline = stopped.wait_for(Option::is_some).await.map(|deadline| *deadline);
    if let Ok(Some(deadline)) = deadline {
        tokio::time::sleep_until(deadline).await;
    }
}

/// Events that are sent together.
#[derive(Default)]
struct Batch {
    events: Vec<Bytes>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, event: Bytes) {
        self.bytes += event.len() + 1;
        self.events.push(event);
    }

    fn body(&self) -> Bytes {
        let mut body = Vec::with_capacity(HEAD.len() + self.bytes + TAIL.len());
        body.extend_from_slice(HEAD);
        for (index, event) in self.events.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(event);
        }
        body.extend_from_slice(TAIL);
        body.into()
    }
}

impl Sender {
    async fn run(mut self, mut events: mpsc::Receiver<Bytes>) {
        while let Some(first) = events.recv().await {
            let mut batch = Batch::default();
            batch.add(first);
            let deadline = Instant::now() + self.options.wait;
            while batch.events.len() < self.options.batch && batch.bytes < MAX_BATCH_BYTES {
                // The channel closes when the server stops: the batch is as full as it gets.
                match timeout_at(deadline, events.recv()).await {
                    Ok(Some(event)) => batch.add(event),
                    Ok(None) | Err(_) => break,
                }
            }
            let count = batch.events.len() as u64;
            let result = self.deliver(batch.body()).await;
            let counter = if result { &self.counters.sent } else { &self.counters.dropped };
            counter.fetch_add(count, Ordering::Relaxed);
            let size: usize = batch.events.iter().map(Bytes::len).sum();
            self.counters.queued.fetch_sub(count, Ordering::Relaxed);
            self.counters.queued_bytes.fetch_sub(size, Ordering::Relaxed);
        }
    }

    /// Sends a batch until it is accepted, refused for good, or tried often enough.
    async fn deliver(&mut self, body: Bytes) -> bool {
        let mut wait = self.options.backoff;
        for retries_left in (0..=RETRIES).rev() {
            let end = stop_deadline(self.stopped.clone());
            let attempt = tokio::select! {
                attempt = timeout(self.options.timeout, self.post(body.clone())) => attempt,
                () = end => return false,
            };
            let failure = match attempt {
                Ok(Ok(())) => return true,
                Ok(Err(failure)) => failure,
                Err(_) => Failure { problem: "no answer in time".to_owned(), may_pass: true },
            };
            self.counters.failed_requests.fetch_add(1, Ordering::Relaxed);
            let gives_up = retries_left == 0 || !failure.may_pass || self.stopped.borrow().is_some();
            self.report(&failure.problem, gives_up);
            if gives_up {
                return false;
            }
            tokio::select! {
                () = sleep(wait) => {}
                // One last attempt, then the server is gone.
                _ = self.stopped.changed() => {}
            }
            wait = wait.mul_f64(GROWTH);
        }
        false
    }

    async fn post(&self, body: Bytes) -> Result<(), Failure> {
        let mut request = Request::post(self.uri.clone()).header(header::CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(body)).map_err(|error| Failure::lasting(&error))?;
        let response = self.client.request(request).await.map_err(|error| Failure::passing(&error))?;
        let status = response.status();
        let _ = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        if status.is_success() {
            return Ok(());
        }
        let may_pass = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        Err(Failure { problem: format!("it answers {status}"), may_pass })
    }

    fn report(&mut self, problem: &str, gives_up: bool) {
        if self.reported.is_some_and(|at| at.elapsed() < REPORT) {
            return;
        }
        self.reported = Some(Instant::now());
        let webhook = self.uri.host().unwrap_or_default();
        let dropped = self.counters.dropped.load(Ordering::Relaxed);
        if gives_up {
            tracing::error!(
                webhook,
                problem,
                dropped,
                "audit events are dropped: the webhook does not take them"
            );
        } else {
            tracing::warn!(webhook, problem, dropped, "the audit webhook failed; retrying");
        }
    }
}

struct Failure {
    problem: String,
    /// A retry may help.
    may_pass: bool,
}

impl Failure {
    fn passing(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut problem = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            problem = format!("{problem}: {cause}");
            source = cause.source();
        }
        Self { problem, may_pass: true }
    }

    fn lasting(error: &(dyn std::error::Error + 'static)) -> Self {
        Self { may_pass: false, ..Self::passing(error) }
    }
}

#[cfg(test)]
mod tests;
