//! Frames: one per group commit.
//!
//! magic (4), payload length (4), first revision (8), milliseconds since 1970 (8), checksum of the previous frame
//! (4), checksum of all of this (4), payload. The payload is the transactions in order. A frame without a payload
//! marks that the store was closed cleanly. A transaction is a number of changes: kind, bucket, key and value. A delete
//! has the final state of its entry as the value, or none if that is the state before it.

use bytes::Bytes;

use crate::{
    cipher::{Cipher, Reader},
    codec::{Fields, put_name, put_value},
    entry::Stamp,
    state::Change,
};

/// Starts with a byte that UTF-8 never contains, so that stored JSON cannot look like a frame.
const MAGIC: [u8; 4] = [0xFF, b'c', b'w', b'f'];
pub(crate) const FRAME_HEADER: usize = 32;

const PUT: u8 = 0;
const DELETE: u8 = 1;
/// A delete without a value. Only in segments of format 3, and on a full disk.
const DELETE_REPEATED: u8 = 2;

/// A frame under construction.
#[derive(Default)]
pub(crate) struct FrameBuilder {
    buffer: Vec<u8>,
}

impl FrameBuilder {
    /// Resets the frame. Keeps the buffer, unless an unusually large frame has grown it.
    pub fn clear(&mut self) {
        self.buffer.clear();
        if self.buffer.capacity() > 1 << 20 {
            self.buffer.shrink_to(1 << 20);
        }
        self.buffer.resize(FRAME_HEADER, 0);
    }

    /// Adds a transaction.
    pub fn transaction<'a>(
        &mut self,
        changes: impl ExactSizeIterator<Item = &'a Change>,
        cipher: Option<&dyn Cipher>,
    ) {
        self.buffer.extend_from_slice(&(changes.len() as u32).to_le_bytes());
        for change in changes {
            let kind = match change {
                Change { repeats: true, .. } => DELETE_REPEATED,
                Change { deletes: true, .. } => DELETE,
                _ => PUT,
            };
            self.buffer.push(kind);
            put_name(&mut self.buffer, &change.bucket);
            put_name(&mut self.buffer, &change.key);
            if change.repeats {
                continue;
            }
            let Change { bucket, key, value, stamp, .. } = change;
            let cipher = cipher.filter(|cipher| cipher.covers(bucket));
            put_value(&mut self.buffer, (bucket, key), value, *stamp, cipher);
        }
    }

    /// The frame's bytes and checksum.
    pub fn finish(&mut self, revision: u64, time: u64, chain: u32) -> (&[u8], u32) {
        let length = (self.buffer.len() - FRAME_HEADER) as u32;
        let header = &mut self.buffer[..FRAME_HEADER];
        header[..4].copy_from_slice(&MAGIC);
        header[4..8].copy_from_slice(&length.to_le_bytes());
        header[8..16].copy_from_slice(&revision.to_le_bytes());
        header[16..24].copy_from_slice(&time.to_le_bytes());
        header[24..28].copy_from_slice(&chain.to_le_bytes());
        let checksum = checksum(&self.buffer[..28], &self.buffer[FRAME_HEADER..]);
        self.buffer[28..32].copy_from_slice(&checksum.to_le_bytes());
        (&self.buffer, checksum)
    }
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize()
}

/// Keys that a frame with a wrong checksum seems to contain. A flipped bit is more likely in a value than in the
/// structure around it, so this is mostly right, but not proven.
pub(crate) fn probable_keys(bytes: &[u8]) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    let _ = (|| {
        let mut fields = Fields(bytes);
        fields.take(4)?;
        let length = fields.u32()? as usize;
        fields.take(FRAME_HEADER - 8)?;
        let mut fields = Fields(fields.0.get(..length).unwrap_or(fields.0));
        while !fields.0.is_empty() {
            for _ in 0..fields.u32()? {
                let kind = fields.u8()?;
                let (bucket, key) = (fields.name()?, fields.name()?);
                if bucket.is_empty() || key.is_empty() {
                    return None;
                }
                keys.push((bucket.to_owned(), key.to_owned()));
                if kind != DELETE_REPEATED {
                    fields.value()?;
                }
            }
        }
        Some(())
    })();
    keys
}

