//! Any bytes on a connection: it is closed or answered. `cargo xtask fuzz` runs this for longer, with random seeds.

use std::convert::Infallible;
use std::sync::OnceLock;
use std::time::Duration;

use capstan_env::Env;
use capstan_pki::Pki;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config as Proptest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

use crate::auth::User;
use crate::http::body::MAX_BODY;
use crate::{Config, Server};

/// Simulated time within which the server must close a connection whose client has stopped sending.
const TIMEOUT: Duration = Duration::from_secs(7200);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config(cases: u32) -> Proptest {
    let default = Proptest::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    Proptest { cases, failure_persistence: None, ..default }
}

fn bed() -> &'static Mutex<(Runtime, Server)> {
    static BED: OnceLock<Mutex<(Runtime, Server)>> = OnceLock::new();
    BED.get_or_init(|| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let server = runtime.block_on(async {
            Server::start(Config::in_memory(), Pki::ephemeral(Env::system()).into()).await.unwrap()
        });
        Mutex::new((runtime, server))
    })
}

/// Sends bytes over one connection of an administrator and returns the response until the server closes it. A client
/// that `stays` neither sends more nor closes its side.
fn exchange(agreed: &'static [u8], bytes: &[u8], stays: bool) -> String {
    let bed = bed().lock();
    let (runtime, server) = (&bed.0, bed.1.clone());
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.handle_as(User::privileged("fuzz"), request).await) }
    });
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(64 << 10);
        let connection = tokio::spawn(async move {
            let protocol = super::protocol(Some(agreed));
            let _ = protocol.serve_connection(TokioIo::new(far), service).await;
        });
        let (mut reading, mut writing) = tokio::io::split(near);
        let send = async {
            let _ = writing.write_all(bytes).await;
            if stays {
                std::future::pending::<()>().await;
            }
            let _ = writing.shutdown().await;
            std::future::pending::<()>().await
        };
        let read = async {
            let mut answer = Vec::new();
            let _ = reading.read_to_end(&mut answer).await;
            answer
        };
        let exchange = async {
            tokio::select! { answer = read => answer, () = send => Vec::new() }
        };
        let answer = tokio::time::timeout(TIMEOUT, exchange).await.expect("the server ends the connection");
        connection.await.expect("nothing panics");
        String::from_utf8_lossy(&answer).into_owned()
    })
}

fn texts(list: &[&'static str]) -> impl Strategy<Value = String> + use<> {
    select(list.to_vec()).prop_map(str::to_owned)
}

/// A mostly valid request.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let line = (
        texts(&["GET", "POST", "PUT", "PATCH", "DELETE", "get", "PRI", "CONNECT", "G\0T", ""]),
        texts(&[
            MAPS,
            "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1",
            "/api/v1/namespaces/default/configmaps/x",
            "/version",
            "*",
            "/%",
            "/%zz?%zz=%",
            "http://host/api",
            "host:443",
            "//",
            "/a b",
            "/\u{e9}",
            "?",
        ]),
        texts(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", ""]),
    )
        .prop_map(|(method, target, version)| format!("{method} {target} {version}\r\n"));
    let header = prop_oneof![
        4 => texts(&[
            "host: x", "host: x", "content-type: application/json", "content-type: application/merge-patch+json",
            "content-type: \u{e9}", "accept: application/yaml", "connection: close", "connection: upgrade",
            "upgrade: h2c", "upgrade: websocket", "expect: 100-continue", "te: trailers", "transfer-encoding: gzip",
            "content-length: 5", "content-length: -1", "content-length: 99999999999999999999", "content-encoding: gzip",
            "authorization: Bearer x", "impersonate-user: y", "impersonate-group: z", "host: y", " folded", "nocolon", ": v",
            "a\0b: c",
        ]),
        1 => "[ -~]{0,30}",
    ];
    let body = prop_oneof![
        Just((String::new(), Vec::new())),
        json().prop_map(|body| (format!("content-length: {}\r\n", body.len()), body)),
        (json(), 0..100_usize)
            .prop_map(|(body, more)| (format!("content-length: {}\r\n", body.len() + more), body)),
        (
            vec((json(), any::<Index>()), 0..4),
            texts(&["0\r\n\r\n", "", "0\r\na: b\r\n\r\n", "zz\r\n", "-1\r\n"])
        )
            .prop_map(|(chunks, end)| {
                let mut bytes = Vec::new();
                for (chunk, wrong) in chunks {
                    // Sometimes the length of a chunk is wrong.
                    let length = if wrong.index(6) == 0 { chunk.len() + wrong.index(9) } else { chunk.len() };
                    bytes.extend_from_slice(format!("{length:x}\r\n").as_bytes());
                    bytes.extend_from_slice(&chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(end.as_bytes());
                ("transfer-encoding: chunked\r\n".to_owned(), bytes)
            }),
    ];
    (line, vec(header, 0..4), body).prop_map(|(line, headers, (framing, body))| {
        let mut bytes = line.into_bytes();
        for header in headers {
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(framing.as_bytes());
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body);
        bytes
    })
}

fn json() -> impl Strategy<Value = Vec<u8>> {
    texts(&[
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"b"}}"#,
        r#"{"data":{"a":null}}"#,
        "[",
        "",
        "\u{0}",
    ])
    .prop_map(String::into_bytes)
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn any_connection_ends(
        requests in vec(request(), 0..3),
        edits in vec((any::<Index>(), any::<u8>()), 0..3),
        cut in prop::option::of(any::<Index>()),
    ) {
        let mut bytes = requests.concat();
        for (at, byte) in edits.into_iter().filter(|(_, byte)| byte % 3 == 0) {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Some(cut) = cut.filter(|cut| cut.index(2) == 0) {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        exchange(b"http/1.1", &bytes, false);
    }

    #[test]
    fn junk_ends_a_connection(bytes in vec(any::<u8>(), 0..400), http2 in any::<bool>()) {
        let preface: &[u8] = if http2 { b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" } else { b"" };
        exchange(if http2 { b"h2" } else { b"http/1.1" }, &[preface, &bytes].concat(), false);
    }
}

#[test]
fn a_connection_with_an_unresponsive_client_is_closed() {
    let head = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
    for (what, bytes, expected) in [
        ("nothing", String::new(), ""),
        ("half a request line", "GET /ver".to_owned(), ""),
        ("half the headers", head.clone(), ""),
        ("half a body", format!("{head}content-length: 100\r\n\r\n{{"), "HTTP/1.1 408"),
        ("half a chunk", format!("{head}transfer-encoding: chunked\r\n\r\n40\r\n{{"), "HTTP/1.1 408"),
        ("no last chunk", format!("{head}transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n"), "HTTP/1.1 408"),
    ] {
        let answer = exchange(b"http/1.1", bytes.as_bytes(), true);
        assert!(answer.starts_with(expected), "{what}: {answer}");
    }
}

#[test]
fn a_body_past_the_limit_is_refused_however_it_is_framed() {
    let head =
        format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n");
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    for bytes in [
        format!("{head}content-length: {}\r\n\r\n{}", MAX_BODY + 1, " ".repeat(MAX_BODY + 1)),
        format!("{head}content-length: 999999999999\r\n\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\n{}", chunk.repeat(4)),
    ] {
        let answer = exchange(b"http/1.1", bytes.as_bytes(), false);
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    }
}
