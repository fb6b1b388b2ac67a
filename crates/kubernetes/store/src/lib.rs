//! Durable, embedded multi-version store with ordered watches.
//!
//! ```text
//!  write ──► queue ──► leader: check ─► stamp ─► log + fdatasync ─► publish ─► acknowledge
//!                                                                     │
//!  get, snapshot, snapshot_at ◄────────── State (persistent maps) ◄───┤
//!  watch ◄──────────────────────────────── bucket history ◄───────────┘
//! ```
//!
//! All current state is in memory, in persistent (structure-sharing) maps behind one atomic pointer: a
//! reader loads that pointer and has a consistent view for as long as it needs, without blocking a writer
//! or being blocked by one. Every commit is written to a log and synced before readers see it and before it is
//! acknowledged. Each bucket keeps the events of the history window; a watcher is a cursor into that
//! shared history, so a slow one costs nothing, and one event is one allocation for any number of watchers.
//!
//! # Promises
//!
//! - Compare-and-swap is linearizable; a transaction happens as a whole or not at all.
//! - What is acknowledged is durable and visible. What is not durable is never visible.
//! - After a crash, everything acknowledged is there. Of what was not, the group that was being committed may
//!   be there, as a whole; what one start shows, every later start shows.
//! - A watch delivers every change of its range once, in order, whole transactions at a time, from any revision
//!   of the history window, across restarts. One that cannot continue ends with an error; it never skips silently.
//! - Damage is detected and never served. One case cannot be distinguished from a crash: damage of the very last
//!   commit of a store that was not closed.
//! - With a [`Cipher`], values of the buckets that it covers are sealed in every file. Values that cannot be opened stop
//!   the start.
//! - A file that is missing, cut off or of another store is detected when the store is opened.
//! - On a full disk, deletes still work, in space that is kept for them, and other writes fail until there is space.
//!   A failed sync ends writing until the next start, because the operating system may have dropped what it could
//!   not write. Reads and watches go on in both cases.
//!
//! # Files
//!
//! `wal-<first revision>.log` are the segments of the log, `snap-<revision>.bin` snapshots. `MANIFEST` lists both.
//! `RESERVE` keeps space for a snapshot on a full disk. `LOCK` is locked by the process that uses the directory. A
//! start loads the oldest snapshot and replays the log after it, which rebuilds the watch history; files older than
//! the history window needs are removed. A backup has the format of a snapshot.
//!
//! Terms: a *bucket* is what one watch or list covers (one resource type), a *key* names an entry in it, the
//! *revision* is one counter for the whole store, incremented by each transaction.

#![warn(missing_docs)]

mod backup;
mod checkpoint;
mod cipher;
mod codec;
mod commit;
pub mod disk;
mod entry;
mod error;
mod image;
mod log;
mod manifest;
mod metrics;
mod options;
mod queue;
mod reserve;
mod snapshot;
mod state;
mod store;
mod watch;
mod window;

pub use backup::{Backup, BackupSummary, Image, Restore, Restored, restore};
pub use cipher::{Cipher, CipherError, Sealed};
pub use disk::{RealDisk, SimDisk};
pub use entry::{Digest, Entry, Event, Expect, Stamped, Write, Written};
pub use error::{HistoryError, OpenError, WatchError, WriteError};
pub use log::salvage::{Salvaged, salvage};
pub use log::survey::{FileValue, survey};
pub use metrics::{Health, Metrics};
pub use options::{Clock, Options};
pub use snapshot::Snapshot;
pub use store::{Seed, Store};
pub use watch::{Batch, Watch};
