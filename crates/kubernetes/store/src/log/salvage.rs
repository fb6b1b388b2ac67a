//! Salvages the readable part of a store that does not open. Changes nothing in its directory.
//!
//! The newest complete snapshot is the base. Every later commit and every intact part of a later snapshot is applied
//! to it, even after a gap. Entries are thus as new as the remaining files allow, and the report lists the revisions
//! and keys that are not covered.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive};

use super::{
    frame::{Frame, probable_keys},
    recover::read_all,
    reserved::length_written,
    segment_name, snapshot_name,
    verify::{self, Finding, Listing, failed as io},
};
use crate::{
    Backup, Cipher,
    cipher::Reader,
    codec::HEADER,
    disk::Disk,
    error::OpenError,
    image::{Partial, read_partial},
    manifest::{Contents, FileName, MANIFEST},
    state::{Change, FIRST_REVISION, State},
};

/// What was salvaged, and what is lost.
pub struct Salvaged {
    /// The readable data, as a backup that can be restored.
    pub backup: Backup,
    /// Files that are missing, truncated, damaged, of another store, or not listed, with the problem of each.
    pub files: Vec<(String, String)>,
    /// Revisions whose changes are lost. Entries changed in them are outdated or missing, and entries deleted in them
    /// are present.
    pub lost_revisions: Vec<RangeInclusive<u64>>,
    /// The end of the log is lost: all changes from this revision on.
    pub lost_from: Option<u64>,
    /// Bucket and key of entries that lost changes may affect, as far as known.
    pub lost_keys: Vec<(String, String)>,
    /// Further entries may be lost whose keys are unknown.
    pub unknown_keys: bool,
    /// Bucket and key of entries that are encrypted and cannot be decrypted.
    pub sealed: Vec<(String, String)>,
}

impl Salvaged {
    /// Whether no data is lost, whatever is wrong with the files.
    pub fn is_complete(&self) -> bool {
        self.lost_revisions.is_empty()
            && self.lost_from.is_none()
            && self.lost_keys.is_empty()
            && !self.unknown_keys
            && self.sealed.is_empty()
    }
}

impl fmt::Debug for Salvaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salvaged")
            .field("files", &self.files)
            .field("lost_revisions", &self.lost_revisions)
            .field("lost_from", &self.lost_from)
            .field("lost_keys", &self.lost_keys)
            .field("unknown_keys", &self.unknown_keys)
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

/// Reads what is readable of a store. Fails only if there is no file of a store, or on I/O errors.
pub fn salvage(disk: &dyn Disk, cipher: Option<&dyn Cipher>) -> Result<Salvaged, OpenError> {
    let listing = Listing::read(disk)?;
    let FileSurvey { files, usable, end_is_known } = FileSurvey::gather(disk, &listing)?;
    if usable.is_empty() {
        return Err(OpenError::Nothing);
    }
    let mut reader = Reader::new(cipher);
    let mut partials = BTreeMap::new();
    let mut base = State::empty();
    for revision in usable.iter().filter_map(|file| match file {
        FileName::Snapshot(revision) => Some(*revision),
        FileName::Segment(_) => None,
    }) {
        let name = snapshot_name(revision);
        let file = disk.open(&name).map_err(|source| io("open", &name, source))?;
        let partial: Partial<()> = read_partial(&read_all(&*file, &name)?, revision, &mut reader);
        if partial.damage.is_none() {
            base = partial.state;
        } else {
            partials.insert(revision, partial);
        }
    }
    partials.retain(|revision, _| *revision > base.revision);
    let mut walk = Walk { expected: base.revision + 1, state: base, partials, ..Walk::default() };
    let segments: Vec<u64> = usable
        .iter()
        .filter_map(|file| match file {
            FileName::Segment(first) => Some(*first),
            FileName::Snapshot(_) => None,
        })
        .collect();
    let mut unreadable_end = false;
    for (index, first) in segments.iter().copied().enumerate() {
        if segments.get(index + 1).is_some_and(|next| *next <= walk.expected) {
            continue;
        }
        let name = segment_name(first);
        let file = disk.open(&name).map_err(|source| io("open", &name, source))?;
        unreadable_end = walk.segment(first, &read_all(&*file, &name)?, &mut reader);
    }
    walk.merge_before(u64::MAX);
    let Walk { expected, mut state, gaps, mut lost_keys, unknown_keys, .. } = walk;
    state.revision = state.revision.max(expected - 1);
    let sealed: Vec<(String, String)> = reader
        .unreadable()
        .filter(|(bucket, key)| state.get(bucket, key).is_some_and(|entry| entry.value.is_empty()))
        .map(|(bucket, key)| (bucket.to_owned(), key.to_owned()))
        .collect();
    for (bucket, key) in &sealed {
        state.remove(bucket, key);
    }
    lost_keys.sort();
    lost_keys.dedup();
    Ok(Salvaged {
        backup: Backup { state: state.without_history() },
        files,
        lost_revisions: gaps,
        lost_from: (!end_is_known || unreadable_end).then_some(expected),
        lost_keys,
        unknown_keys,
        sealed,
    })
}

