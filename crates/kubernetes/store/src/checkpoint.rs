//! Checkpoints: snapshots that allow old log segments to be removed.

use std::{
    collections::BTreeSet,
    io::{self, BufWriter, Write as _},
    sync::{Arc, atomic::Ordering},
};

use crc32fast::Hasher;
use tokio::runtime::Handle;

use crate::{
    Cipher, Digest,
    commit::{Lane, StoreCore},
    disk::{Disk, Sequential},
    image,
    log::snapshot_name,
    manifest::{Manifest, Prefix, UpdateError},
    reserve,
    state::State,
};

impl<D: Digest> StoreCore<D> {
    /// Maintenance after a commit: writes a snapshot once the log has outgrown the data, and removes files that the
    /// history window no longer needs. On a full disk, history is dropped as soon as a snapshot allows it.
    pub fn maintain(self: &Arc<Self>, lane: &mut Lane, checkpoint: bool) {
        let Some(log) = &mut lane.log else { return };
        let mut state = self.state.load_full();
        let outgrown = lane.since_snapshot > self.options.checkpoint_bytes.max(state.weight);
        if lane.full {
            lane.since_snapshot += self.retry_bytes.swap(0, Ordering::AcqRel);
        }
        // Deletes may take little space in the log: what counts is that a snapshot fits now.
        let squeezed = lane.full
            && lane.since_snapshot > log.disk().reserve_unit() / 4
            && fits(&**log.disk(), size_estimate(&state, self.options.cipher())).unwrap_or(false);
        if checkpoint || outgrown || squeezed {
            let bytes = std::mem::take(&mut lane.since_snapshot);
            // A segment that begins where the snapshot ends, so that damage before it does not matter.
            log.rotate_next();
            self.start_checkpoint(log.manifest().clone(), state.clone(), bytes);
        }
        let mut snapshots = self.snapshots.lock();
        if lane.full
            && let Some(newest) = snapshots.last().copied().filter(|newest| *newest > state.compacted)
        {
            let mut next = State::clone(&state);
            let names: Vec<_> = next.buckets.keys().cloned().collect();
            next.forget(newest, names.iter().map(|name| &**name));
            self.publish(next, &BTreeSet::new());
            state = self.state.load_full();
            tracing::warn!(
                compacted = newest,
                "the disk is full: the history of the store was dropped to free space"
            );
        }
        let needed = snapshots.partition_point(|snapshot| *snapshot <= state.compacted).saturating_sub(1);
        let Some(base) = snapshots.get(needed).copied().filter(|base| *base <= state.compacted) else {
            return;
        };
        if (needed > 0 || log.has_before(base)) && log.purge(base, &snapshots[..needed]) {
            snapshots.drain(..needed);
        }
    }

    /// `log_bytes` is the size of the log since the last snapshot.
    fn start_checkpoint(self: &Arc<Self>, manifest: Arc<Manifest>, state: Arc<State<D>>, log_bytes: u64) {
        if self.checkpointing.swap(true, Ordering::AcqRel) {
            return;
        }
        let running = Running(self.clone());
        let work = move || running.checkpoint(&manifest, &state, log_bytes);
        match Handle::try_current() {
            Ok(runtime) if !self.inline => drop(runtime.spawn_blocking(work)),
            _ => work(),
        }
    }
}

/// A checkpoint in progress. Dropping it ends the checkpoint, even if it never ran.
struct Running<D>(Arc<StoreCore<D>>);

impl<D> Drop for Running<D> {
    fn drop(&mut self) {
        self.0.checkpointing.store(false, Ordering::Release);
        self.0.published.notify_waiters();
    }
}

