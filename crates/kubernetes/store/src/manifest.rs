//! The manifest: lists the files of the store, so that a missing, truncated or replaced file is detected.
//!
//! It is a text file that is replaced as a whole: written under a temporary name, synced, renamed, and the directory
//! synced. Every other file is created before it is listed and removed after it is unlisted, so a crash may leave
//! files that are not listed, and never the reverse. Nothing is acknowledged from a file that is not listed.
//!
//! ```text
//! capstan store manifest 1
//! store 5f0c22a1
//! wal-00000000000000000002.log sealed 67108904 9a3c01ef
//! wal-00000000000000071204.log open 32 03b1cc40 8388608
//! snap-00000000000000071203.bin sealed 5120034 77ab90d2
//! checksum 1f2e3d4c
//! ```
//!
//! A sealed file has its length and checksum. The open segment has the length and checksum of its content when the
//! manifest was written, and the least length of the file: space is reserved and recorded here before frames are
//! written to it, so a truncated segment is too short even if the cut is between two frames.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Read as _},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};

use crate::{
    disk::{Disk, Sequential, is_full},
    error::OpenError,
    log::{segment_name, snapshot_name},
    reserve,
};

pub(crate) const MANIFEST: &str = "MANIFEST";
/// A manifest that is being written.
pub(crate) const TEMPORARY: &str = "MANIFEST.tmp";

const TITLE: &str = "capstan store manifest ";
const VERSION: u32 = 1;
/// Far more than a line for each file of any store.
const MAX_BYTES: u64 = 1 << 20;

/// Length and checksum of the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub length: u64,
    pub checksum: u32,
}

impl Prefix {
    pub fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, checksum: crc32fast::hash(bytes) }
    }
}

/// Manifest entry of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub prefix: Prefix,
    /// Least length of the file while it is written to; `None` once it is sealed.
    pub open: Option<u64>,
}

/// The files of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Identity of the store; never 0.
    pub store: u32,
    /// By first revision.
    pub segments: BTreeMap<u64, Segment>,
    /// By revision.
    pub snapshots: BTreeMap<u64, Prefix>,
}

/// Why a manifest update failed.
#[derive(Debug)]
pub(crate) enum UpdateError {
    /// The old manifest is in place.
    Unchanged(io::Error),
    /// Either of the two is in place.
    InDoubt(io::Error),
}

impl UpdateError {
    pub fn into_inner(self) -> io::Error {
        match self {
            Self::Unchanged(error) | Self::InDoubt(error) => error,
        }
    }

    /// Whether the disk was full and nothing has changed.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Unchanged(error) if is_full(error))
    }
}

/// The manifest of an open store. The commit lane and checkpoints update it.
pub(crate) struct Manifest {
    disk: Arc<dyn Disk>,
    contents: Mutex<Contents>,
}

impl Manifest {
    pub fn new(disk: Arc<dyn Disk>, contents: Contents) -> Self {
        Self { disk, contents: Mutex::new(contents) }
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock()
    }

    pub fn store(&self) -> u32 {
        self.contents.lock().store
    }

    /// Changes the manifest durably.
    pub fn update(&self, change: impl FnOnce(&mut Contents)) -> Result<(), UpdateError> {
        let mut contents = self.contents.lock();
        let mut next = contents.clone();
        change(&mut next);
        let text = next.encode();
        let written = write(&*self.disk, &text).or_else(|error| {
            // Files can only be removed, and space gained, once the manifest no longer lists them.
            if error.is_full() && reserve::give_back(&*self.disk) {
                write(&*self.disk, &text)
            } else {
                Err(error)
            }
        });
        written.map(|()| *contents = next)
    }
}

fn write(disk: &dyn Disk, text: &str) -> Result<(), UpdateError> {
    let written = (|| {
        let file = disk.create(TEMPORARY)?;
        file.write_at(0, text.as_bytes())?;
        file.sync_data()?;
        disk.rename(TEMPORARY, MANIFEST)
    })();
    written.map_err(|error| {
        // Durably: a later rename must not find this file.
        let _ = disk.remove(TEMPORARY).and_then(|()| disk.sync_dir());
        UpdateError::Unchanged(error)
    })?;
    disk.sync_dir().map_err(UpdateError::InDoubt)
}

/// A random identity for a new store.
pub(crate) fn new_identity(disk: &dyn Disk) -> io::Result<u32> {
    let random = disk.random()?;
    Ok(((random >> 32) as u32 ^ random as u32).max(1))
}

impl Contents {
    /// Reads the manifest; `None` if there is none.
    pub fn read(disk: &dyn Disk) -> Result<Option<Self>, OpenError> {
        let failed = |source| OpenError::Io { operation: "read", file: MANIFEST.into(), source };
        let file = match disk.open(MANIFEST) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut text = Vec::new();
        Sequential { file: &*file, offset: 0 }.take(MAX_BYTES).read_to_end(&mut text).map_err(failed)?;
        Self::decode(&text).map(Some)
    }

