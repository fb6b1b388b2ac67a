//! Encoding on disk: little-endian numbers, and the header of every file.

use bytes::Bytes;

use crate::{
    cipher::{Cipher, seal},
    entry::Stamp,
};

/// The newest format that this code reads. Later formats keep the layout of the header. Format 2 has the identity of
/// the store in the header; format 1, which backups still use, has zero there. Files of format 3 may have sealed
/// values, which earlier releases cannot read.
pub(crate) const VERSION: u32 = 3;

/// Flag in the length of a stamp: the value is sealed. A stamp has at most 20 digits.
const SEALED: u8 = 0x80;

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
    /// Values may be sealed.
    pub is_sealed: bool,
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
        let version: u32 = match self {
            Self { is_sealed: true, .. } => VERSION,
            Self { store: 0, .. } => 1,
            _ => 2,
        };
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
            let is_sealed = version == VERSION;
            let header = Self { store, revision: fields.u64()?, chain: fields.u32()?, is_sealed };
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

    /// Reads a value with its stamp and length prefix, sealed or not.
    pub fn value(&mut self) -> Option<RawValue<'a>> {
        let (start, len) = (self.u32()?, self.u8()?);
        let length = self.u32()? as usize;
        let stamp = Stamp { start, len: len & !SEALED };
        Some(RawValue { stamp, bytes: self.take(length)?, is_sealed: len & SEALED != 0 })
    }
}

/// A value as it is in a file.
#[derive(Clone, Copy)]
pub(crate) struct RawValue<'a> {
    pub stamp: Stamp,
    pub bytes: &'a [u8],
    pub is_sealed: bool,
}

/// Appends what [`Fields::name`] reads. Longer names than a `u16` can count were rejected before.
pub(crate) fn put_name(buffer: &mut Vec<u8>, name: &str) {
    buffer.extend_from_slice(&(name.len() as u16).to_le_bytes());
    buffer.extend_from_slice(name.as_bytes());
}

/// Appends what [`Fields::value`] reads, sealed if there is a cipher.
pub(crate) fn put_value(
    buffer: &mut Vec<u8>,
    (bucket, key): (&str, &str),
    value: &Bytes,
    stamp: Stamp,
    cipher: Option<&dyn Cipher>,
) {
    buffer.extend_from_slice(&stamp.start.to_le_bytes());
    buffer.push(if cipher.is_some() { stamp.len | SEALED } else { stamp.len });
    let at = buffer.len();
    buffer.extend_from_slice(&(value.len() as u32).to_le_bytes());
    match cipher {
        None => buffer.extend_from_slice(value),
        Some(cipher) => {
            seal(cipher, (bucket, key), stamp, value, buffer);
            let length = (buffer.len() - at - 4) as u32;
            buffer[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_any_bit_flipped_is_refused() {
        let header = Header { store: 5, revision: 7, chain: 9, is_sealed: false };
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
        let header = Header { store: 0, revision: 7, chain: 9, is_sealed: false };
        let bytes = header.encode(Kind::Image);
        assert_eq!(bytes[8..16], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Header::decode(Kind::Image, &bytes), Ok(header));
    }

    #[test]
    fn a_file_with_sealed_values_has_a_format_that_earlier_releases_refuse() {
        for store in [0, 5] {
            let header = Header { store, revision: 7, chain: 9, is_sealed: true };
            let bytes = header.encode(Kind::Image);
            assert_eq!(bytes[8..12], [3, 0, 0, 0]);
            assert_eq!(Header::decode(Kind::Image, &bytes), Ok(header));
        }
    }

    #[test]
    fn a_newer_format_is_distinguished_from_damage() {
        let mut bytes = Header { store: 5, revision: 7, chain: 9, is_sealed: false }.encode(Kind::Log);
        bytes[8] = 4;
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(Header::decode(Kind::Log, &bytes), Err(BadHeader::Newer(4)));
    }
}
