//! Opening a store: the oldest usable snapshot, then the log after it, which also restores the watch history.
//!
//! Every file is first compared with the manifest, if there is one. A file that is missing, truncated or of another
//! store stops the start. A file with damaged content stops it only if it is needed: a newer snapshot has the same
//! data as the log before it, with less history. Nothing is changed on disk before it is certain that the store
//! opens.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::BufReader,
    sync::Arc,
};

use super::{
    End, Log, create_segment,
    frame::Frame,
    reserved::length_written,
    segment_name, snapshot_name,
    verify::{self, Listing, failed as io},
};
use crate::{
    CipherError, Options,
    cipher::Reader,
    codec::{BadHeader, HEADER, Header, Kind},
    disk::{Disk, DiskFile, Sequential},
    error::OpenError,
    image::{self, ImageError},
    manifest::{Contents, FileName, MANIFEST, Manifest, Prefix, Segment, new_identity},
    reserve,
    state::{FIRST_REVISION, State},
    window::Window,
};

/// Transactions replayed between two checks for history that can be dropped.
const DROP_HISTORY_EVERY: u64 = 4096;

/// A store as read from disk.
pub(crate) struct Recovered<D> {
    pub state: State<D>,
    pub window: Window,
    pub log: Log,
    /// Revisions of the snapshots, oldest first.
    pub snapshots: Vec<u64>,
    /// Log bytes since the newest snapshot.
    pub since_snapshot: u64,
    /// Number of files that were damaged and not needed.
    pub damaged_files: u64,
    /// Number of values in the files that are not sealed with the current key.
    pub stale_values: u64,
}

/// Whether a directory contains no store and no part of one.
pub(crate) fn is_empty(disk: &dyn Disk) -> Result<bool, OpenError> {
    let listing = Listing::read(disk)?;
    Ok(listing.segments.is_empty() && listing.snapshots.is_empty() && Contents::read(disk)?.is_none())
}

/// The files to start from.
struct Files {
    store: u32,
    segments: Vec<u64>,
    snapshots: Vec<u64>,
    /// The manifest; empty if there is none.
    recorded: Contents,
    /// Damage that is known before the replay.
    damaged: BTreeMap<FileName, OpenError>,
    /// Leftovers of a crash.
    leftovers: Vec<String>,
}

/// Opens the store on the disk, or an empty one if there is none.
pub(crate) fn recover<D>(disk: Arc<dyn Disk>, options: &Options) -> Result<Recovered<D>, OpenError> {
    let mut listing = Listing::read(&*disk)?;
    remove_unfinished(&*disk, std::mem::take(&mut listing.unfinished))?;
    let files = match Contents::read(&*disk)? {
        Some(contents) => recorded(&*disk, &listing, contents)?,
        None => match unrecorded(&*disk, listing)? {
            Some(files) => files,
            None => return create(disk, options),
        },
    };
    let rebuilt = rebuild(&*disk, options, &files)?;
    settle(disk, options, files, rebuilt)
}

/// Removes files that were never renamed to their final name. Durably, before their names are reused: otherwise a
/// power loss could bring an old file back under the name of a new one.
fn remove_unfinished(disk: &dyn Disk, unfinished: Vec<String>) -> Result<(), OpenError> {
    if unfinished.is_empty() {
        return Ok(());
    }
    for name in unfinished {
        disk.remove(&name).map_err(|source| io("remove", &name, source))?;
    }
    disk.sync_dir().map_err(|source| io("sync", ".", source))
}

/// Creates an empty store: a segment first, then the manifest that lists it.
fn create<D>(disk: Arc<dyn Disk>, options: &Options) -> Result<Recovered<D>, OpenError> {
    let first = FIRST_REVISION + 1;
    let store = new_identity(&*disk).map_err(|source| io("create", MANIFEST, source))?;
    let (file, segment) = create_segment(&*disk, store, first, 0, options.cipher.is_some())
        .map_err(|source| io("create", &segment_name(first), source))?;
    let manifest = Arc::new(Manifest::new(disk.clone(), Contents::default()));
    let contents = Contents { store, segments: BTreeMap::from([(first, segment)]), ..Contents::default() };
    write_manifest(&manifest, contents)?;
    keep_reserve(&*disk, 0);
    let reserved = segment.open.unwrap_or_default();
    let checksum = crc32fast::Hasher::new_with_initial_len(segment.prefix.checksum, segment.prefix.length);
    let at = End { file, end: segment.prefix.length, reserved, chain: 0, checksum };
    Ok(Recovered {
        state: State::empty(),
        window: options.window(),
        log: Log::at_end(manifest, options.segment_bytes, options.cipher.is_some(), at, false),
        snapshots: Vec::new(),
        since_snapshot: 0,
        damaged_files: 0,
        stale_values: 0,
    })
}

