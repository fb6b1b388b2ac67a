//! Spans on their way to a collector in this process.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_cloud_http::{Https, HttpsOptions, Transport, TransportError, Trust};
use capstan_env::Env;
use capstan_traces::{Exporter, Resource, SpanLayer, exporting};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing_subscriber::layer::SubscriberExt;

/// A collector that keeps requests, and refuses the first ones if refusals are set.
#[derive(Default)]
struct Collector {
    requests: Mutex<Vec<Value>>,
    /// Answers before it begins to accept.
    refusals: Mutex<Vec<StatusCode>>,
}

impl Collector {
    fn spans(&self) -> Vec<Value> {
        let spans = |request: &Value| {
            request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default()
        };
        self.requests.lock().iter().flat_map(spans).collect()
    }
}

struct Wire(Arc<Collector>);

impl Transport for Wire {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        assert_eq!(request.uri().path(), "/v1/traces");
        assert_eq!(request.headers()["content-type"], "application/json");
        let mut response = Response::new(Bytes::from_static(b"{}"));
        match self.0.refusals.lock().pop() {
            Some(status) => *response.status_mut() = status,
            None => self.0.requests.lock().push(serde_json::from_slice(request.body()).unwrap()),
        }
        async move { Ok(response) }.boxed()
    }
}

fn resource() -> Resource {
    Resource { service_name: "capstan", service_version: "1", instance: "a".to_owned() }
}

fn start(collector: &Arc<Collector>) -> (SpanLayer, Exporter) {
    let endpoint = "http://collector:4318".parse().unwrap();
    exporting(endpoint, Arc::new(Wire(collector.clone())), resource(), Env::system())
}

fn metric(exporter: &Arc<capstan_traces::Counts>, name: &str) -> String {
    let text = exporter.render();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().to_owned()
}

fn make_spans(layer: SpanLayer, count: usize) {
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        for _ in 0..count {
            tracing::info_span!("reconcile").in_scope(|| ());
        }
    });
}

#[tokio::test(start_paused = true)]
async fn children_have_the_trace_of_their_parent_and_errors_are_a_status() {
    let collector = Arc::<Collector>::default();
    let (layer, exporter) = start(&collector);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let root = tracing::info_span!(
            "reconcile",
            otel.name = "reconcile machine",
            namespace = "default",
            round = 2,
            error = tracing::field::Empty
        );
        root.in_scope(|| tracing::info_span!("observe").in_scope(|| ()));
        root.record("error", "E-CS-QUOTA: no");
    });
    exporter.run(std::future::pending()).await;
    let spans = collector.spans();
    let [child, root] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((&root["name"], &child["name"]), (&"reconcile machine".into(), &"observe".into()));
    assert_eq!(child["traceId"], root["traceId"]);
    assert_eq!(child["parentSpanId"], root["spanId"]);
    assert_eq!(root["traceId"].as_str().unwrap().len(), 32);
    assert_eq!(root["spanId"].as_str().unwrap().len(), 16);
    assert_eq!(root.get("parentSpanId"), None);
    assert_eq!(root["status"]["code"], 2);
    assert_eq!(root["status"]["message"], "E-CS-QUOTA: no");
    assert_eq!(root["attributes"].as_array().unwrap().len(), 2, "the error and the name are no attributes");
}

#[tokio::test(start_paused = true)]
async fn spans_are_sent_in_batches_and_what_does_not_fit_is_dropped_and_counted() {
    let collector = Arc::<Collector>::default();
    let (layer, exporter) = start(&collector);
    let counts = exporter.counts();
    make_spans(layer, 5000);
    exporter.run(std::future::pending()).await;
    assert_eq!(collector.spans().len(), 4096);
    assert_eq!(collector.requests.lock().len(), 8);
    assert_eq!(metric(&counts, "capstan_trace_spans_sent_total"), "4096");
    assert_eq!(metric(&counts, "capstan_trace_spans_dropped_total{reason=\"queue_full\"}"), "904");
}

#[tokio::test(start_paused = true)]
async fn a_busy_collector_is_asked_again_and_one_that_refuses_is_not() {
    for (refusals, sent, dropped) in [
        (vec![StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS], "1", "0"),
        (vec![StatusCode::SERVICE_UNAVAILABLE; 3], "0", "1"),
        (vec![StatusCode::BAD_REQUEST], "0", "1"),
    ] {
        let collector = Arc::<Collector>::default();
        *collector.refusals.lock() = refusals;
        let (layer, exporter) = start(&collector);
        let counts = exporter.counts();
        make_spans(layer, 1);
        exporter.run(std::future::pending()).await;
        assert_eq!(metric(&counts, "capstan_trace_spans_sent_total"), sent);
        assert_eq!(metric(&counts, "capstan_trace_spans_dropped_total{reason=\"not_accepted\"}"), dropped);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_sent_when_the_process_stops() {
    let collector = Arc::<Collector>::default();
    let (layer, exporter) = start(&collector);
    let subscriber = tracing::Dispatch::new(tracing_subscriber::registry().with(layer));
    tracing::dispatcher::with_default(&subscriber, || {
        tracing::info_span!("reconcile").in_scope(|| ());
    });
    // Before a batch is due.
    exporter.run(tokio::time::sleep(Duration::from_secs(1))).await;
    assert_eq!(collector.spans().len(), 1);
}

#[tokio::test]
async fn spans_reach_a_collector_over_http() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/otlp", listener.local_addr().unwrap()).parse().unwrap();
    let options = HttpsOptions { trust: Trust::Anyone, ..HttpsOptions::default() };
    let (layer, exporter) =
        exporting(endpoint, Arc::new(Https::new(&options).unwrap()), resource(), Env::system());
    let counts = exporter.counts();
    make_spans(layer, 3);
    let collector = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"]}]}]}") {
            assert!(stream.read_buf(&mut text).await.unwrap() > 0, "{}", String::from_utf8_lossy(&text));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        String::from_utf8(text).unwrap()
    };
    let (text, ()) = futures::join!(collector, exporter.run(std::future::pending()));
    assert!(text.starts_with("POST /otlp/v1/traces HTTP/1.1\r\n"), "{text}");
    assert_eq!(text.matches("\"traceId\"").count(), 3);
    assert_eq!(metric(&counts, "capstan_trace_spans_sent_total"), "3");
}
