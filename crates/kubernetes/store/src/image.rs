//! Images: the whole state at one revision in one self-checking stream. Snapshots in the data directory
//! and backups are both images.
//!
//! Header, then blocks: payload length (4), number of the block (4), checksum of these, of the header's
//! checksum and of the payload (4), payload. A payload is records: a bucket, an entry of the last bucket,
//! or the end with the number of entries. An image that does not end so is incomplete.

use std::{
    io::{self, Read, Write},
    ops::Bound,
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    Entry,
    codec::{BadHeader, Fields, HEADER, Header, Kind, put_name, put_value},
    state::{Bucket, State},
};

const BLOCK: usize = 256 << 10;
/// Length, number and checksum before a payload.
const BLOCK_HEAD: usize = 12;
/// No block is larger: one transaction is not, and a block ends with the entry that fills it.
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

/// Writes the state as an image of `revision`.
pub(crate) fn write<D>(state: &State<D>, revision: u64, out: &mut dyn Write) -> io::Result<()> {
    Blocks::new(Arc::new(state.clone()), revision).try_for_each(|block| out.write_all(&block))
}

fn seed(header: &[u8; HEADER]) -> [u8; 4] {
    [header[28], header[29], header[30], header[31]]
}

/// The header and the blocks of an image, each made when it is asked for.
pub(crate) struct Blocks<D> {
    state: Arc<State<D>>,
    header: [u8; HEADER],
    number: u32,
    place: Place,
}

/// What comes next.
enum Place {
    Header,
    /// The bucket after this one.
    Bucket(Option<Arc<str>>),
    /// The entry of the bucket after this key.
    Entry(Arc<str>, Option<Arc<str>>),
    Over,
}

impl<D> Blocks<D> {
    pub fn new(state: Arc<State<D>>, revision: u64) -> Self {
        let header = Header { revision, chain: 0 }.encode(Kind::Image);
        Self { state, header, number: 0, place: Place::Header }
    }

    /// Adds records from where the last block ended until the block is full or everything is told.
    fn fill(&mut self, block: &mut Vec<u8>) {
        let state = self.state.clone();
        while block.len() < BLOCK {
            self.place = match std::mem::replace(&mut self.place, Place::Over) {
                Place::Entry(name, after) => {
                    let entries = state.buckets.get(&name).map(|bucket| &bucket.entries);
                    let range =
                        (after.as_deref().map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
                    let mut last = None;
                    for (_, entry) in entries.into_iter().flat_map(|entries| entries.range::<_, str>(range)) {
                        block.push(ENTRY);
                        block.extend_from_slice(&entry.revision.to_le_bytes());
                        put_name(block, &entry.key);
                        put_value(block, &entry.value, entry.stamp);
                        if block.len() >= BLOCK {
                            last = Some(entry.key.clone());
                            break;
                        }
                    }
                    match last {
                        Some(_) => Place::Entry(name, last),
                        None => Place::Bucket(Some(name)),
                    }
                }
                Place::Header | Place::Bucket(None) => {
                    put_bucket(block, state.buckets.iter().next(), state.count)
                }
                Place::Bucket(Some(name)) => {
                    let after = (Bound::Excluded(&*name), Bound::Unbounded);
                    put_bucket(block, state.buckets.range::<_, str>(after).next(), state.count)
                }
                Place::Over => return,
            };
        }
    }
}

/// Begins a bucket, or ends the image if there is none.
fn put_bucket<D>(block: &mut Vec<u8>, next: Option<(&Arc<str>, &Arc<Bucket<D>>)>, count: u64) -> Place {
    let Some((name, bucket)) = next else {
        block.push(END);
        block.extend_from_slice(&count.to_le_bytes());
        return Place::Over;
    };
    block.push(BUCKET);
    block.extend_from_slice(&bucket.revision.to_le_bytes());
    put_name(block, name);
    Place::Entry(name.clone(), None)
}

impl<D> Iterator for Blocks<D> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match self.place {
            Place::Over => return None,
            Place::Header => {
                self.place = Place::Bucket(None);
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

/// Reads an image: its state, with its revision as the oldest there is history of.
pub(crate) fn read<D>(input: &mut dyn Read) -> Result<State<D>, ImageError> {
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
        loader.load(&payload).ok_or_else(|| damaged("a block's content makes no sense"))?;
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
    fn load(&mut self, payload: &[u8]) -> Option<()> {
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
                    let (value, stamp) = fields.value()?;
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
