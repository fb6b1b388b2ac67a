//! The hash chain.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// Bytes at the beginning of a line that state its place in the chain, and more.
const HEAD: u64 = 256;

/// Where a chain is: the number and the hash of its last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    pub sequence: u64,
    pub hash: String,
}

impl Default for Chain {
    /// Before the first line.
    fn default() -> Self {
        Self { sequence: 0, hash: "0".repeat(64) }
    }
}

impl Chain {
    /// The line of an event, without its end, and the chain after it.
    pub fn extend(&self, event: &[u8]) -> (Vec<u8>, Self) {
        let next = Self { sequence: self.sequence + 1, hash: self.hash_of(self.sequence + 1, event) };
        let mut line = format!(r#"{{"seq":{},"chain":"{}","#, next.sequence, next.hash).into_bytes();
        line.extend_from_slice(event.strip_prefix(b"{").unwrap_or(event));
        (line, next)
    }

    fn hash_of(&self, sequence: u64, event: &[u8]) -> String {
        let mut hash = Sha256::new();
        hash.update(self.hash.as_bytes());
        hash.update(sequence.to_be_bytes());
        hash.update(event);
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The chain after a line, as the line states it; `None` if it is no line of a log.
    pub fn after(line: &[u8]) -> Option<Self> {
        split(line).map(|(chain, _)| chain)
    }

    /// Whether a line follows this chain unchanged.
    pub fn is_followed_by(&self, line: &[u8]) -> bool {
        split(line).is_some_and(|(next, event)| {
            next.sequence == self.sequence + 1 && next.hash == self.hash_of(next.sequence, &event)
        })
    }
}

/// The chain that a line states, and its event.
fn split(line: &[u8]) -> Option<(Chain, Vec<u8>)> {
    let rest = line.strip_prefix(br#"{"seq":"#)?;
    let comma = rest.iter().position(|byte| *byte == b',')?;
    let sequence = std::str::from_utf8(&rest[..comma]).ok()?.parse().ok()?;
    let rest = rest[comma..].strip_prefix(br#","chain":""#)?;
    let (hash, rest) = rest.split_at_checked(64)?;
    let event = rest.strip_prefix(br#"","#)?;
    let hash = std::str::from_utf8(hash).ok()?.to_owned();
    Some((Chain { sequence, hash }, [b"{", event].concat()))
}

/// The beginning of the last whole line of a file, which states its place in the chain, however long the line is;
/// `None` if the file does not exist or has no line. What a crash left of a line after it does not count.
pub(super) fn last_line(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.seek(SeekFrom::End(0))?;
    let Some(end) = last_break(&mut file, length)? else { return Ok(None) };
    let start = last_break(&mut file, end)?.map_or(0, |before| before + 1);
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(HEAD.min(end - start)).read_to_end(&mut head)?;
    Ok(Some(head))
}

/// Where the last line break before a position is.
pub(super) fn last_break(file: &mut File, mut end: u64) -> io::Result<Option<u64>> {
    let mut piece = vec![0; 64 * 1024];
    while end > 0 {
        let begin = end.saturating_sub(piece.len() as u64);
        let piece = &mut piece[..usize::try_from(end - begin).unwrap_or_default()];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(begin + at as u64));
        }
        end = begin;
    }
    Ok(None)
}
