//! Random operations, compared with a model after each.

use capstan_store::{Expect, Options, SimDisk, Store, Watch, Write, WriteError};
use proptest::prelude::*;

use crate::support::{Model, Plain, delete, drain, put, run};

const WINDOW: u64 = 12;

#[derive(Clone, Debug)]
enum Step {
    Transaction(Vec<(bool, u8, bool, Wanted)>),
    Watch(u8),
    Poll(u8),
    Checkpoint,
    Close,
    Kill,
    PowerLoss,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Nothing,
    Absent,
    Right,
    Wrong,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        5 => Just(Wanted::Nothing),
        1 => Just(Wanted::Absent),
        4 => Just(Wanted::Right),
        1 => Just(Wanted::Wrong),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let write = (any::<bool>(), 0..6_u8, prop::bool::weighted(0.3), wanted());
    prop_oneof![
        20 => prop::collection::vec(write, 1..4).prop_map(Step::Transaction),
        3 => any::<u8>().prop_map(Step::Watch),
        4 => any::<u8>().prop_map(Step::Poll),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
        1 => Just(Step::PowerLoss),
    ]
}

fn options() -> Options {
    Options { history_revisions: WINDOW, checkpoint_bytes: 600, segment_bytes: 300, ..Options::default() }
}

/// A watch and its events so far.
struct Watcher {
    bucket: &'static str,
    watch: Watch<()>,
    progress: u64,
}

struct World {
    disk: SimDisk,
    store: Plain,
    model: Model,
    watchers: Vec<Watcher>,
}

impl World {
    fn write(&self, (other, key, deletes, wanted): (bool, u8, bool, Wanted)) -> Write {
        let bucket = if other { "c" } else { "b" };
        let key = format!("k{key}");
        let present = self.model.entry(bucket, &key);
        let expect = match wanted {
            Wanted::Nothing => Expect::Any,
            Wanted::Absent => Expect::Absent,
            Wanted::Right => present.map_or(Expect::Absent, Expect::Revision),
            Wanted::Wrong => Expect::Revision(1),
        };
        if deletes { delete(bucket, &key, expect) } else { put(bucket, &key, "v", expect) }
    }

    /// Whether the write succeeds in the model.
    fn admits(&self, write: &Write) -> bool {
        let (bucket, key, expect, deletes) = match write {
            Write::Put { bucket, key, expect, .. } => (bucket, key, expect, false),
            Write::Delete { bucket, key, expect, .. } => (bucket, key, expect, true),
        };
        let present = self.model.entry(bucket, key);
        match expect {
            Expect::Any => !deletes || present.is_some(),
            Expect::Absent => !deletes && present.is_none(),
            Expect::Revision(revision) => present == Some(*revision),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Transaction(writes) => {
                let mut writes: Vec<_> = writes.into_iter().map(|write| self.write(write)).collect();
                let name = |write: &Write| match write {
                    Write::Put { bucket, key, .. } | Write::Delete { bucket, key, .. } => {
                        (bucket.clone(), key.clone())
                    }
                };
                writes.sort_by_key(name);
                writes.dedup_by_key(|write| name(write));
                let refused = writes.iter().position(|write| !self.admits(write));
                match (run(self.store.write_all(writes.clone())), refused) {
                    (Ok(_), None) => self.model.commit(&writes),
                    (Err(WriteError::Conflict { index, .. }), Some(refused)) => assert_eq!(index, refused),
                    (result, refused) => panic!("{result:?} but the model refuses {refused:?}"),
                }
            }
            Step::Watch(choice) => {
                let bucket = if choice % 2 == 0 { "b" } else { "c" };
                let (oldest, newest) = (self.store.compacted(), self.store.revision());
                let from = oldest + u64::from(choice / 2) % (newest - oldest + 1);
                let watch = self.store.watch(bucket, "", from).unwrap();
                self.watchers.push(Watcher { bucket, watch, progress: from });
            }
            Step::Poll(choice) => {
                if !self.watchers.is_empty() {
                    let index = usize::from(choice) % self.watchers.len();
                    if self.watchers[index].progress < self.store.compacted() {
                        self.watchers.swap_remove(index);
                    } else {
                        self.poll(index);
                    }
                }
            }
            Step::Checkpoint => run(self.store.checkpoint()).unwrap(),
            Step::Close => {
                run(self.store.close());
                self.reopen(self.disk.restart());
            }
            Step::Kill => self.reopen(self.disk.restart()),
            Step::PowerLoss => self.reopen(self.disk.power_loss()),
        }
    }

    fn poll(&mut self, index: usize) {
        let watcher = &mut self.watchers[index];
        let delivered = drain(&mut watcher.watch);
        assert_eq!(delivered, self.model.events(watcher.bucket, watcher.progress));
        watcher.progress = watcher.watch.progress();
        assert_eq!(watcher.progress, self.model.revision());
    }

    /// Reopens the store. Watches that were not too far behind are resumed.
    fn reopen(&mut self, disk: SimDisk) {
        self.store = Store::open(disk.clone(), options()).unwrap();
        self.disk = disk;
        for mut watcher in std::mem::take(&mut self.watchers) {
            if let Ok(watch) = self.store.watch(watcher.bucket, "", watcher.progress) {
                watcher.watch = watch;
                self.watchers.push(watcher);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_does_what_the_model_does(seed in any::<u64>(), steps in prop::collection::vec(step(), 1..80)) {
        let disk = SimDisk::new(seed);
        let store = Store::open(disk.clone(), options()).unwrap();
        let mut world = World { disk, store, model: Model::default(), watchers: Vec::new() };
        for step in steps {
            world.take(step);
            world.model.check(&world.store, WINDOW);
        }
    }
}
