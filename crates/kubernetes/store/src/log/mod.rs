//! The write-ahead log: segments of frames, one frame and one sync per group commit.
//!
//! At most one frame is ever unsynced, because the next is written after the sync of this one. So after a
//! crash only the last frame can be incomplete; a sound frame after an unsound one means damage.

pub(crate) mod frame;
pub(crate) mod recover;

use std::{io, sync::Arc};

use self::frame::FrameBuilder;
use crate::{
    codec::{HEADER, Header, Kind},
    disk::{Disk, DiskFile, is_full},
};

/// Space set aside ahead of the log's end.
const RESERVE: u64 = 8 << 20;

/// The name of the segment that begins with a revision.
pub(crate) fn segment_name(first: u64) -> String {
    format!("wal-{first:020}.log")
}

/// The name of the snapshot of a revision.
pub(crate) fn snapshot_name(revision: u64) -> String {
    format!("snap-{revision:020}.bin")
}

/// Why a frame was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// No space. The log is as it was; appending may be tried again.
    Full,
    /// The log takes no more until it is opened anew.
    Failed(Arc<str>),
}

/// The log, open at its end.
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
    file: Box<dyn DiskFile>,
    /// First revisions of the segments, oldest first; the last one is `file`.
    segments: Vec<u64>,
    /// Where the next frame goes.
    end: u64,
    /// Length of the file: zeros beyond `end`.
    reserved: u64,
    /// Checksum of the last frame.
    chain: u32,
    /// A failed write may have left something beyond `end`.
    dirty: bool,
    /// An append has begun and not ended.
    in_doubt: bool,
    /// A file may be removed or not; removing newer ones could leave a gap.
    purge_in_doubt: bool,
    failed: Option<Arc<str>>,
}

impl Log {
    /// A log whose first revision is `first`, in a directory without one.
    pub fn create(disk: Arc<dyn Disk>, segment_bytes: u64, first: u64) -> io::Result<Self> {
        let file = create_segment(&*disk, first, 0)?;
        let (end, segments) = (HEADER as u64, vec![first]);
        let (reserved, chain) = (end, 0);
        Ok(Self::at_end(disk, segment_bytes, file, segments, end, reserved, chain))
    }

    fn at_end(
        disk: Arc<dyn Disk>,
        segment_bytes: u64,
        file: Box<dyn DiskFile>,
        segments: Vec<u64>,
        end: u64,
        reserved: u64,
        chain: u32,
    ) -> Self {
        let (dirty, in_doubt, purge_in_doubt, failed) = (false, false, false, None);
        Self {
            disk,
            segment_bytes,
            file,
            segments,
            end,
            reserved,
            chain,
            dirty,
            in_doubt,
            purge_in_doubt,
            failed,
        }
    }

    /// Makes a frame durable, then returns its size.
    pub fn append(&mut self, frame: &mut FrameBuilder, revision: u64, time: u64) -> Result<u64, AppendError> {
        if let Some(reason) = &self.failed {
            return Err(AppendError::Failed(reason.clone()));
        }
        if self.in_doubt {
            return Err(AppendError::Failed("an earlier commit was interrupted".into()));
        }
        self.in_doubt = true;
        let result = self.try_append(frame, revision, time);
        self.in_doubt = false;
        result.map_err(|(operation, error)| {
            if is_full(&error) && operation != SYNC {
                self.dirty = self.file.truncate(self.end).is_err();
                self.reserved = self.end;
                return AppendError::Full;
            }
            let reason: Arc<str> = format!("{operation} {}: {error}", self.current_name()).into();
            self.failed = Some(reason.clone());
            AppendError::Failed(reason)
        })
    }

    fn try_append(
        &mut self,
        frame: &mut FrameBuilder,
        revision: u64,
        time: u64,
    ) -> Result<u64, (&'static str, io::Error)> {
        if self.dirty {
            self.file.truncate(self.end).map_err(|error| ("truncate", error))?;
            (self.dirty, self.reserved) = (false, self.end);
        }
        if self.end >= self.segment_bytes && self.segments.last().is_some_and(|first| *first < revision) {
            self.rotate(revision)?;
        }
        let (bytes, checksum) = frame.finish(revision, time, self.chain);
        let end = self.end + bytes.len() as u64;
        if end > self.reserved {
            // Too little space for the reserve may still be enough for the frame.
            match self.file.reserve(end.next_multiple_of(RESERVE)) {
                Ok(size) => self.reserved = size,
                Err(error) if is_full(&error) => {}
                Err(error) => return Err(("extend", error)),
            }
        }
        self.file.write_at(self.end, bytes).map_err(|error| ("write", error))?;
        self.file.sync_data().map_err(|error| (SYNC, error))?;
        self.reserved = self.reserved.max(end);
        (self.end, self.chain) = (end, checksum);
        Ok(bytes.len() as u64)
    }

    /// Goes on in a new segment. The old one ends with its last frame, durably, before there is a new one.
    fn rotate(&mut self, first: u64) -> Result<(), (&'static str, io::Error)> {
        self.file.truncate(self.end).map_err(|error| ("truncate", error))?;
        self.reserved = self.end;
        self.file.sync_data().map_err(|error| (SYNC, error))?;
        match create_segment(&*self.disk, first, self.chain) {
            Ok(file) => {
                self.file = file;
                self.segments.push(first);
                (self.end, self.reserved) = (HEADER as u64, HEADER as u64);
                Ok(())
            }
            // The old segment may go on only if the new one is gone for good.
            Err(error) if is_full(&error) => {
                let name = segment_name(first);
                let gone = self.disk.remove(&name).and_then(|()| self.disk.sync_dir());
                Err(gone.map_or_else(|error| (SYNC, error), |()| ("continue", error)))
            }
            Err(error) => Err((SYNC, error)),
        }
    }

    pub fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }

    fn current_name(&self) -> String {
        segment_name(self.segments.last().copied().unwrap_or_default())
    }

    /// Removes the segments and the given older snapshots that a start from the snapshot of `base` does not
    /// read. One that cannot be removed is tried again at the next start.
    pub fn purge(&mut self, base: u64, snapshots: impl Iterator<Item = u64>) {
        if self.purge_in_doubt {
            return;
        }
        let count = self.segments.iter().skip(1).take_while(|next| **next <= base + 1).count();
        let names = self.segments.drain(..count).map(segment_name).chain(snapshots.map(snapshot_name));
        if let Err((file, error)) = remove_in_order(&*self.disk, names) {
            self.purge_in_doubt = true;
            tracing::warn!(file, %error, "cannot remove a file that is no longer needed");
        }
    }

    /// Whether there are segments that a start from the snapshot of `base` does not read.
    pub fn has_before(&self, base: u64) -> bool {
        !self.purge_in_doubt && self.segments.get(1).is_some_and(|next| *next <= base + 1)
    }
}

const SYNC: &str = "sync";

/// Creates a segment, durable with its name.
fn create_segment(disk: &dyn Disk, first: u64, chain: u32) -> io::Result<Box<dyn DiskFile>> {
    let file = disk.create(&segment_name(first))?;
    file.write_at(0, &Header { revision: first, chain }.encode(Kind::Log))?;
    file.sync_data()?;
    disk.sync_dir()?;
    Ok(file)
}

/// Removes files, each for good before the next: a loss of power must not bring back an older segment
/// without the ones that follow it.
fn remove_in_order(disk: &dyn Disk, names: impl Iterator<Item = String>) -> Result<(), (String, io::Error)> {
    for name in names {
        disk.remove(&name).and_then(|()| disk.sync_dir()).map_err(|error| (name, error))?;
    }
    Ok(())
}
