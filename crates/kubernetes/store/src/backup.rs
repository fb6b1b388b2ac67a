//! Backups: an image of the whole store, and a new data directory restored from one.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    sync::Arc,
    time::SystemTime,
};

use bytes::Bytes;

use crate::{
    Cipher, Digest, OpenError, Store,
    checkpoint::write_snapshot,
    cipher::Reader,
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

/// Result of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Revision of the backup.
    pub backed_up: u64,
    /// First revision of the restored store. Everything before it is compacted.
    pub revision: u64,
    /// Number of restored entries.
    pub entries: u64,
}

/// A consistent image of a store at one revision. Blocks are encoded on demand. Reads and writes of the store
/// continue meanwhile.
pub struct Image<D> {
    revision: u64,
    blocks: Blocks<D>,
}

impl<D> Image<D> {
    /// The revision of the image.
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
    /// A consistent image of the current state as one stream with checksums, in O(1).
    pub fn image(&self) -> Image<D> {
        let state = self.shared().state.load_full();
        let cipher = self.shared().options.cipher.clone();
        Image { revision: state.revision, blocks: Blocks::new(state.clone(), 0, state.revision, cipher) }
    }

    /// Writes an [image](Self::image) and returns its revision. Blocks on `out`.
    pub fn backup(&self, out: &mut dyn Write) -> io::Result<u64> {
        let mut image = self.image();
        image.try_for_each(|block| out.write_all(&block))?;
        out.flush()?;
        Ok(image.revision)
    }
}

/// What a backup contains, as far as it is known without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// Revision of the backup.
    pub revision: u64,
    /// Number of entries.
    pub entries: u64,
    /// Number of entries with sealed values.
    pub sealed: u64,
}

/// A backup that was read completely and verified.
#[derive(Clone)]
pub struct Backup {
    pub(crate) state: State<()>,
}

impl Backup {
    /// Reads and verifies a backup. Fails if any of it is damaged or truncated, or cannot be decrypted.
    pub fn read(input: &mut dyn Read, cipher: Option<&dyn Cipher>) -> Result<Self, OpenError> {
        let mut reader = Reader::new(cipher);
        let state = read_image(input, &mut reader)?;
        reader.finish()?;
        Ok(Self { state })
    }

    /// Verifies a backup without a key: its checksums and its structure.
    pub fn verify(input: &mut dyn Read) -> Result<BackupSummary, OpenError> {
        let mut sealed = 0;
        let mut count = |_: &str, _: &str, value: Option<&[u8]>| sealed += u64::from(value.is_some());
        let state: State<()> = read_image(input, &mut Reader::visiting(&mut count))?;
        Ok(BackupSummary { revision: state.revision, entries: state.count, sealed })
    }

    /// Revision of the backup.
    pub fn revision(&self) -> u64 {
        self.state.revision
    }

    /// Number of entries in the backup.
    pub fn entries(&self) -> u64 {
        self.state.count
    }

    /// Begins a data directory. A store refuses to open it until the restore is finished.
    ///
    /// Clients may have seen revisions after the backup, or after an earlier restore of the same backup, that the
    /// restored store never had. If they were reused, a client would resume a watch in another history and miss
    /// events silently. The restored store therefore starts at a revision beyond all of them, with everything before
    /// it compacted, so that such a client must list again. That revision is `now` in microseconds since 1970. No
    /// store reaches it by counting below a million transactions per second, it differs for each restore, and it
    /// stays below 2^53 until the year 2255 for clients that use floating point. If the clock is behind, it is a
    /// thousand million beyond the backup's.
    ///
    /// With a cipher, values of the buckets that it covers are sealed.
    pub fn begin(
        self,
        disk: impl Disk,
        now: SystemTime,
        cipher: Option<Arc<dyn Cipher>>,
    ) -> Result<Restore, OpenError> {
        if !is_empty(&disk)? {
            return Err(OpenError::NotEmpty);
        }
        let mut state = self.state;
        let clock = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_micros());
        let revision = u64::try_from(clock).unwrap_or(u64::MAX / 2).max(state.revision.saturating_add(STEP));
        let backed_up = std::mem::replace(&mut state.revision, revision);
        // The manifest is written last: a directory without it does not open.
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let store = new_identity(&*disk).map_err(|source| failed("create", MANIFEST.into(), source))?;
        let first = revision + 1;
        let (_, segment) = create_segment(&*disk, store, first, 0, cipher.is_some())
            .map_err(|source| failed("create", segment_name(first), source))?;
        Ok(Restore { disk, store, segment, state, backed_up, cipher })
    }
}

fn read_image(input: &mut dyn Read, reader: &mut Reader<'_>) -> Result<State<()>, OpenError> {
    const BACKUP: &str = "the backup";
    image::read(input, reader).map_err(|error| match error {
        ImageError::Damaged { offset, reason } => OpenError::Damaged { file: BACKUP.into(), offset, reason },
        ImageError::Newer(found) => OpenError::Newer { file: BACKUP.into(), found },
        ImageError::Io(source) => OpenError::Io { operation: "read", file: BACKUP.into(), source },
    })
}

/// A restore in progress. Files that belong next to the store are written before [`Self::finish`].
#[must_use]
pub struct Restore {
    disk: Arc<dyn Disk>,
    store: u32,
    segment: Segment,
    state: State<()>,
    backed_up: u64,
    cipher: Option<Arc<dyn Cipher>>,
}

impl Restore {
    /// Writes the entries. After this the directory opens.
    pub fn finish(self) -> Result<Restored, OpenError> {
        let (state, revision) = (&self.state, self.state.revision);
        let snapshot = write_snapshot(&*self.disk, state, self.store, revision, self.cipher.clone())
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

/// Creates a data directory from a backup without encryption: [`Backup::read`], [`Backup::begin`] and [`Restore::finish`].
pub fn restore(backup: &mut dyn Read, disk: impl Disk, now: SystemTime) -> Result<Restored, OpenError> {
    Backup::read(backup, None)?.begin(disk, now, None)?.finish()
}
