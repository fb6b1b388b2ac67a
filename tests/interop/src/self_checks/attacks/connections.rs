//! Connections that say nothing, say two things at once, or say too much.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use serde_json::json;

use super::{Attempt, Target};
use crate::api::{self, Api, Http};
use crate::bed::wait;

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A peer that answers nothing within this time has stopped reading, or waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection whose responses are not read is closed after 60 s and what it takes to notice.
const UNREAD: Duration = Duration::from_secs(150);

pub const ALL: &[Attempt] = &[
    Attempt {
        name: "idle connections",
        expected: "connections without a byte are closed, and new ones are served, with 256 files",
        run: |target| Box::pin(idle(target)),
    },
    Attempt {
        name: "slow header",
        expected: "a request header that never ends does not keep others out",
        run: |target| Box::pin(slow_header(target)),
    },
    Attempt {
        name: "HTTP smuggling",
        expected: "a request with two lengths or a bad one is 400 and hides no second request",
        run: |target| Box::pin(smuggling(target)),
    },
    Attempt {
        name: "HTTP/2 rapid reset",
        expected: "streams that are opened and reset are bounded",
        run: |target| Box::pin(flood(target, rapid_reset)),
    },
    Attempt {
        name: "HTTP/2 continuation flood",
        expected: "a header block without an end is cut off",
        run: |target| Box::pin(flood(target, continuations)),
    },
    Attempt {
        name: "HTTP/2 ping and settings flood",
        expected: "frames that want an answer do not pile up",
        run: |target| Box::pin(flood(target, pings)),
    },
    Attempt {
        name: "HTTP/2 window of zero",
        expected: "a connection whose large responses are not read is closed, although it sends pings",
        run: |target| Box::pin(zero_window(target)),
    },
];

fn address(target: &Target) -> &str {
    target.access.url.trim_start_matches("https://")
}

/// A TLS connection with the administrator's certificate.
fn connect(target: &Target, protocol: &[u8]) -> Result<Stream> {
    let mut config: ClientConfig = api::tls_config(&target.access)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    let tcp = TcpStream::connect(address(target))?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    tcp.set_write_timeout(Some(PATIENCE))?;
    let name = ServerName::try_from("127.0.0.1").context("a name")?;
    Ok(StreamOwned::new(ClientConnection::new(Arc::new(config), name)?, tcp))
}

async fn idle(target: &Target) -> Result<()> {
    let mut silent = Vec::new();
    for _ in 0..300 {
        match TcpStream::connect(address(target)) {
            Ok(stream) => silent.push(stream),
            Err(_) => break,
        }
    }
    served(target).await?;
    drop(silent);
    served(target).await
}

/// Waits until a new connection is served.
async fn served(target: &Target) -> Result<()> {
    wait::until("a new connection is served", Duration::from_secs(90), || async {
        let reply = Api::new(&target.access, Http::One)?.get("/readyz").await?;
        Ok(reply.status.is_success().then_some(()))
    })
    .await
}

async fn slow_header(target: &Target) -> Result<()> {
    let mut slow = Vec::new();
    for _ in 0..100 {
        let Ok(mut stream) = connect(target, b"http/1.1") else { break };
        if stream.write_all(b"GET /version HTTP/1.1\r\nHost: x\r\nX-Slow: ").is_err() {
            break;
        }
        slow.push(stream);
    }
    served(target).await?;
    drop(slow);
    served(target).await
}

async fn smuggling(target: &Target) -> Result<()> {
    const HIDDEN: &str = "GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n";
    let heads = [
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: +4",
        "Content-Length: 4, 5",
        "Content-Length: 4x",
        "Content-Length: -1",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow",
        "Content-Length: 99999999999999999999999",
    ];
    for head in heads {
        let text = format!("POST /version HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n0\r\n\r\n{HIDDEN}");
        let answer = exchange(target, text.as_bytes())?;
        ensure!(!answer.contains("SecretList"), "{head}: the hidden request was answered: {answer}");
        ensure!(!answer.starts_with("HTTP/1.1 2"), "{head}: accepted: {answer}");
    }
    let bodies = ["-5\r\nx", "0x5\r\nhello\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\nx", ";\r\n\r\n"];
    for body in bodies {
        let head = "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
        let text = format!("{head}Transfer-Encoding: chunked\r\n\r\n{body}\r\n{HIDDEN}");
        let answer = exchange(target, text.as_bytes())?;
        ensure!(!answer.contains("SecretList"), "{body:?}: the hidden request was answered: {answer}");
    }
    for raw in [
        "GET /version HTTP/1.1\r\nHost: x\r\nA\0: b\r\n\r\n",
        "GET /version\r\n\r\n",
        "GET  /version HTTP/1.1\r\n\r\n",
    ] {
        let answer = exchange(target, raw.as_bytes())?;
        ensure!(!answer.starts_with("HTTP/1.1 2"), "{raw:?}: accepted: {answer}");
    }
    Ok(())
}

