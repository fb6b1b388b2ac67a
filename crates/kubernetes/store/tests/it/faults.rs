//! A full disk, and cancelled writers.

use std::{future::poll_fn, pin::pin, task::Poll};

use capstan_store::{Expect, Health, Options, SimDisk, Store, Write, WriteError, disk::Disk};

use crate::support::{Model, Plain, delete, drain, put, run};

fn options() -> Options {
    Options { checkpoint_bytes: 1500, segment_bytes: 1000, ..Options::default() }
}

#[test]
fn a_full_disk_stops_writes_loudly_and_only_until_there_is_space() {
    // From no space to more than a segment, so that each kind of write runs out of space.
    for room in (0..2600).step_by(29) {
        let disk = SimDisk::new(room);
        let mut model = Model::default();
        run(async {
            let store: Plain = Store::open(disk.clone(), options()).unwrap();
            disk.set_capacity(disk.used() + room);
            let mut refused = 0;
            for step in 0..60 {
                let write = put("b", &format!("k{}", step % 7), &"x".repeat(200), Expect::Any);
                let used = disk.used();
                match store.write(write.clone()).await {
                    Ok(_) => model.commit(&[write]),
                    Err(WriteError::Full) => {
                        refused += 1;
                        assert!(disk.used() <= used, "what did not fit takes no space");
                        assert_eq!(store.health(), Health::Full);
                    }
                    Err(other) => panic!("{other}"),
                }
                model.check_now(&store, &format!("room for {room}, step {step}"));
                if refused == 3 {
                    disk.set_capacity(u64::MAX);
                }
            }
            assert!(refused >= 3, "{refused} with room for {room}");
            assert_eq!(store.health(), Health::Writable);
        });
        let store = Store::open(disk.power_loss(), options()).unwrap();
        model.check_from(&store, store.compacted());
    }
}

/// Fills the disk with writes until one fails.
async fn fill(store: &Plain, disk: &SimDisk, model: &mut Model) {
    // As if another program used the rest.
    disk.set_capacity(disk.used());
    for step in 0..1000 {
        let write = put("b", &format!("k{step}"), &"x".repeat(60), Expect::Any);
        match store.write(write.clone()).await {
            Ok(_) => model.commit(&[write]),
            Err(WriteError::Full) => return,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the disk is not full");
}

#[test]
fn deletes_work_on_a_full_disk_and_other_writes_again_when_there_is_space() {
    let disk = SimDisk::new(1);
    let mut model = Model::default();
    run(async {
        let store: Plain = Store::open(disk.clone(), Options::default()).unwrap();
        fill(&store, &disk, &mut model).await;
        for step in 0..8 {
            // The two steps of a deletion with a finalizer: deletion timestamp, then delete.
            let key = format!("k{step}");
            let mark = put("b", &key, "marked", Expect::Any);
            model.commit(std::slice::from_ref(&mark));
            store.reclaim(mark).await.unwrap();
            let gone = delete("b", &key, Expect::Any);
            model.commit(std::slice::from_ref(&gone));
            store.write(gone).await.unwrap();
            assert_eq!(store.health(), Health::Full, "other writes are still refused");
            assert!(matches!(store.write(put("b", "new", "v", Expect::Any)).await, Err(WriteError::Full)));
        }
        model.check_now(&store, "after the deletes");
        disk.set_capacity(u64::MAX);
        store.compact().await.unwrap();
        assert_eq!(store.health(), Health::Writable, "without a write and without a restart");
        let write = put("b", "new", "v", Expect::Any);
        model.commit(std::slice::from_ref(&write));
        store.write(write).await.unwrap();
    });
    model.check(&Store::open(disk.power_loss(), Options::default()).unwrap(), 100_000);
}

#[test]
fn a_group_of_deletes_and_writes_on_a_full_disk_is_split() {
    run(async {
        let disk = SimDisk::new(1);
        let store: Plain = Store::open(disk.clone(), Options::default()).unwrap();
        fill(&store, &disk, &mut Model::default()).await;
        let revision = store.revision();
        let (written, deleted) = futures::join!(
            store.write(put("b", "new", "v", Expect::Any)),
            store.write(delete("b", "k1", Expect::Any))
        );
        assert!(matches!(written, Err(WriteError::Full)));
        assert_eq!(deleted.unwrap().revision, revision + 1);
        assert!(store.get("b", "new").is_none() && store.get("b", "k1").is_none());
    });
}

#[test]
fn a_disk_that_the_log_has_filled_is_compacted_into_the_reserve() {
    let options = || Options { checkpoint_bytes: 1 << 20, segment_bytes: 1000, ..Options::default() };
    let disk = SimDisk::new(1);
    let mut model = Model::default();
    run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        disk.set_capacity(disk.used() + 20_000);
        let mut refused = 0;
        // One small object, overwritten many times: the log is many times larger than the data.
        for _ in 0..400 {
            let write = put("b", "k", &"x".repeat(100), Expect::Any);
            match store.write(write.clone()).await {
                Ok(_) => model.commit(&[write]),
                Err(WriteError::Full) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(refused > 0 && refused < 20, "{refused}: the store makes room by itself");
        assert!(store.metrics().checkpoints > 0);
        assert_eq!(store.health(), Health::Writable);
        model.check_now(&store, "after compaction");
    });
    let store: Plain = Store::open(disk.power_loss(), options()).unwrap();
    model.check_now(&store, "after a restart");
}

#[test]
fn large_objects_are_deleted_on_a_full_disk_until_it_can_be_compacted() {
    let disk = SimDisk::new(1);
    let mut model = Model::default();
    run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        disk.set_capacity(disk.used() + 60_000);
        let mut count = 0;
        loop {
            // A tenth of what a full disk keeps for deletes.
            let write = put("b", &format!("k{count}"), &"x".repeat(400), Expect::Any);
            match store.write(write.clone()).await {
                Ok(_) => model.commit(&[write]),
                Err(WriteError::Full) => break,
                Err(other) => panic!("{other}"),
            }
            count += 1;
        }
        assert!(count > 30, "{count}");
        let mut watch = store.watch("b", "", store.revision()).unwrap();
        for number in 0..count {
            let key = format!("k{number}");
            let entry = store.get("b", &key).unwrap();
            let (bucket, key) = (entry.bucket.clone(), entry.key.clone());
            let delete = Write::Delete { bucket, key, last: entry.unstamped(), expect: Expect::Any };
            let deleted =
                store.write(delete).await.unwrap_or_else(|error| panic!("{number} of {count}: {error}"));
            assert_eq!(deleted.last.unwrap(), format!("{} {}", "x".repeat(400), deleted.revision));
        }
        let revision = store.revision();
        store.compact().await.unwrap();
        store.write(put("b", "new", &"x".repeat(400), Expect::Any)).await.unwrap();
        assert_eq!(store.health(), Health::Writable);
        assert!(store.metrics().checkpoints > 0);
        if let Ok(Some(batch)) = watch.ready() {
            let last = batch.events.iter().find_map(|event| event.last.clone());
            assert!(last.is_none_or(|last| last.starts_with(b"xxxx")));
        }
        drop(store);
        let store: Plain = Store::open(disk.power_loss(), options()).unwrap();
        assert_eq!(store.revision(), revision + 1);
        assert_eq!(store.snapshot("b").count(""), 1);
    });
}

