//! Ports as pairs of SPDY/3.1 streams: bytes on one, an error on the other. Clients open both with headers that say
//! which port they mean and which pair they belong to.
//!
//! ```text
//! socket ─► Reader ─► streams by id ─► Pair::carry, one task each ─► queue of frames ─► socket
//! ```

mod client;
mod dictionary;
pub(crate) mod frame;
mod headers;
mod pairs;

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::frame::{Frame, Reader, Writer};
use self::pairs::{Pair, Pairs};
use crate::Target;
pub use client::forward;

/// How clients ask for it, in `Upgrade`.
pub const UPGRADE: &str = "SPDY/3.1";
/// What is spoken inside, in `X-Stream-Protocol-Version`.
pub const PROTOCOL: &str = "portforward.k8s.io";

/// Frames that wait for the socket.
const WAITING: usize = 8;

/// Carries bytes until the client leaves.
pub async fn serve(socket: impl AsyncRead + AsyncWrite + Send + Unpin, target: &Target) -> io::Result<()> {
    let (from_client, mut to_client) = tokio::io::split(socket);
    let (outgoing, mut queue) = mpsc::channel::<Vec<u8>>(WAITING);
    let reading = read(Reader::new(from_client), target, &outgoing);
    let writing = async {
        while let Some(frame) = queue.recv().await {
            to_client.write_all(&frame).await?;
            to_client.flush().await?;
        }
        Ok(())
    };
    tokio::select! {
        biased;
        ended = reading => ended,
        ended = writing => ended,
    }
}

async fn read(
    mut reader: Reader<impl AsyncRead + Unpin>,
    target: &Target,
    outgoing: &mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    let pairs = Pairs::default();
    let mut writer = Writer::default();
    // Tasks end with the connection.
    let mut tasks = JoinSet::new();
    let say = async |frame: Vec<u8>| drop(outgoing.send(frame).await);
    while let Some(frame) = reader.read().await? {
        match frame {
            Frame::Open { id, fin, headers } => {
                while tasks.try_join_next().is_some() {}
                match pairs.open(id, fin, &headers) {
                    Ok(whole) => {
                        say(writer.reply(id)).await;
                        if let Some(pair) = whole {
                            tasks.spawn(carry(pair, target.clone(), pairs.clone(), outgoing.clone()));
                        }
                    }
                    Err(why) => say(frame::reset(id, why)).await,
                }
            }
            Frame::Data { id, fin, bytes } => {
                if let Err(why) = pairs.receive(id, fin, bytes).await {
                    say(frame::reset(id, why)).await;
                }
            }
            Frame::Reset(id) => pairs.reset(id),
            // Even numbers are answers to pings of ours, and we send none.
            Frame::Ping(id) if id % 2 == 1 => say(frame::ping(id)).await,
            Frame::Ping(_) => {}
            Frame::GoAway => return Ok(()),
        }
    }
    Ok(())
}

/// Connects to a port, carries bytes until the Pod's end closes or the client gives up, and says why if it could not.
async fn carry(pair: Pair, target: Target, pairs: Pairs, outgoing: mpsc::Sender<Vec<u8>>) {
    let (data, error, port) = (pair.data, pair.error, pair.port);
    let exchanged = match target.connect(port).await {
        Ok(stream) => pair.exchange(stream, &outgoing).await.map_err(|error| target.failure(port, &error)),
        Err(why) => Err(why),
    };
    pairs.forget(data, error);
    let why = exchanged.err().unwrap_or_default();
    for frame in [frame::data(error, true, why.as_bytes()), frame::data(data, true, &[])] {
        // Nobody listens any more once the client is gone.
        let _ = outgoing.send(frame).await;
    }
}

#[cfg(test)]
mod tests;
