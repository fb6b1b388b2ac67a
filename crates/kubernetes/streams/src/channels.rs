//! Ports as pairs of channels in one WebSocket: bytes on the even one, an error on the odd one. The first message of
//! each repeats its port. One direction of a port cannot be ended alone.

use std::io;

use futures::{FutureExt, future};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::Target;
use crate::websocket::{self, Message, Reader, Side};

/// How clients ask for it.
pub const PROTOCOL: &str = "v4.channel.k8s.io";

/// Most ports of one WebSocket: two channels each, numbered with a byte.
pub const MOST_PORTS: usize = 128;

/// Bytes read from a port at once.
const PIECE: usize = 32 * 1024;
/// Messages that wait for the socket or for a port.
const WAITING: usize = 8;

/// A frame for the client: its opcode and content.
type Outgoing = (u8, Vec<u8>);

/// Carries bytes until the client leaves or all ports are done. Ports beyond [`MOST_PORTS`] are not served.
pub async fn serve(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin,
    target: &Target,
    ports: &[u16],
) -> io::Result<()> {
    let (from_client, mut to_client) = tokio::io::split(socket);
    let (outgoing, mut queue) = mpsc::channel::<Outgoing>(WAITING);
    let (inward, carriers): (Vec<_>, Vec<_>) = (0u8..)
        .zip(ports.iter().take(MOST_PORTS))
        .map(|(index, port)| {
            let (sender, receiver) = mpsc::channel(WAITING);
            let port = Port { target, port: *port, data: index * 2, outgoing: outgoing.clone() };
            (sender, port.carry(receiver))
        })
        .unzip();
    let reading = read(from_client, inward, outgoing.downgrade());
    // From here on only ports hold the queue open: it ends with the last of them, everything written.
    drop(outgoing);
    let writing = async {
        while let Some((opcode, content)) = queue.recv().await {
            websocket::write(&mut to_client, Side::Server, opcode, [&content, &[]]).await?;
        }
        websocket::close(&mut to_client, Side::Server).await
    };
    let working = future::try_join(future::join_all(carriers).map(Ok), writing);
    tokio::select! {
        biased;
        ended = working => ended.map(drop),
        ended = reading => ended,
    }
}

/// Hands messages to their ports until the client leaves.
async fn read(
    from_client: impl AsyncRead + Unpin,
    ports: Vec<mpsc::Sender<Vec<u8>>>,
    outgoing: mpsc::WeakSender<Outgoing>,
) -> io::Result<()> {
    let mut reader = Reader::new(from_client, Side::Server);
    loop {
        match reader.read().await? {
            Message::Close => return Ok(()),
            Message::Ping(content) => {
                let Some(outgoing) = outgoing.upgrade() else { return Ok(()) };
                let _ = outgoing.send((websocket::PONG, content)).await;
            }
            Message::Data(mut data) => {
                let Some(&channel) = data.first() else { continue };
                // Clients have nothing to say on the channels of errors.
                if channel % 2 == 0
                    && let Some(port) = ports.get(usize::from(channel / 2))
                {
                    data.remove(0);
                    // A port that is done takes nothing more.
                    let _ = port.send(data).await;
                }
            }
        }
    }
}

struct Port<'a> {
    target: &'a Target,
    port: u16,
    /// The channel of its bytes; that of its error is the next.
    data: u8,
    outgoing: mpsc::Sender<Outgoing>,
}

impl Port<'_> {
    /// Connects, carries bytes until the Pod's end closes, and says why if it could not.
    async fn carry(self, from_client: mpsc::Receiver<Vec<u8>>) {
        for channel in [self.data, self.data + 1] {
            self.say(channel, &self.port.to_le_bytes()).await;
        }
        if let Err(why) = self.exchange(from_client).await {
            self.say(self.data + 1, why.as_bytes()).await;
        }
    }

    async fn exchange(&self, mut from_client: mpsc::Receiver<Vec<u8>>) -> Result<(), String> {
        let stream = self.target.connect(self.port).await?;
        let (mut from_pod, mut to_pod) = tokio::io::split(stream);
        let inward = async {
            while let Some(bytes) = from_client.recv().await {
                to_pod.write_all(&bytes).await?;
                to_pod.flush().await?;
            }
            // The client is gone, and so is whoever polls this.
            future::pending().await
        };
        let outward = async {
            let mut buffer = vec![0; PIECE];
            loop {
                match from_pod.read(&mut buffer).await? {
                    0 => return Ok(()),
                    read => self.say(self.data, &buffer[..read]).await,
                }
            }
        };
        let ended: io::Result<()> = tokio::select! {
            biased;
            ended = outward => ended,
            ended = inward => ended,
        };
        ended.map_err(|error| self.target.failure(self.port, &error))
    }

    async fn say(&self, channel: u8, content: &[u8]) {
        // Nobody listens any more once the client is gone.
        let _ = self.outgoing.send((websocket::BINARY, [&[channel], content].concat())).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::future::BoxFuture;

    use super::*;
    use crate::{PodStreamError, PodStreams, Stream};

    /// Port 7 answers in capitals and closes after a full stop; nothing else listens.
    struct Shouting;

    impl PodStreams for Shouting {
        fn connect<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            port: u16,
        ) -> BoxFuture<'a, Result<Box<dyn Stream>, PodStreamError>> {
            Box::pin(async move {
                if port != 7 {
                    return Err(PodStreamError::Refused);
                }
                let (near, mut far) = tokio::io::duplex(64);
                tokio::spawn(async move {
                    while let Ok(byte) = far.read_u8().await
                        && byte != b'.'
                    {
                        far.write_u8(byte.to_ascii_uppercase()).await.expect("sent");
                    }
                });
                Ok(Box::new(near) as Box<dyn Stream>)
            })
        }
    }

    /// Everything sent to a client, by channel, after it wrote to channel 0.
    async fn heard(ports: Vec<u16>, said: &[u8]) -> Vec<String> {
        let target = Target { pods: Arc::new(Shouting), namespace: "n".into(), pod: "p".into() };
        let (socket, mut client) = tokio::io::duplex(4096);
        let count = ports.len() * 2;
        let serving = tokio::spawn(async move { serve(socket, &target, &ports).await });
        websocket::write(&mut client, Side::Client, websocket::BINARY, [&[0], said]).await.expect("sent");
        let mut reader = Reader::new(client, Side::Client);
        let mut heard = vec![String::new(); count];
        loop {
            match reader.read().await.expect("read") {
                Message::Data(data) => heard[usize::from(data[0])] += &String::from_utf8_lossy(&data[1..]),
                Message::Ping(_) => panic!("nobody pings"),
                Message::Close => break,
            }
        }
        serving.await.expect("no panic").expect("a good end");
        heard
    }

    #[tokio::test]
    async fn a_port_ends_when_its_pod_does_and_another_reports_why_it_cannot_be_reached() {
        let heard = heard(vec![7, 9], b"hello.").await;
        let refused = "error forwarding port 9 to pod p: connection refused";
        assert_eq!(heard, ["\u{7}\0HELLO", "\u{7}\0", "\t\0", &format!("\t\0{refused}")]);
    }
}
