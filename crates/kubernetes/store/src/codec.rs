//! Encoding on disk: little-endian numbers, and the header of every file.

use bytes::Bytes;

use crate::entry::Stamp;

/// The newest format that this code reads. Later formats keep the layout of the header. Format 2 has the identity of
/// the store in the header; format 1, which backups still use, has zero there.
pub(crate) const VERSION: u32 = 2;

/// Length of the header in bytes.
pub(crate) const HEADER: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Frames of commits.
    Log,
    /// The whole state at one revision. Also the format of a backup.
    Image,
}

impl Kind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"capstanL",
            Self::Image => b"capstanI",
        }
    }
}

/// The header of a file: magic (8), version (4), store (4), revision (8), chain (4), checksum (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Identity of the store; 0 in backups and in files of format 1.
    pub store: u32,
    /// The first revision of a log segment, or the revision of an image.
    pub revision: u64,
    /// Checksum of the last frame before this log segment.
    pub chain: u32,
}

/// Why a header was rejected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    Damaged,
    Newer(u32),
}

impl Header {
    pub fn encode(self, kind: Kind) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(kind.magic());
        let version: u32 = if self.store == 0 { 1 } else { VERSION };
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.store.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.revision.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.chain.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub fn decode(kind: Kind, bytes: &[u8]) -> Result<Self, BadHeader> {
        let mut fields = Fields(bytes);
        let decoded = (|| {
            let magic = fields.take(8)?;
            let version = fields.u32()?;
            let store = fields.u32()?;
            let header = Self { store, revision: fields.u64()?, chain: fields.u32()? };
            let sound = crc32fast::hash(&bytes[..28]) == fields.u32()? && magic == kind.magic();
            sound.then_some((version, header))
        })();
        match decoded {
            None => Err(BadHeader::Damaged),
            Some((1..=VERSION, header)) => Ok(header),
            Some((version, _)) => Err(BadHeader::Newer(version)),
        }
    }
}

/// Reads numbers and slices from the front of a buffer. `None` if it is too short.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a name with its length prefix.
    pub fn name(&mut self) -> Option<&'a str> {
        let length = self.u16()?;
        std::str::from_utf8(self.take(length.into())?).ok()
    }

    /// Reads a value with its stamp and length prefix. Copies it, so that it does not keep the whole buffer alive.
    pub fn value(&mut self) -> Option<(Bytes, Stamp)> {
        let stamp = Stamp { start: self.u32()?, len: self.u8()? };
        let length = self.u32()? as usize;
        let end = (stamp.start as usize).checked_add(stamp.len.into())?;
        let value = self.take(length)?;
        (end <= length).then(|| (Bytes::copy_from_slice(value), stamp))
    }
}

/// Appends what [`Fields::name`] reads. Longer names than a `u16` can count were rejected before.
pub(crate) fn put_name(buffer: &mut Vec<u8>, name: &str) {
    buffer.extend_from_slice(&(name.len() as u16).to_le_bytes());
    buffer.extend_from_slice(name.as_bytes());
}

/// Appends what [`Fields::value`] reads.
pub(crate) fn put_value(buffer: &mut Vec<u8>, value: &Bytes, stamp: Stamp) {
    buffer.extend_from_slice(&stamp.start.to_le_bytes());
    buffer.push(stamp.len);
    buffer.extend_from_slice(&(value.len() as u32).to_le_bytes());
    buffer.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_any_bit_flipped_is_refused() {
        let header = Header { store: 5, revision: 7, chain: 9 };
        let sound = header.encode(Kind::Log);
        assert_eq!(Header::decode(Kind::Log, &sound), Ok(header));
        assert_eq!(Header::decode(Kind::Image, &sound), Err(BadHeader::Damaged));
        for bit in 0..HEADER * 8 {
            let mut flipped = sound;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(Kind::Log, &flipped), Err(BadHeader::Damaged), "bit {bit}");
        }
    }

    #[test]
    fn a_header_without_a_store_has_the_older_format() {
        let header = Header { store: 0, revision: 7, chain: 9 };
        let bytes = header.encode(Kind::Image);
        assert_eq!(bytes[8..16], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Header::decode(Kind::Image, &bytes), Ok(header));
    }

    #[test]
    fn a_newer_format_is_distinguished_from_damage() {
        let mut bytes = Header { store: 5, revision: 7, chain: 9 }.encode(Kind::Log);
        bytes[8] = 3;
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(Header::decode(Kind::Log, &bytes), Err(BadHeader::Newer(3)));
    }
}
