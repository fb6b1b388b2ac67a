//! Stored entries, the events that change them, and writes.

use std::{
    fmt,
    io::Write as _,
    sync::{Arc, OnceLock},
};

use bytes::{BufMut, Bytes, BytesMut};

/// Data derived from a value, such as labels and owners, that readers need without parsing it each time. Computed on
/// first use, once per entry, and shared by all readers.
pub trait Digest: Send + Sync + 'static {
    /// Computes the digest of a stored value. Must not fail: values of any content are passed.
    fn of(bucket: &str, key: &str, value: &Bytes) -> Self;
}

impl Digest for () {
    fn of(_: &str, _: &str, _: &Bytes) {}
}

/// Position and length of the decimal revision inside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub start: u32,
    pub len: u8,
}

/// A stored value: the exact bytes that every get, list and watch serves.
pub struct Entry<D> {
    /// The bucket of the entry.
    pub bucket: Arc<str>,
    /// Its key, unique within the bucket.
    pub key: Arc<str>,
    /// The revision of the transaction that wrote this value.
    pub revision: u64,
    /// The value, with `revision` stamped in.
    pub value: Bytes,
    /// The mark that the writer passed; 0 if another process wrote the value.
    pub mark: u64,
    pub(crate) stamp: Stamp,
    digest: OnceLock<D>,
}

impl<D> Entry<D> {
    pub(crate) fn new(bucket: Arc<str>, key: Arc<str>, revision: u64, value: Bytes, stamp: Stamp) -> Self {
        Self { bucket, key, revision, value, mark: 0, stamp, digest: OnceLock::new() }
    }

    pub(crate) fn marked(self, mark: u64) -> Self {
        Self { mark, ..self }
    }

    /// The same value with another revision.
    pub fn restamped(&self, revision: u64) -> Bytes {
        let start = self.stamp.start as usize;
        let end = start + usize::from(self.stamp.len);
        stamp(&self.value[..start], revision, &self.value[end..]).0
    }

    /// The value around its stamp, from which a write of the same value can be built.
    pub fn unstamped(&self) -> Stamped {
        let start = self.stamp.start as usize;
        let end = start + usize::from(self.stamp.len);
        Stamped { head: self.value.slice(..start), tail: self.value.slice(end..), mark: 0 }
    }

    /// Size of this entry in the accounting of live data, in bytes.
    pub(crate) fn weight(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

impl<D: Digest> Entry<D> {
    /// The digest of the value. Computed by the first reader, neither on the commit path nor at startup.
    pub fn digest(&self) -> &D {
        self.digest.get_or_init(|| D::of(&self.bucket, &self.key, &self.value))
    }

    /// Keeps a digest that the writer of the value has computed, unless a reader was faster.
    pub fn remember(&self, digest: D) {
        // The reader's is equal.
        let _ = self.digest.set(digest);
    }
}

impl<D> fmt::Debug for Entry<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.bucket, self.key, self.revision)
    }
}

/// A value with a gap for its revision: `head`, decimal revision, `tail`. The committer assigns the revision and
/// writes the final bytes once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamped {
    /// The bytes before the revision.
    pub head: Bytes,
    /// The bytes after the revision.
    pub tail: Bytes,
    /// A number of the writer's choice that readers find on the entry. It is not persisted.
    pub mark: u64,
}

impl Stamped {
    /// The final bytes for a revision.
    pub(crate) fn at(&self, revision: u64) -> (Bytes, Stamp) {
        stamp(&self.head, revision, &self.tail)
    }

    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

fn stamp(head: &[u8], revision: u64, tail: &[u8]) -> (Bytes, Stamp) {
    let mut digits = [0u8; 20];
    let mut rest = &mut digits[..];
    // Twenty bytes hold every u64, so the write cannot fail.
    let _ = write!(rest, "{revision}");
    let len = 20 - rest.len();
    let mut value = BytesMut::with_capacity(head.len() + len + tail.len());
    value.put_slice(head);
    value.put_slice(&digits[..len]);
    value.put_slice(tail);
    (value.freeze(), Stamp { start: head.len() as u32, len: len as u8 })
}

/// Precondition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key has no entry.
    Absent,
    /// The entry was last written at this revision.
    Revision(u64),
    /// No precondition.
    Any,
}

