//! Clients that do not read what they ask for, over HTTP/2.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2::SendRequest;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::tests::{connect, server};
use super::*;
use crate::Config;
use crate::auth::User;

/// A large response in every form that a body can have.
const FORMS: [(&str, &str); 8] = [
    ("/api/v1/namespaces/default/configmaps/large", "application/json"),
    ("/api/v1/namespaces/default/configmaps/large", "application/yaml"),
    ("/api/v1/configmaps", "application/json"),
    ("/api/v1/configmaps", "application/yaml"),
    ("/api/v1/configmaps", "application/vnd.kubernetes.protobuf"),
    ("/api/v1/configmaps?includeObject=Object", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ("/openapi/v2", "application/json"),
    (
        "/api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "application/json",
    ),
];

async fn with_large_object() -> Server {
    let server = server(Config::in_memory()).await;
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"text": "x".repeat(300_000)},
    });
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .body(http_body_util::Full::<Bytes>::from(object.to_string()))
        .expect("a request");
    let admin = User::new("admin", ["system:masters"]);
    assert_eq!(server.handle_as(admin, request).await.status(), 201);
    server
}

async fn client(server: &Server, window: u32) -> (SendRequest<Empty<Bytes>>, JoinHandle<hyper::Result<()>>) {
    let (client, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(connect(server, b"h2").await))
        .await
        .expect("HTTP/2");
    (client, tokio::spawn(connection))
}

fn get(method: &str, path: &str, accept: &str) -> http::Request<Empty<Bytes>> {
    let request = http::Request::builder().method(method).uri(format!("https://localhost{path}"));
    request.header("accept", accept).body(Empty::new()).expect("a request")
}

/// How long a connection stays open on which a response is not read, and others have no body.
async fn unread_for(server: &Server, window: u32, path: &str, accept: &str) -> u64 {
    let (mut client, connection) = client(server, window).await;
    let unread = client.send_request(get("GET", path, accept)).await.expect("a response");
    assert_eq!(unread.status(), 200, "{path} {accept}");
    let began = Instant::now();
    while !connection.is_finished() && began.elapsed() < Duration::from_secs(3600) {
        // Answered without a body, whatever the window.
        let _ = client.send_request(get("HEAD", "/version", "*/*")).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    drop(unread);
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_client_does_not_read_is_closed_although_it_sends_requests() {
    let server = with_large_object().await;
    for (path, accept) in FORMS {
        for window in [0, 1000] {
            let after = unread_for(&server, window, path, accept).await;
            assert!((60..=110).contains(&after), "{path} {accept}, window of {window}: {after} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_client_reads_slowly_stays() {
    let server = with_large_object().await;
    let (mut client, connection) = client(&server, 20_000).await;
    let path = "/api/v1/namespaces/default/configmaps/large";
    let mut slow =
        client.send_request(get("GET", path, "application/yaml")).await.expect("a response").into_body();
    let (began, mut bytes) = (Instant::now(), 0);
    while let Some(frame) = slow.frame().await {
        bytes += frame.expect("a frame").into_data().map_or(0, |data| data.len());
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    assert!(
        bytes > 300_000 && began.elapsed() > Duration::from_secs(300),
        "{bytes} in {:?}",
        began.elapsed()
    );
    assert!(!connection.is_finished());
}
