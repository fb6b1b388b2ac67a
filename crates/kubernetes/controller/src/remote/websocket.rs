//! As much of WebSocket (RFC 6455) as port-forward needs: binary messages of one frame or several.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest frame taken.
const MOST: u64 = 16 << 20;

/// A frame that matters.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Data, or a part of it.
    Data(Vec<u8>),
    /// To be answered with a pong of the same content.
    Ping(Vec<u8>),
    /// The end.
    Close,
}

/// Reads the next frame that matters.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head).await?;
        let mut length = u64::from(head[1] & 0x7f);
        if length == 126 {
            length = u64::from(stream.read_u16().await?);
        } else if length == 127 {
            length = stream.read_u64().await?;
        }
        if length > MOST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a WebSocket frame is too long"));
        }
        let mut mask = [0; 4];
        if head[1] & 0x80 != 0 {
            stream.read_exact(&mut mask).await?;
        }
        let mut payload = vec![0; usize::try_from(length).unwrap_or(0)];
        stream.read_exact(&mut payload).await?;
        for (at, byte) in payload.iter_mut().enumerate() {
            *byte ^= mask[at % 4];
        }
        match head[0] & 0x0f {
            0..=2 => return Ok(Frame::Data(payload)),
            8 => return Ok(Frame::Close),
            9 => return Ok(Frame::Ping(payload)),
            _ => {}
        }
    }
}

/// Opcodes of frames that are written.
pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PONG: u8 = 10;

/// Writes a frame as clients do, masked. The mask guards proxies that read plain text; inside TLS it may be zero.
pub(super) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    opcode: u8,
    parts: [&[u8]; 2],
) -> io::Result<()> {
    let length = parts[0].len() + parts[1].len();
    let mut frame = Vec::with_capacity(length + 14);
    frame.push(0x80 | opcode);
    match length {
        0..=125 => frame.push(0x80 | length as u8),
        126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(parts[0]);
    frame.extend_from_slice(parts[1]);
    stream.write_all(&frame).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_of_every_length_come_back_as_they_went() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let data = vec![7; length];
            let (mut near, mut far) = tokio::io::duplex(200_000);
            write(&mut near, BINARY, [&[0], &data]).await.expect("written");
            let Frame::Data(read) = read(&mut far).await.expect("read") else { panic!("data") };
            assert_eq!((read[0], &read[1..]), (0, &data[..]), "{length}");
        }
    }

    #[tokio::test]
    async fn a_frame_that_claims_to_be_endless_is_refused() {
        let (mut near, mut far) = tokio::io::duplex(64);
        near.write_all(&[0x82, 127]).await.expect("written");
        near.write_u64(u64::MAX).await.expect("written");
        assert!(read(&mut far).await.is_err());
    }
}
