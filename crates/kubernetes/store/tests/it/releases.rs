//! Directories of the previous release, which has no manifest.

use capstan_store::{Expect, OpenError, Options, SimDisk, Store, disk::Disk};

use crate::support::{Model, Plain, of_the_previous_release, overwrite, put, run};

fn options() -> Options {
    Options { segment_bytes: 400, ..Options::default() }
}

/// A directory of the previous release with several segments and a snapshot in the middle. If `purged`, the log
/// starts after the snapshot.
fn older(purged: bool) -> (SimDisk, Model) {
    let disk = SimDisk::new(1);
    let mut model = Model::default();
    let mut image = Vec::new();
    let revision = run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        let mut revision = 0;
        for step in 0..30 {
            if step == 15 {
                revision = store.backup(&mut image).unwrap();
            }
            let write = put("b", &format!("k{}", step % 4), &format!("value {step}"), Expect::Any);
            model.commit(std::slice::from_ref(&write));
            store.write(write).await.unwrap();
        }
        revision
    });
    let older = of_the_previous_release(&disk);
    // An image of format 1, as snapshots were.
    let name = format!("snap-{revision:020}.bin");
    overwrite(&older, &name, &image);
    older.open(&name).unwrap().sync_data().unwrap();
    if purged {
        let names = older.list().unwrap();
        let segments: Vec<_> = names.iter().filter(|name| name.starts_with("wal-")).collect();
        let next = |name: &str| name[4..24].parse::<u64>().unwrap();
        let unneeded =
            segments.iter().zip(segments.iter().skip(1)).filter(|(_, after)| next(after) <= revision + 1);
        let unneeded: Vec<_> = unneeded.map(|(name, _)| name).collect();
        assert!(!unneeded.is_empty());
        unneeded.into_iter().for_each(|name| older.remove(name).unwrap());
    }
    older.sync_dir().unwrap();
    (older, model)
}

#[test]
fn a_directory_of_the_previous_release_opens_and_gets_a_manifest() {
    for purged in [false, true] {
        let (disk, mut model) = older(purged);
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        model.check_from(&store, store.compacted());
        assert!(disk.content("MANIFEST").is_some());
        let write = put("b", "new", "v", Expect::Any);
        model.commit(std::slice::from_ref(&write));
        run(store.write(write)).unwrap();
        drop(store);
        let disk = disk.power_loss();
        let again: Plain = Store::open(disk.clone(), options()).unwrap();
        model.check_from(&again, again.compacted());
        drop(again);
        // From now on a missing file is detected, the manifest included.
        for name in disk.list().unwrap().iter().filter(|name| *name != "RESERVE") {
            let copy = disk.copied();
            copy.remove(name).unwrap();
            let error = Store::<()>::open(copy, options()).err().unwrap();
            assert!(matches!(&error, OpenError::Missing { file } if file == name), "{name}: {error}");
        }
    }
}

#[test]
fn a_loss_of_power_at_any_operation_of_the_first_start_loses_nothing() {
    for purged in [false, true] {
        for operation in 0.. {
            let mut done = true;
            for seed in 0..6 {
                let (disk, model) = older(purged);
                let disk = disk.reseeded(seed);
                disk.crash_at(disk.operations() + operation);
                done &= Store::<()>::open(disk.clone(), options()).is_ok();
                let disk = disk.power_loss();
                let store: Plain = Store::open(disk, options())
                    .unwrap_or_else(|error| panic!("operation {operation}, seed {seed}: {error}"));
                model.check_from(&store, store.compacted());
            }
            if done {
                assert!(operation > 5, "{operation}");
                break;
            }
        }
    }
}

#[test]
fn a_store_that_the_previous_release_never_wrote_to_is_created_again() {
    let disk = SimDisk::new(1);
    let name = "wal-00000000000000000002.log";
    overwrite(&disk, name, &[]);
    assert_eq!(Store::<()>::open(disk, options()).unwrap().revision(), 1);
}
