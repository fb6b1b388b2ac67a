//! Traces that a server sends to a collector in the test.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::Value;
use tempfile::TempDir;

use crate::output::Transcript;
use crate::program::{Server, failed};
use crate::sample::quick;

/// The spans of one request.
fn received(collector: &TcpListener) -> Vec<Value> {
    let (mut stream, _) = collector.accept().unwrap();
    let mut text = Vec::new();
    let mut buffer = [0; 65536];
    while !text.ends_with(b"]}]}]}") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..count]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{text}");
    let body: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_collector_receives_reconciles_with_what_they_did() {
    let dir = TempDir::new().unwrap();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let flags = ["--simulator", "--simulator-instant", "--simulator-port", "0", "--otlp-endpoint", &endpoint];
    let server = Server::start(dir.path(), &flags);
    quick(&server).await;
    let mut spans = Vec::new();
    let ours = |span: &&Value| span["name"] == "reconcile cluster";
    let effects_of = |spans: &[Value]| -> Option<Value> {
        spans.iter().filter(ours).find_map(|root| {
            spans
                .iter()
                .find(|span| span["name"] == "effect" && span["parentSpanId"] == root["spanId"])
                .cloned()
        })
    };
    while effects_of(&spans).is_none() {
        spans.extend(received(&collector));
    }
    let root = spans.iter().find(ours).unwrap();
    let attribute = |key: &str| {
        let all = root["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).unwrap()["value"]["stringValue"].clone()
    };
    assert_eq!((attribute("object.kind"), attribute("object.name")), ("Cluster".into(), "quick".into()));
}

#[test]
fn a_collector_that_is_no_url_is_refused_at_once() {
    let dir = TempDir::new().unwrap();
    let mut transcript = Transcript::new(dir.path());
    transcript.run(&["server", "--in-memory", "--otlp-endpoint", "collector:4318"]);
    let said =
        failed(transcript.run(&["server", "--in-memory", "--otlp-endpoint", "http://me:word@collector"]));
    assert!(!said.contains("word@"), "{said}");
    transcript.assert("traces-errors");
}
