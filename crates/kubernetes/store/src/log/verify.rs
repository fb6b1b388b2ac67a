//! Compares the files with the manifest: missing, truncated, damaged or foreign files.

use std::io;

use super::{frame::Frame, recover::read_all};
use crate::{
    codec::{HEADER, Header, Kind},
    disk::{Disk, DiskFile},
    error::OpenError,
    manifest::{Contents, FileName, MANIFEST, Prefix, Segment, TEMPORARY},
};

/// The files in the directory of a store, oldest first.
#[derive(Default)]
pub(crate) struct Listing {
    pub segments: Vec<u64>,
    pub snapshots: Vec<u64>,
    /// Files that were being written when the process ended.
    pub unfinished: Vec<String>,
}

impl Listing {
    pub fn read(disk: &dyn Disk) -> Result<Self, OpenError> {
        let mut listing = Self::default();
        for name in disk.list().map_err(|source| failed("list", ".", source))? {
            match FileName::parse(&name) {
                Some(FileName::Segment(first)) => listing.segments.push(first),
                Some(FileName::Snapshot(revision)) => listing.snapshots.push(revision),
                None if name == TEMPORARY || (name.starts_with("snap-") && name.ends_with(".tmp")) => {
                    listing.unfinished.push(name);
                }
                None => {}
            }
        }
        listing.segments.sort_unstable();
        listing.snapshots.sort_unstable();
        Ok(listing)
    }

    pub fn files(&self) -> impl Iterator<Item = FileName> {
        let segments = self.segments.iter().copied().map(FileName::Segment);
        segments.chain(self.snapshots.iter().copied().map(FileName::Snapshot))
    }
}

/// A problem of a file, and whether the file belongs to another store or was replaced. A file with damaged content
/// does not count as replaced and need not prevent a start.
pub(crate) struct Finding {
    pub file: FileName,
    pub error: OpenError,
}

impl Finding {
    /// Whether the content is damaged, which does not matter for a file that is not needed.
    pub fn is_damage(&self) -> bool {
        matches!(self.error, OpenError::Damaged { .. })
    }
}

/// Compares the listed files with the manifest.
pub(crate) fn listed(disk: &dyn Disk, contents: &Contents) -> Result<Vec<Finding>, OpenError> {
    let segments = contents.segments.iter().map(|(first, segment)| (FileName::Segment(*first), *segment));
    let snapshots = contents
        .snapshots
        .iter()
        .map(|(revision, prefix)| (FileName::Snapshot(*revision), Segment { prefix: *prefix, open: None }));
    let mut findings = Vec::new();
    for (file, expected) in segments.chain(snapshots) {
        if let Err(error) = check(disk, contents.store, file, expected) {
            if matches!(error, OpenError::Io { .. }) {
                return Err(error);
            }
            findings.push(Finding { file, error });
        }
    }
    Ok(findings)
}

/// Checks the files that the manifest does not list. Returns leftovers of a crash, which can be removed.
pub(crate) fn unlisted(
    disk: &dyn Disk,
    listing: &Listing,
    contents: &Contents,
) -> Result<(Vec<String>, Vec<Finding>), OpenError> {
    let mut leftovers = Vec::new();
    let mut findings = Vec::new();
    let mut stores = Vec::new();
    let (first, last) = (contents.segments.keys().next().copied(), contents.segments.keys().last().copied());
    for file in listing.files() {
        let name = file.to_string();
        let opened = disk.open(&name).map_err(|source| failed("open", &name, source))?;
        let store = identity(&*opened, file).map_err(|source| failed("read", &name, source))?;
        stores.extend(store);
        let is_listed = match file {
            FileName::Segment(first) => contents.segments.contains_key(&first),
            FileName::Snapshot(revision) => contents.snapshots.contains_key(&revision),
        };
        if is_listed {
            continue;
        }
        if store.is_some_and(|store| store != contents.store) {
            findings.push(Finding { file, error: OpenError::Foreign { file: name } });
            continue;
        }
        // Snapshots and segments are listed after they are created, and removed after they are unlisted. A new
        // segment has no frames before it is listed.
        let is_leftover = match file {
            FileName::Snapshot(_) => true,
            FileName::Segment(number) if first.is_some_and(|first| number < first) => true,
            FileName::Segment(number) => {
                last.is_some_and(|last| number > last)
                    && Frame::find(&read_all(&*opened, &name)?, 0).is_none()
            }
        };
        if is_leftover {
            leftovers.push(name);
        } else {
            findings.push(Finding { file, error: OpenError::Unlisted { file: name } });
        }
    }
    // If no file belongs to the manifest's store, the manifest is the foreign file.
    if let Some(file) = listing.files().next()
        && stores.len() > 1
        && stores.iter().all(|store| *store != contents.store)
    {
        findings.insert(0, Finding { file, error: OpenError::Foreign { file: MANIFEST.into() } });
    }
    Ok((leftovers, findings))
}