    fn encode(&self) -> String {
        let mut text = format!("{TITLE}{VERSION}\nstore {:08x}\n", self.store);
        // Writing to a string does not fail.
        for (first, Segment { prefix: Prefix { length, checksum }, open }) in &self.segments {
            let name = segment_name(*first);
            let _ = match open {
                None => writeln!(text, "{name} sealed {length} {checksum:08x}"),
                Some(least) => writeln!(text, "{name} open {length} {checksum:08x} {least}"),
            };
        }
        for (revision, Prefix { length, checksum }) in &self.snapshots {
            let _ = writeln!(text, "{} sealed {length} {checksum:08x}", snapshot_name(*revision));
        }
        let checksum = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "checksum {checksum:08x}");
        text
    }

    fn decode(bytes: &[u8]) -> Result<Self, OpenError> {
        let damaged = |reason| OpenError::Damaged { file: MANIFEST.into(), offset: 0, reason };
        let text = str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        let listed = text
            .strip_suffix('\n')
            .and_then(|text| text.rsplit_once("checksum "))
            .filter(|(listed, stated)| hex(stated) == Some(crc32fast::hash(listed.as_bytes())))
            .map(|(listed, _)| listed)
            .ok_or_else(|| damaged("its checksum is wrong"))?;
        let mut lines = listed.lines();
        match lines.next().and_then(|title| title.strip_prefix(TITLE)?.parse().ok()) {
            Some(VERSION) => {}
            Some(found) => return Err(OpenError::Newer { file: MANIFEST.into(), found }),
            None => return Err(damaged("its title is missing")),
        }
        let mut contents = Self::default();
        for line in lines {
            contents.add(line).ok_or_else(|| damaged("a line is malformed"))?;
        }
        if contents.store == 0 || contents.segments.is_empty() {
            return Err(damaged("it is incomplete"));
        }
        Ok(contents)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let prefix = |length: &str, checksum: &str| -> Option<Prefix> {
            Some(Prefix { length: length.parse().ok()?, checksum: hex(checksum)? })
        };
        match words[..] {
            ["store", store] => self.store = hex(store)?,
            [name, "sealed", length, checksum] => {
                let prefix = prefix(length, checksum)?;
                match FileName::parse(name)? {
                    FileName::Segment(first) => {
                        self.segments.insert(first, Segment { prefix, open: None });
                    }
                    FileName::Snapshot(revision) => {
                        self.snapshots.insert(revision, prefix);
                    }
                }
            }
            [name, "open", length, checksum, least] => {
                let FileName::Segment(first) = FileName::parse(name)? else { return None };
                let segment = Segment { prefix: prefix(length, checksum)?, open: Some(least.parse().ok()?) };
                self.segments.insert(first, segment);
            }
            _ => return None,
        }
        Some(())
    }
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

/// A file of the store, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileName {
    /// By first revision.
    Segment(u64),
    /// By revision.
    Snapshot(u64),
}

impl FileName {
    pub fn parse(name: &str) -> Option<Self> {
        let number = |prefix: &str, suffix: &str| -> Option<u64> {
            name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok()
        };
        let segment = number("wal-", ".log").map(Self::Segment);
        segment
            .or_else(|| number("snap-", ".bin").map(Self::Snapshot))
            .filter(|file| file.to_string() == name)
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&match self {
            Self::Segment(first) => segment_name(*first),
            Self::Snapshot(revision) => snapshot_name(*revision),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Contents {
        let prefix = Prefix { length: 67_108_904, checksum: 0x9a3c_01ef };
        Contents {
            store: 0x5f0c_22a1,
            segments: BTreeMap::from([
                (2, Segment { prefix, open: None }),
                (71_204, Segment { prefix: Prefix { length: 32, ..prefix }, open: Some(8_388_608) }),
            ]),
            snapshots: BTreeMap::from([(71_203, prefix)]),
        }
    }

    #[test]
    fn a_manifest_reads_back() {
        let text = sample().encode();
        assert_eq!(Contents::decode(text.as_bytes()).unwrap(), sample());
        assert!(text.contains("\nwal-00000000000000071204.log open 32 9a3c01ef 8388608\n"), "{text}");
    }

    #[test]
    fn a_manifest_with_any_bit_flipped_or_any_byte_missing_is_refused() {
        let text = sample().encode().into_bytes();
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // The case of a hexadecimal digit of the checksum does not matter.
            if let Ok(read) = Contents::decode(&flipped) {
                assert_eq!(read, sample(), "bit {bit}");
                assert!(bit / 8 > text.len() - 11, "bit {bit}");
            }
        }
        for length in 0..text.len() {
            assert!(Contents::decode(&text[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_newer_manifest_is_refused_as_such() {
        let text = sample().encode().replace("manifest 1", "manifest 2");
        let (listed, _) = text.rsplit_once("checksum ").unwrap();
        let text = format!("{listed}checksum {:08x}\n", crc32fast::hash(listed.as_bytes()));
        assert!(matches!(Contents::decode(text.as_bytes()), Err(OpenError::Newer { found: 2, .. })));
    }
}
