//! A file of events, one per line, each line chained to the one before by a hash.
//!
//! ```text
//! {"seq":7,"chain":"<hash>",<event…>}        hash = SHA-256(hash of the line before ‖ sequence number ‖ event)
//! ```
//!
//! A line that is changed, removed, inserted or moved breaks the chain, also across rotated files. What cannot be seen in the
//! files alone is a cut at the end: compare the last hash with one that was kept elsewhere.
//!
//! Events go through a bounded channel to one thread. When the disk is slower than the requests, requests wait: no event is
//! dropped. Events that cannot be written, as on a full disk, are counted and logged, and the server goes on.

mod chain;
mod files;
pub mod verify;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Event;
use chain::Chain;
use files::Files;

/// Events between a request and the file.
const BACKLOG: usize = 4096;
/// Bytes of long events between a request and the file, whatever their number: one with both bodies has megabytes.
const LONG_BACKLOG: usize = 64 << 20;
/// An event is long above this size: the number limits shorter ones to as many bytes.
const LONG: usize = LONG_BACKLOG / BACKLOG;
/// Bytes that are written at once.
const MAX_BATCH: usize = 1 << 20;
/// How often a failing disk is reported.
const REPORT: Duration = Duration::from_secs(60);

/// Where the log is and when its file is rotated.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The file that is written; rotated ones are beside it with their time in the name.
    pub path: PathBuf,
    /// A file is rotated before it becomes larger.
    pub max_bytes: u64,
    /// Rotated files that are kept; 0 for all.
    pub max_backups: usize,
    /// Rotated files are kept for this long; zero for ever.
    pub max_age: Duration,
}

/// Why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("audit log {path} cannot be opened")]
    Open { path: PathBuf, source: io::Error },
    #[error("audit log {path} does not end with a line of an audit log: move the file away")]
    Foreign { path: PathBuf },
}

/// The log. Clones write to the same file; it is flushed when the last is dropped.
#[derive(Clone)]
pub struct AuditLog(Arc<Inner>);

struct Inner {
    lines: Option<Sender<Line>>,
    /// Bytes that are left for long events.
    room: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    failures: Arc<AtomicU64>,
}

/// An event on its way to the file.
struct Line {
    text: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl AuditLog {
    /// Opens the file and continues its chain.
    pub fn open(options: LogOptions) -> Result<Self, LogError> {
        let path = options.path.clone();
        let opened = |source| LogError::Open { path: path.clone(), source };
        let chain = match chain::last_line(&options.path).map_err(opened)? {
            None => previous_chain(&options.path).map_err(opened)?,
            Some(line) => Chain::after(&line).ok_or_else(|| LogError::Foreign { path: path.clone() })?,
        };
        let files = Files::open(options).map_err(opened)?;
        let (lines, received) = channel(BACKLOG);
        let failures = Arc::new(AtomicU64::new(0));
        let mut writer = Writer { files, chain, failures: failures.clone(), reported: None };
        let thread = std::thread::Builder::new()
            .name("audit-log".to_owned())
            .spawn(move || writer.run(received))
            .map_err(opened)?;
        let room = Arc::new(Semaphore::new(LONG_BACKLOG));
        Ok(Self(Arc::new(Inner { lines: Some(lines), room, writer: Some(thread), failures })))
    }

    /// Records an event. Waits while the backlog is full.
    pub async fn record(&self, event: &Event) {
        let sent = match (serde_json::to_vec(event), &self.0.lines) {
            (Ok(text), Some(lines)) => {
                let room = self.room_for(text.len()).await;
                lines.send(Line { text, _room: room }).await.is_ok()
            }
            _ => false,
        };
        if !sent {
            self.0.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for room for an event, if it is long.
    async fn room_for(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        if bytes <= LONG {
            return None;
        }
        let bytes = u32::try_from(bytes.min(LONG_BACKLOG)).ok()?;
        self.0.room.clone().acquire_many_owned(bytes).await.ok()
    }

    /// Events that could not be written.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }
}

/// The chain of the newest rotated file, which a new file continues.
fn previous_chain(path: &Path) -> io::Result<Chain> {
    let Some(newest) = files::rotated(path)?.pop() else { return Ok(Chain::default()) };
    let line = chain::last_line(&newest)?;
    Ok(line.and_then(|line| Chain::after(&line)).unwrap_or_default())
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The channel closes first, or the thread would wait for ever.
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

struct Writer {
    files: Files,
    chain: Chain,
    failures: Arc<AtomicU64>,
    reported: Option<Instant>,
}

impl Writer {
    fn run(&mut self, mut events: Receiver<Line>) {
        let mut next = events.blocking_recv();
        while let Some(first) = next.take() {
            // What has gathered meanwhile is written together, as far as it fits into one file.
            let mut batch = Batch::new(&self.chain);
            let mut event = Some(first);
            while let Some(now) = event.take() {
                if !batch.add(&now.text, self.files.room()) {
                    next = Some(now);
                    break;
                }
                event = events.try_recv().ok();
            }
            self.write(batch);
            if next.is_none() {
                next = events.blocking_recv();
            }
        }
    }

    fn write(&mut self, batch: Batch) {
        match self.files.append(&batch.bytes) {
            Ok(()) => self.chain = batch.chain,
            // The file ends where it did, and so does the chain.
            Err(error) => {
                self.failures.fetch_add(batch.events, Ordering::Relaxed);
                self.report(&error);
            }
        }
    }

    fn report(&mut self, error: &io::Error) {
        if self.reported.is_none_or(|at| at.elapsed() > REPORT) {
            self.reported = Some(Instant::now());
            let failures = self.failures.load(Ordering::Relaxed);
            tracing::error!(%error, failures, "audit events cannot be written: check the disk of the audit log");
        }
    }
}

/// Lines that are written at once.
struct Batch {
    bytes: Vec<u8>,
    events: u64,
    /// The chain after them.
    chain: Chain,
}

impl Batch {
    fn new(chain: &Chain) -> Self {
        Self { bytes: Vec::new(), events: 0, chain: chain.clone() }
    }

    /// Adds an event, unless the batch has some and would become too large. `room` is what the current file holds before
    /// it is rotated.
    fn add(&mut self, event: &[u8], room: u64) -> bool {
        let (line, next) = self.chain.extend(event);
        let size = self.bytes.len() + line.len() + 1;
        if self.events > 0 && (size as u64 > room || size > MAX_BATCH) {
            return false;
        }
        self.bytes.extend(line);
        self.bytes.push(b'\n');
        self.events += 1;
        self.chain = next;
        true
    }
}

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditLog").field("failures", &self.failures()).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
