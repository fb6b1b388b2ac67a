//! Backups and restores.

use std::time::{Duration, SystemTime};

use capstan_store::{Expect, HistoryError, OpenError, Options, SimDisk, Store, disk::Disk, restore};

use crate::support::{Plain, delete, put, run, set, values};

const NOW: u64 = 1_800_000_000_000_000;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(NOW)
}

fn backup() -> (Plain, Vec<u8>) {
    run(async {
        let store: Plain = Store::in_memory(Options::default());
        for step in 0..40 {
            set(&store, &format!("k{}", step % 30), &format!("value {step}")).await.unwrap();
        }
        store.write(put("c", "gone", "v", Expect::Any)).await.unwrap();
        store.write(delete("c", "gone", Expect::Any)).await.unwrap();
        let mut file = Vec::new();
        assert_eq!(store.backup(&mut file).unwrap(), store.revision());
        (store, file)
    })
}

#[test]
fn a_restored_store_has_every_entry_as_it_was() {
    let (store, file) = backup();
    let disk = SimDisk::new(1);
    let restored = restore(&mut &file[..], disk.clone(), now()).unwrap();
    assert_eq!((restored.backed_up, restored.entries), (store.revision(), 30));
    let copy: Plain = Store::open(disk.power_loss(), Options::default()).unwrap();
    assert_eq!(values(&copy.snapshot("b")), values(&store.snapshot("b")));
    assert_eq!(copy.get("b", "k5").unwrap().revision, store.get("b", "k5").unwrap().revision);
    assert_eq!(copy.bucket_revision("c"), store.bucket_revision("c"));
    assert_eq!(copy.metrics().live_bytes, store.metrics().live_bytes);
}

#[test]
fn a_client_of_the_lost_store_cannot_resume_into_another_history() {
    let (store, file) = backup();
    let disk = SimDisk::new(1);
    let restored = restore(&mut &file[..], disk.clone(), now()).unwrap();
    assert_eq!(restored.revision, NOW);
    let mut disk = disk.restart();
    for _ in 0..2 {
        let copy: Plain = Store::open(disk.clone(), Options::default()).unwrap();
        for seen in [0, store.revision(), store.revision() + 1_000_000, NOW - 1] {
            let error = copy.watch("b", "", seen).err();
            assert!(matches!(error, Some(HistoryError::Compacted { .. })), "{seen}: {error:?}");
        }
        run(set(&copy, "k", "v")).unwrap();
        assert!(copy.watch("b", "", restored.revision).is_ok());
        disk = disk.power_loss();
    }
    let second = SimDisk::new(2);
    let later = restore(&mut &file[..], second, now() + Duration::from_secs(60)).unwrap();
    assert!(later.revision > restored.revision + 1_000_000, "a second restore is beyond the first");
    let unset = restore(&mut &file[..], SimDisk::new(3), SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(unset.revision, store.revision() + 1_000_000_000, "whatever the clock says");
}

#[test]
fn a_damaged_or_incomplete_backup_is_refused_before_the_disk_is_touched() {
    let (_, file) = backup();
    let refused = |bytes: &[u8], what: String| {
        let disk = SimDisk::new(1);
        let error = restore(&mut &*bytes, disk.clone(), now());
        assert!(matches!(error, Err(OpenError::Damaged { .. })), "{what}: {error:?}");
        assert_eq!(disk.list().unwrap(), [""; 0], "{what}");
        assert_eq!(disk.operations(), 0, "{what}");
    };
    for offset in 0..file.len() {
        let mut flipped = file.clone();
        flipped[offset] ^= 1 << (offset % 8);
        refused(&flipped, format!("byte {offset} flipped"));
        refused(&file[..offset], format!("cut off at {offset}"));
    }
    let mut longer = file.clone();
    longer.push(0);
    refused(&longer, "one byte longer".to_owned());
}

#[test]
fn a_restore_needs_an_empty_directory() {
    let (_, file) = backup();
    let disk = SimDisk::new(1);
    restore(&mut &file[..], disk.clone(), now()).unwrap();
    assert!(matches!(restore(&mut &file[..], disk, now()), Err(OpenError::NotEmpty)));
}

#[test]
fn a_restore_cut_short_at_any_operation_leaves_nothing_that_opens_as_another_store() {
    let (store, file) = backup();
    for operation in 0..12 {
        for seed in 0..8 {
            let disk = SimDisk::new(seed);
            disk.crash_at(operation);
            let complete = restore(&mut &file[..], disk.clone(), now()).is_ok();
            let disk = disk.power_loss();
            let nothing = disk.list().unwrap().iter().all(|name| name.ends_with(".tmp"));
            match Store::<()>::open(disk, Options::default()) {
                Ok(copy) if copy.revision() == NOW => {
                    assert_eq!(values(&copy.snapshot("b")), values(&store.snapshot("b")));
                }
                Ok(_) => assert!(!complete && nothing, "an empty store, from an empty directory only"),
                Err(OpenError::Missing { .. } | OpenError::Damaged { .. }) => assert!(!complete),
                Err(other) => panic!("{other}"),
            }
        }
    }
}
