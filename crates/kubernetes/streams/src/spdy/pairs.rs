//! Streams that are open, and how they become pairs.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

use super::frame::{self, Reset};
use super::headers::Headers;
use crate::Stream;

/// Most streams at once.
const MOST_STREAMS: usize = 256;
/// Pieces from the client that wait for a port.
const WAITING: usize = 8;
/// Bytes read from a port at once.
const PIECE: usize = 32 * 1024;

/// The streams of a connection.
#[derive(Clone, Default)]
pub(super) struct Pairs(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    /// The highest stream so far; the next must be higher.
    last: u32,
    streams: HashMap<u32, OpenStream>,
    /// Halves that wait for the other.
    halves: HashMap<String, Half>,
}

enum OpenStream {
    /// Clients say nothing on it.
    Error,
    /// Bytes for a port.
    Data {
        /// None once the client has sent its last.
        inward: Option<mpsc::Sender<Vec<u8>>>,
        /// The client has given the stream up.
        given_up: Arc<Notify>,
        /// Whether anybody takes the bytes yet.
        paired: bool,
    },
}

#[derive(Default)]
struct Half {
    port: u16,
    error: Option<u32>,
    data: Option<(u32, mpsc::Receiver<Vec<u8>>, Arc<Notify>)>,
}

/// A port that can be carried.
pub(super) struct Pair {
    pub data: u32,
    pub error: u32,
    pub port: u16,
    inward: mpsc::Receiver<Vec<u8>>,
    given_up: Arc<Notify>,
}

impl Pairs {
    /// Takes a stream on; a pair if it was the second of one.
    pub fn open(&self, id: u32, fin: bool, headers: &Headers) -> Result<Option<Pair>, Reset> {
        let header =
            |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let port = header("port").and_then(|port| port.parse::<u16>().ok()).filter(|port| *port > 0);
        let port = port.ok_or(Reset::Protocol)?;
        let mut open = self.0.lock();
        if id.is_multiple_of(2) || id <= open.last {
            return Err(Reset::Protocol);
        }
        open.last = id;
        if open.streams.len() >= MOST_STREAMS {
            return Err(Reset::Refused);
        }
        let is_data = match header("streamtype") {
            Some("data") => true,
            Some("error") => false,
            _ => return Err(Reset::Protocol),
        };
        // Old clients name no pair: they open the error stream and then at once the other.
        let request = header("requestid")
            .map_or_else(|| if is_data { id.wrapping_sub(2) } else { id }.to_string(), Into::into);
        let half = open.halves.entry(request.clone()).or_insert_with(|| Half { port, ..Half::default() });
        if half.port != port || if is_data { half.data.is_some() } else { half.error.is_some() } {
            return Err(Reset::Protocol);
        }
        if is_data {
            let (sender, receiver) = mpsc::channel(WAITING);
            let given_up = Arc::new(Notify::new());
            half.data = Some((id, receiver, given_up.clone()));
            let inward = (!fin).then_some(sender);
            open.streams.insert(id, OpenStream::Data { inward, given_up, paired: false });
        } else {
            half.error = Some(id);
            open.streams.insert(id, OpenStream::Error);
        }
        Ok(open.take_pair(&request))
    }

    /// Hands bytes to their port, waiting until it takes them.
    pub async fn receive(&self, id: u32, fin: bool, bytes: Vec<u8>) -> Result<(), Reset> {
        let (inward, paired) = match self.0.lock().streams.get_mut(&id) {
            // Bytes may cross with the end of their stream.
            None | Some(OpenStream::Error) => return Ok(()),
            Some(OpenStream::Data { inward, paired, .. }) => {
                let sender = if fin { inward.take() } else { inward.clone() };
                (sender.ok_or(Reset::Protocol)?, *paired)
            }
        };
        if bytes.is_empty() {
            return Ok(());
        }
        if paired {
            // A port that is done takes nothing more.
            let _ = inward.send(bytes).await;
            return Ok(());
        }
        // To wait here would be to wait for a stream that cannot be opened meanwhile.
        inward.try_send(bytes).map_err(|_| {
            self.reset(id);
            Reset::FlowControl
        })
    }

    /// The client gives a stream up.
    pub fn reset(&self, id: u32) {
        let mut open = self.0.lock();
        match open.streams.get(&id) {
            Some(OpenStream::Data { given_up, paired: true, .. }) => given_up.notify_one(),
            Some(OpenStream::Data { paired: false, .. } | OpenStream::Error) => {
                open.streams.remove(&id);
                open.halves.retain(|_, half| {
                    half.error.take_if(|error| *error == id);
                    half.data.take_if(|data| data.0 == id);
                    half.error.is_some() || half.data.is_some()
                });
            }
            None => {}
        }
    }

    /// A pair is done.
    pub fn forget(&self, data: u32, error: u32) {
        let mut open = self.0.lock();
        open.streams.remove(&data);
        open.streams.remove(&error);
    }
}

impl Open {
    fn take_pair(&mut self, request: &str) -> Option<Pair> {
        let half = self.halves.get_mut(request)?;
        let error = half.error?;
        let (data, inward, given_up) = half.data.take()?;
        let port = half.port;
        self.halves.remove(request);
        if let Some(OpenStream::Data { paired, .. }) = self.streams.get_mut(&data) {
            *paired = true;
        }
        Some(Pair { data, error, port, inward, given_up })
    }
}

impl Pair {
    /// Carries bytes until the Pod's end closes or the client gives up.
    pub async fn exchange(
        mut self,
        stream: Box<dyn Stream>,
        outgoing: &mpsc::Sender<Vec<u8>>,
    ) -> io::Result<()> {
        let (mut from_pod, mut to_pod) = tokio::io::split(stream);
        let inward = async {
            while let Some(bytes) = self.inward.recv().await {
                to_pod.write_all(&bytes).await?;
                to_pod.flush().await?;
            }
            // The client has said its last and may still listen.
            to_pod.shutdown().await?;
            std::future::pending().await
        };
        let outward = async {
            let mut buffer = vec![0; PIECE];
            loop {
                match from_pod.read(&mut buffer).await? {
                    0 => return Ok(()),
                    // Nobody listens any more once the client is gone.
                    read => drop(outgoing.send(frame::data(self.data, false, &buffer[..read])).await),
                }
            }
        };
        tokio::select! {
            biased;
            () = self.given_up.notified() => Ok(()),
            ended = outward => ended,
            ended = inward => ended,
        }
    }
}
