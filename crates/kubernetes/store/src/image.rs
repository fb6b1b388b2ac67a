//! Images: the whole state at one revision in one stream with checksums. Snapshots in the data directory and backups
//! are both images.
//!
//! A header is followed by blocks: payload length (4), block number (4), checksum of these, of the header's checksum
//! and of the payload (4), payload. A payload consists of records: a bucket, an entry of the last bucket, or the end
//! with the number of entries. An image without the end record is incomplete.

use std::{
    io::{self, Read, Write},
    ops::Bound,
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    Cipher, Entry,
    cipher::Reader,
    codec::{BadHeader, Fields, HEADER, Header, Kind, put_name, put_value},
    state::{Bucket, State},
};

const BLOCK: usize = 256 << 10;
/// Length, number and checksum before a payload.
const BLOCK_HEAD: usize = 12;
/// Upper bound of a block: a block ends with the entry that fills it, and transactions are smaller.
const MAX_BLOCK: usize = 128 << 20;

const BUCKET: u8 = 1;
const ENTRY: u8 = 2;
const END: u8 = 3;

/// Why an image cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    #[error("{reason} at byte {offset}")]
    Damaged { offset: u64, reason: &'static str },
    #[error("format {0} is newer than this program")]
    Newer(u32),
    #[error("cannot be read")]
    Io(#[from] io::Error),
}

/// Writes the state as an image at `revision` with the identity of a store.
pub(crate) fn write<D>(
    state: &State<D>,
    store: u32,
    revision: u64,
    cipher: Option<Arc<dyn Cipher>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    Blocks::new(Arc::new(state.clone()), store, revision, cipher).try_for_each(|block| out.write_all(&block))
}

fn seed(header: &[u8; HEADER]) -> [u8; 4] {
    [header[28], header[29], header[30], header[31]]
}

/// The header and the blocks of an image, encoded on demand.
pub(crate) struct Blocks<D> {
    state: Arc<State<D>>,
    header: [u8; HEADER],
    number: u32,
    next: NextRecord,
    cipher: Option<Arc<dyn Cipher>>,
}

/// The next record.
enum NextRecord {
    Header,
    /// The bucket after this one.
    Bucket(Option<Arc<str>>),
    /// The entry of the bucket after this key.
    Entry(Arc<str>, Option<Arc<str>>),
    Over,
}

impl<D> Blocks<D> {
    pub fn new(state: Arc<State<D>>, store: u32, revision: u64, cipher: Option<Arc<dyn Cipher>>) -> Self {
        let is_sealed = cipher.is_some();
        let header = Header { store, revision, chain: 0, is_sealed }.encode(Kind::Image);
        Self { state, header, number: 0, next: NextRecord::Header, cipher }
    }

    /// Adds records until the block is full or nothing is left.
    fn fill(&mut self, block: &mut Vec<u8>) {
        let state = self.state.clone();
        while block.len() < BLOCK {
            self.next = match std::mem::replace(&mut self.next, NextRecord::Over) {
                NextRecord::Entry(name, after) => {
                    let entries = state.buckets.get(&name).map(|bucket| &bucket.entries);
                    let range =
                        (after.as_deref().map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
                    let cipher = self.cipher.as_deref().filter(|cipher| cipher.covers(&name));
                    let mut last = None;
                    for (_, entry) in entries.into_iter().flat_map(|entries| entries.range::<_, str>(range)) {
                        block.push(ENTRY);
                        block.extend_from_slice(&entry.revision.to_le_bytes());
                        put_name(block, &entry.key);
                        put_value(block, (&name, &entry.key), &entry.value, entry.stamp, cipher);
                        if block.len() >= BLOCK {
                            last = Some(entry.key.clone());
                            break;
                        }
                    }
                    match last {
                        Some(_) => NextRecord::Entry(name, last),
                        None => NextRecord::Bucket(Some(name)),
                    }
                }
                NextRecord::Header | NextRecord::Bucket(None) => {
                    put_bucket(block, state.buckets.iter().next(), state.count)
                }
                NextRecord::Bucket(Some(name)) => {
                    let after = (Bound::Excluded(&*name), Bound::Unbounded);
                    put_bucket(block, state.buckets.range::<_, str>(after).next(), state.count)
                }
                NextRecord::Over => return,
            };
        }
    }
}

/// Starts a bucket, or ends the image if there is none.
fn put_bucket<D>(block: &mut Vec<u8>, next: Option<(&Arc<str>, &Arc<Bucket<D>>)>, count: u64) -> NextRecord {
    let Some((name, bucket)) = next else {
        block.push(END);
        block.extend_from_slice(&count.to_le_bytes());
        return NextRecord::Over;
    };
    block.push(BUCKET);
    block.extend_from_slice(&bucket.revision.to_le_bytes());
    put_name(block, name);
    NextRecord::Entry(name.clone(), None)
}

impl<D> Iterator for Blocks<D> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match self.next {
            NextRecord::Over => return None,
            NextRecord::Header => {
                self.next = NextRecord::Bucket(None);
                return Some(Bytes::copy_from_slice(&self.header));
            }
            _ => {}
        }
        let mut block = Vec::with_capacity(BLOCK + BLOCK / 8);
        block.extend_from_slice(&[0; BLOCK_HEAD]);
        self.fill(&mut block);
        let head = block_head((block.len() - BLOCK_HEAD) as u32, self.number);
        let checksum = block_checksum(seed(&self.header), &head, &block[BLOCK_HEAD..]);
        block[..8].copy_from_slice(&head);
        block[8..BLOCK_HEAD].copy_from_slice(&checksum.to_le_bytes());
        self.number += 1;
        Some(block.into())
    }
}

