//! Opening: the oldest usable snapshot, then the log after it, which also brings back the watch history.

use std::{io::BufReader, sync::Arc};

use super::{Log, frame::Frame, remove_in_order, segment_name, snapshot_name};
use crate::{
    Options,
    codec::{BadHeader, HEADER, Header, Kind},
    disk::{Disk, DiskFile, Sequential},
    error::OpenError,
    image::{self, ImageError},
    state::{FIRST_REVISION, State},
    window::Window,
};

/// Transactions replayed between two looks at what history may go.
const FORGET_EVERY: u64 = 4096;

/// A store as found on disk.
pub(crate) struct Recovered<D> {
    pub state: State<D>,
    pub window: Window,
    pub log: Log,
    /// Revisions of the snapshots, oldest first.
    pub snapshots: Vec<u64>,
    /// Log bytes since the newest snapshot.
    pub since_snapshot: u64,
}

/// What the files are called, oldest first.
#[derive(Default)]
struct Listing {
    segments: Vec<u64>,
    snapshots: Vec<u64>,
}

/// Whether a directory holds a store, or part of one.
pub(crate) fn is_empty(disk: &dyn Disk) -> Result<bool, OpenError> {
    let listing = list(disk)?;
    Ok(listing.segments.is_empty() && listing.snapshots.is_empty())
}

fn list(disk: &dyn Disk) -> Result<Listing, OpenError> {
    let mut listing = Listing::default();
    for name in disk.list().map_err(|source| io("list", ".", source))? {
        let number = |prefix: &str, suffix: &str| -> Option<u64> {
            name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok()
        };
        if let Some(first) = number("wal-", ".log") {
            listing.segments.push(first);
        } else if let Some(revision) = number("snap-", ".bin") {
            listing.snapshots.push(revision);
        } else if name.starts_with("snap-") && name.ends_with(".tmp") {
            // A snapshot whose writing was cut short.
            disk.remove(&name).map_err(|source| io("remove", &name, source))?;
        }
    }
    listing.segments.sort_unstable();
    listing.snapshots.sort_unstable();
    Ok(listing)
}

fn io(operation: &'static str, file: &str, source: std::io::Error) -> OpenError {
    OpenError::Io { operation, file: file.to_owned(), source }
}

/// Opens what the disk holds; an empty store if it holds nothing.
pub(crate) fn recover<D>(disk: Arc<dyn Disk>, options: &Options) -> Result<Recovered<D>, OpenError> {
    let Listing { mut segments, mut snapshots } = list(&*disk)?;
    drop_unborn_segment(&*disk, &mut segments)?;
    let first = segments.first().copied();
    if first.is_none() && snapshots.is_empty() {
        let log = Log::create(disk, options.segment_bytes, FIRST_REVISION + 1)
            .map_err(|source| io("create", &segment_name(FIRST_REVISION + 1), source))?;
        let window = options.window();
        return Ok(Recovered { state: State::empty(), window, log, snapshots, since_snapshot: 0 });
    }
    let state = base(&*disk, first, &snapshots)?;
    // Whatever is older than the base is left over from before it: some of it may be gone already.
    let start = segments.partition_point(|first| *first <= state.revision + 1).saturating_sub(1);
    let stale = segments.drain(..start).map(segment_name);
    let stale = stale.chain(snapshots.extract_if(.., |old| *old < state.revision).map(snapshot_name));
    remove_in_order(&*disk, stale).map_err(|(name, source)| io("remove", &name, source))?;
    let replay = Replay {
        options,
        newest_snapshot: snapshots.last().copied().unwrap_or(0),
        window: options.window(),
        state,
        chain: None,
        since_snapshot: 0,
    };
    let (replay, file, end) = replay.run(&*disk, &segments)?;
    let Replay { mut state, mut window, chain, since_snapshot, newest_snapshot, .. } = replay;
    let last = segment_name(segments.last().copied().unwrap_or_default());
    if state.revision < newest_snapshot {
        let reason = "the log ends before the newest snapshot: its end is missing";
        return Err(OpenError::Damaged { file: last, offset: end, reason });
    }
    // A process that was killed may have left its last frame readable but not durable. Readers are about
    // to see it, so it must survive the next loss of power. The replay has written it once more, because
    // after a failed sync the operating system takes it for clean and would not sync it.
    let reserved = file.size().map_err(|source| io("read", &last, source))?;
    file.sync_data().map_err(|source| io("sync", &last, source))?;
    disk.sync_dir().map_err(|source| io("sync", ".", source))?;
    forget(&mut state, &mut window, options.now());
    let chain = chain.unwrap_or_default();
    let log = Log::at_end(disk, options.segment_bytes, file, segments, end, reserved, chain);
    Ok(Recovered { state, window, log, snapshots, since_snapshot })
}

