//! SPDY inside WebSocket, as kubectl forwards ports since 1.31: the messages are a stream of bytes, and where one
//! ends means nothing.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use crate::websocket::{self, Message, Reader, Side};
use crate::{Target, spdy};

/// How clients ask for it.
pub const PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";

/// Bytes between the two protocols.
const BUFFER: usize = 64 * 1024;
/// Pings that wait to be answered.
const PINGS: usize = 4;

/// Carries bytes until the client leaves.
pub async fn serve(socket: impl AsyncRead + AsyncWrite + Send + Unpin, target: &Target) -> io::Result<()> {
    let (near, far) = tokio::io::duplex(BUFFER);
    let (served, wrapped) = tokio::join!(spdy::serve(near, target), wrap(socket, far));
    served.and(wrapped)
}

/// Turns messages into bytes and bytes into messages until either side ends.
async fn wrap(socket: impl AsyncRead + AsyncWrite + Send + Unpin, bytes: DuplexStream) -> io::Result<()> {
    let (from_client, mut to_client) = tokio::io::split(socket);
    let (mut from_server, mut to_server) = tokio::io::split(bytes);
    let (pings, mut pinged) = mpsc::channel::<Vec<u8>>(PINGS);
    let inward = async {
        let mut reader = Reader::new(from_client, Side::Server);
        loop {
            match reader.read().await? {
                Message::Close => return Ok::<_, io::Error>(()),
                Message::Ping(content) => drop(pings.send(content).await),
                Message::Data(data) => to_server.write_all(&data).await?,
            }
        }
    };
    let outward = async {
        let mut buffer = vec![0; BUFFER];
        loop {
            tokio::select! {
                biased;
                Some(content) = pinged.recv() => {
                    websocket::write(&mut to_client, Side::Server, websocket::PONG, [&content, &[]]).await?;
                }
                read = from_server.read(&mut buffer) => match read? {
                    0 => return websocket::close(&mut to_client, Side::Server).await,
                    read => {
                        let parts = [&buffer[..read], &[]];
                        websocket::write(&mut to_client, Side::Server, websocket::BINARY, parts).await?;
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
