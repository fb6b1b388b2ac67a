//! Encryption of values on disk. In memory they are plain.
//!
//! The store knows neither keys nor algorithms. A [`Cipher`] decides per bucket whether values are sealed before they
//! reach a file: log, snapshot or backup. Bucket, key and the position of the revision are authenticated with each
//! value, so that a sealed value cannot be moved to another key.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use bytes::Bytes;

use crate::{OpenError, codec::RawValue, entry::Stamp};

/// Seals values before they are written to a file, and opens what was sealed.
pub trait Cipher: Send + Sync + 'static {
    /// Whether values of a bucket are sealed. Values sealed earlier are opened either way.
    fn covers(&self, bucket: &str) -> bool;

    /// Upper bound of the bytes that sealing adds to a value.
    fn overhead(&self) -> usize;

    /// Appends a sealed value of a bucket to `out`. `context` is authenticated with it. Values have at most 64 MiB.
    fn seal(&self, bucket: &str, context: &[u8], value: &[u8], out: &mut Vec<u8>);

    /// Opens a sealed value.
    fn open(&self, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CipherError>;

    /// Whether a value was sealed with the key that [`Self::seal`] uses.
    fn is_current(&self, sealed: &[u8]) -> bool;
}

/// Why a sealed value cannot be opened. Names keys, never their content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum CipherError {
    /// No cipher is configured.
    #[error("no encryption key is configured")]
    NoKey,
    /// The key is not configured.
    #[error("they are encrypted with {0}, which is not configured")]
    UnknownKey(String),
    /// The key does not fit, or the value was changed.
    #[error("{0} does not open them: it is another key of that name, or they were changed")]
    Refused(String),
    /// The service that has the key does not respond. Retrying may help.
    #[error("{0}")]
    Unavailable(String),
}

/// What a value is authenticated with: its bucket, key and stamp.
fn context(bucket: &str, key: &str, stamp: Stamp) -> Vec<u8> {
    let mut context = Vec::with_capacity(bucket.len() + key.len() + 7);
    context.extend_from_slice(&(bucket.len() as u16).to_le_bytes());
    context.extend_from_slice(bucket.as_bytes());
    context.extend_from_slice(key.as_bytes());
    context.extend_from_slice(&stamp.start.to_le_bytes());
    context.push(stamp.len);
    context
}

/// Appends a sealed value of an entry.
pub(crate) fn seal(
    cipher: &dyn Cipher,
    (bucket, key): (&str, &str),
    stamp: Stamp,
    value: &[u8],
    out: &mut Vec<u8>,
) {
    cipher.seal(bucket, &context(bucket, key, stamp), value, out);
}

/// Called for each value of a file: bucket, key, and the sealed bytes or `None` if the value is plain.
pub(crate) type Visitor<'a> = dyn FnMut(&str, &str, Option<&[u8]>) + 'a;

enum Mode<'a> {
    Open(Option<&'a dyn Cipher>),
    /// Sealed values stay closed.
    Visit(&'a mut Visitor<'a>),
}

/// Opens the values of files, and records which of them it cannot open.
pub(crate) struct Reader<'a> {
    mode: Mode<'a>,
    unreadable: BTreeMap<String, BTreeSet<String>>,
    reason: Option<CipherError>,
    /// Values that should be sealed with the current key and are not.
    pub stale: u64,
}

impl<'a> Reader<'a> {
    pub fn new(cipher: Option<&'a dyn Cipher>) -> Self {
        Self { mode: Mode::Open(cipher), unreadable: BTreeMap::new(), reason: None, stale: 0 }
    }

    pub fn visiting(visitor: &'a mut Visitor<'a>) -> Self {
        Self { mode: Mode::Visit(visitor), unreadable: BTreeMap::new(), reason: None, stale: 0 }
    }

    /// The value and its stamp; `None` if it is malformed. An empty value stands for one that cannot be opened: no real
    /// value is empty, because each has a revision in it.
    pub fn value(&mut self, raw: &RawValue<'_>, bucket: &str, key: &str) -> Option<(Bytes, Stamp)> {
        let RawValue { stamp, bytes, is_sealed } = *raw;
        let closed = (Bytes::new(), Stamp { start: 0, len: 0 });
        let end = (stamp.start as usize).saturating_add(stamp.len.into());
        let fits = |length: usize| (end <= length).then_some(());
        let cipher = match &mut self.mode {
            Mode::Visit(visitor) => {
                visitor(bucket, key, is_sealed.then_some(bytes));
                return Some(closed);
            }
            Mode::Open(cipher) => *cipher,
        };
        if !is_sealed {
            self.stale += u64::from(cipher.is_some_and(|cipher| cipher.covers(bucket)));
            fits(bytes.len())?;
            return Some((Bytes::copy_from_slice(bytes), stamp));
        }
        let opened = match cipher {
            None => Err(CipherError::NoKey),
            Some(cipher) => {
                self.stale += u64::from(!cipher.is_current(bytes));
                cipher.open(&context(bucket, key, stamp), bytes)
            }
        };
        match opened {
            Ok(value) => {
                fits(value.len())?;
                Some((value.into(), stamp))
            }
            Err(error) => {
                self.reason.get_or_insert(error);
                self.unreadable.entry(bucket.to_owned()).or_default().insert(key.to_owned());
                Some(closed)
            }
        }
    }

    /// Bucket and key of values that could not be opened.
    pub fn unreadable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unreadable.iter().flat_map(|(bucket, keys)| keys.iter().map(move |key| (&**bucket, &**key)))
    }

    /// Fails if a value could not be opened.
    pub fn finish(self) -> Result<u64, OpenError> {
        let Some(reason) = self.reason else { return Ok(self.stale) };
        let buckets = self.unreadable.into_iter().map(|(bucket, keys)| (bucket, keys.len() as u64));
        Err(OpenError::Sealed { sealed: Sealed { buckets: buckets.collect() }, reason })
    }
}

/// Number of entries per bucket that cannot be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Bucket and number of its entries.
    pub buckets: Vec<(String, u64)>,
}

impl fmt::Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (bucket, count)) in self.buckets.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{count} {}", bucket.trim_start_matches('/'))?;
        }
        Ok(())
    }
}