/// A crash while a segment was created leaves one without a header. Nothing in it was ever acknowledged.
/// One that does hold frames has lost its header some other way, and so has one that others came before.
fn drop_unborn_segment(disk: &dyn Disk, segments: &mut Vec<u64>) -> Result<(), OpenError> {
    let Some(first) = segments.last().copied() else { return Ok(()) };
    let name = segment_name(first);
    let file = disk.open(&name).map_err(|source| io("open", &name, source))?;
    let mut header = [0; HEADER];
    let read = file.read_at(0, &mut header).map_err(|source| io("read", &name, source))?;
    if Header::decode(Kind::Log, &header[..read]) != Err(BadHeader::Damaged) {
        return Ok(());
    }
    let only = segments.len() == 1 && first != FIRST_REVISION + 1;
    if only || Frame::find(&read_all(&*file, &name)?, 0).is_some() {
        return Err(OpenError::Damaged { file: name, offset: 0, reason: "the header is damaged" });
    }
    disk.remove(&name).map_err(|source| io("remove", &name, source))?;
    segments.pop();
    Ok(())
}

/// The state that the log is replayed onto: nothing if the log is complete, or the oldest snapshot that the
/// log continues. The oldest, because the window of history begins there.
fn base<D>(disk: &dyn Disk, first_segment: Option<u64>, snapshots: &[u64]) -> Result<State<D>, OpenError> {
    let Some(first) = first_segment else {
        let newest = snapshots.last().copied().unwrap_or_default();
        return Err(OpenError::Missing { file: segment_name(newest + 1) });
    };
    if first == FIRST_REVISION + 1 {
        return Ok(State::empty());
    }
    let mut damage = None;
    for revision in snapshots.iter().copied().filter(|revision| *revision + 1 >= first) {
        match load(disk, revision) {
            // A newer snapshot has the same data and less history, and says so by what is compacted.
            Err(error @ OpenError::Damaged { .. }) => {
                tracing::error!(%error, "ignoring a damaged snapshot; trying the next");
                damage.get_or_insert(error);
            }
            result => return result,
        }
    }
    Err(damage.unwrap_or_else(|| OpenError::Missing { file: snapshot_name(first - 1) }))
}

fn load<D>(disk: &dyn Disk, revision: u64) -> Result<State<D>, OpenError> {
    let name = snapshot_name(revision);
    let file = disk.open(&name).map_err(|source| io("open", &name, source))?;
    let mut input = BufReader::with_capacity(1 << 20, Sequential { file: &*file, offset: 0 });
    let state: State<D> = image::read(&mut input).map_err(|error| match error {
        ImageError::Damaged { offset, reason } => OpenError::Damaged { file: name.clone(), offset, reason },
        ImageError::Newer(found) => OpenError::Newer { file: name.clone(), found },
        ImageError::Io(source) => io("read", &name, source),
    })?;
    if state.revision != revision {
        let reason = "the snapshot is of another revision than its name says";
        return Err(OpenError::Damaged { file: name, offset: 0, reason });
    }
    Ok(state)
}

fn read_all(file: &dyn DiskFile, name: &str) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::with_capacity(file.size().map_err(|source| io("read", name, source))? as usize);
    std::io::Read::read_to_end(&mut Sequential { file, offset: 0 }, &mut bytes)
        .map_err(|source| io("read", name, source))?;
    Ok(bytes)
}

fn forget<D>(state: &mut State<D>, window: &mut Window, now: u64) {
    let floor = window.floor(state.revision, now);
    let all: Vec<_> = state.buckets.keys().cloned().collect();
    state.forget(floor, all.iter().map(|name| &**name));
}

/// The replay of the log, segment by segment.
struct Replay<'a, D> {
    options: &'a Options,
    newest_snapshot: u64,
    window: Window,
    state: State<D>,
    /// Checksum of the last frame; none before the first segment.
    chain: Option<u32>,
    since_snapshot: u64,
}

