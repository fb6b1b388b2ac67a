//! Space kept for the day when the disk is full: a file as large as a snapshot, into which one can then be written.
//! Without it a full disk could not be compacted, because space is gained only after a snapshot is complete.

use std::io;

use crate::disk::{Disk, DiskFile};

/// The file that keeps the space.
pub(crate) const RESERVE: &str = "RESERVE";

/// Keeps space for a snapshot of `bytes`, if the disk has plenty.
pub(crate) fn keep(disk: &dyn Disk, bytes: u64) -> io::Result<()> {
    let wanted = (bytes + bytes / 4).next_multiple_of(disk.reserve_unit());
    let existing = match disk.open(RESERVE) {
        Ok(file) if file.size()? >= wanted => return Ok(()),
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if disk.available()? / 4 < wanted {
        return Ok(());
    }
    let file = existing.map_or_else(|| disk.create(RESERVE), Ok)?;
    file.reserve(wanted).map(drop)
}

/// Takes the space for a file of at most `bytes`: the file has the new name, and any content.
pub(crate) fn take(disk: &dyn Disk, bytes: u64, name: &str) -> io::Result<Option<Box<dyn DiskFile>>> {
    match disk.open(RESERVE) {
        Ok(file) if file.size()? >= bytes => disk.rename(RESERVE, name).map(|()| Some(file)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives part of the space back to the disk: enough for a manifest. Whether there was any.
pub(crate) fn give_back(disk: &dyn Disk) -> bool {
    let Ok(file) = disk.open(RESERVE) else { return false };
    let Ok(size) = file.size() else { return false };
    size > 0 && file.truncate(size.saturating_sub(disk.reserve_unit() / 16)).is_ok()
}
