//! What upstream's client sends, and what it must hear.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::{PodStreamError, PodStreams, Stream};

/// Frames as Go's spdystream writes them at the beginning of a connection: two pairs for port 2379, each the error
/// stream and then the other. All headers are one zlib stream, so they only make sense in this order.
const OPEN: [&str; 4] = [
    "800300010000003e0000000100000000000078f9e3c6a7c202253a060606ce2248fc6482d22da30138e59514a526e6420b17d65450d0430a\
     ea22709e303236b704000000ffff",
    "800300010000001a00000003000000000000826a4617236418a8a44a04000000ffff",
    "800300010000001600000005000000000000224aaf210e8700000000ffff",
    "800300010000001500000007000000000000225333d86200000000ffff",
];
const HELLO_ON_3: &str = "000000030000000668656c6c6f2e";
const FIN_ON_3: &str = "0000000301000000";
const PING: &str = "800300060000000400000001";
const RESET_3: &str = "80030003000000080000000300000005";
const GO_AWAY: &str = "80030007000000080000000000000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Port 2379 answers in capitals, and when it has heard everything it says goodbye; nothing else listens.
struct Shouting;

impl PodStreams for Shouting {
    fn connect<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, PodStreamError>> {
        Box::pin(async move {
            if port != 2379 {
                return Err(PodStreamError::Refused);
            }
            let (near, mut far) = tokio::io::duplex(64);
            tokio::spawn(async move {
                while let Ok(byte) = far.read_u8().await {
                    far.write_u8(byte.to_ascii_uppercase()).await.expect("sent");
                }
                let _ = far.write_all(b"bye").await;
            });
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

struct Client {
    socket: DuplexStream,
    served: tokio::task::JoinHandle<io::Result<()>>,
}

impl Client {
    fn connect() -> Self {
        let target = Target { pods: Arc::new(Shouting), namespace: "n".into(), pod: "p".into() };
        let (socket, far) = tokio::io::duplex(1 << 16);
        Self { socket, served: tokio::spawn(async move { serve(far, &target).await }) }
    }

    async fn say(&mut self, frames: &[&str]) {
        for frame in frames {
            self.socket.write_all(&bytes(frame)).await.expect("sent");
        }
    }

    /// The next frame, as its kind or stream, its flags and its content.
    async fn hear(&mut self) -> (u32, u8, Vec<u8>) {
        let (first, rest) = (self.socket.read_u32().await.expect("a frame"), self.socket.read_u32().await);
        let rest = rest.expect("a frame");
        let mut content = vec![0; (rest & 0xff_ffff) as usize];
        self.socket.read_exact(&mut content).await.expect("its content");
        (first, (rest >> 24) as u8, content)
    }

    /// The next frames of a stream until its end, as text; those of other streams are dropped.
    async fn hear_out(&mut self, stream: u32) -> String {
        let mut text = String::new();
        loop {
            let (first, flags, content) = self.hear().await;
            if first == stream {
                text += &String::from_utf8_lossy(&content);
                if flags & 1 == 1 {
                    return text;
                }
            }
        }
    }

    /// Opens a stream without compressing its headers.
    async fn open(&mut self, storer: &mut headers::Storer, id: u32, headers: &[(&str, &str)]) {
        let payload = [&id.to_be_bytes()[..], &[0; 6], &storer.write(headers)].concat();
        let head = [&[0x80, 3, 0, 1, 0][..], &(payload.len() as u32).to_be_bytes()[1..]].concat();
        self.socket.write_all(&[head, payload].concat()).await.expect("sent");
    }

    async fn replied(&mut self, stream: u32) {
        let (kind, _, content) = self.hear().await;
        assert_eq!((kind, &content[..4]), (0x8003_0002, &stream.to_be_bytes()[..]));
        assert!(content.ends_with(&[0, 0, 0, 0xff, 0xff]), "Go reads no header that is not flushed");
    }
}

#[tokio::test]
async fn a_pair_of_streams_carries_a_port_until_both_ends_are_done() {
    let mut client = Client::connect();
    client.say(&OPEN[..2]).await;
    client.replied(1).await;
    client.replied(3).await;
    client.say(&[PING]).await;
    assert_eq!(client.hear().await, (0x8003_0006, 0, vec![0, 0, 0, 1]));
    client.say(&[HELLO_ON_3, FIN_ON_3]).await;
    let mut said = String::new();
    let mut errors = None;
    loop {
        let (stream, flags, content) = client.hear().await;
        let text = String::from_utf8(content).expect("text");
        match stream {
            1 => errors = Some((flags, text)),
            _ => said += &text,
        }
        if stream == 3 && flags == 1 {
            break;
        }
    }
    assert_eq!((said.as_str(), errors), ("HELLO.bye", Some((1, String::new()))));
    client.say(&[GO_AWAY]).await;
    client.served.await.expect("no panic").expect("a good end");
}

#[tokio::test]
async fn giving_up_the_bytes_ends_the_errors_too() {
    let mut client = Client::connect();
    client.say(&OPEN[..2]).await;
    client.say(&[RESET_3]).await;
    assert_eq!(client.hear_out(1).await, "");
    // The next pair is none the worse for it.
    client.say(&OPEN[2..]).await;
    client.say(&["00000007010000026869"]).await;
    assert_eq!(client.hear_out(7).await, "HIbye");
}

#[tokio::test]
async fn a_port_where_nothing_listens_says_why_on_the_stream_of_errors() {
    let mut client = Client::connect();
    let mut storer = headers::Storer::default();
    for (id, kind) in [(1u32, "error"), (3, "data")] {
        let headers = [("port", "9"), ("requestid", "0"), ("streamtype", kind)];
        client.open(&mut storer, id, &headers).await;
    }
    assert_eq!(client.hear_out(1).await, "error forwarding port 9 to pod p: connection refused");
    assert_eq!(client.hear_out(3).await, "");
}

#[tokio::test]
async fn streams_that_make_no_sense_are_refused_and_the_rest_goes_on() {
    type Case = (&'static str, u32, &'static [(&'static str, &'static str)]);
    let table: [Case; 6] = [
        ("has no port", 1, &[("streamtype", "data")]),
        ("has no port that exists", 3, &[("port", "70000"), ("streamtype", "data")]),
        ("is of no kind", 5, &[("port", "9"), ("streamtype", "other")]),
        ("is numbered as servers do", 6, &[("port", "9"), ("streamtype", "data")]),
        ("is numbered backwards", 5, &[("port", "9"), ("streamtype", "data")]),
        ("is good", 7, &[("port", "9"), ("streamtype", "error")]),
    ];
    let mut client = Client::connect();
    let mut storer = headers::Storer::default();
    for (what, id, headers) in table {
        client.open(&mut storer, id, headers).await;
        let (kind, _, content) = client.hear().await;
        let wanted = if what == "is good" { 0x8003_0002 } else { 0x8003_0003 };
        assert_eq!((kind, &content[..4]), (wanted, &id.to_be_bytes()[..]), "{what}");
    }
}

#[tokio::test]
async fn bytes_without_a_pair_are_kept_only_so_far() {
    let mut client = Client::connect();
    let headers = [("port", "9"), ("streamtype", "data")];
    client.open(&mut headers::Storer::default(), 1, &headers).await;
    client.replied(1).await;
    for _ in 0..9 {
        client.say(&["000000010000000161"]).await;
    }
    assert_eq!(client.hear().await, (0x8003_0003, 0, vec![0, 0, 0, 1, 0, 0, 0, 7]));
}

#[tokio::test]
async fn frames_that_break_the_rules_end_the_connection() {
    for (what, frame) in [
        ("of another version", "800200060000000400000001"),
        ("too long", "80030001ff000000"),
        ("without its header block", "8003000100000004000000ff"),
        ("with headers of another dictionary", "80030001000000100000000100000000000078f900000000"),
        ("with headers that are no zlib", "80030001000000100000000100000000000011223344556677"),
    ] {
        let mut client = Client::connect();
        client.say(&[frame]).await;
        drop(client.socket);
        assert!(client.served.await.expect("no panic").is_err(), "{what}");
    }
}

#[tokio::test]
async fn our_client_carries_bytes_both_ways_and_hears_why_it_cannot() {
    let forwarded = |port: u16| {
        let target = Target { pods: Arc::new(Shouting), namespace: "n".into(), pod: "p".into() };
        let (socket, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move { serve(far, &target).await });
        let (near, stream) = tokio::io::duplex(1 << 16);
        (near, tokio::spawn(client::forward(socket, port, stream)))
    };
    let (mut near, _forwarding) = forwarded(2379);
    near.write_all(b"hello").await.expect("sent");
    let mut heard = [0; 5];
    near.read_exact(&mut heard).await.expect("heard");
    assert_eq!(&heard, b"HELLO");

    let (mut near, forwarding) = forwarded(1);
    assert_eq!(near.read(&mut heard).await.expect("an end"), 0);
    let error = forwarding.await.expect("no panic").expect_err("an error").to_string();
    assert!(error.contains("connection refused"), "{error}");
}