fn block_head(length: u32, number: u32) -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..].copy_from_slice(&number.to_le_bytes());
    head
}

fn block_checksum(seed: [u8; 4], head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [&seed[..], head, payload] {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Reads an image. The image's revision becomes the oldest of the history.
pub(crate) fn read<D>(input: &mut dyn Read, reader: &mut Reader<'_>) -> Result<State<D>, ImageError> {
    let mut header = [0; HEADER];
    fill(input, &mut header, 0)?;
    let Header { revision, .. } = Header::decode(Kind::Image, &header).map_err(|bad| match bad {
        BadHeader::Damaged => ImageError::Damaged { offset: 0, reason: "the header is damaged" },
        BadHeader::Newer(version) => ImageError::Newer(version),
    })?;
    let mut loader = Loader {
        state: State { revision, compacted: revision, ..State::empty() },
        bucket: None,
        seen: 0,
        complete: false,
    };
    let mut offset = HEADER as u64;
    let mut payload = Vec::new();
    for number in 0.. {
        let damaged = |reason| ImageError::Damaged { offset, reason };
        let mut head = [0; BLOCK_HEAD];
        fill(input, &mut head, offset)?;
        let mut fields = Fields(&head);
        let (length, stored_number, stored) = (|| Some((fields.u32()?, fields.u32()?, fields.u32()?)))()
            .ok_or_else(|| damaged("a block is cut off"))?;
        if stored_number != number || length as usize > MAX_BLOCK {
            return Err(damaged("a block's head is damaged"));
        }
        payload.resize(length as usize, 0);
        fill(input, &mut payload, offset)?;
        if block_checksum(seed(&header), &head[..8], &payload) != stored {
            return Err(damaged("a block's checksum is wrong"));
        }
        loader.load(&payload, reader).ok_or_else(|| damaged("a block's content is invalid"))?;
        offset += (head.len() + payload.len()) as u64;
        if loader.complete {
            break;
        }
    }
    if input.read(&mut [0])? != 0 {
        return Err(ImageError::Damaged { offset, reason: "there is something after the end" });
    }
    loader.finish_bucket();
    Ok(loader.state)
}

fn fill(input: &mut dyn Read, buffer: &mut [u8], offset: u64) -> Result<(), ImageError> {
    input.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ImageError::Damaged { offset, reason: "the file is cut off" },
        _ => ImageError::Io(error),
    })
}

struct Loader<D> {
    state: State<D>,
    bucket: Option<(Arc<str>, Bucket<D>)>,
    seen: u64,
    complete: bool,
}