/// What is known of the files before they are read completely.
struct FileSurvey {
    files: Vec<(String, String)>,
    /// Existing files of this store, oldest first: segments, then snapshots.
    usable: Vec<FileName>,
    /// The last segment exists and has its full length.
    end_is_known: bool,
}

impl FileSurvey {
    fn gather(disk: &dyn Disk, listing: &Listing) -> Result<Self, OpenError> {
        let mut files = Vec::new();
        let contents = match Contents::read(disk) {
            Ok(None) => None,
            Ok(Some(contents)) => Some(contents),
            Err(error @ OpenError::Io { .. }) => return Err(error),
            Err(error) => {
                files.push((MANIFEST.to_owned(), problem(&error)));
                None
            }
        };
        let mut stores = BTreeMap::new();
        for file in listing.files() {
            let name = file.to_string();
            let opened = disk.open(&name).map_err(|source| io("open", &name, source))?;
            let store = verify::identity(&*opened, file).map_err(|source| io("read", &name, source))?;
            stores.insert(file, store);
        }
        // A manifest of another store does not describe these files.
        let known: Vec<u32> = stores.values().flatten().copied().collect();
        let foreign = |contents: &Contents| !known.is_empty() && !known.contains(&contents.store);
        if contents.as_ref().is_some_and(foreign) {
            files.push((MANIFEST.to_owned(), "belongs to another store than the other files".to_owned()));
        }
        let contents = contents.filter(|contents| !foreign(contents));
        if contents.is_none() && files.is_empty() && !known.is_empty() {
            files.push((MANIFEST.to_owned(), "is missing".to_owned()));
        }
        // Without a manifest, the store is the one that most files belong to.
        let count = |store: &u32| known.iter().filter(|other| *other == store).count();
        let most = known.iter().copied().max_by_key(count);
        let store = contents.as_ref().map(|contents| contents.store).or(most);
        let mut end_is_known = contents.is_some() || known.is_empty();
        if let Some(contents) = &contents {
            let (_, unlisted) = verify::unlisted(disk, listing, contents)?;
            let last = contents.segments.keys().last().copied().map(FileName::Segment);
            for Finding { file, error } in verify::listed(disk, contents)?.into_iter().chain(unlisted) {
                end_is_known &= Some(file) != last || matches!(error, OpenError::Damaged { .. });
                files.push((file.to_string(), problem(&error)));
            }
        } else {
            for (file, found) in &stores {
                if found.is_some() && *found != store {
                    files.push((file.to_string(), "belongs to another store".to_owned()));
                }
            }
        }
        let is_ours = |found: &Option<u32>| found.is_none() || *found == store;
        let usable = stores.iter().filter(|(_, found)| is_ours(found)).map(|(file, _)| *file).collect();
        Ok(Self { files, usable, end_is_known })
    }
}

/// Describes the problem of a file, without its name and without advice.
fn problem(error: &OpenError) -> String {
    match error {
        OpenError::Missing { .. } => "is missing".to_owned(),
        OpenError::Shortened { length, expected, .. } => {
            format!("was cut off: it has {length} bytes of at least {expected}")
        }
        OpenError::Foreign { .. } => "belongs to another store".to_owned(),
        OpenError::Unlisted { .. } => "is newer than MANIFEST".to_owned(),
        OpenError::Damaged { offset: 0, reason, .. } => format!("is damaged: {reason}"),
        OpenError::Damaged { offset, reason, .. } => format!("is damaged at byte {offset}: {reason}"),
        other => other.to_string(),
    }
}

