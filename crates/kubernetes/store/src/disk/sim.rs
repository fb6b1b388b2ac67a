//! A disk in memory that loses power, fills up and fails like a real one, reproducibly by a seed.

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::Mutex;

use super::{Disk, DiskFile};

/// Unit of atomic writes.
const SECTOR: usize = 512;
/// Smaller than on a real disk, so that a simulated store is small and often needs more space.
const RESERVE_UNIT: u64 = 2048;

/// A simulated disk. Clones share the files. After [`SimDisk::restart`] or [`SimDisk::power_loss`] existing handles
/// fail, as those of a dead process do.
#[derive(Clone)]
pub struct SimDisk {
    machine: Arc<Mutex<Machine>>,
    process: u64,
}

struct Machine {
    random: u64,
    process: u64,
    powered: bool,
    operations: u64,
    crash_at: Option<u64>,
    fail_sync_at: Option<u64>,
    capacity: u64,
    inodes: Vec<Inode>,
    /// The directory as processes see it.
    names: BTreeMap<String, usize>,
    /// The directory after a power loss, without `unsynced`.
    durable_names: BTreeMap<String, usize>,
    unsynced: Vec<NameChange>,
}

#[derive(Default)]
struct Inode {
    /// The content as processes see it.
    cached: Vec<u8>,
    /// The content after a power loss, without `unsynced`.
    durable: Vec<u8>,
    unsynced: Vec<DataChange>,
}

enum DataChange {
    Write { offset: usize, data: Vec<u8> },
    Resize(usize),
}

enum NameChange {
    Link(String, usize),
    Rename(String, String),
    Remove(String),
}

impl DataChange {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => {
                let end = offset + data.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(data);
            }
            Self::Resize(size) => content.resize(*size, 0),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Link(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl Inode {
    /// Decides which unsynced changes reached the medium. Sectors of one write are independent and in any order.
    fn settle(&mut self, outcome: &mut UnsyncedOutcome) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                DataChange::Write { offset, data } => {
                    let mut start = 0;
                    while start < data.len() {
                        let end = data.len().min((offset + start) / SECTOR * SECTOR + SECTOR - offset);
                        if outcome.keeps() {
                            let data = data[start..end].to_vec();
                            DataChange::Write { offset: offset + start, data }.apply(&mut self.durable);
                        }
                        start = end;
                    }
                }
                DataChange::Resize(_) if outcome.keeps() => change.apply(&mut self.durable),
                DataChange::Resize(_) => {}
            }
        }
    }
}

/// What happens to unsynced changes.
enum UnsyncedOutcome {
    AllLost,
    AllKept,
    /// The first so many are kept: a torn write.
    Kept(u64),
    /// Each independently: reordered writes.
    Random(u64),
}

impl UnsyncedOutcome {
    fn random(random: &mut u64) -> Self {
        match next(random) % 4 {
            0 => Self::AllLost,
            1 => Self::AllKept,
            2 => Self::Kept(next(random) % 12),
            _ => Self::Random(next(random)),
        }
    }