impl<D> Running<D> {
    fn checkpoint(self, manifest: &Manifest, state: &State<D>, log_bytes: u64) {
        if self.0.snapshots.lock().last() == Some(&state.revision) {
            return;
        }
        let cipher = self.0.options.cipher.clone();
        let bytes = size_estimate(state, cipher.as_deref());
        let result = add_snapshot(manifest, state, cipher);
        self.0.counters.checkpointed(result.is_ok());
        match result {
            Ok(()) => {
                self.0.retry_bytes.store(0, Ordering::Release);
                self.0.snapshots.lock().push(state.revision);
            }
            // The log is complete; a later checkpoint retries.
            Err(error) => {
                self.0.retry_bytes.fetch_add(log_bytes, Ordering::AcqRel);
                tracing::warn!(%error, "cannot write a snapshot of the store; the log keeps growing")
            }
        }
        if let Err(error) = reserve::keep(&**manifest.disk(), bytes) {
            tracing::debug!(%error, "cannot reserve space for the next snapshot");
        }
    }
}

/// Writes a snapshot and adds it to the manifest. If the manifest update fails, the file is kept: the manifest on
/// disk may already list it. The next start removes it if not.
fn add_snapshot<D>(manifest: &Manifest, state: &State<D>, cipher: Option<Arc<dyn Cipher>>) -> io::Result<()> {
    let prefix = write_snapshot(&**manifest.disk(), state, manifest.store(), state.revision, cipher)?;
    let update = manifest.update(|contents| {
        contents.snapshots.insert(state.revision, prefix);
    });
    update.map_err(UpdateError::into_inner)
}

/// Whether there is space for a snapshot of `bytes`: so much that writes keep theirs, or the reserve.
fn fits(disk: &dyn Disk, bytes: u64) -> io::Result<bool> {
    Ok(disk.available()? / 2 >= bytes || reserve::holds(disk, bytes)?)
}

/// Upper bound of the size of a snapshot in bytes.
pub(crate) fn size_estimate<D>(state: &State<D>, cipher: Option<&dyn Cipher>) -> u64 {
    let sealed = |name: &Arc<str>| cipher.filter(|cipher| cipher.covers(name)).map_or(0, Cipher::overhead);
    let sealing: u64 =
        state.buckets.iter().map(|(name, bucket)| (sealed(name) * bucket.entries.len()) as u64).sum();
    state.weight + sealing + state.count * 64 + state.buckets.len() as u64 * 512 + 512
}

/// Writes a snapshot under a temporary name, syncs and renames it.
pub(crate) fn write_snapshot<D>(
    disk: &dyn Disk,
    state: &State<D>,
    store: u32,
    revision: u64,
    cipher: Option<Arc<dyn Cipher>>,
) -> io::Result<Prefix> {
    let name = snapshot_name(revision);
    let temporary = format!("{}tmp", name.trim_end_matches("bin"));
    let bytes = size_estimate(state, cipher.as_deref());
    // A snapshot must not use up the space that writes still have. The reserve is for that case.
    let plenty = disk.available()? / 2 >= bytes;
    let reserved = if plenty { None } else { reserve::take(disk, bytes, &temporary)? };
    if !plenty && reserved.is_none() {
        return Err(io::Error::new(io::ErrorKind::StorageFull, "less than twice its size is free"));
    }
    let written: io::Result<Prefix> = (|| {
        let file = reserved.map_or_else(|| disk.create(&temporary), Ok)?;
        let mut out = Measured { inner: Sequential { file: &*file, offset: 0 }, checksum: Hasher::new() };
        let mut buffered = BufWriter::with_capacity(1 << 20, &mut out);
        image::write(state, store, revision, cipher, &mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        let prefix = Prefix { length: out.inner.offset, checksum: out.checksum.finalize() };
        file.truncate(prefix.length)?;
        file.sync_data()?;
        disk.rename(&temporary, &name)?;
        Ok(prefix)
    })();
    if written.is_err() {
        let _ = disk.remove(&temporary);
    }
    let prefix = written?;
    disk.sync_dir()?;
    Ok(prefix)
}

/// Counts and checksums the bytes written.
struct Measured<'a> {
    inner: Sequential<'a>,
    checksum: Hasher,
}

impl io::Write for Measured<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(data)?;
        self.checksum.update(&data[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
