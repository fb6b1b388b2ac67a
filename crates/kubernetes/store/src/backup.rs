//! Backups: an image of the whole store, and a new data directory made from one.

use std::{
    io::{self, Read, Write},
    sync::Arc,
    time::SystemTime,
};

use crate::{
    Digest, OpenError, Store,
    checkpoint::write_snapshot,
    disk::Disk,
    image::{self, ImageError},
    log::{Log, recover::is_empty, segment_name, snapshot_name},
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

impl<D: Digest> Store<D> {
    /// Writes a consistent image of the present state, in one self-checking stream, and returns its
    /// revision. Reads and writes go on meanwhile. Blocks on `out`.
    pub fn backup(&self, out: &mut dyn Write) -> io::Result<u64> {
        let state = self.shared().state.load_full();
        image::write(&state, state.revision, out)?;
        out.flush()?;
        Ok(state.revision)
    }
}

/// Makes a data directory from a backup. The backup is read and checked to its end before the disk is touched.
///
/// Clients may have seen revisions after the backup, and after an earlier restore of the same backup, that
/// never happened as far as the restored store knows. Were they reused, a client would resume a watch in the
/// middle of another history and miss events without noticing. So the restored store begins at a revision
/// beyond all of them, with everything before it compacted: such a client is told to list anew. That revision
/// is `now` in microseconds since 1970, which no store reaches by counting below a million transactions per
/// second, is different for each restore, and stays below 2^53 until the year 2255 for clients that compute
/// in floating point; or a thousand million beyond the backup, if the clock says less.
pub fn restore(backup: &mut dyn Read, disk: impl Disk, now: SystemTime) -> Result<Restored, OpenError> {
    const BACKUP: &str = "the backup";
    let mut state: State<()> = image::read(backup).map_err(|error| match error {
        ImageError::Damaged { offset, reason } => OpenError::Damaged { file: BACKUP.into(), offset, reason },
        ImageError::Newer(found) => OpenError::Newer { file: BACKUP.into(), found },
        ImageError::Io(source) => OpenError::Io { operation: "read", file: BACKUP.into(), source },
    })?;
    if !is_empty(&disk)? {
        return Err(OpenError::NotEmpty);
    }
    let clock = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_micros());
    let revision = u64::try_from(clock).unwrap_or(u64::MAX / 2).max(state.revision.saturating_add(STEP));
    let backed_up = std::mem::replace(&mut state.revision, revision);
    // The log first: a directory with only one of the two does not open.
    let context = |operation, file| move |source| OpenError::Io { operation, file, source };
    let disk: Arc<dyn Disk> = Arc::new(disk);
    Log::create(disk.clone(), 0, revision + 1).map_err(context("create", segment_name(revision + 1)))?;
    write_snapshot(&*disk, &state, revision).map_err(context("write", snapshot_name(revision)))?;
    Ok(Restored { backed_up, revision, entries: state.count })
}