    fn keeps(&mut self) -> bool {
        match self {
            Self::AllLost => false,
            Self::AllKept => true,
            Self::Kept(left) => {
                let keeps = *left > 0;
                *left = left.saturating_sub(1);
                keeps
            }
            Self::Random(state) => next(state).is_multiple_of(2),
        }
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Machine {
    fn settle(&mut self) {
        let mut outcome = UnsyncedOutcome::random(&mut self.random);
        for inode in &mut self.inodes {
            inode.settle(&mut outcome);
            inode.cached = inode.durable.clone();
        }
        for change in std::mem::take(&mut self.unsynced) {
            if outcome.keeps() {
                change.apply(&mut self.durable_names);
            }
        }
        self.names = self.durable_names.clone();
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced.push(change);
    }

    fn change_data(&mut self, inode: usize, change: DataChange) {
        let inode = &mut self.inodes[inode];
        change.apply(&mut inode.cached);
        inode.unsynced.push(change);
    }

    fn sync_data(&mut self, inode: usize) {
        let inode = &mut self.inodes[inode];
        for change in std::mem::take(&mut inode.unsynced) {
            change.apply(&mut inode.durable);
        }
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn used(&self) -> u64 {
        self.names.values().map(|inode| self.inodes[*inode].cached.len() as u64).sum()
    }
}

fn dead() -> io::Error {
    io::Error::other("the simulated machine lost power")
}

impl SimDisk {
    /// An empty disk. The seed determines the outcome of faults.
    pub fn new(seed: u64) -> Self {
        let machine = Machine {
            random: seed,
            process: 0,
            powered: true,
            operations: 0,
            crash_at: None,
            fail_sync_at: None,
            capacity: u64::MAX,
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced: Vec::new(),
        };
        Self { machine: Arc::new(Mutex::new(machine)), process: 0 }
    }

    /// The same disk with another seed for later faults.
    pub fn reseeded(self, seed: u64) -> Self {
        self.machine.lock().random = seed;
        self
    }

    /// Number of mutating operations (writes, syncs, changes of names) so far.
    pub fn operations(&self) -> u64 {
        self.machine.lock().operations
    }

    /// Cuts power during the operation with this number, counted from 0 as [`Self::operations`] does.
    pub fn crash_at(&self, operation: u64) {
        self.machine.lock().crash_at = Some(operation);
    }

    /// Makes the first sync from this operation on fail. The data it should have synced may be lost.
    pub fn fail_sync_at(&self, operation: u64) {
        self.machine.lock().fail_sync_at = Some(operation);
    }

    /// Sets the size of the disk in bytes.
    pub fn set_capacity(&self, bytes: u64) {
        self.machine.lock().capacity = bytes;
    }

    /// Used space in bytes.
    pub fn used(&self) -> u64 {
        self.machine.lock().used()
    }

    /// Kills the process but not the machine: everything written stays readable, synced or not. Clears pending
    /// faults.
    pub fn restart(&self) -> Self {
        let mut machine = self.machine.lock();
        (machine.powered, machine.crash_at, machine.fail_sync_at) = (true, None, None);
        machine.process += 1;
        Self { machine: self.machine.clone(), process: machine.process }
    }

    /// Kills the machine: unsynced changes are lost, torn, reordered, or kept. Clears pending faults.
    pub fn power_loss(&self) -> Self {
        self.machine.lock().settle();
        self.restart()
    }

    /// The content of a file as processes see it.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let machine = self.machine.lock();
        machine.names.get(name).map(|inode| machine.inodes[*inode].cached.clone())
    }

    /// Flips bits of a byte of a file, like bit rot.
    pub fn flip(&self, name: &str, offset: usize, mask: u8) {
        let mut machine = self.machine.lock();
        if let Some(inode) = machine.names.get(name).copied() {
            let inode = &mut machine.inodes[inode];
            for content in [&mut inode.cached, &mut inode.durable] {
                if let Some(byte) = content.get_mut(offset) {
                    *byte ^= mask;
                }
            }
        }
    }

    /// An independent copy of the current files, all durable.
    pub fn copied(&self) -> Self {
        let copy = Self::new(0);
        {
            let (from, mut to) = (self.machine.lock(), copy.machine.lock());
            for (name, inode) in &from.names {
                let content = &from.inodes[*inode].cached;
                to.inodes.push(Inode { cached: content.clone(), durable: content.clone(), unsynced: vec![] });
                let inode = to.inodes.len() - 1;
                to.names.insert(name.clone(), inode);
            }
            to.durable_names = to.names.clone();
        }
        copy
    }

    /// A read. Fails without power.
    fn read_state<T>(&self, read: impl FnOnce(&Machine) -> io::Result<T>) -> io::Result<T> {
        let machine = self.machine.lock();
        if !machine.powered || machine.process != self.process { Err(dead()) } else { read(&machine) }
    }

    /// A mutating operation: counted, and the point where power may be lost. The change is started anyway;
    /// [`SimDisk::power_loss`] decides how much of it survives.
    fn change<T>(&self, change: impl FnOnce(&mut Machine) -> io::Result<T>) -> io::Result<T> {
        let mut machine = self.machine.lock();
        if !machine.powered || machine.process != self.process {
            return Err(dead());
        }
        let operation = machine.operations;
        machine.operations += 1;
        if machine.crash_at == Some(operation) {
            machine.powered = false;
            let _ = change(&mut machine);
            return Err(dead());
        }
        change(&mut machine)
    }

    fn sync(&self, sync: impl FnOnce(&mut Machine), fail: impl FnOnce(&mut Machine)) -> io::Result<()> {
        self.change(|machine| {
            if machine.fail_sync_at.is_some_and(|at| machine.operations > at) {
                machine.fail_sync_at = None;
                fail(machine);
                return Err(io::Error::other("input/output error"));
            }
            // A power loss during a sync leaves the result to chance.
            if machine.powered || next(&mut machine.random).is_multiple_of(2) {
                sync(machine);
            }
            Ok(())
        })
    }
}

impl Disk for SimDisk {
    fn immediate(&self) -> bool {
        true
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.read_state(|machine| Ok(machine.names.keys().cloned().collect()))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.change(|machine| {
            machine.inodes.push(Inode::default());
            let inode = machine.inodes.len() - 1;
            machine.change_name(NameChange::Link(name.to_owned(), inode));
            Ok(inode)
        })?;
        Ok(Box::new(SimFile { disk: self.clone(), inode }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.read_state(|machine| machine.find(name))?;
        Ok(Box::new(SimFile { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(|machine| {
            machine.find(from)?;
            machine.change_name(NameChange::Rename(from.to_owned(), to.to_owned()));
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change(|machine| {
            machine.find(name)?;
            machine.change_name(NameChange::Remove(name.to_owned()));
            Ok(())
        })
    }

    fn sync_dir(&self) -> io::Result<()> {
        let sync = |machine: &mut Machine| {
            machine.durable_names = machine.names.clone();
            machine.unsynced.clear();
        };
        self.sync(sync, |machine| machine.unsynced.clear())
    }

    fn available(&self) -> io::Result<u64> {
        self.read_state(|machine| Ok(machine.capacity.saturating_sub(machine.used())))
    }

    fn random(&self) -> io::Result<u64> {
        Ok(next(&mut self.machine.lock().random))
    }

    fn reserve_unit(&self) -> u64 {
        RESERVE_UNIT
    }
}

struct SimFile {
    disk: SimDisk,
    inode: usize,
}

impl DiskFile for SimFile {
    fn size(&self) -> io::Result<u64> {
        self.disk.read_state(|machine| Ok(machine.inodes[self.inode].cached.len() as u64))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.read_state(|machine| {
            let content = &machine.inodes[self.inode].cached;
            let rest = content.get(offset as usize..).unwrap_or_default();
            let read = rest.len().min(buffer.len());
            buffer[..read].copy_from_slice(&rest[..read]);
            Ok(read)
        })
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.change(|machine| {
            let grown =
                (offset + data.len() as u64).saturating_sub(machine.inodes[self.inode].cached.len() as u64);
            let space = machine.capacity.saturating_sub(machine.used());
            let missing = grown.saturating_sub(space) as usize;
            let data = data[..data.len() - missing.min(data.len())].to_vec();
            machine.change_data(self.inode, DataChange::Write { offset: offset as usize, data });
            if missing > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        })
    }

    fn reserve(&self, to: u64) -> io::Result<u64> {
        self.disk.change(|machine| {
            let size = machine.inodes[self.inode].cached.len() as u64;
            let to = to.max(size);
            if to - size > machine.capacity.saturating_sub(machine.used()) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            machine.change_data(self.inode, DataChange::Resize(to as usize));
            Ok(to)
        })
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.disk.change(|machine| {
            machine.change_data(self.inode, DataChange::Resize(size as usize));
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        // A failed sync marks dirty pages as clean: the next sync succeeds without writing them.
        let fail = |machine: &mut Machine| {
            let mut outcome = UnsyncedOutcome::random(&mut machine.random);
            machine.inodes[self.inode].settle(&mut outcome);
        };
        self.disk.sync(|machine| machine.sync_data(self.inode), fail)
    }
}
