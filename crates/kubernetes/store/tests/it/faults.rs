//! A full disk, and writers that go away.

use std::{future::poll_fn, pin::pin, task::Poll};

use capstan_store::{Expect, Health, Options, SimDisk, Store, WriteError};

use crate::support::{Model, Plain, put, run};

fn options() -> Options {
    Options { checkpoint_bytes: 1500, segment_bytes: 1000, ..Options::default() }
}

#[test]
fn a_full_disk_stops_writes_loudly_and_only_until_there_is_space() {
    // Room for anything from nothing to more than a segment, so that each kind of write meets the end.
    for room in (0..2600).step_by(13) {
        let disk = SimDisk::new(room);
        let mut model = Model::default();
        run(async {
            let store: Plain = Store::open(disk.clone(), options()).unwrap();
            disk.set_capacity(disk.used() + room);
            let mut refused = 0;
            for step in 0..40 {
                let write = put("b", &format!("k{}", step % 7), &"x".repeat(100), Expect::Any);
                let used = disk.used();
                match store.write(write.clone()).await {
                    Ok(_) => model.commit(&[write]),
                    Err(WriteError::Full) => {
                        refused += 1;
                        assert!(
                            disk.used() <= used + 32,
                            "what did not fit takes no space, but for a header"
                        );
                        assert_eq!(store.health(), Health::Full);
                    }
                    Err(other) => panic!("{other}"),
                }
                model.check(&store, 100_000);
                if refused == 3 {
                    disk.set_capacity(u64::MAX);
                }
            }
            assert!(refused >= 3, "{refused} with room for {room}");
            assert_eq!(store.health(), Health::Writable);
            model.check(&store, 100_000);
        });
        let store = Store::open(disk.power_loss(), options()).unwrap();
        model.check(&store, 100_000);
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
        disk.set_capacity(disk.used() + 500);
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
