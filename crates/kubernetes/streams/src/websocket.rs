//! As much of WebSocket (RFC 6455) as port-forward needs: messages of bytes, from either side.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest message taken; those who forward ports send pieces of some 32 KiB.
const MOST: usize = 1 << 20;
/// Longest content of a ping, as the protocol has it.
const MOST_CONTROL: usize = 125;

/// Opcode of a message of bytes.
pub const BINARY: u8 = 2;
/// Opcode of the last frame.
pub const CLOSE: u8 = 8;
/// Opcode of the answer to a ping.
pub const PONG: u8 = 10;

/// Which end of a connection this is: clients mask what they send, servers do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that connected.
    Client,
    /// The end that was connected to.
    Server,
}

/// A message that matters.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// Data, put together if it came in parts.
    Data(Vec<u8>),
    /// To be answered with a pong of the same content.
    Ping(Vec<u8>),
    /// The end.
    Close,
}

/// Reads messages.
pub struct Reader<R> {
    stream: R,
    side: Side,
    /// What has come of a message that comes in parts.
    partial: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads as one end of the connection.
    pub fn new(stream: R, side: Side) -> Self {
        Self { stream, side, partial: None }
    }

    /// The next message that matters. Must not be abandoned half way.
    pub async fn read(&mut self) -> io::Result<Message> {
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head).await?;
            let (last, opcode) = (head[0] & 0x80 != 0, head[0] & 0x0f);
            if head[0] & 0x70 != 0 {
                return Err(invalid("a WebSocket frame uses an extension that was not negotiated"));
            }
            let masked = head[1] & 0x80 != 0;
            if masked != (self.side == Side::Server) {
                return Err(invalid("a WebSocket frame is masked by the wrong side"));
            }
            let had = self.partial.as_ref().map_or(0, Vec::len);
            let most = if opcode >= CLOSE { MOST_CONTROL } else { MOST - had };
            let payload = self.payload(head[1] & 0x7f, masked, most).await?;
            match opcode {
                CLOSE => return Ok(Message::Close),
                9 => return Ok(Message::Ping(payload)),
                0..=2 => {
                    if (opcode == 0) != self.partial.is_some() {
                        return Err(invalid("a WebSocket message begins inside another"));
                    }
                    let mut whole = self.partial.take().unwrap_or_default();
                    whole.extend_from_slice(&payload);
                    if last {
                        return Ok(Message::Data(whole));
                    }
                    self.partial = Some(whole);
                }
                // Pongs nobody asked for, and what later versions may invent.
                _ => {}
            }
        }
    }

    async fn payload(&mut self, length: u8, masked: bool, most: usize) -> io::Result<Vec<u8>> {
        let length = match length {
            126 => u64::from(self.stream.read_u16().await?),
            127 => self.stream.read_u64().await?,
            length => u64::from(length),
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= most);
        let length = length.ok_or_else(|| invalid("a WebSocket message is too long"))?;
        let mut mask = [0; 4];
        if masked {
            self.stream.read_exact(&mut mask).await?;
        }
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await?;
        for (at, byte) in payload.iter_mut().enumerate() {
            *byte ^= mask[at % 4];
        }
        Ok(payload)
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Writes a message as one frame. The mask of clients guards proxies that read plain text; inside TLS it may be
/// zero.
pub async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    side: Side,
    opcode: u8,
    parts: [&[u8]; 2],
) -> io::Result<()> {
    let length = parts[0].len() + parts[1].len();
    let mask = if side == Side::Client { 0x80 } else { 0 };
    let mut frame = Vec::with_capacity(length + 14);
    frame.push(0x80 | opcode);
    match length {
        0..=125 => frame.push(mask | length as u8),
        126..=0xffff => {
            frame.push(mask | 126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            frame.push(mask | 127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    if side == Side::Client {
        frame.extend_from_slice(&[0; 4]);
    }
    frame.extend_from_slice(parts[0]);
    frame.extend_from_slice(parts[1]);
    stream.write_all(&frame).await?;
    stream.flush().await
}

/// Writes the last frame, which says that nothing is wrong.
pub async fn close(stream: &mut (impl AsyncWrite + Unpin), side: Side) -> io::Result<()> {
    const NORMAL: [u8; 2] = 1000u16.to_be_bytes();
    write(stream, side, CLOSE, [&NORMAL, &[]]).await
}

/// What a server answers to a client's `Sec-WebSocket-Key`.
pub fn accept(key: &[u8]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key);
    context.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(context.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_of_every_length_come_back_as_they_went() {
        for (from, to) in [(Side::Client, Side::Server), (Side::Server, Side::Client)] {
            for length in [0, 1, 125, 126, 65_535, 65_536] {
                let data = vec![7; length];
                let (mut near, far) = tokio::io::duplex(200_000);
                write(&mut near, from, BINARY, [&[0], &data]).await.expect("written");
                let mut reader = Reader::new(far, to);
                let Message::Data(read) = reader.read().await.expect("read") else { panic!("data") };
                assert_eq!((read[0], &read[1..]), (0, &data[..]), "{length}");
            }
        }
    }

    #[tokio::test]
    async fn a_message_in_parts_is_put_together_around_a_ping() {
        let (mut near, far) = tokio::io::duplex(200);
        for frame in [&[0x02, 2, b'a', b'b'][..], &[0x89, 1, b'p'], &[0x00, 1, b'c'], &[0x80, 1, b'd']] {
            near.write_all(frame).await.expect("written");
        }
        let mut reader = Reader::new(far, Side::Client);
        assert_eq!(reader.read().await.expect("read"), Message::Ping(b"p".to_vec()));
        assert_eq!(reader.read().await.expect("read"), Message::Data(b"abcd".to_vec()));
    }

    #[tokio::test]
    async fn frames_that_break_the_rules_are_refused() {
        let endless: Vec<u8> = [&[0x82, 127][..], &[0xff; 8]].concat();
        let table: [(&str, &[u8]); 5] = [
            ("claims to be endless", &endless),
            ("is masked by a server", &[0x82, 0x80, 0, 0, 0, 0]),
            ("uses an extension", &[0xc2, 0]),
            ("continues nothing", &[0x80, 0]),
            ("is a ping that is too long", &[0x89, 126, 0, 126]),
        ];
        for (what, frame) in table {
            let (mut near, far) = tokio::io::duplex(64);
            near.write_all(frame).await.expect("written");
            let error = Reader::new(far, Side::Client).read().await.expect_err(what);
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{what}");
        }
    }

    #[test]
    fn the_answer_to_a_key_is_that_of_the_standard() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