/// Reads everything after the base, ordered by revision.
struct Walk {
    state: State<()>,
    /// The next revision.
    expected: u64,
    /// Checksum of the last frame, if it was the one right before the next.
    chain: Option<u32>,
    /// Damaged snapshots after the current position.
    partials: BTreeMap<u64, Partial<()>>,
    gaps: Vec<RangeInclusive<u64>>,
    lost_keys: Vec<(String, String)>,
    unknown_keys: bool,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            state: State::empty(),
            expected: FIRST_REVISION + 1,
            chain: None,
            partials: BTreeMap::new(),
            gaps: Vec::new(),
            lost_keys: Vec::new(),
            unknown_keys: false,
        }
    }
}

impl Walk {
    /// Applies the valid frames of a segment. Returns whether invalid data follows.
    fn segment(&mut self, first: u64, bytes: &[u8], reader: &mut Reader<'_>) -> bool {
        self.chain = None;
        self.reach(first);
        let written = length_written(bytes);
        let mut offset = HEADER.min(bytes.len());
        while offset < written {
            let rest = &bytes[offset..];
            let follows = |frame: &Frame<'_>| self.chain.is_none_or(|chain| chain == frame.chain);
            if let Some(frame) = Frame::decode(rest).filter(follows) {
                self.frame(&frame, reader);
                offset += frame.size();
                continue;
            }
            let end = written - offset;
            let next = Frame::find(&rest[1..end], self.expected);
            self.lost_keys.extend(probable_keys(&rest[..next.map_or(end, |next| next + 1)]));
            match next {
                Some(next) => offset += 1 + next,
                None => return true,
            }
            self.chain = None;
        }
        false
    }

    fn frame(&mut self, frame: &Frame<'_>, reader: &mut Reader<'_>) {
        self.chain = Some(frame.checksum);
        let Some(transactions) = frame.transactions(reader) else { return };
        let next = frame.revision + transactions.len() as u64;
        if next <= self.expected {
            return;
        }
        self.reach(frame.revision);
        for (revision, changes) in transactions {
            if revision >= self.expected {
                changes.into_iter().for_each(|change| drop(self.state.apply(change, revision)));
            }
        }
        self.expected = next;
    }

    /// Continues at a revision. What was skipped is lost, unless a damaged snapshot has it.
    fn reach(&mut self, revision: u64) {
        if revision > self.expected {
            self.merge_before(revision);
        }
        if revision > self.expected {
            self.gaps.push(self.expected..=revision - 1);
            self.expected = revision;
        }
    }

    /// Merges the intact parts of damaged snapshots before a revision, to fill gaps in the log.
    fn merge_before(&mut self, revision: u64) {
        let later = self.partials.split_off(&revision);
        for (revision, partial) in std::mem::replace(&mut self.partials, later) {
            if revision >= self.expected {
                self.merge(revision, partial);
            }
        }
    }

    fn merge(&mut self, revision: u64, partial: Partial<()>) {
        let is_lost = |bucket: &str, key: &str| {
            partial.unknown_keys
                || partial
                    .lost_keys
                    .iter()
                    .any(|(lost, name)| (lost.is_empty() || lost == bucket) && name == key)
        };
        let mut changes = Vec::new();
        for (name, bucket) in &self.state.buckets {
            for (key, entry) in &bucket.entries {
                if partial.state.get(name, key).is_none() && !is_lost(name, key) {
                    let (value, stamp) = (entry.value.clone(), entry.stamp);
                    let (bucket, key) = (name.clone(), key.clone());
                    changes.push((
                        revision,
                        Change { bucket, key, value, stamp, mark: 0, deletes: true, repeats: false },
                    ));
                }
            }
        }
        for (name, bucket) in &partial.state.buckets {
            for (key, entry) in &bucket.entries {
                if self.state.get(name, key).is_none_or(|present| present.revision < entry.revision) {
                    let (bucket, key) = (name.clone(), key.clone());
                    let (value, stamp) = (entry.value.clone(), entry.stamp);
                    changes.push((
                        entry.revision,
                        Change { bucket, key, value, stamp, mark: 0, deletes: false, repeats: false },
                    ));
                }
            }
        }
        for (revision, change) in changes {
            self.state.apply(change, revision);
        }
        self.state.revision = revision;
        self.expected = revision + 1;
        self.lost_keys.extend(partial.lost_keys);
        self.unknown_keys |= partial.unknown_keys;
    }
}