/// Sends bytes and reads until the server closes or falls silent.
fn exchange(target: &Target, request: &[u8]) -> Result<String> {
    let mut stream = connect(target, b"http/1.1")?;
    stream.sock.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut answer = Vec::new();
    if stream.write_all(request).is_ok() {
        let _ = stream.flush();
        let mut buffer = [0; 4096];
        while let Ok(count) = stream.read(&mut buffer) {
            answer.extend_from_slice(&buffer[..count]);
            if count == 0 || answer.len() > 64 * 1024 {
                break;
            }
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// What a client of HTTP/2 says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Opens HTTP/2 connections and floods them until the server closes them.
async fn flood(target: &Target, frames: fn(u32) -> Vec<u8>) -> Result<()> {
    for _ in 0..3 {
        let mut stream = connect(target, b"h2")?;
        stream.write_all(PREFACE)?;
        stream.write_all(&frame(4, 0, 0, &[]))?;
        for round in 0..20_000 {
            // The server may have closed it, or stopped reading: both are right.
            if stream.write_all(&frames(round)).is_err() {
                break;
            }
        }
    }
    served(target).await
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// `GET / https` with the authority `x`, in HPACK.
const HEADERS: &[u8] = &[0x82, 0x87, 0x84, 0x41, 1, b'x'];

fn rapid_reset(round: u32) -> Vec<u8> {
    let stream = round * 2 + 1;
    let mut out = frame(1, 0x5, stream, HEADERS);
    out.extend(frame(3, 0, stream, &8u32.to_be_bytes()));
    out
}

fn continuations(round: u32) -> Vec<u8> {
    // Headers without END_HEADERS, then literals without indexing.
    let mut literal = vec![0x00, 1, b'a', 0x7f, 0x81, 0x7d];
    literal.resize(literal.len() + 16_000, b'v');
    if round == 0 { frame(1, 0x1, 1, HEADERS) } else { frame(9, 0, 1, &literal) }
}

fn pings(round: u32) -> Vec<u8> {
    let mut out = frame(6, 0, 0, &u64::from(round).to_be_bytes());
    out.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0x10, 0]));
    out
}

/// Asks for a large object on every stream, reads none of it, and keeps the connection busy.
async fn zero_window(target: &Target) -> Result<()> {
    const STREAMS: u32 = 250;
    let object = json!({"metadata": {"name": "unread"}, "data": {"text": "x".repeat(300_000)}});
    target.api.post("/api/v1/namespaces/default/configmaps", &object).await?.success()?;
    let mut stream = connect(target, b"h2")?;
    stream.sock.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(PREFACE)?;
    stream.write_all(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]))?;
    let headers = headers_of("/api/v1/namespaces/default/configmaps/unread", "application/yaml");
    for n in 0..STREAMS {
        stream.write_all(&frame(1, 0x5, n * 2 + 1, &headers))?;
    }
    let began = Instant::now();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let sent = stream.write_all(&frame(6, 0, 0, &[0; 8])).and_then(|()| stream.flush());
        match sent.and_then(|()| stream.read(&mut buffer)) {
            Ok(0) => break,
            Ok(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        let open = began.elapsed();
        ensure!(open < UNREAD, "the connection is open after {open:.0?}, with {STREAMS} responses unread");
    }
    served(target).await
}

/// `GET` of a path below 128 bytes, in HPACK.
fn headers_of(path: &str, accept: &str) -> Vec<u8> {
    let mut out = vec![0x82, 0x87, 0x41, 1, b'x'];
    for (name, value) in [(&[0x04_u8][..], path), (&[0x0f, 0x04][..], accept)] {
        out.extend_from_slice(name);
        out.push(u8::try_from(value.len()).unwrap_or(0x7f) & 0x7f);
        out.extend_from_slice(value.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_length_type_flags_and_stream() {
        assert_eq!(frame(6, 1, 3, b"ab"), [0, 0, 2, 6, 1, 0, 0, 0, 3, b'a', b'b']);
    }
}