impl<D> Replay<'_, D> {
    fn run(mut self, disk: &dyn Disk, segments: &[u64]) -> Result<(Self, Box<dyn DiskFile>, u64), OpenError> {
        let mut forgotten = self.state.revision;
        let mut expected = segments.first().copied().unwrap_or_default();
        for (index, first) in segments.iter().copied().enumerate() {
            let name = segment_name(first);
            if first != expected {
                return Err(OpenError::Missing { file: segment_name(expected) });
            }
            let file = disk.open(&name).map_err(|source| io("open", &name, source))?;
            let bytes = read_all(&*file, &name)?;
            let mut offset = self.header(&bytes, &name, first)?;
            let mut last_frame = offset;
            while offset < bytes.len() {
                let Some(frame) = self.sound(&bytes[offset..], expected) else { break };
                expected = self.apply(&frame, &name, offset as u64)?;
                last_frame = offset;
                offset += frame.size();
                if self.state.revision >= forgotten + FORGET_EVERY {
                    forgotten = self.state.revision;
                    forget(&mut self.state, &mut self.window, self.options.now());
                }
            }
            let last = index + 1 == segments.len();
            self.tail(&*file, &bytes, offset, &name, expected, last)?;
            if last {
                for part in [0..HEADER, last_frame..offset] {
                    file.write_at(part.start as u64, &bytes[part])
                        .map_err(|source| io("write", &name, source))?;
                }
                return Ok((self, file, offset as u64));
            }
        }
        Err(OpenError::Missing { file: segment_name(expected) })
    }

    /// Checks a segment's header and returns where its frames begin.
    fn header(&mut self, bytes: &[u8], name: &str, first: u64) -> Result<usize, OpenError> {
        let damaged = |reason| OpenError::Damaged { file: name.to_owned(), offset: 0, reason };
        let header = Header::decode(Kind::Log, bytes).map_err(|bad| match bad {
            BadHeader::Damaged => damaged("the header is damaged"),
            BadHeader::Newer(found) => OpenError::Newer { file: name.to_owned(), found },
        })?;
        let follows = self.chain.is_none_or(|chain| chain == header.chain);
        if header.revision != first || !follows {
            return Err(damaged("the segment does not continue the one before"));
        }
        self.chain = Some(header.chain);
        Ok(HEADER)
    }

    /// The frame at the front of `bytes` if it is the one to come.
    fn sound<'b>(&self, bytes: &'b [u8], expected: u64) -> Option<Frame<'b>> {
        Frame::decode(bytes).filter(|frame| frame.revision == expected && Some(frame.chain) == self.chain)
    }

    /// Applies what the base does not have yet and returns the revision to come.
    fn apply(&mut self, frame: &Frame<'_>, name: &str, offset: u64) -> Result<u64, OpenError> {
        let reason = "a frame's content makes no sense";
        let damaged = || OpenError::Damaged { file: name.to_owned(), offset, reason };
        let transactions = frame.transactions().ok_or_else(damaged)?;
        let next = frame.revision + transactions.len() as u64;
        for (revision, changes) in transactions {
            if revision > self.state.revision {
                for change in changes {
                    self.state.apply(change, revision);
                }
            }
        }
        if next > frame.revision {
            self.window.committed(next - 1, frame.time, frame.size() as u64);
        }
        if next - 1 > self.newest_snapshot {
            self.since_snapshot += frame.size() as u64;
        }
        self.chain = Some(frame.checksum);
        Ok(next)
    }

    /// Judges what comes after the last sound frame. In the last segment it may be reserved space or a
    /// frame that a crash cut short, which was never acknowledged and goes; anything else is damage.
    fn tail(
        &self,
        file: &dyn DiskFile,
        bytes: &[u8],
        offset: usize,
        name: &str,
        expected: u64,
        last: bool,
    ) -> Result<(), OpenError> {
        let rest = &bytes[offset..];
        if rest.is_empty() || (last && rest.iter().all(|byte| *byte == 0)) {
            return Ok(());
        }
        if !last || Frame::find(rest, expected).is_some() {
            let reason = "a commit is damaged and later ones are not";
            return Err(OpenError::Damaged { file: name.to_owned(), offset: offset as u64, reason });
        }
        tracing::warn!(file = name, offset, bytes = rest.len(), "cutting off an unfinished commit");
        file.truncate(offset as u64).map_err(|source| io("truncate", name, source))
    }
}
