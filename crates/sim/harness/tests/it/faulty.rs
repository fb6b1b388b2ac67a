//! A store and a server with one flaw each, for a sound controller to stand on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use capstan_apiserver::Digest;
use capstan_controller::{Body, Transport, TransportError};
use capstan_store::disk::{Disk, DiskFile};
use capstan_store::{OpenError, SimDisk, Store};
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use serde_json::Value;

/// Syncs that are honest before those that are not: the store's files are there, and definitions are in them.
const HONEST: usize = 20;

/// What is wrong with what the controllers stand on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ground {
    #[default]
    Sound,
    /// The disk says synced, and is not.
    ForgetsWrites,
    /// The server does not look at the version that a patch names.
    ForgetsGuards,
    /// A watch tells a change a second time.
    TellsTwice,
    /// A watch tells a change after the next one.
    TellsLate,
    /// A watch leaves a change out.
    TellsNothing,
    /// A list leaves an object out.
    ListsLess,
}

impl Ground {
    pub fn store(self, disk: SimDisk, options: capstan_store::Options) -> Result<Store<Digest>, OpenError> {
        match self {
            Self::ForgetsWrites => Store::open(Lying { disk, syncs: Arc::default() }, options),
            _ => Store::open(disk, options),
        }
    }

    pub fn server(self, direct: Arc<dyn Transport>) -> Arc<dyn Transport> {
        match self {
            Self::Sound | Self::ForgetsWrites => direct,
            flaw => Arc::new(Faulty { direct, flaw }),
        }
    }
}

/// A disk that soon no longer syncs.
struct Lying {
    disk: SimDisk,
    syncs: Arc<AtomicUsize>,
}

struct LyingFile {
    file: Box<dyn DiskFile>,
    syncs: Arc<AtomicUsize>,
}

impl Lying {
    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(LyingFile { file, syncs: self.syncs.clone() })
    }
}

impl Disk for Lying {
    fn immediate(&self) -> bool {
        true
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }

    fn available(&self) -> io::Result<u64> {
        self.disk.available()
    }
}

impl DiskFile for LyingFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, data)
    }

    fn reserve(&self, to: u64) -> io::Result<u64> {
        self.file.reserve(to)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.file.truncate(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.syncs.fetch_add(1, Ordering::Relaxed) {
            ..HONEST => self.file.sync_data(),
            HONEST.. => Ok(()),
        }
    }
}

/// A server with a flaw.
struct Faulty {
    direct: Arc<dyn Transport>,
    flaw: Ground,
}

impl Transport for Faulty {
    fn send(&self, mut request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if self.flaw == Ground::ForgetsGuards && request.method() == Method::PATCH {
            *request.body_mut() = unguarded(request.body());
        }
        Box::pin(async move {
            let response = self.direct.send(request).await?;
            if !is_watch {
                return Ok(response);
            }
            let mouth = Mouth { flaw: self.flaw, ..Mouth::default() };
            Ok(response.map(|body| {
                let pieces = futures::stream::unfold((body, mouth), |(mut body, mut mouth)| async move {
                    let piece = body.next().await?.map(|piece| http_body::Frame::data(mouth.tell(&piece)));
                    Some((piece, (body, mouth)))
                });
                Body::new(http_body_util::StreamBody::new(pieces))
            }))
        })
    }
}

/// A patch that names no version.
fn unguarded(patch: &Bytes) -> Bytes {
    let mut patch: Value = serde_json::from_slice(patch).expect("a patch");
    if let Some(metadata) = patch["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    patch.to_string().into()
}

/// Tells what a watch tells, wrongly.
#[derive(Default)]
struct Mouth {
    flaw: Ground,
    buffer: BytesMut,
    /// The list that the watch begins with is over.
    listed: bool,
    /// It has told its one lie.
    lied: bool,
    held: Option<BytesMut>,
}

impl Mouth {
    fn tell(&mut self, piece: &[u8]) -> Bytes {
        self.buffer.extend_from_slice(piece);
        let mut told = BytesMut::new();
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(end + 1);
            let event: Value = serde_json::from_slice(&line).expect("an event");
            let is_mark = event["type"] == "BOOKMARK";
            self.listed |= is_mark;
            let lies = !is_mark && !self.lied && self.listed != (self.flaw == Ground::ListsLess);
            self.lied |= lies;
            match self.flaw {
                Ground::ListsLess | Ground::TellsNothing if lies => {}
                Ground::TellsLate if lies => self.held = Some(line),
                Ground::TellsTwice if lies => {
                    told.extend_from_slice(&line);
                    told.extend_from_slice(&line);
                }
                _ => {
                    told.extend_from_slice(&line);
                    if let Some(held) = self.held.take() {
                        told.extend_from_slice(&held);
                    }
                }
            }
        }
        told.freeze()
    }
}