#[test]
fn a_delete_that_repeats_its_entry_is_replayed_with_its_final_state() {
    let disk = SimDisk::new(1);
    let texts = run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        let mut model = Model::default();
        fill(&store, &disk, &mut model).await;
        let from = store.revision();
        let entry = store.get("b", "k0").unwrap();
        let (bucket, key) = (entry.bucket.clone(), entry.key.clone());
        let delete = Write::Delete { bucket, key, last: entry.unstamped(), expect: Expect::Any };
        store.write(delete).await.unwrap();
        (from, drain(&mut store.watch("b", "", from).unwrap()))
    });
    let (from, events) = texts;
    assert_eq!(events.len(), 1);
    disk.set_capacity(u64::MAX);
    let store: Plain = Store::open(disk.power_loss(), options()).unwrap();
    assert_eq!(drain(&mut store.watch("b", "", from).unwrap()), events);
}

#[test]
fn a_store_on_a_full_disk_starts() {
    let disk = SimDisk::new(1);
    let mut model = Model::default();
    run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        fill(&store, &disk, &mut model).await;
    });
    for keep_reserve in [true, false] {
        let disk = disk.copied();
        if !keep_reserve {
            disk.remove("RESERVE").unwrap();
        }
        disk.set_capacity(disk.used());
        run(async {
            let store: Plain = Store::open(disk.clone(), options()).unwrap();
            model.check_now(&store, "on a full disk");
            store.write(delete("b", "k0", Expect::Any)).await.unwrap();
        });
    }
}

#[test]
fn power_lost_while_the_disk_is_full_loses_nothing() {
    for operation in 3..120 {
        let disk = SimDisk::new(operation);
        let mut model = Model::default();
        let mut attempted = model.clone();
        run(async {
            let store: Plain = Store::open(disk.clone(), options()).unwrap();
            disk.crash_at(operation);
            for step in 0..40 {
                disk.set_capacity(if step % 3 == 0 { disk.used() + 60 } else { u64::MAX });
                let write = put("b", &format!("k{}", step % 7), &"x".repeat(100), Expect::Any);
                attempted = model.clone();
                attempted.commit(std::slice::from_ref(&write));
                match store.write(write).await {
                    Ok(_) => model = attempted.clone(),
                    Err(WriteError::Full) => {}
                    Err(_) => break,
                }
            }
        });
        disk.set_capacity(u64::MAX);
        let store = Store::open(disk.power_loss(), options()).unwrap();
        let found = if store.revision() == model.revision() { &model } else { &attempted };
        found.check(&store, 100_000);
    }
}

#[test]
fn a_snapshot_that_does_not_fit_leaves_the_log_working() {
    run(async {
        let disk = SimDisk::new(1);
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        store.write(put("b", "k", &"x".repeat(900), Expect::Any)).await.unwrap();
        disk.remove("RESERVE").unwrap();
        disk.set_capacity(disk.used() + 2500);
        store.checkpoint().await.unwrap();
        assert_eq!((store.metrics().checkpoints, store.metrics().checkpoint_failures), (0, 1));
        store.write(put("b", "k", "small", Expect::Any)).await.unwrap();
        disk.set_capacity(u64::MAX);
        store.checkpoint().await.unwrap();
        assert_eq!(store.metrics().checkpoints, 1);
    });
}

#[test]
fn a_write_whose_future_is_dropped_early_never_happens_and_harms_no_other() {
    run(async {
        let disk = SimDisk::new(1);
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        {
            let mut dropped = pin!(store.write(put("b", "dropped", "v", Expect::Any)));
            let once = poll_fn(|context| Poll::Ready(dropped.as_mut().poll(context).is_ready())).await;
            assert!(!once, "the write waits for its group");
        }
        let written = store.write(put("b", "kept", "v", Expect::Any)).await.unwrap();
        assert_eq!(written.revision, 2);
        assert!(store.get("b", "dropped").is_none());
        let store: Plain = Store::open(disk.power_loss(), options()).unwrap();
        assert!(store.get("b", "dropped").is_none());
        assert_eq!(store.get("b", "kept").unwrap().value, "v 2");
    });
}