impl<D> Loader<D> {
    fn load(&mut self, payload: &[u8], reader: &mut Reader<'_>) -> Option<()> {
        let mut fields = Fields(payload);
        while !fields.0.is_empty() {
            if self.complete {
                return None;
            }
            match fields.u8()? {
                BUCKET => {
                    self.finish_bucket();
                    let mut bucket = Bucket::empty();
                    bucket.revision = fields.u64()?;
                    self.bucket = Some((fields.name()?.into(), bucket));
                }
                ENTRY => {
                    let (name, bucket) = self.bucket.as_mut()?;
                    let revision = fields.u64()?;
                    let key: Arc<str> = fields.name()?.into();
                    let (value, stamp) = reader.value(&fields.value()?, name, &key)?;
                    let entry = Entry::new(name.clone(), key.clone(), revision, value, stamp);
                    self.seen += 1;
                    self.state.weight += entry.weight();
                    bucket.entries.insert(key, Arc::new(entry));
                }
                END => {
                    self.state.count = self.seen;
                    self.complete = fields.u64()? == self.seen;
                    if !self.complete {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn finish_bucket(&mut self) {
        if let Some((name, bucket)) = self.bucket.take() {
            self.state.buckets.insert(name, Arc::new(bucket));
        }
    }
}

/// The readable part of a damaged image.
pub(crate) struct Partial<D> {
    pub state: State<D>,
    /// Keys in damaged blocks. The bucket is empty if it is unknown.
    pub lost_keys: Vec<(String, String)>,
    /// What is damaged; `None` if the image is intact.
    pub damage: Option<&'static str>,
    /// Further keys may be lost whose names cannot be read.
    pub unknown_keys: bool,
}

/// Reads the intact blocks of an image.
pub(crate) fn read_partial<D>(bytes: &[u8], revision: u64, reader: &mut Reader<'_>) -> Partial<D> {
    let state = State { revision, compacted: revision, ..State::empty() };
    let mut partial = Partial { state, lost_keys: Vec::new(), damage: None, unknown_keys: false };
    let header: [u8; HEADER] = match bytes.get(..HEADER).and_then(|header| header.try_into().ok()) {
        Some(header) => header,
        None => {
            (partial.damage, partial.unknown_keys) = (Some("it is cut off"), true);
            return partial;
        }
    };
    let mut seeds = vec![seed(&header)];
    if Header::decode(Kind::Image, &header).is_err() {
        partial.damage = Some("the header is damaged");
        seeds.push(crc32fast::hash(&header[..28]).to_le_bytes());
    }
    let mut bucket: Option<Arc<str>> = None;
    let (mut offset, mut number, mut complete) = (HEADER, 0, false);
    while offset < bytes.len() && !complete {
        let Some((payload, is_intact)) = block_at(&bytes[offset..], number, &seeds) else {
            partial.damage = Some("a block's head is damaged");
            partial.unknown_keys = true;
            bucket = None;
            // Skips to the next intact block.
            let next = (offset + 1..bytes.len()).find_map(|at| {
                let numbers = number..number.saturating_add(64);
                numbers
                    .into_iter()
                    .find(|number| matches!(block_at(&bytes[at..], *number, &seeds), Some((_, true))))
                    .map(|number| (at, number))
            });
            match next {
                Some(next) => (offset, number) = next,
                None => break,
            }
            continue;
        };
        if !is_intact {
            partial.damage = Some("a block's checksum is wrong");
        }
        match partial.records(payload, is_intact, &mut bucket, reader) {
            Some(end) => complete = end,
            None => {
                bucket = None;
                partial.unknown_keys = true;
            }
        }
        offset += BLOCK_HEAD + payload.len();
        number += 1;
    }
    if !complete {
        partial.damage.get_or_insert("it is cut off");
        partial.unknown_keys = true;
    }
    partial
}

/// The payload of the block with this number at the front of `bytes`, and whether its checksum is right.
fn block_at<'a>(bytes: &'a [u8], number: u32, seeds: &[[u8; 4]]) -> Option<(&'a [u8], bool)> {
    let mut fields = Fields(bytes);
    let (length, stored_number, stored) = (fields.u32()?, fields.u32()?, fields.u32()?);
    if stored_number != number || length as usize > MAX_BLOCK {
        return None;
    }
    let payload = fields.take(length as usize)?;
    let is_intact = seeds.iter().any(|seed| block_checksum(*seed, &bytes[..8], payload) == stored);
    Some((payload, is_intact))
}

impl<D> Partial<D> {
    /// Adds the records of an intact block, or the keys of a damaged one. Returns whether the image ends with it;
    /// `None` if its structure is damaged.
    fn records(
        &mut self,
        payload: &[u8],
        is_intact: bool,
        bucket: &mut Option<Arc<str>>,
        reader: &mut Reader<'_>,
    ) -> Option<bool> {
        let mut fields = Fields(payload);
        while !fields.0.is_empty() {
            match fields.u8()? {
                BUCKET => {
                    let revision = fields.u64()?;
                    let name: Arc<str> = fields.name()?.into();
                    if is_intact {
                        let mut empty = Bucket::empty();
                        empty.revision = revision;
                        self.state.buckets.insert(name.clone(), Arc::new(empty));
                    }
                    *bucket = Some(name);
                }
                ENTRY => {
                    let revision = fields.u64()?;
                    let key: Arc<str> = fields.name()?.into();
                    let raw = fields.value()?;
                    match bucket.as_ref().filter(|_| is_intact) {
                        Some(name) => {
                            let (value, stamp) = reader.value(&raw, name, &key)?;
                            self.insert(Entry::new(name.clone(), key, revision, value, stamp));
                        }
                        None => {
                            let name = bucket.as_deref().unwrap_or_default();
                            self.lost_keys.push((name.to_owned(), key.to_string()));
                        }
                    }
                }
                END => return fields.u64().map(|_| true),
                _ => return None,
            }
        }
        Some(false)
    }

    fn insert(&mut self, entry: Entry<D>) {
        let slot =
            self.state.buckets.entry(entry.bucket.clone()).or_insert_with(|| Arc::new(Bucket::empty()));
        let bucket = Arc::make_mut(slot);
        bucket.revision = bucket.revision.max(entry.revision);
        self.state.weight += entry.weight();
        self.state.count += 1;
        bucket.entries.insert(entry.key.clone(), Arc::new(entry));
    }
}