/// A frame with a valid checksum.
pub(crate) struct Frame<'a> {
    pub revision: u64,
    pub time: u64,
    pub chain: u32,
    pub checksum: u32,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the front of `bytes`, if there is one and its checksum is valid.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.take(4)? != MAGIC {
            return None;
        }
        let length = fields.u32()?;
        let (revision, time, chain, stored) = (fields.u64()?, fields.u64()?, fields.u32()?, fields.u32()?);
        let payload = fields.take(length as usize)?;
        let checksum = checksum(&bytes[..28], payload);
        (checksum == stored).then_some(Self { revision, time, chain, checksum, payload })
    }

    /// The offset of a valid frame somewhere in `bytes` that is not older than `revision`.
    pub fn find(bytes: &[u8], revision: u64) -> Option<usize> {
        let mut offset = 0;
        while let Some(found) = bytes[offset..].iter().position(|byte| *byte == MAGIC[0]) {
            offset += found;
            if Frame::decode(&bytes[offset..]).is_some_and(|frame| frame.revision >= revision) {
                return Some(offset);
            }
            offset += 1;
        }
        None
    }

    pub fn size(&self) -> usize {
        FRAME_HEADER + self.payload.len()
    }

    /// The transactions, each with its revision. `None` if the payload is malformed, which a valid checksum rules out
    /// unless this code has a bug.
    pub fn transactions(&self, reader: &mut Reader<'_>) -> Option<Vec<(u64, Vec<Change>)>> {
        let mut fields = Fields(self.payload);
        let mut transactions = Vec::new();
        while !fields.0.is_empty() {
            let count = fields.u32()?;
            let mut changes = Vec::with_capacity((count as usize).min(1024));
            for _ in 0..count {
                let kind = fields.u8()?;
                let (deletes, repeats) = (kind != PUT, kind == DELETE_REPEATED);
                let (bucket, key) = (fields.name()?, fields.name()?);
                let (value, stamp) = match repeats {
                    true => (Bytes::new(), Stamp { start: 0, len: 0 }),
                    false => reader.value(&fields.value()?, bucket, key)?,
                };
                let (bucket, key) = (bucket.into(), key.into());
                changes.push(Change { bucket, key, value, stamp, mark: 0, deletes, repeats });
            }
            transactions.push((self.revision + transactions.len() as u64, changes));
        }
        Some(transactions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expect, Stamped, Write};

    fn sample() -> Vec<u8> {
        let value = Stamped { head: "{\"revision\":".into(), tail: "}".into(), mark: 0 };
        let write = Write::Put { bucket: "b".into(), key: "k".into(), value, expect: Expect::Any };
        let mut builder = FrameBuilder::default();
        builder.clear();
        for revision in [8, 9] {
            builder.transaction([Change::new(&write, revision)].iter(), None);
        }
        builder.finish(8, 5, 77).0.to_vec()
    }

    #[test]
    fn a_frame_reads_back() {
        let bytes = sample();
        let frame = Frame::decode(&bytes).unwrap();
        assert_eq!((frame.revision, frame.time, frame.chain, frame.size()), (8, 5, 77, bytes.len()));
        let transactions = frame.transactions(&mut Reader::new(None)).unwrap();
        let values: Vec<_> =
            transactions.iter().map(|(revision, changes)| (*revision, changes[0].value.clone())).collect();
        assert_eq!(values, [(8, "{\"revision\":8}".into()), (9, "{\"revision\":9}".into())]);
    }

    #[test]
    fn a_frame_with_any_bit_flipped_or_any_byte_missing_is_none() {
        let bytes = sample();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Frame::decode(&flipped).is_none(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Frame::decode(&bytes[..length]).is_none(), "{length} bytes");
        }
    }

    #[test]
    fn a_later_frame_is_found_at_any_offset() {
        let mut bytes = vec![0xFF; 13];
        bytes.extend(sample());
        assert_eq!(Frame::find(&bytes, 8), Some(13));
        assert_eq!(Frame::find(&bytes, 9), None, "an older frame is a leftover");
        assert_eq!(Frame::find(&[0; 100], 1), None);
    }
}
