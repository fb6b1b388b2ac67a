//! Backups: an image of the whole store, and a new data directory made from one.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    sync::Arc,
    time::SystemTime,
};

use bytes::Bytes;

use crate::{
    Digest, OpenError, Store,
    checkpoint::write_snapshot,
    disk::Disk,
    image::{self, Blocks, ImageError},
    log::{
        create_segment,
        recover::{is_empty, write_manifest},
        segment_name, snapshot_name,
    },
    manifest::{Contents, MANIFEST, Manifest, Segment, new_identity},
    state::State,
};

/// Least distance between the revision of a backup and that of the store restored from it.
const STEP: u64 = 1_000_000_000;

/// What a restore brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The revision that was backed up.
    pub backed_up: u64,
    /// The revision at which the restored store begins.
    pub revision: u64,
    /// The number of entries.
    pub entries: u64,
}

/// A consistent image of a store at one revision, in blocks that are made when they are asked for. Reads and
/// writes of the store go on meanwhile.
pub struct Image<D> {
    revision: u64,
    blocks: Blocks<D>,
}

impl<D> Image<D> {
    /// The revision it shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl<D> Iterator for Image<D> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        self.blocks.next()
    }
}

impl<D: Digest> Store<D> {
    /// A consistent image of the present state as one self-checking stream, in O(1).
    pub fn image(&self) -> Image<D> {
        let state = self.shared().state.load_full();
        Image { revision: state.revision, blocks: Blocks::new(state.clone(), 0, state.revision) }
    }

    /// Writes an [image](Self::image) and returns its revision. Blocks on `out`.
    pub fn backup(&self, out: &mut dyn Write) -> io::Result<u64> {
        let mut image = self.image();
        image.try_for_each(|block| out.write_all(&block))?;
        out.flush()?;
        Ok(image.revision)
    }
}

/// A backup that was read and checked to its end.
#[derive(Clone)]
pub struct Backup {
    pub(crate) state: State<()>,
}

impl Backup {
    /// Reads a backup; nothing of one that is damaged or cut off is used.
    pub fn read(input: &mut dyn Read) -> Result<Self, OpenError> {
        const BACKUP: &str = "the backup";
        let state = image::read(input).map_err(|error| match error {
            ImageError::Damaged { offset, reason } => {
                OpenError::Damaged { file: BACKUP.into(), offset, reason }
            }
            ImageError::Newer(found) => OpenError::Newer { file: BACKUP.into(), found },
            ImageError::Io(source) => OpenError::Io { operation: "read", file: BACKUP.into(), source },
        })?;
        Ok(Self { state })
    }

    /// The revision that was backed up.
    pub fn revision(&self) -> u64 {
        self.state.revision
    }

    /// The number of entries.
    pub fn entries(&self) -> u64 {
        self.state.count
    }

    /// Begins a data directory. Until the restore is finished, a store refuses to open there.
    ///
    /// Clients may have seen revisions after the backup, and after an earlier restore of the same backup,
    /// that never happened as far as the restored store knows. Were they reused, a client would resume a
    /// watch in the middle of another history and miss events without noticing. So the restored store begins
    /// at a revision beyond all of them, with everything before it compacted: such a client is told to list
    /// anew. That revision is `now` in microseconds since 1970, which no store reaches by counting below a
    /// million transactions per second, is different for each restore, and stays below 2^53 until the year
    /// 2255 for clients that compute in floating point; or a thousand million beyond the backup, if the clock
    /// says less.
    pub fn begin(self, disk: impl Disk, now: SystemTime) -> Result<Restore, OpenError> {
        if !is_empty(&disk)? {
            return Err(OpenError::NotEmpty);
        }
        let mut state = self.state;
        let clock = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_micros());
        let revision = u64::try_from(clock).unwrap_or(u64::MAX / 2).max(state.revision.saturating_add(STEP));
        let backed_up = std::mem::replace(&mut state.revision, revision);
        // The manifest comes last: a directory without it does not open.
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let store = new_identity(&*disk).map_err(|source| failed("create", MANIFEST.into(), source))?;
        let first = revision + 1;
        let (_, segment) = create_segment(&*disk, store, first, 0)
            .map_err(|source| failed("create", segment_name(first), source))?;
        Ok(Restore { disk, store, segment, state, backed_up })
    }
}

/// A restore under way: what belongs beside the store is put there before it is finished.
#[must_use]
pub struct Restore {
    disk: Arc<dyn Disk>,
    store: u32,
    segment: Segment,
    state: State<()>,
    backed_up: u64,
}

impl Restore {
    /// Writes the entries. From here on the directory opens.
    pub fn finish(self) -> Result<Restored, OpenError> {
        let (state, revision) = (&self.state, self.state.revision);
        let snapshot = write_snapshot(&*self.disk, state, self.store, revision)
            .map_err(|source| failed("write", snapshot_name(revision), source))?;
        let contents = Contents {
            store: self.store,
            segments: BTreeMap::from([(revision + 1, self.segment)]),
            snapshots: BTreeMap::from([(revision, snapshot)]),
        };
        write_manifest(&Manifest::new(self.disk.clone(), Contents::default()), contents)?;
        Ok(Restored { backed_up: self.backed_up, revision, entries: state.count })
    }
}

fn failed(operation: &'static str, file: String, source: io::Error) -> OpenError {
    OpenError::Io { operation, file, source }
}

/// Makes a data directory from a backup: [`Backup::read`], [`Backup::begin`] and [`Restore::finish`].
pub fn restore(backup: &mut dyn Read, disk: impl Disk, now: SystemTime) -> Result<Restored, OpenError> {
    Backup::read(backup)?.begin(disk, now)?.finish()
}
