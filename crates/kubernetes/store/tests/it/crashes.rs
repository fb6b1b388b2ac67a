//! Power loss and process death at every write and sync.
//!
//! Allowed after a crash: everything acknowledged is there; the group that was being committed is there completely or
//! not at all; nothing else. What one start shows, every later start shows.

use capstan_store::{Expect, Options, SimDisk, Store, Write, WriteError};
use futures::future::join_all;

use crate::support::{Model, Plain, delete, put, run};

/// Transactions of history: few, so that snapshots and segments are replaced often.
const WINDOW: u64 = 9;
/// The smallest window, so that a snapshot soon replaces what is before it.
const NARROW: u64 = 1;

fn options(window: u64) -> Options {
    // Large segments with the narrow window: a snapshot is then needed before a new segment is started.
    let segment_bytes = if window == NARROW { 1700 } else { 500 };
    Options { history_revisions: window, checkpoint_bytes: 700, segment_bytes, ..Options::default() }
}

/// Groups of transactions. Each group is issued at once and becomes one commit.
fn scenario() -> Vec<Vec<Vec<Write>>> {
    // More than a sector, so that it can be torn.
    let long = "long".repeat(160);
    (0..20)
        .map(|step: usize| {
            let key = format!("k{}", step % 5);
            let mut group = vec![vec![put("b", &key, &format!("v{step}"), Expect::Any)]];
            if step % 3 == 1 {
                group.push(vec![put("b", &key, "again", Expect::Any), put("c", "both", "v", Expect::Any)]);
            }
            if step % 4 == 2 {
                group.push(vec![put("c", "large", &long, Expect::Any)]);
            }
            if step % 5 == 4 {
                group.push(vec![delete("b", &key, Expect::Any)]);
            }
            group
        })
        .collect()
}

/// How far a run got.
struct Progress {
    acknowledged: Model,
    /// The acknowledged writes and the group in progress.
    attempted: Model,
}

async fn play(store: &Plain, from: Model, window: u64) -> Progress {
    let mut model = from;
    for group in scenario() {
        let batches = store.metrics().batches;
        let answers = join_all(group.iter().map(|writes| store.write_all(writes.clone()))).await;
        let mut attempted = model.clone();
        group.iter().for_each(|writes| attempted.commit(writes));
        if answers.iter().all(Result::is_ok) {
            assert_eq!(store.metrics().batches, batches + 1, "a group is one commit");
            model = attempted;
            continue;
        }
        assert!(
            answers.iter().all(|answer| matches!(answer, Err(WriteError::Failed(_)))),
            "a group fails as a whole"
        );
        model.check(store, window);
        return Progress { acknowledged: model, attempted };
    }
    Progress { acknowledged: model.clone(), attempted: model }
}

/// Opens after a crash and compares with what is allowed. Returns what was found.
fn recovered(disk: &SimDisk, progress: &Progress, window: u64) -> (Plain, Model) {
    let store = Store::open(disk.clone(), options(window)).unwrap();
    let found = if store.revision() == progress.acknowledged.revision() {
        &progress.acknowledged
    } else {
        &progress.attempted
    };
    found.check(&store, window);
    (store, found.clone())
}

fn operations_of_a_run(window: u64) -> u64 {
    let disk = SimDisk::new(0);
    let store = Store::open(disk.clone(), options(window)).unwrap();
    let progress = run(play(&store, Model::default(), window));
    progress.acknowledged.check(&store, window);
    assert!(store.metrics().checkpoints >= 3, "the scenario must exercise checkpoints");
    let names = capstan_store::disk::Disk::list(&disk).unwrap();
    assert!(!names.contains(&"wal-00000000000000000002.log".to_owned()), "and removal: {names:?}");
    disk.operations()
}

/// Runs until power is lost at an operation.
fn crashed(seed: u64, operation: u64, window: u64) -> (SimDisk, Progress) {
    let disk = SimDisk::new(seed);
    disk.crash_at(operation);
    let nothing = Progress { acknowledged: Model::default(), attempted: Model::default() };
    let progress = match Store::open(disk.clone(), options(window)) {
        Ok(store) => run(play(&store, Model::default(), window)),
        Err(_) => nothing,
    };
    (disk, progress)
}

