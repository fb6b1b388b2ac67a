//! The real file system, real threads.

use std::sync::Arc;

use capstan_store::{Batch, Expect, OpenError, Options, RealDisk, Store, WriteError, restore};
use futures::future::join_all;
use tempfile::TempDir;

use crate::support::{Plain, put, values};

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(4).build().unwrap().block_on(future)
}

fn open(directory: &TempDir, options: Options) -> Plain {
    Store::open(RealDisk::open(directory.path()).unwrap(), options).unwrap()
}

fn small() -> Options {
    Options { checkpoint_bytes: 20_000, segment_bytes: 10_000, history_revisions: 300, ..Options::default() }
}

#[test]
fn a_directory_in_use_is_refused_until_the_store_is_closed_or_dropped() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory, Options::default());
    let watch = store.watch("b", "", 1).unwrap();
    let error = RealDisk::open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }));
    assert!(error.to_string().contains("is in use by another process"), "{error}");
    run(store.close());
    let store = open(&directory, Options::default());
    drop(store);
    open(&directory, Options::default());
    drop(watch);
}

#[test]
fn what_was_written_is_there_after_a_restart_and_only_the_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("new/data");
    run(async {
        let store: Plain = Store::open(RealDisk::open(&path).unwrap(), small()).unwrap();
        for step in 0..500 {
            store.write(put("b", &format!("k{}", step % 50), &"x".repeat(200), Expect::Any)).await.unwrap();
        }
        assert!(store.metrics().checkpoints > 0);
        store.close().await;
        let again: Plain = Store::open(RealDisk::open(&path).unwrap(), small()).unwrap();
        assert_eq!(values(&again.snapshot("b")), values(&store.snapshot("b")));
        assert_eq!((again.revision(), again.compacted()), (501, 201));
    });
    for entry in std::fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{entry:?}");
    }
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
}

async fn increment(store: &Plain, key: &str) -> u64 {
    loop {
        let current = store.get("b", key);
        let (count, expect) = current.map_or((0, Expect::Absent), |entry| {
            let text = String::from_utf8_lossy(&entry.value).into_owned();
            (text.split(' ').next().unwrap().parse().unwrap(), Expect::Revision(entry.revision))
        });
        match store.write(put("b", key, &(count + 1_u64).to_string(), expect)).await {
            Ok(written) => {
                let seen = store.get("b", key).unwrap().revision;
                assert!(seen >= written.revision, "what is acknowledged is visible");
                return written.revision;
            }
            Err(WriteError::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Eight tasks on four threads each add 50 to one counter, while watchers follow.
async fn count_together(store: &Plain) {
    let store = Arc::new(store.clone());
    let from = store.revision();
    let watchers: Vec<_> = (0..4)
        .map(|_| {
            let mut watch = store.watch("b", "", from).unwrap();
            tokio::spawn(async move {
                let mut values = Vec::new();
                while values.len() < 400 {
                    let Batch { events, progress } = watch.next().await.unwrap();
                    assert!(events.iter().all(|event| event.revision <= progress));
                    values.extend(events.iter().map(|event| event.current.clone().unwrap()));
                }
                values
            })
        })
        .collect();
    let writers = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut revisions = Vec::new();
            for _ in 0..50 {
                revisions.push(increment(&store, "counter").await);
            }
            assert!(revisions.is_sorted());
            revisions
        })
    });
    let mut revisions: Vec<u64> = join_all(writers).await.into_iter().flat_map(Result::unwrap).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (from + 1..=from + 400).collect::<Vec<_>>(), "one revision per success");
    for watcher in watchers {
        let values = watcher.await.unwrap();
        for (index, entry) in values.iter().enumerate() {
            assert_eq!(entry.revision, from + 1 + index as u64);
            let expected = format!("{} {}", index + 1, entry.revision);
            assert_eq!(entry.value, expected, "each success saw the one before it");
        }
    }
}

#[test]
fn compare_and_swap_is_linearizable_in_memory() {
    run(async { count_together(&Store::in_memory(Options::default())).await });
}

#[test]
fn compare_and_swap_is_linearizable_on_disk_while_snapshots_are_written() {
    let directory = TempDir::new().unwrap();
    run(async {
        let options = Options { checkpoint_bytes: 2000, segment_bytes: 1000, ..Options::default() };
        let store = open(&directory, options.clone());
        count_together(&store).await;
        assert!(store.metrics().batches <= 400);
        store.close().await;
        assert_eq!(store.metrics().checkpoint_failures, 0);
        let again = open(&directory, options);
        assert_eq!(again.get("b", "counter").unwrap().value, "400 401");
        assert_eq!(again.compacted(), 0);
    });
}

#[test]
fn a_dropped_write_is_done_or_not_done_and_the_others_are_done() {
    let directory = TempDir::new().unwrap();
    run(async {
        let store = open(&directory, small());
        for round in 0..50 {
            let dropped = tokio::spawn({
                let store = store.clone();
                async move { store.write(put("b", &format!("dropped{round}"), "v", Expect::Any)).await }
            });
            let kept = tokio::spawn({
                let store = store.clone();
                async move { store.write(put("b", &format!("kept{round}"), "v", Expect::Any)).await }
            });
            dropped.abort();
            kept.await.unwrap().unwrap();
        }
        store.close().await;
        let again = open(&directory, small());
        assert_eq!(values(&again.snapshot("b")), values(&store.snapshot("b")));
        assert_eq!(again.snapshot("b").count("kept"), 50);
    });
}

#[test]
fn a_store_outlives_the_runtime_that_wrote_to_it() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory, small());
    for round in 0..50 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        for task in 0..20 {
            let store = store.clone();
            let write = put("b", &format!("abandoned{round}-{task}"), "v", Expect::Any);
            runtime.spawn(async move { store.write(write).await });
        }
        let ending = std::thread::spawn(move || runtime.shutdown_background());
        // While the other runtime shuts down: a write queued behind one that is never executed.
        let kept = format!("kept{round}");
        run(store.write(put("b", &kept, "v", Expect::Any))).unwrap();
        assert!(store.get("b", &kept).is_some());
        ending.join().unwrap();
    }
}

#[test]
fn a_backup_of_one_directory_is_restored_into_another() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(&from, small());
    run(store.write(put("b", "k", "v", Expect::Any))).unwrap();
    let mut file = Vec::new();
    store.backup(&mut file).unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH;
    restore(&mut &file[..], RealDisk::open(to.path()).unwrap(), now).unwrap();
    assert_eq!(open(&to, small()).get("b", "k").unwrap().value, "v 2");
}
