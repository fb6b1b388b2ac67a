//! Arbitrary bytes from the other side must neither panic, hang nor fill memory. `cargo xtask fuzz` runs this for longer,
//! with random seeds.

use futures::FutureExt as _;
use proptest::prelude::*;

use crate::spdy::frame;
use crate::websocket::{Message, Reader, Side};

/// `cases` cases, unless `PROPTEST_CASES` is set.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

/// Bytes in memory are always ready.
fn run<F: Future>(future: F) -> F::Output {
    future.now_or_never().expect("no bytes to wait for")
}

/// Frames whose heads make sense and whose rest may not.
fn frames(heads: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    let piece = (prop::sample::select(heads), prop::collection::vec(any::<u8>(), 0..40));
    prop::collection::vec(piece, 0..12)
        .prop_map(|pieces| pieces.into_iter().flat_map(|(head, rest)| [head, &rest].concat()).collect())
}

fn websocket(bytes: &[u8]) {
    for side in [Side::Server, Side::Client] {
        let mut reader = Reader::new(bytes, side);
        // Every message takes at least the two bytes of its head.
        for _ in 0..bytes.len() {
            match run(reader.read()) {
                Ok(Message::Close) | Err(_) => break,
                Ok(Message::Data(_) | Message::Ping(_)) => {}
            }
        }
    }
}

fn spdy(bytes: &[u8]) {
    let mut reader = frame::Reader::new(bytes);
    for _ in 0..=bytes.len() {
        match run(reader.read()) {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn fuzz_any_bytes_are_read_as_frames_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        websocket(&bytes);
        spdy(&bytes);
    }

    #[test]
    fn fuzz_frames_of_websockets(
        bytes in frames(&[&[0x82, 0x85, 1, 2, 3, 4], &[0x02, 0xfe, 0xff, 0xff], &[0x80, 0xff, 0xff, 0xff], &[0x89, 0], &[0x88, 0x80]])
    ) {
        websocket(&bytes);
    }

    #[test]
    fn fuzz_frames_of_spdy(
        bytes in frames(&[
            &[0x80, 3, 0, 1, 0, 0, 0, 20, 0, 0, 0, 1],
            &[0x80, 3, 0, 8, 0, 0xff, 0xff, 0xff],
            &[0, 0, 0, 1, 1, 0, 0, 5],
            &[0, 0, 0, 1, 1, 0xff, 0xff, 0xff],
            &[0x80, 3, 0, 6, 0, 0, 0, 4],
        ])
    ) {
        spdy(&bytes);
    }
}
