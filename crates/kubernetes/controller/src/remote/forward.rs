//! Streams to ports of Pods through the API server.

use std::io;

use bytes::Bytes;
use capstan_object::Key;
use http::{Request, StatusCode, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Remote;
use super::websocket::{self, Frame};
use crate::workload::Stream;

/// Channels of the one port that is asked for.
const DATA: u8 = 0;
const ERROR: u8 = 1;

impl Remote {
    /// A stream to a port of a Pod.
    pub async fn port_forward(&self, pod: &Key, port: u16) -> io::Result<Box<dyn Stream>> {
        let other = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
        let stream = self.connect(true).await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| other(&error))?;
        tokio::spawn(connection.with_upgrades());
        let path = format!("/api/v1/namespaces/{}/pods/{}/portforward?ports={port}", pod.namespace, pod.name);
        let mut request = Request::builder()
            .uri(path)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            // Proves only that the other side speaks WebSocket.
            .header(header::SEC_WEBSOCKET_KEY, "Y2Fwc3RhbiBmb3J3YXJkcw==")
            .header(header::SEC_WEBSOCKET_PROTOCOL, "v4.channel.k8s.io")
            .body(Empty::<Bytes>::new())
            .map_err(|error| other(&error))?;
        self.address(&mut request, false).map_err(|error| other(&error))?;
        let response = sender.send_request(request).await.map_err(|error| other(&error))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(io::Error::other(format!("port-forward was answered with {}", response.status())));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(|error| other(&error))?;
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            if let Err(error) = pump(TokioIo::new(upgraded), far).await {
                tracing::debug!(%error, "a forwarded port was closed");
            }
        });
        Ok(Box::new(near))
    }
}

/// Carries bytes both ways until one side ends.
async fn pump(
    socket: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin,
    stream: tokio::io::DuplexStream,
) -> io::Result<()> {
    let (mut from_server, mut to_server) = tokio::io::split(socket);
    let (mut from_client, mut to_client) = tokio::io::split(stream);
    // Pings are answered by the half that writes.
    let (pings, mut pinged) = tokio::sync::mpsc::channel::<Vec<u8>>(4);
    let inward = async {
        let mut announced = [false; 2];
        loop {
            match websocket::read(&mut from_server).await? {
                Frame::Close => return Ok::<_, io::Error>(()),
                Frame::Ping(content) => drop(pings.send(content).await),
                Frame::Data(data) => {
                    let Some((channel, rest)) = data.split_first() else { continue };
                    // The first message of a channel repeats the port.
                    if let Some(seen) = announced.get_mut(usize::from(*channel))
                        && !std::mem::replace(seen, true)
                        && rest.len() == 2
                    {
                        continue;
                    }
                    match *channel {
                        DATA => to_client.write_all(rest).await?,
                        ERROR => return Err(io::Error::other(String::from_utf8_lossy(rest).into_owned())),
                        _ => {}
                    }
                }
            }
        }
    };
    let outward = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                biased;
                Some(content) = pinged.recv() => {
                    websocket::write(&mut to_server, websocket::PONG, [&content, &[]]).await?;
                }
                read = from_client.read(&mut buffer) => match read? {
                    0 => return websocket::write(&mut to_server, websocket::CLOSE, [&[], &[]]).await,
                    read => {
                        websocket::write(&mut to_server, websocket::BINARY, [&[DATA], &buffer[..read]]).await?;
                    }
                },
            }
        }
    };
    tokio::select! {
        biased;
        ended = inward => ended,
        ended = outward => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_travel_both_ways_and_an_error_ends_the_stream() {
        let (client_side, mut server) = tokio::io::duplex(4096);
        let (mut near, far) = tokio::io::duplex(4096);
        let pumping = tokio::spawn(pump(client_side, far));
        for channel in [DATA, ERROR] {
            websocket::write(&mut server, websocket::BINARY, [&[channel], &2379u16.to_le_bytes()])
                .await
                .expect("sent");
        }
        near.write_all(b"hello").await.expect("sent");
        let Frame::Data(data) = websocket::read(&mut server).await.expect("read") else { panic!("data") };
        assert_eq!(data, b"\0hello");
        websocket::write(&mut server, websocket::BINARY, [&[DATA], b"world"]).await.expect("sent");
        let mut answer = [0; 5];
        near.read_exact(&mut answer).await.expect("read");
        assert_eq!(&answer, b"world");
        websocket::write(&mut server, websocket::BINARY, [&[ERROR], b"refused"]).await.expect("sent");
        let error = pumping.await.expect("no panic").expect_err("an error");
        assert_eq!(error.to_string(), "refused");
    }
}
