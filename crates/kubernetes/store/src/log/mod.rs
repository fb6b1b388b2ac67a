//! The write-ahead log: segments of frames, one frame and one sync per group commit.
//!
//! At most one frame is unsynced at any time, because the next is written after the sync of this one. After a crash
//! only the last frame can be incomplete; a valid frame after an invalid one means damage.
//!
//! Frames are only written to space that was reserved and recorded in the manifest. When the disk is full, the second
//! half of that space is kept for [`Space::Reserve`], so that deletes still work.

pub(crate) mod frame;
pub(crate) mod recover;
mod reserved;
pub(crate) mod salvage;
pub(crate) mod survey;
pub(crate) mod verify;

use std::{io, sync::Arc};

use self::frame::FrameBuilder;
use crate::{
    codec::{HEADER, Header, Kind},
    disk::{Disk, DiskFile, is_full},
    manifest::{Manifest, Prefix, Segment, UpdateError},
};

/// The name of the segment with this first revision.
pub(crate) fn segment_name(first: u64) -> String {
    format!("wal-{first:020}.log")
}

/// The name of the snapshot of a revision.
pub(crate) fn snapshot_name(revision: u64) -> String {
    format!("snap-{revision:020}.bin")
}

/// Which space a frame may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// The free space without the reserve.
    Ordinary,
    /// The reserve too: for writes that reduce the data.
    Reserve,
}

/// Why a frame was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// No space. The log is unchanged; the append may be retried.
    Full,
    /// The log rejects all frames until it is opened again.
    Failed(Arc<str>),
}

