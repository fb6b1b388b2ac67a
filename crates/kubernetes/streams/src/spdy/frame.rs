//! Frames of SPDY/3.1.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::headers::{Headers, Inflater, Storer};

/// Longest control frame taken.
const MOST_CONTROL: usize = 16 * 1024;
/// Bytes of a data frame that are read at once: a frame may have 16 MiB.
const PIECE: usize = 32 * 1024;
const VERSION: u16 = 3;
const FIN: u8 = 1;

/// Why a stream is refused, as numbers of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    /// It makes no sense.
    Protocol = 1,
    /// There are too many.
    Refused = 3,
    /// It sends more than it may.
    FlowControl = 7,
}

/// A frame of the peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Opens a stream.
    Open {
        /// The stream.
        id: u32,
        /// Whether the sender will send nothing on it.
        fin: bool,
        headers: Headers,
    },
    /// Bytes of a stream, or a part of a longer frame.
    Data {
        /// The stream.
        id: u32,
        /// Whether they are the last.
        fin: bool,
        bytes: Vec<u8>,
    },
    /// The other side gives a stream up.
    Reset(u32),
    /// To be answered with the same.
    Ping(u32),
    /// The other side leaves.
    GoAway,
}

/// Reads frames.
pub(crate) struct Reader<R> {
    stream: R,
    inflater: Inflater,
    /// What has not been read of the current data frame.
    rest: Option<Rest>,
}

struct Rest {
    id: u32,
    fin: bool,
    length: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub fn new(stream: R) -> Self {
        Self { stream, inflater: Inflater::new(), rest: None }
    }

    /// The next frame that matters; none when the other side has ended the connection. Must not be abandoned half
    /// way.
    pub async fn read(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(rest) = self.rest.take() {
                return self.data(rest).await.map(Some);
            }
            let mut head = [0; 8];
            match self.stream.read_exact(&mut head).await {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
            let [a, b, c, d, flags, length @ ..] = head;
            let length = u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize;
            let first = u32::from_be_bytes([a, b, c, d]);
            if first >> 31 == 0 {
                self.rest = Some(Rest { id: first, fin: flags & FIN != 0, length });
                continue;
            }
            if (first >> 16 & 0x7fff) as u16 != VERSION {
                return Err(invalid("a SPDY frame is of another version"));
            }
            if length > MOST_CONTROL {
                return Err(invalid("a SPDY frame is too long"));
            }
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await?;
            if let Some(frame) = self.control(first as u16, flags, &payload)? {
                return Ok(Some(frame));
            }
        }
    }

    async fn data(&mut self, rest: Rest) -> io::Result<Frame> {
        let now = rest.length.min(PIECE);
        let mut bytes = vec![0; now];
        self.stream.read_exact(&mut bytes).await?;
        let last = now == rest.length;
        let (id, fin) = (rest.id, rest.fin);
        if !last {
            self.rest = Some(Rest { length: rest.length - now, ..rest });
        }
        Ok(Frame::Data { id, fin: fin && last, bytes })
    }

    fn control(&mut self, kind: u16, flags: u8, payload: &[u8]) -> io::Result<Option<Frame>> {
        let number = |at: usize| match payload.get(at..).and_then(|p| p.first_chunk()) {
            Some(bytes) => Ok(u32::from_be_bytes(*bytes) & 0x7fff_ffff),
            None => Err(invalid("a SPDY frame ends early")),
        };
        let mut headers = |at: usize| match payload.get(at..) {
            Some(block) => self.inflater.read(block),
            None => Err(invalid("a SPDY frame ends early")),
        };
        Ok(match kind {
            1 => Some(Frame::Open { id: number(0)?, fin: flags & FIN != 0, headers: headers(10)? }),
            // Replies and late headers say nothing here, but what follows may refer to them.
            2 | 8 => {
                headers(4)?;
                None
            }
            3 => Some(Frame::Reset(number(0)?)),
            6 => Some(Frame::Ping(number(0)?)),
            7 => Some(Frame::GoAway),
            // Settings and windows: upstream's implementation sends none and heeds none, on either side.
            _ => None,
        })
    }
}

/// Writes frames.
#[derive(Default)]
pub(super) struct Writer {
    storer: Storer,
}

impl Writer {
    /// Opens a stream.
    pub fn open(&mut self, id: u32, headers: &[(&str, &str)]) -> Vec<u8> {
        let block = self.storer.write(headers);
        // It belongs to no other stream and has no priority.
        control(1, &[&id.to_be_bytes(), &[0; 6], &block])
    }

    /// Takes a stream on.
    pub fn reply(&mut self, id: u32) -> Vec<u8> {
        let block = self.storer.write(&[]);
        control(2, &[&id.to_be_bytes(), &block])
    }
}

/// Refuses a stream, or ends it.
pub(super) fn reset(id: u32, why: Reset) -> Vec<u8> {
    control(3, &[&id.to_be_bytes(), &(why as u32).to_be_bytes()])
}

/// Answers a ping.
pub(super) fn ping(id: u32) -> Vec<u8> {
    control(6, &[&id.to_be_bytes()])
}

/// Bytes of a stream.
pub(super) fn data(id: u32, fin: bool, bytes: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(bytes.len() + 8);
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    frame[4] = if fin { FIN } else { 0 };
    frame.extend_from_slice(bytes);
    frame
}

fn control(kind: u16, parts: &[&[u8]]) -> Vec<u8> {
    let payload = parts.concat();
    let mut frame = Vec::with_capacity(payload.len() + 8);
    frame.extend_from_slice(&(0x8000 | VERSION).to_be_bytes());
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    frame.extend_from_slice(&payload);
    frame
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
