//! Reserved space for a full disk: a file as large as a snapshot, into which a snapshot can be written. Without it a
//! full disk could not be compacted, because space is only gained after a snapshot is complete.

use std::io;

use crate::disk::{Disk, DiskFile};

pub(crate) const RESERVE: &str = "RESERVE";

/// Reserves space for a snapshot of `bytes`, if the disk has plenty.
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

/// Whether the reserve has at least `bytes`.
pub(crate) fn holds(disk: &dyn Disk, bytes: u64) -> io::Result<bool> {
    match disk.open(RESERVE) {
        Ok(file) => Ok(file.size()? >= bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Turns the reserve into a file of at least `bytes` with the new name and arbitrary content.
pub(crate) fn take(disk: &dyn Disk, bytes: u64, name: &str) -> io::Result<Option<Box<dyn DiskFile>>> {
    match disk.open(RESERVE) {
        Ok(file) if file.size()? >= bytes => disk.rename(RESERVE, name).map(|()| Some(file)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Frees part of the reserve, enough for a manifest. Returns whether there was any.
pub(crate) fn give_back(disk: &dyn Disk) -> bool {
    let Ok(file) = disk.open(RESERVE) else { return false };
    let Ok(size) = file.size() else { return false };
    size > 0 && file.truncate(size.saturating_sub(disk.reserve_unit() / 16)).is_ok()
}