/// The failed operation and its error.
type Failure = (&'static str, io::Error);

/// The log, open for appending.
pub(crate) struct Log {
    manifest: Arc<Manifest>,
    segment_bytes: u64,
    /// New segments may have sealed values.
    is_sealed: bool,
    file: Box<dyn DiskFile>,
    /// First revisions of the segments, oldest first. The last one is `file`.
    segments: Vec<u64>,
    /// Offset of the next frame.
    end: u64,
    /// Recorded length of the file, with zeros beyond `end`.
    reserved: u64,
    /// Checksum of the last frame.
    chain: u32,
    /// Checksum of the file up to `end`.
    checksum: crc32fast::Hasher,
    /// A failed write may have left data between `end` and here.
    dirty: Option<u64>,
    /// The next frame starts a new segment.
    rotate: bool,
    /// An append has started and not finished.
    in_doubt: bool,
    /// The manifest could not be updated for a removal; it is not retried.
    purge_failed: bool,
    failed: Option<Arc<str>>,
}

/// The end of a log.
pub(crate) struct End {
    pub file: Box<dyn DiskFile>,
    pub end: u64,
    pub reserved: u64,
    pub chain: u32,
    pub checksum: crc32fast::Hasher,
}

impl Log {
    /// The log of a store whose files the manifest lists. The last segment ends at `end`.
    pub fn at_end(
        manifest: Arc<Manifest>,
        segment_bytes: u64,
        is_sealed: bool,
        at: End,
        rotate: bool,
    ) -> Self {
        let segments = manifest.contents().segments.keys().copied().collect();
        let End { file, end, reserved, chain, checksum } = at;
        let (dirty, in_doubt, purge_failed, failed) = (None, false, false, None);
        Self {
            manifest,
            segment_bytes,
            is_sealed,
            file,
            segments,
            end,
            reserved,
            chain,
            checksum,
            dirty,
            rotate,
            in_doubt,
            purge_failed,
            failed,
        }
    }

    /// Makes a frame durable and returns its size.
    pub fn append(
        &mut self,
        frame: &mut FrameBuilder,
        revision: u64,
        time: u64,
        space: Space,
    ) -> Result<u64, AppendError> {
        if let Some(reason) = &self.failed {
            return Err(AppendError::Failed(reason.clone()));
        }
        if self.in_doubt {
            return Err(AppendError::Failed("an earlier commit was interrupted".into()));
        }
        self.in_doubt = true;
        let result = self.try_append(frame, revision, time, space);
        self.in_doubt = false;
        result.map_err(|failure| self.classify_failure(failure))
    }

    /// Reserves more space, to find out whether there is any.
    pub fn reserve_more(&mut self) -> Result<(), AppendError> {
        if let Some(reason) = &self.failed {
            return Err(AppendError::Failed(reason.clone()));
        }
        let unit = self.manifest.disk().reserve_unit();
        let to = (self.end + unit).next_multiple_of(unit);
        if to <= self.reserved {
            return Ok(());
        }
        self.extend(to).map_err(|failure| self.classify_failure(failure))
    }

    /// Whether the log can continue after a failure.
    fn classify_failure(&mut self, (operation, error): Failure) -> AppendError {
        if is_full(&error) && operation != SYNC {
            return AppendError::Full;
        }
        let reason: Arc<str> = format!("{operation} {}: {error}", self.current_name()).into();
        self.failed = Some(reason.clone());
        AppendError::Failed(reason)
    }

    fn try_append(
        &mut self,
        frame: &mut FrameBuilder,
        revision: u64,
        time: u64,
        space: Space,
    ) -> Result<u64, Failure> {
        self.clean()?;
        let due = self.rotate || self.end >= self.segment_bytes;
        if due && space == Space::Ordinary && self.segments.last().is_some_and(|first| *first < revision) {
            self.rotate(revision)?;
        }
        let (bytes, chain) = frame.finish(revision, time, self.chain);
        let end = self.end + bytes.len() as u64;
        self.make_room(end, space)?;
        self.file.write_at(self.end, bytes).map_err(|error| {
            self.dirty = Some(end);
            ("write", error)
        })?;
        self.file.sync_data().map_err(|error| (SYNC, error))?;
        self.checksum.update(bytes);
        (self.end, self.chain) = (end, chain);
        Ok(bytes.len() as u64)
    }

    /// Removes the remains of a failed write.
    fn clean(&mut self) -> Result<(), Failure> {
        if let Some(to) = self.dirty {
            let zeros = vec![0; (to - self.end) as usize];
            self.file.write_at(self.end, &zeros).map_err(|error| ("write", error))?;
            self.dirty = None;
        }
        Ok(())
    }

    /// Reserves space for a frame that ends at `end` and for deletes after it.
    fn make_room(&mut self, end: u64, space: Space) -> Result<(), Failure> {
        let unit = self.manifest.disk().reserve_unit();
        let wanted = end + unit / 2;
        if wanted <= self.reserved {
            return Ok(());
        }
        match self.extend(wanted.next_multiple_of(unit)) {
            Err((_, error)) if is_full(&error) && space == Space::Reserve && end <= self.reserved => Ok(()),
            result => result,
        }
    }

    /// Extends the file durably and then records its length: a frame is never beyond the recorded length.
    fn extend(&mut self, to: u64) -> Result<(), Failure> {
        let size = self.file.reserve(to).map_err(|error| ("extend", error))?;
        self.file.sync_data().map_err(|error| (SYNC, error))?;
        match self.record_current(size) {
            Ok(()) => {
                self.reserved = size;
                Ok(())
            }
            Err(error) if error.is_full() => {
                // Without the record, the space cannot be used.
                let _ = self.file.truncate(self.reserved);
                Err(("extend", error.into_inner()))
            }
            Err(error) => Err((SYNC, error.into_inner())),
        }
    }

    /// Records the content of the current segment and its least length.
    fn record_current(&self, least: u64) -> Result<(), UpdateError> {
        let (current, prefix) = (self.segments.last().copied(), self.prefix());
        self.manifest.update(|contents| {
            if let Some(first) = current {
                contents.segments.insert(first, Segment { prefix, open: Some(least) });
            }
        })
    }

    fn prefix(&self) -> Prefix {
        Prefix { length: self.end, checksum: self.checksum.clone().finalize() }
    }

    /// Records the end of a log that is not written to any more.
    pub fn close(self) {
        if self.failed.is_none()
            && let Err(error) = self.record_current(self.reserved)
        {
            let error = error.into_inner();
            tracing::warn!(%error, "cannot record the end of the log");
        }
    }

    /// Whether the current segments may have deletes without values. One written by an earlier release may not.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed && !self.rotate
    }

    /// Makes the next frame start a new segment.
    pub fn rotate_next(&mut self) {
        self.rotate = true;
    }

    /// Continues in a new segment, if there is space for one. One manifest update seals the old segment and adds the
    /// new one. A crash before it leaves a segment without frames, a crash after it a segment with zeros at its end.
    fn rotate(&mut self, first: u64) -> Result<(), Failure> {
        let disk = self.manifest.disk().clone();
        let created = create_segment(&*disk, self.manifest.store(), first, self.chain, self.is_sealed)
            .map_err(UpdateError::Unchanged);
        let created = created.and_then(|(file, segment)| {
            let (old, prefix) = (self.segments.last().copied(), self.prefix());
            self.manifest.update(|contents| {
                if let Some(old) = old {
                    contents.segments.insert(old, Segment { prefix, open: None });
                }
                contents.segments.insert(first, segment);
            })?;
            Ok((file, segment))
        });
        match created {
            Ok((file, segment)) => {
                let old = std::mem::replace(&mut self.file, file);
                // Frees the reserved space. Recovery does the same after a crash.
                if let Err(error) = old.truncate(self.end) {
                    tracing::warn!(file = self.current_name(), %error, "cannot shorten a segment");
                }
                self.segments.push(first);
                self.end = segment.prefix.length;
                self.reserved = segment.open.unwrap_or(self.end);
                self.checksum = crc32fast::Hasher::new_with_initial_len(segment.prefix.checksum, self.end);
                self.rotate = false;
                Ok(())
            }
            Err(error) if error.is_full() => {
                // The old segment stays in use, and the new one must not reappear with frames in it.
                let name = segment_name(first);
                match disk.remove(&name) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err((SYNC, error)),
                    _ => disk.sync_dir().map_err(|error| (SYNC, error)),
                }
            }
            Err(error) => Err((SYNC, error.into_inner())),
        }
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        self.manifest.disk()
    }

    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    fn current_name(&self) -> String {
        segment_name(self.segments.last().copied().unwrap_or_default())
    }

    /// Removes the segments and older snapshots that a start from the snapshot of `base` does not read. Returns
    /// whether the manifest no longer lists them. A file that cannot be removed is removed at the next start.
    pub fn purge(&mut self, base: u64, snapshots: &[u64]) -> bool {
        if self.purge_failed {
            return false;
        }
        let count = self.count_before(base);
        let update = self.manifest.update(|contents| {
            contents.segments.retain(|first, _| !self.segments[..count].contains(first));
            contents.snapshots.retain(|revision, _| !snapshots.contains(revision));
        });
        if let Err(error) = update {
            // On a full disk it is retried; there may be space by then.
            self.purge_failed = !error.is_full();
            let error = error.into_inner();
            tracing::warn!(%error, "cannot update the manifest; files that are no longer needed stay");
            return false;
        }
        let names = self.segments.drain(..count).map(segment_name);
        for name in names.chain(snapshots.iter().copied().map(snapshot_name)) {
            if let Err(error) = self.manifest.disk().remove(&name) {
                tracing::warn!(file = name, %error, "cannot remove a file that is no longer needed");
            }
        }
        true
    }

    fn count_before(&self, base: u64) -> usize {
        self.segments.iter().skip(1).take_while(|next| **next <= base + 1).count()
    }

    /// Whether there are segments that a start from the snapshot of `base` does not read.
    pub fn has_before(&self, base: u64) -> bool {
        !self.purge_failed && self.count_before(base) > 0
    }
}

const SYNC: &str = "sync";

/// Creates a segment with reserved space, durable including its name. It is not part of the store until the manifest
/// lists it.
pub(crate) fn create_segment(
    disk: &dyn Disk,
    store: u32,
    first: u64,
    chain: u32,
    is_sealed: bool,
) -> io::Result<(Box<dyn DiskFile>, Segment)> {
    let file = disk.create(&segment_name(first))?;
    let header = Header { store, revision: first, chain, is_sealed }.encode(Kind::Log);
    file.write_at(0, &header)?;
    let size = file.reserve(disk.reserve_unit())?;
    file.sync_data()?;
    disk.sync_dir()?;
    debug_assert_eq!(header.len(), HEADER);
    Ok((file, Segment { prefix: Prefix::of(&header), open: Some(size) }))
}