pub(crate) fn write_manifest(manifest: &Manifest, contents: Contents) -> Result<(), OpenError> {
    manifest.update(|present| *present = contents).map_err(|error| io("write", MANIFEST, error.into_inner()))
}

/// Reserves space for a snapshot. A failure is only logged.
fn keep_reserve(disk: &dyn Disk, bytes: u64) {
    if let Err(error) = reserve::keep(disk, bytes) {
        tracing::warn!(%error, "cannot reserve space for a full disk");
    }
}

/// The files of a store that has a manifest.
fn recorded(disk: &dyn Disk, listing: &Listing, contents: Contents) -> Result<Files, OpenError> {
    let (leftovers, mut findings) = verify::unlisted(disk, listing, &contents)?;
    findings.extend(verify::listed(disk, &contents)?);
    let (damaged, mut others): (Vec<_>, Vec<_>) = findings.into_iter().partition(verify::Finding::is_damage);
    if !others.is_empty() {
        for other in others.iter().skip(1) {
            tracing::error!(error = %other.error, "another file of the store differs from the manifest");
        }
        return Err(others.swap_remove(0).error);
    }
    Ok(Files {
        store: contents.store,
        segments: contents.segments.keys().copied().collect(),
        snapshots: contents.snapshots.keys().copied().collect(),
        damaged: damaged.into_iter().map(|finding| (finding.file, finding.error)).collect(),
        leftovers,
        recorded: contents,
    })
}