#[test]
fn a_loss_of_power_at_any_operation_loses_nothing_acknowledged_and_shows_nothing_else() {
    let windows = [WINDOW, NARROW];
    let runs =
        windows.map(|window| (0..operations_of_a_run(window)).map(move |operation| (window, operation)));
    for (window, operation) in runs.into_iter().flatten() {
        for seed in 0..6 {
            let (disk, progress) = crashed(seed * 1000 + operation, operation, window);
            let disk = disk.power_loss();
            let (store, found) = recovered(&disk, &progress, window);
            drop(store);
            // What was visible must survive the next power loss, too.
            let disk = disk.power_loss();
            let (store, again) = recovered(&disk, &progress, window);
            assert_eq!(found, again, "operation {operation}, seed {seed}");
            // The store can be written to afterwards.
            let progress = run(play(&store, again, window));
            let (_, last) = recovered(&disk.power_loss(), &progress, window);
            assert_eq!(last, progress.acknowledged);
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_acknowledged_even_if_power_is_lost_next() {
    let window = WINDOW;
    for operation in 0..operations_of_a_run(window) {
        let (disk, progress) = crashed(operation, operation, window);
        let disk = disk.restart();
        let (store, found) = recovered(&disk, &progress, window);
        drop(store);
        let (_, again) = recovered(&disk.power_loss(), &progress, window);
        assert_eq!(found, again, "operation {operation}");
    }
}

#[test]
fn a_loss_of_power_at_any_operation_of_a_recovery_loses_nothing() {
    let window = WINDOW;
    for operation in (0..operations_of_a_run(window)).step_by(3) {
        for recovery in 0..20 {
            let (disk, progress) = crashed(operation * 100 + recovery, operation, window);
            let disk = disk.power_loss();
            let before = disk.operations();
            disk.crash_at(before + recovery);
            let complete = Store::<()>::open(disk.clone(), options(window)).is_ok();
            recovered(&disk.power_loss(), &progress, window);
            if complete {
                break;
            }
        }
    }
}

#[test]
fn a_failed_sync_at_any_operation_stops_writes_for_good_but_not_reads() {
    let window = WINDOW;
    let mut stopped = 0;
    for operation in 2..operations_of_a_run(window) {
        for restarted in [false, true] {
            let disk = SimDisk::new(operation);
            let store = Store::open(disk.clone(), options(window)).unwrap();
            disk.fail_sync_at(operation);
            let progress = run(play(&store, Model::default(), window));
            if progress.acknowledged != progress.attempted {
                stopped += 1;
                let late = run(store.write(put("b", "late", "v", Expect::Any)));
                assert!(matches!(late, Err(WriteError::Failed(_))), "no write is taken after a failed sync");
                progress.acknowledged.check(&store, window);
            }
            drop(store);
            // Either the process restarts, reads what was never synced, and then power is lost; or power is lost at
            // once.
            let disk = if restarted { disk.restart() } else { disk.power_loss() };
            let (store, found) = recovered(&disk, &progress, window);
            drop(store);
            let (_, again) = recovered(&disk.power_loss(), &progress, window);
            assert_eq!(found, again, "operation {operation}");
        }
    }
    assert!(stopped > 20, "most syncs are of the log: {stopped}");
}

#[test]
fn a_watch_resumed_across_crashes_sees_each_event_once() {
    let window = WINDOW;
    for operation in 0..operations_of_a_run(window) {
        let disk = SimDisk::new(operation);
        let store = Store::open(disk.clone(), options(window)).unwrap();
        disk.crash_at(operation);
        let mut model = Model::default();
        let mut seen = Vec::new();
        let mut watch = store.watch("b", "", 0).unwrap();
        let mut progress = 0;
        for group in scenario() {
            let answers = run(join_all(group.iter().map(|writes| store.write_all(writes.clone()))));
            seen.extend(crate::support::drain(&mut watch));
            progress = watch.progress();
            if answers.iter().any(Result::is_err) {
                break;
            }
            group.iter().for_each(|writes| model.commit(writes));
        }
        drop((store, watch));
        let store: Plain = Store::open(disk.power_loss(), options(window)).unwrap();
        let mut watch = store.watch("b", "", progress).unwrap();
        let late = run(store.write(put("b", "late", "v", Expect::Any))).unwrap();
        seen.extend(crate::support::drain(&mut watch));
        // The group in progress at the crash may have survived.
        let last = format!("{}:late::late {}", late.revision, late.revision);
        let last = last.replace(":late ", ":v ");
        assert_eq!(seen.pop().as_ref(), Some(&last));
        let acknowledged = model.events("b", 0);
        assert_eq!(seen[..acknowledged.len()], acknowledged);
        let revisions: Vec<u64> =
            seen.iter().map(|event| event.split(':').next().unwrap().parse().unwrap()).collect();
        assert!(revisions.is_sorted(), "{revisions:?}");
        let mut unique = seen.clone();
        unique.dedup();
        assert_eq!(unique, seen);
        let current: Vec<_> = store.snapshot("b").range("", None).map(|entry| entry.revision).collect();
        assert!(current.iter().all(|revision| *revision == late.revision || revisions.contains(revision)));
    }
}
