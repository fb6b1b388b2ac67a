//! Lists the values in the files of a store without decrypting them, also while a process uses it.

use std::io::BufReader;

use super::{
    frame::Frame,
    recover::read_all,
    segment_name, snapshot_name,
    verify::{Listing, failed as io},
};
use crate::{
    cipher::Reader,
    codec::HEADER,
    disk::{Disk, Sequential},
    error::OpenError,
    image,
    state::State,
};

/// A value in a file.
pub struct FileValue<'a> {
    /// The file name.
    pub file: &'a str,
    /// The bucket of the entry.
    pub bucket: &'a str,
    /// The key of the entry.
    pub key: &'a str,
    /// The sealed bytes; `None` if the value is plain.
    pub sealed: Option<&'a [u8]>,
}

/// Visits the values in every file of a store. Files that a running process removes meanwhile are skipped, and so is
/// what cannot be read.
pub fn survey(disk: &dyn Disk, visit: &mut dyn FnMut(FileValue<'_>)) -> Result<(), OpenError> {
    let listing = Listing::read(disk)?;
    for name in listing.snapshots.iter().copied().map(snapshot_name) {
        let Some(file) = existing(disk, &name)? else { continue };
        let mut visitor = |bucket: &str, key: &str, sealed: Option<&[u8]>| {
            visit(FileValue { file: &name, bucket, key, sealed });
        };
        let mut reader = Reader::visiting(&mut visitor);
        let mut input = BufReader::with_capacity(1 << 20, Sequential { file: &*file, offset: 0 });
        let _: Result<State<()>, _> = image::read(&mut input, &mut reader);
    }
    for name in listing.segments.iter().copied().map(segment_name) {
        let Some(file) = existing(disk, &name)? else { continue };
        let bytes = read_all(&*file, &name)?;
        let mut visitor = |bucket: &str, key: &str, sealed: Option<&[u8]>| {
            visit(FileValue { file: &name, bucket, key, sealed });
        };
        let mut reader = Reader::visiting(&mut visitor);
        let mut offset = HEADER.min(bytes.len());
        while let Some(frame) = Frame::decode(&bytes[offset..]) {
            let _ = frame.transactions(&mut reader);
            offset += frame.size();
        }
    }
    Ok(())
}

fn existing(disk: &dyn Disk, name: &str) -> Result<Option<Box<dyn crate::disk::DiskFile>>, OpenError> {
    match disk.open(name) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io("open", name, source)),
    }
}
