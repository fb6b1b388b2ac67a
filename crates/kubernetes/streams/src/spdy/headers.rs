//! Header blocks: pairs of texts in one zlib stream per direction that lasts as long as the connection.

use std::io;

use flate2::{Decompress, FlushDecompress};

use super::dictionary;

/// Longest block taken, inflated.
const MOST: usize = 16 * 1024;
/// Most pairs taken.
const MOST_PAIRS: usize = 64;

/// Headers with names in lower case.
pub(super) type Headers = Vec<(String, String)>;

/// Reads header blocks.
pub(super) struct Inflater {
    zlib: Decompress,
    /// Whether the first bytes of the stream, which say how it is compressed, have been read.
    begun: bool,
}

impl Inflater {
    pub fn new() -> Self {
        Self { zlib: Decompress::new(false), begun: false }
    }

    /// The headers of the next block.
    pub fn read(&mut self, mut block: &[u8]) -> io::Result<Headers> {
        if !self.begun {
            block = self.begin(block)?;
            self.begun = true;
        }
        parse(&self.inflate(block)?)
    }

    /// Reads the head of a zlib stream and makes the dictionary known that it names. The rest is raw deflate, and a
    /// dictionary is nothing but text that came before: it goes in as a stored block, since not every backend of
    /// flate2 takes dictionaries.
    fn begin<'a>(&mut self, block: &'a [u8]) -> io::Result<&'a [u8]> {
        let (head, rest) =
            block.split_at_checked(2).ok_or_else(|| invalid("a header block has no beginning"))?;
        if head[0] & 0x0f != 8 || (u16::from(head[0]) << 8 | u16::from(head[1])) % 31 != 0 {
            return Err(invalid("a header block is not a zlib stream"));
        }
        if head[1] & 0x20 == 0 {
            return Ok(rest);
        }
        let (id, rest) =
            rest.split_first_chunk().ok_or_else(|| invalid("a header block has no beginning"))?;
        if u32::from_be_bytes(*id) != dictionary::ID {
            return Err(invalid("a header block uses an unknown dictionary"));
        }
        let dictionary = dictionary::bytes();
        let length = dictionary.len() as u16;
        let stored = [&[0], &length.to_le_bytes()[..], &(!length).to_le_bytes(), &dictionary].concat();
        self.inflate(&stored)?;
        Ok(rest)
    }

    fn inflate(&mut self, mut input: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(1024);
        loop {
            let (taken, given) = (self.zlib.total_in(), out.len());
            self.zlib
                .decompress_vec(input, &mut out, FlushDecompress::Sync)
                .map_err(|_| invalid("a header block cannot be inflated"))?;
            let taken = (self.zlib.total_in() - taken) as usize;
            input = &input[taken..];
            if out.len() > MOST {
                return Err(invalid("a header block is too long"));
            }
            if out.len() == out.capacity() {
                out.reserve(out.len());
            } else if input.is_empty() {
                return Ok(out);
            } else if taken == 0 && out.len() == given {
                return Err(invalid("a header block cannot be inflated"));
            }
        }
    }
}

fn parse(mut bytes: &[u8]) -> io::Result<Headers> {
    let count = number(&mut bytes)?;
    if count > MOST_PAIRS {
        return Err(invalid("a header block has too many headers"));
    }
    (0..count).map(|_| Ok((text(&mut bytes)?, text(&mut bytes)?))).collect()
}

fn text(bytes: &mut &[u8]) -> io::Result<String> {
    let length = number(bytes)?;
    let (text, rest) = bytes.split_at_checked(length).ok_or_else(|| invalid("a header block ends early"))?;
    *bytes = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn number(bytes: &mut &[u8]) -> io::Result<usize> {
    let (number, rest) = bytes.split_first_chunk().ok_or_else(|| invalid("a header block ends early"))?;
    *bytes = rest;
    usize::try_from(u32::from_be_bytes(*number)).map_err(io::Error::other)
}

/// Writes header blocks without compressing them: nothing that is answered has headers worth it.
#[derive(Default)]
pub(super) struct Storer {
    begun: bool,
}

impl Storer {
    /// The next block.
    pub fn write(&mut self, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut content = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            content.extend_from_slice(&(text.len() as u32).to_be_bytes());
            content.extend_from_slice(text.as_bytes());
        }
        let mut block = Vec::with_capacity(content.len() + 12);
        if !std::mem::replace(&mut self.begun, true) {
            // Deflate with a window of 32 KiB, no dictionary.
            block.extend_from_slice(&[0x78, 0x01]);
        }
        let length = content.len() as u16;
        block.push(0);
        block.extend_from_slice(&length.to_le_bytes());
        block.extend_from_slice(&(!length).to_le_bytes());
        block.extend_from_slice(&content);
        // An empty block, as a flush leaves it: Go's reader hands out what it has when it meets one, and takes the end
        // of the frame for the end of the stream otherwise.
        block.extend_from_slice(&[0, 0, 0, 0xff, 0xff]);
        block
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
