//! A store and a server with one defect each, for a correct controller.

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

/// Syncs before the disk stops syncing: the store has created its files and the definitions are in them.
const GOOD_SYNCS: usize = 20;

/// A defect of the store or the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Defect {
    #[default]
    None,
    /// The disk reports a sync and does not sync.
    DropsSyncs,
    /// The server ignores the resource version in a patch.
    IgnoresPreconditions,
    /// A watch sends an event twice.
    RepeatsEvent,
    /// A watch sends an event after the next one.
    ReordersEvents,
    /// A watch drops an event.
    DropsEvent,
    /// A list lacks an object.
    DropsFromList,
}

impl Defect {
    pub fn store(self, disk: SimDisk, options: capstan_store::Options) -> Result<Store<Digest>, OpenError> {
        match self {
            Self::DropsSyncs => Store::open(NoSyncDisk { disk, syncs: Arc::default() }, options),
            _ => Store::open(disk, options),
        }
    }

    pub fn server(self, direct: Arc<dyn Transport>) -> Arc<dyn Transport> {
        match self {
            Self::None | Self::DropsSyncs => direct,
            flaw => Arc::new(Faulty { direct, flaw }),
        }
    }
}

/// A disk that stops syncing, except for the manifest: an unsynced one is found by the store itself.
struct NoSyncDisk {
    disk: SimDisk,
    syncs: Arc<AtomicUsize>,
}

struct NoSyncFile {
    file: Box<dyn DiskFile>,
    syncs: Arc<AtomicUsize>,
}

impl NoSyncDisk {
    fn file(&self, name: &str, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        match name.starts_with("MANIFEST") {
            true => file,
            false => Box::new(NoSyncFile { file, syncs: self.syncs.clone() }),
        }
    }
}

impl Disk for NoSyncDisk {
    fn immediate(&self) -> bool {
        true
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.file(name, file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.file(name, file))
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

    fn random(&self) -> io::Result<u64> {
        self.disk.random()
    }

    fn reserve_unit(&self) -> u64 {
        self.disk.reserve_unit()
    }
}

impl DiskFile for NoSyncFile {
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
            ..GOOD_SYNCS => self.file.sync_data(),
            GOOD_SYNCS.. => Ok(()),
        }
    }
}

/// A server with a defect.
struct Faulty {
    direct: Arc<dyn Transport>,
    flaw: Defect,
}

impl Transport for Faulty {
    fn send(&self, mut request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if self.flaw == Defect::IgnoresPreconditions && request.method() == Method::PATCH {
            *request.body_mut() = without_precondition(request.body());
        }
        Box::pin(async move {
            let response = self.direct.send(request).await?;
            if !is_watch {
                return Ok(response);
            }
            let corruptor = EventCorruptor { flaw: self.flaw, ..EventCorruptor::default() };
            Ok(response.map(|body| {
                let pieces =
                    futures::stream::unfold((body, corruptor), |(mut body, mut corruptor)| async move {
                        let piece =
                            body.next().await?.map(|piece| http_body::Frame::data(corruptor.corrupt(&piece)));
                        Some((piece, (body, corruptor)))
                    });
                Body::new(http_body_util::StreamBody::new(pieces))
            }))
        })
    }
}

/// Removes the resource version from a patch.
fn without_precondition(patch: &Bytes) -> Bytes {
    let mut patch: Value = serde_json::from_slice(patch).expect("a patch");
    if let Some(metadata) = patch["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    patch.to_string().into()
}

/// Corrupts the events of a watch.
#[derive(Default)]
struct EventCorruptor {
    flaw: Defect,
    buffer: BytesMut,
    /// The initial list is complete.
    listed: bool,
    /// The one corruption has happened.
    corrupted: bool,
    held: Option<BytesMut>,
}

impl EventCorruptor {
    fn corrupt(&mut self, piece: &[u8]) -> Bytes {
        self.buffer.extend_from_slice(piece);
        let mut sent = BytesMut::new();
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(end + 1);
            let event: Value = serde_json::from_slice(&line).expect("an event");
            let is_mark = event["type"] == "BOOKMARK";
            self.listed |= is_mark;
            let corrupts = !is_mark && !self.corrupted && self.listed != (self.flaw == Defect::DropsFromList);
            self.corrupted |= corrupts;
            match self.flaw {
                Defect::DropsFromList | Defect::DropsEvent if corrupts => {}
                Defect::ReordersEvents if corrupts => self.held = Some(line),
                Defect::RepeatsEvent if corrupts => {
                    sent.extend_from_slice(&line);
                    sent.extend_from_slice(&line);
                }
                _ => {
                    sent.extend_from_slice(&line);
                    if let Some(held) = self.held.take() {
                        sent.extend_from_slice(&held);
                    }
                }
            }
        }
        sent.freeze()
    }
}
