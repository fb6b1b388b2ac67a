//! The other side: one port of a Pod, through a server that speaks SPDY alone.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::frame::{self, Frame, Reader, Writer};

/// The two streams of the one pair there is.
const ERROR: u32 = 1;
const DATA: u32 = 3;
/// Bytes read at once.
const PIECE: usize = 16 * 1024;

/// Opens a port over a connection that has been upgraded to [`UPGRADE`](super::UPGRADE), and carries bytes between it and a
/// stream until either ends.
pub async fn forward(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin,
    port: u16,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
) -> io::Result<()> {
    let (from_server, mut to_server) = tokio::io::split(socket);
    let (mut from_client, mut to_client) = tokio::io::split(stream);
    let (port, mut writer) = (port.to_string(), Writer::default());
    let mut open =
        |id, kind| writer.open(id, &[("streamtype", kind), ("port", port.as_str()), ("requestid", "0")]);
    // Nothing is said on the stream of errors.
    for frame in [open(ERROR, "error"), frame::data(ERROR, true, &[]), open(DATA, "data")] {
        to_server.write_all(&frame).await?;
    }
    to_server.flush().await?;
    // Pings are answered by the half that writes.
    let (pings, mut pinged) = mpsc::channel::<u32>(4);
    let inward = async {
        let mut reader = Reader::new(from_server);
        while let Some(frame) = reader.read().await? {
            match frame {
                Frame::Data { id: DATA, fin, bytes } => {
                    to_client.write_all(&bytes).await?;
                    to_client.flush().await?;
                    if fin {
                        return Ok(());
                    }
                }
                Frame::Data { id: ERROR, bytes, .. } if !bytes.is_empty() => {
                    return Err(io::Error::other(String::from_utf8_lossy(&bytes).into_owned()));
                }
                Frame::Reset(_) => return Err(io::Error::other("the server gave the stream up")),
                // Odd numbers are answers to pings of ours, and we send none.
                Frame::Ping(id) if id % 2 == 0 => drop(pings.send(id).await),
                Frame::GoAway => return Ok(()),
                Frame::Open { .. } | Frame::Data { .. } | Frame::Ping(_) => {}
            }
        }
        Ok(())
    };
    let outward = async {
        let mut buffer = vec![0; PIECE];
        loop {
            let frame = tokio::select! {
                biased;
                Some(id) = pinged.recv() => frame::ping(id),
                read = from_client.read(&mut buffer) => match read? {
                    0 => return to_server.write_all(&frame::data(DATA, true, &[])).await,
                    read => frame::data(DATA, false, &buffer[..read]),
                },
            };
            to_server.write_all(&frame).await?;
            to_server.flush().await?;
        }
    };
    tokio::select! {
        biased;
        ended = inward => ended,
        ended = outward => ended,
    }
}