/// The store identity in a file's header. `None` for files of format 1 and files without a valid header.
pub(crate) fn identity(file: &dyn DiskFile, name: FileName) -> io::Result<Option<u32>> {
    let mut header = [0; HEADER];
    let read = file.read_at(0, &mut header)?;
    let kind = match name {
        FileName::Segment(_) => Kind::Log,
        FileName::Snapshot(_) => Kind::Image,
    };
    let header = Header::decode(kind, &header[..read]).ok();
    Ok(header.map(|header| header.store).filter(|store| *store != 0))
}

fn check(disk: &dyn Disk, store: u32, name: FileName, expected: Segment) -> Result<(), OpenError> {
    let file_name = || name.to_string();
    let file = disk.open(&file_name()).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => OpenError::Missing { file: file_name() },
        _ => failed("open", &file_name(), source),
    })?;
    let read = |source| failed("read", &file_name(), source);
    if identity(&*file, name).map_err(read)?.is_some_and(|found| found != store) {
        return Err(OpenError::Foreign { file: file_name() });
    }
    let Segment { prefix, open } = expected;
    let (length, least) = (file.size().map_err(read)?, open.unwrap_or(0).max(prefix.length));
    if length < least {
        return Err(OpenError::Shortened { file: file_name(), length, expected: least });
    }
    let damaged = |offset, reason| OpenError::Damaged { file: file_name(), offset, reason };
    let Content { checksum, padded } = content(&*file, prefix.length, open.is_none()).map_err(read)?;
    if checksum != prefix.checksum {
        return Err(damaged(0, "its checksum is not the one in MANIFEST"));
    }
    if !padded {
        return Err(damaged(prefix.length, "there is something after its end"));
    }
    Ok(())
}

struct Content {
    checksum: u32,
    /// Only zeros follow the prefix, or that was not checked.
    padded: bool,
}

fn content(file: &dyn DiskFile, length: u64, whole: bool) -> io::Result<Content> {
    let mut buffer = vec![0; 1 << 18];
    let mut hasher = crc32fast::Hasher::new();
    let mut offset = 0;
    let mut padded = true;
    while whole || offset < length {
        let read = file.read_at(offset, &mut buffer)?;
        if read == 0 {
            break;
        }
        let inside = usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX).min(read);
        hasher.update(&buffer[..inside]);
        padded &= !whole || buffer[inside..read].iter().all(|byte| *byte == 0);
        offset += read as u64;
    }
    Ok(Content { checksum: hasher.finalize(), padded })
}

pub(crate) fn measure(disk: &dyn Disk, name: &str) -> Result<Prefix, OpenError> {
    let read = |source| failed("read", name, source);
    let file = disk.open(name).map_err(|source| failed("open", name, source))?;
    let length = file.size().map_err(read)?;
    Ok(Prefix { length, checksum: content(&*file, length, false).map_err(read)?.checksum })
}

pub(crate) fn failed(operation: &'static str, file: &str, source: io::Error) -> OpenError {
    OpenError::Io { operation, file: file.to_owned(), source }
}
