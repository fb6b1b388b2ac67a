//! The storage behind a store: a directory, or a simulated disk with fault injection.

mod real;
mod sim;

use std::io;

pub use real::RealDisk;
pub use sim::SimDisk;

/// A flat directory of files. Nothing is durable until it is synced: data by [`DiskFile::sync_data`]; created,
/// renamed and removed names by [`Disk::sync_dir`].
pub trait Disk: Send + Sync + 'static {
    /// Whether operations never block. If so, they run on the calling task, and the store needs no threads.
    fn immediate(&self) -> bool {
        false
    }

    /// The names of all files, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a file, or truncates it if it exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Renames a file. Replaces an existing file of the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names in the directory durable.
    fn sync_dir(&self) -> io::Result<()>;

    /// Free space in bytes.
    fn available(&self) -> io::Result<u64>;

    /// A random number, used as the identity of a new store.
    fn random(&self) -> io::Result<u64>;

    /// Granularity in bytes in which space is reserved ahead of writes. Half of it stays free for deletes when the
    /// disk is full.
    fn reserve_unit(&self) -> u64 {
        8 << 20
    }
}

/// An open file. Handles may be used from several threads.
pub trait DiskFile: Send + Sync + 'static {
    /// The length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Reads at an offset. Returns 0 at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `data` at an offset. On failure any part of it may have been written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Extends the file to at least `to` with zeros, so that writes there need no new space. Returns the new length.
    /// Does nothing if the file is long enough.
    fn reserve(&self, to: u64) -> io::Result<u64>;

    /// Sets the length of the file.
    fn truncate(&self, size: u64) -> io::Result<()>;

    /// Makes data and length durable.
    fn sync_data(&self) -> io::Result<()>;
}

/// Reads or writes a file sequentially.
pub(crate) struct Sequential<'a> {
    pub file: &'a dyn DiskFile,
    pub offset: u64,
}

impl io::Read for Sequential<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl io::Write for Sequential<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.file.write_at(self.offset, data)?;
        self.offset += data.len() as u64;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether an error means that the disk is full, which may change.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
