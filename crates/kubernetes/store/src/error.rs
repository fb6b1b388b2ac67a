//! Errors.

use std::{fmt, io, path::PathBuf, sync::Arc};

use crate::{Entry, codec::VERSION};

/// Why a write did not happen.
#[derive(thiserror::Error)]
pub enum WriteError<D> {
    /// The key does not hold what the write expects.
    #[error("write {index} of the transaction conflicts with the present entry {current:?}")]
    Conflict {
        /// Which write of the transaction conflicts.
        index: usize,
        /// What the key holds.
        current: Option<Arc<Entry<D>>>,
    },
    /// The write can never be accepted.
    #[error("write refused: {0}")]
    Invalid(&'static str),
    /// The disk is full. Nothing was written; a later write succeeds once there is space again. Deletes and
    /// [`crate::Store::reclaim`] have space of their own and meet this later than other writes.
    #[error("the disk of the store is full: deletes still work; free some space, then try again")]
    Full,
    /// The disk failed. Whether this write survives a restart is unknown; no write is accepted until then.
    #[error("the store is read-only after a disk failure ({0}): check the disk, then restart")]
    Failed(Arc<str>),
    /// The store was closed.
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
    /// The history of that revision is gone.
    #[error("revision {requested} is compacted: the oldest readable revision is {compacted}")]
    Compacted {
        /// The revision that was asked for.
        requested: u64,
        /// The oldest revision that can be asked for.
        compacted: u64,
    },
    /// The store has not reached that revision.
    #[error("revision {requested} is in the future: the store is at {current}")]
    Future {
        /// The revision that was asked for.
        requested: u64,
        /// The store's revision.
        current: u64,
    },
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The watcher was too slow: more events waited for it than [`crate::Options::watch_lag`] allows.
    #[error("the watcher is more than {limit} events behind")]
    Lagged {
        /// The most events that may wait.
        limit: usize,
    },
    /// Events the watcher had not read were compacted.
    #[error("the watcher is behind the compacted revision {compacted}")]
    Compacted {
        /// The oldest revision that can be watched from.
        compacted: u64,
    },
    /// The store was closed; every event before that was delivered.
    #[error("the store is closed")]
    Closed,
}

/// What to do about files that cannot be put back.
const ADVICE: &str =
    "restore a backup into an empty directory; without one, `capstan store salvage` saves what is readable";

/// Why a store cannot be opened, backed up or restored.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the directory.
    #[error("{} is in use by another process: stop that one, or choose another directory", directory.display())]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// A newer program wrote the file.
    #[error("{file} has format {found}, this program reads up to {VERSION}: use the newer program")]
    Newer {
        /// The file.
        file: String,
        /// The format it has.
        found: u32,
    },
    /// The bytes of a file have changed.
    #[error("{file} is damaged at byte {offset}: {reason}; {ADVICE}")]
    Damaged {
        /// The file.
        file: String,
        /// Where the damage begins; 0 if only the checksum of the file is known.
        offset: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A file that the store needs is not there.
    #[error("{file} is missing: put it back, or {ADVICE}")]
    Missing {
        /// The file.
        file: String,
    },
    /// A file is shorter than the manifest records.
    #[error("{file} was cut off: it has {length} bytes of at least {expected}; put it back, or {ADVICE}")]
    Shortened {
        /// The file.
        file: String,
        /// Its length.
        length: u64,
        /// The least length it must have.
        expected: u64,
    },
    /// A file is of another store.
    #[error("{file} belongs to another store than the files beside it: put the right file back, or {ADVICE}")]
    Foreign {
        /// The file.
        file: String,
    },
    /// A file has commits that the manifest does not know of.
    #[error(
        "{file} is not in MANIFEST, which is older than the file: put the newest MANIFEST back, or {ADVICE}"
    )]
    Unlisted {
        /// The file.
        file: String,
    },
    /// There is no file of the store to salvage anything from.
    #[error("there is no file of this store to read: restore a backup into an empty directory")]
    Nothing,
    /// A restore needs an empty directory.
    #[error("the directory already holds a store: restore into an empty one")]
    NotEmpty,
    /// The operating system refused.
    #[error("cannot {operation} {file}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        file: String,
        /// The cause.
        source: io::Error,
    },
}

impl OpenError {
    /// The same error for one more attempt that meets it.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Damaged { file, offset, reason } => {
                Self::Damaged { file: file.clone(), offset: *offset, reason }
            }
            other => Self::Damaged { file: other.to_string(), offset: 0, reason: "it cannot be used" },
        }
    }
}