/// The files of a store without a manifest: one of an earlier release, or one whose creation was interrupted. `None`
/// if there are none.
fn unrecorded(disk: &dyn Disk, listing: Listing) -> Result<Option<Files>, OpenError> {
    let Listing { mut segments, snapshots, .. } = listing;
    let mut leftovers = Vec::new();
    let only = segments.len() == 1 && snapshots.is_empty();
    for file in segments
        .iter()
        .copied()
        .map(FileName::Segment)
        .chain(snapshots.iter().copied().map(FileName::Snapshot))
    {
        let name = file.to_string();
        let opened = disk.open(&name).map_err(|source| io("open", &name, source))?;
        if verify::identity(&*opened, file).map_err(|source| io("read", &name, source))?.is_none() {
            continue;
        }
        // The manifest is created before the first write, so only a store that was never written to may lack it.
        let unfinished = only
            && file == FileName::Segment(FIRST_REVISION + 1)
            && Frame::find(&read_all(&*opened, &name)?, 0).is_none();
        if !unfinished {
            return Err(OpenError::Missing { file: MANIFEST.into() });
        }
        return Ok(None);
    }
    if let Some(unfinished) = unfinished_segment(disk, &segments)? {
        segments.retain(|first| *first != unfinished);
        leftovers.push(segment_name(unfinished));
    }
    if segments.is_empty() && snapshots.is_empty() {
        return Ok(None);
    }
    let mut damaged = BTreeMap::new();
    // Read completely, once: from now on the manifest has their checksums.
    for revision in &snapshots {
        match load::<()>(disk, *revision, &mut Reader::visiting(&mut |_, _, _| {})) {
            Err(error @ OpenError::Damaged { .. }) => {
                damaged.insert(FileName::Snapshot(*revision), error);
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    let store = new_identity(disk).map_err(|source| io("create", MANIFEST, source))?;
    Ok(Some(Files { store, segments, snapshots, recorded: Contents::default(), damaged, leftovers }))
}

/// A crash while a segment was created leaves one without a header and without acknowledged data. A segment without a
/// header that has frames or predecessors is damaged.
fn unfinished_segment(disk: &dyn Disk, segments: &[u64]) -> Result<Option<u64>, OpenError> {
    let Some(first) = segments.last().copied() else { return Ok(None) };
    let name = segment_name(first);
    let file = disk.open(&name).map_err(|source| io("open", &name, source))?;
    let mut header = [0; HEADER];
    let read = file.read_at(0, &mut header).map_err(|source| io("read", &name, source))?;
    if Header::decode(Kind::Log, &header[..read]) != Err(BadHeader::Damaged) {
        return Ok(None);
    }
    let only = segments.len() == 1 && first != FIRST_REVISION + 1;
    if only || Frame::find(&read_all(&*file, &name)?, 0).is_some() {
        return Err(OpenError::Damaged { file: name, offset: 0, reason: "the header is damaged" });
    }
    Ok(Some(first))
}

/// A store rebuilt from a snapshot and the log after it.
struct Rebuilt<D> {
    /// The snapshot it starts from.
    base: Option<u64>,
    replay: Replay<D>,
    /// The replayed segments and their content.
    segments: BTreeMap<u64, Prefix>,
    last: LastSegment,
    /// Values that are not sealed with the current key.
    stale_values: u64,
}

struct LastSegment {
    file: Box<dyn DiskFile>,
    bytes: Vec<u8>,
    /// Start and end of the last frame.
    last_frame: usize,
    end: usize,
}

/// Tries bases from the oldest, because the history window starts there: none at all if the log is complete, then
/// each snapshot that the log continues.
fn rebuild<D>(disk: &dyn Disk, options: &Options, files: &Files) -> Result<Rebuilt<D>, OpenError> {
    let Some(first) = files.segments.first().copied() else {
        let newest = files.snapshots.last().copied().unwrap_or_default();
        return Err(OpenError::Missing { file: segment_name(newest + 1) });
    };
    let complete = (first == FIRST_REVISION + 1).then_some(None);
    let snapshots = files.snapshots.iter().copied().filter(|revision| *revision + 1 >= first).map(Some);
    let mut damage = None;
    for base in complete.into_iter().chain(snapshots) {
        match rebuild_from(disk, options, files, base) {
            Err(error @ OpenError::Damaged { .. }) => damage = Some(error),
            // A key that was removed too early may only be needed for history. One that is not available now may be
            // later, and then nothing is lost.
            Err(OpenError::Sealed { sealed, reason }) if !matches!(reason, CipherError::Unavailable(_)) => {
                tracing::warn!(%sealed, %reason, "values of the history cannot be decrypted");
                damage = Some(OpenError::Sealed { sealed, reason });
            }
            result => return result,
        }
    }
    Err(damage.unwrap_or_else(|| OpenError::Missing { file: snapshot_name(first - 1) }))
}

fn rebuild_from<D>(
    disk: &dyn Disk,
    options: &Options,
    files: &Files,
    base: Option<u64>,
) -> Result<Rebuilt<D>, OpenError> {
    let revision = base.unwrap_or(FIRST_REVISION);
    let start = files.segments.partition_point(|first| *first <= revision + 1).saturating_sub(1);
    let segments = &files.segments[start..];
    let needed =
        base.map(FileName::Snapshot).into_iter().chain(segments.iter().copied().map(FileName::Segment));
    if let Some(damage) = needed.filter_map(|file| files.damaged.get(&file)).next() {
        return Err(damage.again());
    }
    let mut reader = Reader::new(options.cipher());
    let state = match base {
        None => State::empty(),
        Some(revision) => load(disk, revision, &mut reader)?,
    };
    let sound = |revision: &&u64| !files.damaged.contains_key(&FileName::Snapshot(**revision));
    let newest_snapshot = files.snapshots.iter().rfind(sound).copied().unwrap_or(0);
    let mut replay =
        Replay { newest_snapshot, window: options.window(), state, chain: None, since_snapshot: 0 };
    let mut replayed = BTreeMap::new();
    let last = replay.run(disk, options, segments, &mut replayed, &mut reader)?;
    let stale_values = reader.finish()?;
    if replay.state.revision < newest_snapshot {
        let file = segment_name(segments.last().copied().unwrap_or_default());
        let reason = "the log ends before the newest snapshot: its end is missing";
        return Err(OpenError::Damaged { file, offset: last.end as u64, reason });
    }
    Ok(Rebuilt { base, replay, segments: replayed, last, stale_values })
}

/// Makes the disk consistent with what was read, and the manifest with the disk.
fn settle<D>(
    disk: Arc<dyn Disk>,
    options: &Options,
    files: Files,
    rebuilt: Rebuilt<D>,
) -> Result<Recovered<D>, OpenError> {
    let Rebuilt { base, replay, segments, last, stale_values } = rebuilt;
    let Replay { mut state, mut window, chain, since_snapshot, .. } = replay;
    let current = segments.keys().last().copied().unwrap_or_default();
    let name = segment_name(current);
    let reserved = last.settle(&name)?;
    disk.sync_dir().map_err(|source| io("sync", ".", source))?;
    for leftover in &files.leftovers {
        disk.remove(leftover).map_err(|source| io("remove", leftover, source))?;
    }
    let listed = |first: &u64, prefix: &Prefix| match files.recorded.segments.get(first) {
        Some(Segment { prefix, open: None }) => Segment { prefix: *prefix, open: None },
        _ => Segment { prefix: *prefix, open: (*first == current).then_some(reserved) },
    };
    let mut contents = Contents {
        store: files.store,
        segments: segments.iter().map(|(first, prefix)| (*first, listed(first, prefix))).collect(),
        snapshots: BTreeMap::new(),
    };
    for revision in
        files.snapshots.iter().copied().filter(|revision| base.is_none_or(|base| *revision >= base))
    {
        if files.damaged.contains_key(&FileName::Snapshot(revision)) {
            continue;
        }
        let prefix = match files.recorded.snapshots.get(&revision) {
            Some(prefix) => *prefix,
            None => verify::measure(&*disk, &snapshot_name(revision))?,
        };
        contents.snapshots.insert(revision, prefix);
    }
    for error in files.damaged.values() {
        tracing::error!(%error, "removing a damaged file of the store that is not needed");
    }
    let manifest = Arc::new(Manifest::new(disk.clone(), files.recorded.clone()));
    let adopted = files.recorded.store == 0;
    record(&manifest, contents, &files)?;
    keep_reserve(&*disk, crate::checkpoint::size_estimate(&state, options.cipher()));
    forget(&mut state, &mut window, options.now());
    let checksum =
        crc32fast::Hasher::new_with_initial_len(crc32fast::hash(&last.bytes[..last.end]), last.end as u64);
    let (snapshots, reserved) = {
        let listed = manifest.contents();
        let least = listed.segments.get(&current).and_then(|segment| segment.open);
        (listed.snapshots.keys().copied().collect(), least.unwrap_or(last.end as u64))
    };
    let at =
        End { file: last.file, end: last.end as u64, reserved, chain: chain.unwrap_or_default(), checksum };
    // Segments of an earlier release have no store identity, and those before encryption have another format.
    let is_sealed = options.cipher.is_some();
    let unsealed = is_sealed && !Header::decode(Kind::Log, &last.bytes).is_ok_and(|header| header.is_sealed);
    let log = Log::at_end(manifest, options.segment_bytes, is_sealed, at, adopted || unsealed);
    let damaged_files = files.damaged.len() as u64;
    Ok(Recovered { state, window, log, snapshots, since_snapshot, damaged_files, stale_values })
}

/// Writes the manifest and removes files that it no longer lists.
fn record(manifest: &Manifest, contents: Contents, files: &Files) -> Result<(), OpenError> {
    let kept: BTreeSet<FileName> = contents
        .segments
        .keys()
        .copied()
        .map(FileName::Segment)
        .chain(contents.snapshots.keys().copied().map(FileName::Snapshot))
        .collect();
    let sealed: Vec<_> = contents.segments.iter().filter(|(_, segment)| segment.open.is_none()).collect();
    for (first, segment) in sealed {
        // A crash may have happened between the record of the end and the truncation.
        let name = segment_name(*first);
        let file = manifest.disk().open(&name).map_err(|source| io("open", &name, source))?;
        if file.size().map_err(|source| io("read", &name, source))? > segment.prefix.length {
            file.truncate(segment.prefix.length).map_err(|source| io("truncate", &name, source))?;
        }
    }
    match manifest.update(|present| *present = contents) {
        Ok(()) => {}
        // The existing record is still valid; a full disk must not prevent a start.
        Err(error) if error.is_full() && files.recorded.store != 0 => {
            tracing::warn!("the disk is full: starting without updating the manifest");
            return Ok(());
        }
        Err(error) => return Err(io("write", MANIFEST, error.into_inner())),
    }
    let segments = files.segments.iter().copied().map(FileName::Segment);
    for file in segments.chain(files.snapshots.iter().copied().map(FileName::Snapshot)) {
        if !kept.contains(&file) {
            let name = file.to_string();
            manifest.disk().remove(&name).map_err(|source| io("remove", &name, source))?;
        }
    }
    Ok(())
}

impl LastSegment {
    /// Removes a commit interrupted by a crash, makes the rest durable and returns the length of the file.
    ///
    /// A killed process may have left its last frame readable but not durable. Readers are about to see it, so it
    /// must survive the next power loss. It is rewritten, because after a failed sync the operating system considers
    /// it clean and would not sync it. So is the last byte of the file, which makes its length durable.
    fn settle(&self, name: &str) -> Result<u64, OpenError> {
        let Self { file, bytes, last_frame, end } = self;
        let write = |offset: usize, data: &[u8]| {
            file.write_at(offset as u64, data).map_err(|source| io("write", name, source))
        };
        let rest = &bytes[*end..];
        let garbage = length_written(rest);
        if garbage > 0 {
            tracing::warn!(file = name, offset = end, bytes = garbage, "removing an unfinished commit");
            write(*end, &vec![0; garbage])?;
        }
        if !rest.is_empty() {
            write(bytes.len() - 1, &[0])?;
        }
        write(0, &bytes[..HEADER])?;
        write(*last_frame, &bytes[*last_frame..*end])?;
        file.sync_data().map_err(|source| io("sync", name, source))?;
        file.size().map_err(|source| io("read", name, source))
    }
}

pub(crate) fn load<D>(
    disk: &dyn Disk,
    revision: u64,
    reader: &mut Reader<'_>,
) -> Result<State<D>, OpenError> {
    let name = snapshot_name(revision);
    let file = disk.open(&name).map_err(|source| io("open", &name, source))?;
    let mut input = BufReader::with_capacity(1 << 20, Sequential { file: &*file, offset: 0 });
    let state: State<D> = image::read(&mut input, reader).map_err(|error| match error {
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

pub(crate) fn read_all(file: &dyn DiskFile, name: &str) -> Result<Vec<u8>, OpenError> {
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

/// Replays the log segment by segment.
struct Replay<D> {
    newest_snapshot: u64,
    window: Window,
    state: State<D>,
    /// Checksum of the last frame; `None` before the first segment.
    chain: Option<u32>,
    since_snapshot: u64,
}

impl<D> Replay<D> {
    fn run(
        &mut self,
        disk: &dyn Disk,
        options: &Options,
        segments: &[u64],
        replayed: &mut BTreeMap<u64, Prefix>,
        reader: &mut Reader<'_>,
    ) -> Result<LastSegment, OpenError> {
        let mut forgotten = self.state.revision;
        let mut expected = segments.first().copied().unwrap_or_default();
        for (index, first) in segments.iter().copied().enumerate() {
            let name = segment_name(first);
            if first != expected {
                return Err(OpenError::Missing { file: segment_name(expected) });
            }
            let file = disk.open(&name).map_err(|source| io("open", &name, source))?;
            let bytes = read_all(&*file, &name)?;
            let mut end = self.header(&bytes, &name, first)?;
            let mut last_frame = end;
            while end < bytes.len() {
                let Some(frame) = self.valid_frame(&bytes[end..], expected) else { break };
                expected = self.apply(&frame, &name, end as u64, reader)?;
                last_frame = end;
                end += frame.size();
                if self.state.revision >= forgotten + DROP_HISTORY_EVERY {
                    forgotten = self.state.revision;
                    forget(&mut self.state, &mut self.window, options.now());
                }
            }
            let last = index + 1 == segments.len();
            check_tail(&bytes[end..], end, &name, expected, last)?;
            replayed.insert(first, Prefix::of(&bytes[..end]));
            if last {
                return Ok(LastSegment { file, bytes, last_frame, end });
            }
        }
        Err(OpenError::Missing { file: segment_name(expected) })
    }

    /// Checks a segment's header and returns the offset of its frames.
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

    /// The frame at the front of `bytes` if it is valid and the next one.
    fn valid_frame<'b>(&self, bytes: &'b [u8], expected: u64) -> Option<Frame<'b>> {
        Frame::decode(bytes).filter(|frame| frame.revision == expected && Some(frame.chain) == self.chain)
    }

    /// Applies transactions that the base does not have and returns the next revision.
    fn apply(
        &mut self,
        frame: &Frame<'_>,
        name: &str,
        offset: u64,
        reader: &mut Reader<'_>,
    ) -> Result<u64, OpenError> {
        let reason = "a frame's content is malformed";
        let damaged = || OpenError::Damaged { file: name.to_owned(), offset, reason };
        let transactions = frame.transactions(reader).ok_or_else(damaged)?;
        let next = frame.revision + transactions.len() as u64;
        for (revision, changes) in transactions {
            if revision > self.state.revision {
                for change in changes {
                    self.state.apply(change, revision);
                }
                // A transaction may have no changes.
                self.state.revision = revision;
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
}

/// Checks the bytes after the last valid frame. In the last segment they may be reserved space or a frame interrupted
/// by a crash, which was never acknowledged. Anything else is damage.
fn check_tail(rest: &[u8], offset: usize, name: &str, expected: u64, last: bool) -> Result<(), OpenError> {
    // A crash after a segment was sealed may leave its reserved space.
    if length_written(rest) == 0 || (last && Frame::find(rest, expected).is_none()) {
        return Ok(());
    }
    let reason = "a commit is damaged and later ones are not";
    Err(OpenError::Damaged { file: name.to_owned(), offset: offset as u64, reason })
}
