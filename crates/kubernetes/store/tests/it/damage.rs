//! Bit rot, missing files, files of a newer program.

use capstan_store::{Expect, OpenError, Options, SimDisk, Store, disk::Disk};

use crate::support::{Model, Plain, put, run};

const WINDOW: u64 = 8;

fn options() -> Options {
    Options { history_revisions: WINDOW, checkpoint_bytes: 400, segment_bytes: 400, ..Options::default() }
}

/// A store of two segments or more that starts from a snapshot.
fn filled(close: bool) -> (SimDisk, Model) {
    let disk = SimDisk::new(1);
    let mut model = Model::default();
    run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        for step in 0..30 {
            let write = put("b", &format!("k{}", step % 4), &format!("value {step}"), Expect::Any);
            model.commit(std::slice::from_ref(&write));
            store.write(write).await.unwrap();
        }
        if close {
            store.close().await;
        }
    });
    let names = disk.list().unwrap();
    let count = |prefix| names.iter().filter(|name| name.starts_with(prefix)).count();
    assert!(count("wal-") >= 2 && count("snap-") >= 1, "{names:?}");
    (disk, model)
}

/// Opens a copy of the disk after something was done to it.
fn opened(disk: &SimDisk, harm: impl FnOnce(&SimDisk)) -> Result<Plain, OpenError> {
    let copy = disk.copied();
    harm(&copy);
    Store::open(copy, options())
}

#[test]
fn after_a_clean_stop_a_flipped_bit_anywhere_is_detected_or_harmless() {
    let (disk, model) = filled(true);
    let mut detected = 0;
    for name in disk.list().unwrap() {
        for offset in 0..disk.content(&name).unwrap().len() {
            let mask = 1 << (offset % 8);
            match opened(&disk, |copy| copy.flip(&name, offset, mask)) {
                // A damaged snapshot may be replaced by a newer one: less history, the same data.
                Ok(store) => model.check_from(&store, store.compacted()),
                Err(OpenError::Damaged { file, .. }) => {
                    detected += 1;
                    assert_eq!(file, name, "the damaged file is named");
                }
                Err(other) => panic!("{name} at {offset}: {other}"),
            }
        }
    }
    assert!(detected > 500, "{detected}");
}

#[test]
fn a_flipped_bit_in_the_only_snapshot_is_detected() {
    let (disk, _) = filled(true);
    let names = disk.list().unwrap();
    let mut snapshots = names.iter().filter(|name| name.starts_with("snap-"));
    let oldest = snapshots.next().unwrap();
    snapshots.for_each(|newer| disk.remove(newer).unwrap());
    for offset in 0..disk.content(oldest).unwrap().len() {
        let error =
            opened(&disk, |copy| copy.flip(oldest, offset, 1 << (offset % 8))).map(|_| ()).unwrap_err();
        assert!(matches!(&error, OpenError::Damaged { file, .. } if file == oldest), "{error}");
    }
}

#[test]
fn after_a_crash_a_flipped_bit_costs_at_most_the_last_commit() {
    let (disk, model) = filled(false);
    let mut without_last = model.clone();
    without_last.transactions.pop();
    let mut lost = 0;
    for name in disk.list().unwrap() {
        for offset in 0..disk.content(&name).unwrap().len() {
            match opened(&disk, |copy| copy.flip(&name, offset, 0x10)) {
                Ok(store) if store.revision() == model.revision() => {
                    model.check_from(&store, store.compacted())
                }
                Ok(store) => {
                    lost += 1;
                    // It cannot be told from a commit that the crash cut short.
                    without_last.check(&store, WINDOW);
                }
                Err(OpenError::Damaged { .. }) => {}
                Err(other) => panic!("{name} at {offset}: {other}"),
            }
        }
    }
    assert!((50..120).contains(&lost), "only bytes of the last frame: {lost}");
}

#[test]
fn a_missing_file_is_named() {
    let (disk, model) = filled(true);
    let names = disk.list().unwrap();
    let newest_segment = names.iter().rfind(|name| name.starts_with("wal-")).unwrap();
    for name in names.iter().filter(|name| *name != newest_segment) {
        match opened(&disk, |copy| copy.remove(name).unwrap()) {
            // Another snapshot takes its place.
            Ok(store) => model.check_from(&store, store.compacted()),
            Err(OpenError::Missing { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let error = opened(&disk, |copy| {
        names.iter().filter(|name| name.starts_with("wal-")).for_each(|name| copy.remove(name).unwrap());
    });
    assert!(matches!(error, Err(OpenError::Missing { .. })), "snapshots alone are not a store");
}

#[test]
fn a_log_that_ends_before_the_newest_snapshot_is_damaged() {
    let disk = SimDisk::new(1);
    run(async {
        let store: Plain = Store::open(disk.clone(), Options::default()).unwrap();
        store.write(put("b", "k", "v", Expect::Any)).await.unwrap();
        store.checkpoint().await.unwrap();
    });
    let log = "wal-00000000000000000002.log";
    let error = opened(&disk, |copy| copy.open(log).unwrap().truncate(40).unwrap());
    assert!(matches!(error, Err(OpenError::Damaged { .. })), "{:?}", error.err());
}

#[test]
fn a_newer_format_is_refused_with_the_way_out() {
    let (disk, _) = filled(true);
    let names = disk.list().unwrap();
    let oldest_snapshot = names.iter().find(|name| name.starts_with("snap-")).unwrap();
    let newest_segment = names.iter().rfind(|name| name.starts_with("wal-")).unwrap();
    for name in [oldest_snapshot, newest_segment] {
        let error = opened(&disk, |copy| {
            let file = copy.open(name).unwrap();
            let mut header = [0; 32];
            file.read_at(0, &mut header).unwrap();
            header[8] = 9;
            let checksum = crc32fast::hash(&header[..28]);
            header[28..].copy_from_slice(&checksum.to_le_bytes());
            file.write_at(0, &header).unwrap();
        });
        let told = error.map(|_| ()).unwrap_err().to_string();
        assert_eq!(told, format!("{name} has format 9, this program reads up to 1: use the newer program"));
    }
}
