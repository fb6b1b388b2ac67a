//! Checkpoints: snapshots that let the log's beginning go.

use std::{
    io::{self, BufWriter, Write as _},
    sync::{Arc, atomic::Ordering},
};

use tokio::runtime::Handle;

use crate::{
    Digest,
    commit::{Lane, Shared},
    disk::{Disk, Sequential},
    image,
    log::snapshot_name,
    state::State,
};

impl<D: Digest> Shared<D> {
    /// What is due after a commit: a snapshot once the log has outgrown the data, and the removal of files
    /// that the window of history no longer needs.
    pub fn maintain(self: &Arc<Self>, lane: &mut Lane, checkpoint: bool) {
        let Some(log) = &mut lane.log else { return };
        let state = self.state.load_full();
        if checkpoint || lane.since_snapshot > self.options.checkpoint_bytes.max(state.weight) {
            lane.since_snapshot = 0;
            self.start_checkpoint(log.disk(), state.clone());
        }
        let mut snapshots = self.snapshots.lock();
        let needed = snapshots.partition_point(|snapshot| *snapshot <= state.compacted).saturating_sub(1);
        let Some(base) = snapshots.get(needed).copied().filter(|base| *base <= state.compacted) else {
            return;
        };
        if needed > 0 || log.has_before(base) {
            log.purge(base, snapshots.drain(..needed));
        }
    }

    fn start_checkpoint(self: &Arc<Self>, disk: Arc<dyn Disk>, state: Arc<State<D>>) {
        if self.checkpointing.swap(true, Ordering::AcqRel) {
            return;
        }
        let running = Running(self.clone());
        let work = move || running.checkpoint(&*disk, &state);
        match Handle::try_current() {
            Ok(runtime) if !self.inline => drop(runtime.spawn_blocking(work)),
            _ => work(),
        }
    }
}

/// A checkpoint under way; over when dropped, also if it never ran.
struct Running<D>(Arc<Shared<D>>);

impl<D> Drop for Running<D> {
    fn drop(&mut self) {
        self.0.checkpointing.store(false, Ordering::Release);
        self.0.published.notify_waiters();
    }
}

impl<D> Running<D> {
    fn checkpoint(self, disk: &dyn Disk, state: &State<D>) {
        if self.0.snapshots.lock().last() == Some(&state.revision) {
            return;
        }
        let result = write_snapshot(disk, state, state.revision);
        self.0.counters.checkpointed(result.is_ok());
        match result {
            Ok(()) => self.0.snapshots.lock().push(state.revision),
            // The log has everything; a later checkpoint tries again.
            Err(error) => {
                tracing::warn!(%error, "the store could not write a snapshot; its log keeps growing")
            }
        }
    }
}

/// Writes a snapshot under another name, syncs it, then gives it its name.
pub(crate) fn write_snapshot<D>(disk: &dyn Disk, state: &State<D>, revision: u64) -> io::Result<()> {
    // Filling the disk with a snapshot would stop writes that still had space.
    if disk.available()? / 2 < state.weight {
        return Err(io::Error::new(io::ErrorKind::StorageFull, "less than twice its size is free"));
    }
    let name = snapshot_name(revision);
    let temporary = format!("{}tmp", name.trim_end_matches("bin"));
    let written = (|| {
        let file = disk.create(&temporary)?;
        let mut out = BufWriter::with_capacity(1 << 20, Sequential { file: &*file, offset: 0 });
        image::write(state, revision, &mut out)?;
        out.flush()?;
        drop(out);
        file.sync_data()?;
        disk.rename(&temporary, &name)
    })();
    if let Err(error) = written {
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    disk.sync_dir()
}