/// One change of one key.
#[derive(Clone, Debug)]
pub enum Write {
    /// Creates or replaces an entry.
    Put {
        /// The bucket; created on first use.
        bucket: Arc<str>,
        /// The key; at most 65,535 bytes.
        key: Arc<str>,
        /// The new value.
        value: Stamped,
        /// Precondition; the write conflicts if it does not hold.
        expect: Expect,
    },
    /// Deletes an entry. A missing key is always a conflict, whatever the precondition.
    Delete {
        /// The bucket of the entry.
        bucket: Arc<str>,
        /// The key of the entry.
        key: Arc<str>,
        /// The final state, carried by the event.
        last: Stamped,
        /// Precondition; the delete conflicts if it does not hold.
        expect: Expect,
    },
}

impl Write {
    pub(crate) fn bucket(&self) -> &Arc<str> {
        match self {
            Self::Put { bucket, .. } | Self::Delete { bucket, .. } => bucket,
        }
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        match self {
            Self::Put { key, .. } | Self::Delete { key, .. } => key,
        }
    }

    pub(crate) fn body(&self) -> &Stamped {
        match self {
            Self::Put { value: body, .. } | Self::Delete { last: body, .. } => body,
        }
    }

    /// Whether it deletes an entry and leaves its state as it is, except for the revision.
    pub(crate) fn repeats<D>(&self, current: &Entry<D>) -> bool {
        let Self::Delete { last, .. } = self else { return false };
        let (start, end) = (last.head.len(), current.value.len().saturating_sub(last.tail.len()));
        start == current.stamp.start as usize
            && end == start + usize::from(current.stamp.len)
            && current.value[..start] == last.head
            && current.value[end..] == last.tail
    }

    /// Whether the precondition holds, given the current entry.
    pub(crate) fn admits<D>(&self, current: Option<&Arc<Entry<D>>>) -> bool {
        let (expect, deletes) = match self {
            Self::Put { expect, .. } => (expect, false),
            Self::Delete { expect, .. } => (expect, true),
        };
        match expect {
            Expect::Absent => current.is_none() && !deletes,
            Expect::Revision(revision) => current.is_some_and(|entry| entry.revision == *revision),
            Expect::Any => current.is_some() || !deletes,
        }
    }
}

/// Result of a successful write.
pub struct Written<D> {
    /// The revision of the transaction.
    pub revision: u64,
    /// The new entry; `None` after a delete.
    pub entry: Option<Arc<Entry<D>>>,
    /// The entry before the write.
    pub previous: Option<Arc<Entry<D>>>,
    /// The final bytes of a deleted entry, stamped with `revision`.
    pub last: Option<Bytes>,
}

impl<D> fmt::Debug for Written<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("revision", &self.revision)
            .field("entry", &self.entry)
            .field("previous", &self.previous)
            .finish_non_exhaustive()
    }
}

/// One change of one key, as watchers see it.
pub struct Event<D> {
    /// The revision of the transaction. All events of one transaction share it.
    pub revision: u64,
    /// The new entry; `None` if it was deleted.
    pub current: Option<Arc<Entry<D>>>,
    /// The entry before the change; `None` if it was created.
    pub previous: Option<Arc<Entry<D>>>,
    /// The final bytes of a deleted entry, stamped with `revision`.
    pub last: Option<Bytes>,
}

impl<D> Event<D> {
    /// The changed key.
    pub fn key(&self) -> &str {
        match (&self.current, &self.previous) {
            (Some(entry), _) | (None, Some(entry)) => &entry.key,
            // The committer never builds an event without an entry on either side.
            (None, None) => "",
        }
    }
}

impl<D> fmt::Debug for Event<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}: {:?} -> {:?}", self.key(), self.revision, self.previous, self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restamping_changes_only_the_revision() {
        let stamped =
            Stamped { head: Bytes::from_static(b"{\"v\":\""), tail: Bytes::from_static(b"\"}"), mark: 0 };
        let (value, stamp) = stamped.at(9);
        let entry = Entry::<()>::new("b".into(), "k".into(), 9, value, stamp);
        assert_eq!(entry.value, "{\"v\":\"9\"}");
        assert_eq!(entry.restamped(u64::MAX), format!("{{\"v\":\"{}\"}}", u64::MAX));
        assert_eq!(entry.unstamped(), stamped);
    }
}
