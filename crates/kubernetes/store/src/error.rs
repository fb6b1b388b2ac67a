//! Errors.

use std::{fmt, io, path::PathBuf, sync::Arc};

use crate::{CipherError, Entry, Sealed, codec::VERSION};

/// Why a write failed.
#[derive(thiserror::Error)]
pub enum WriteError<D> {
    /// The precondition of a write does not hold. Nothing of the transaction was written.
    #[error("write {index} of the transaction conflicts with the present entry {current:?}")]
    Conflict {
        /// Index of the conflicting write in the transaction.
        index: usize,
        /// The current entry of the key.
        current: Option<Arc<Entry<D>>>,
    },
    /// The write is invalid and would fail in any state.
    #[error("write refused: {0}")]
    Invalid(&'static str),
    /// The disk is full. Nothing was written; a later write succeeds once there is space again. Deletes and
    /// [`crate::Store::reclaim`] may use reserved space and fail later than other writes.
    #[error("the disk of the store is full: deletes still work; free some space, then try again")]
    Full,
    /// The disk failed. Whether this write survives a restart is unknown. No write is accepted until then.
    #[error("the store is read-only after a disk failure ({0}): check the disk, then restart")]
    Failed(Arc<str>),
    /// The store was closed. Nothing was written.
    #[error("the store is closed")]
    Closed,
}

impl<D> fmt::Debug for WriteError<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a revision cannot be read or watched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The history of that revision has been dropped. List again and watch from the new revision.
    #[error("revision {requested} is compacted: the oldest readable revision is {compacted}")]
    Compacted {
        /// The requested revision.
        requested: u64,
        /// The oldest available revision.
        compacted: u64,
    },
    /// The store has not reached that revision.
    #[error("revision {requested} is in the future: the store is at {current}")]
    Future {
        /// The requested revision.
        requested: u64,
        /// The current revision of the store.
        current: u64,
    },
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The watcher was too slow: more events were pending than [`crate::Options::watch_lag`] allows.
    #[error("the watcher is more than {limit} events behind")]
    Lagged {
        /// The limit of pending events.
        limit: usize,
    },
    /// Events that the watcher had not read were compacted.
    #[error("the watcher is behind the compacted revision {compacted}")]
    Compacted {
        /// The oldest revision that can be watched from.
        compacted: u64,
    },
    /// The store was closed. Every event before that was delivered.
    #[error("the store is closed")]
    Closed,
}

/// Advice for files that cannot be put back.
const ADVICE: &str = "restore a backup into an empty directory; without one, `capstan store salvage` recovers what is readable";

/// Why a store cannot be opened, backed up or restored.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has locked the directory.
    #[error("{} is in use by another process: stop that one, or choose another directory", directory.display())]
    InUse {
        /// The locked directory.
        directory: PathBuf,
    },
    /// The file was written by a newer release.
    #[error("{file} has format {found}, this program reads up to {VERSION}: use the newer program")]
    Newer {
        /// The file name.
        file: String,
        /// The format version of the file.
        found: u32,
    },
    /// A file's checksum is wrong.
    #[error("{file} is damaged at byte {offset}: {reason}; {ADVICE}")]
    Damaged {
        /// The file name.
        file: String,
        /// Offset of the damage; 0 if only the checksum of the whole file is known.
        offset: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A file that the store needs does not exist.
    #[error("{file} is missing: put it back, or {ADVICE}")]
    Missing {
        /// The file name.
        file: String,
    },
    /// A file is shorter than the manifest records.
    #[error("{file} was cut off: it has {length} bytes of at least {expected}; put it back, or {ADVICE}")]
    Shortened {
        /// The file name.
        file: String,
        /// Its length in bytes.
        length: u64,
        /// The least length it must have, in bytes.
        expected: u64,
    },
    /// A file has the identity of another store.
    #[error("{file} belongs to another store than the files next to it: restore the right file, or {ADVICE}")]
    Foreign {
        /// The file name.
        file: String,
    },
    /// A file has commits and is not in the manifest.
    #[error(
        "{file} is not in MANIFEST, which is older than the file: put the newest MANIFEST back, or {ADVICE}"
    )]
    Unlisted {
        /// The file name.
        file: String,
    },
    /// Values are encrypted and cannot be decrypted. Nothing was changed.
    #[error(
        "objects cannot be decrypted ({sealed}): {reason}; use the key that they were written with \
         (--encryption-key-file); if it is lost, they are lost, and `capstan store salvage` saves the rest"
    )]
    Sealed {
        /// The entries.
        sealed: Sealed,
        /// Why the first of them cannot be decrypted.
        reason: CipherError,
    },
    /// The directory has no file of a store to salvage.
    #[error("there is no file of this store to read: restore a backup into an empty directory")]
    Nothing,
    /// A restore needs an empty directory.
    #[error("the directory already holds a store: restore into an empty one")]
    NotEmpty,
    /// An I/O error.
    #[error("cannot {operation} {file}")]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The file name.
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl OpenError {
    /// The same error for another caller.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Damaged { file, offset, reason } => {
                Self::Damaged { file: file.clone(), offset: *offset, reason }
            }
            other => Self::Damaged { file: other.to_string(), offset: 0, reason: "it cannot be used" },
        }
    }
}
