//! Watches are ordered, unique, gap-free, atomic, resumable and accurate about their progress.

use std::time::Duration;

use capstan_store::{Expect, HistoryError, Options, SimDisk, Store, WatchError};
use futures::{FutureExt, future::join};

use crate::support::{ManualClock, Plain, delete, drain, event_text, put, run, set};

#[test]
fn a_watch_delivers_each_change_of_its_prefix_once_and_in_order() {
    run(async {
        let store: Plain = Store::in_memory(Options::default());
        set(&store, "n/a", "one").await.unwrap();
        let mut watch = store.watch("b", "n/", 0).unwrap();
        let mut later = store.watch("b", "n/", 2).unwrap();
        set(&store, "m/a", "other namespace").await.unwrap();
        store.write(put("c", "n/a", "other bucket", Expect::Any)).await.unwrap();
        set(&store, "n/a", "two").await.unwrap();
        store.write(delete("b", "n/a", Expect::Any)).await.unwrap();
        let expected = ["2:n/a::one 2", "5:n/a:one 2:two 5", "6:n/a:two 5:last 6"];
        assert_eq!(drain(&mut watch), expected);
        assert_eq!(drain(&mut later), expected[1..]);
        assert_eq!(drain(&mut watch), [""; 0]);
    });
}

#[test]
fn a_waiting_watch_wakes_for_its_bucket_only() {
    run(async {
        let store: Plain = Store::in_memory(Options::default());
        let mut watch = store.watch("b", "", 1).unwrap();
        let (batch, ()) = join(watch.next(), async {
            store.write(put("c", "k", "v", Expect::Any)).await.unwrap();
            tokio::task::yield_now().await;
            set(&store, "k", "v").await.unwrap();
        })
        .await;
        let batch = batch.unwrap();
        assert_eq!(batch.events.iter().map(event_text).collect::<Vec<_>>(), ["3:k::v 3"]);
        assert_eq!(batch.progress, 3);
        assert!(watch.next().now_or_never().is_none());
    });
}

#[test]
fn progress_follows_the_store_while_the_bucket_is_idle_and_never_passes_an_undelivered_event() {
    run(async {
        let store: Plain = Store::in_memory(Options::default());
        let mut watch = store.watch("b", "", 1).unwrap();
        for _ in 0..5 {
            store.write(put("c", "k", "v", Expect::Any)).await.unwrap();
        }
        assert_eq!(watch.progress(), 6);
        set(&store, "k", "v").await.unwrap();
        store.write(put("c", "k", "v", Expect::Any)).await.unwrap();
        assert_eq!(watch.progress(), 6, "the event at 7 is not delivered yet");
        assert_eq!(watch.next().await.unwrap().progress, 8);
        assert_eq!(watch.progress(), 8);
    });
}

#[test]
fn a_transaction_is_never_split_between_batches() {
    run(async {
        let store: Plain = Store::in_memory(Options::default());
        for transaction in 0..4 {
            let writes = (0..700).map(|key| put("b", &format!("{transaction}-{key}"), "v", Expect::Any));
            store.write_all(writes.collect()).await.unwrap();
        }
        let mut watch = store.watch("b", "", 0).unwrap();
        let mut sizes = Vec::new();
        while let Some(batch) = watch.ready().unwrap() {
            let last = batch.events.last().unwrap().revision;
            assert!(batch.progress == last || batch.progress == store.revision());
            sizes.push(batch.events.len());
        }
        assert_eq!(sizes, [1400, 1400]);
    });
}

#[test]
fn a_slow_watch_ends_with_lagged() {
    run(async {
        let store: Plain = Store::in_memory(Options { watch_lag: 100, ..Options::default() });
        let mut slow = store.watch("b", "", 1).unwrap();
        for step in 0..100 {
            set(&store, "k", &step.to_string()).await.unwrap();
        }
        let mut prompt = store.watch("b", "", 1).unwrap();
        assert_eq!(drain(&mut prompt).len(), 100);
        set(&store, "k", "one too many").await.unwrap();
        assert_eq!(slow.next().await.err(), Some(WatchError::Lagged { limit: 100 }));
        assert_eq!(slow.next().await.err(), Some(WatchError::Lagged { limit: 100 }), "and stays so");
        assert_eq!(drain(&mut prompt).len(), 1);
        let mut resumed = store.watch("b", "", 1).unwrap();
        assert_eq!(drain(&mut resumed).len(), 101, "history asked for is not a delay");
    });
}

#[test]
fn a_watch_behind_the_compacted_revision_ends_with_an_error() {
    run(async {
        let store: Plain = Store::in_memory(Options { history_revisions: 10, ..Options::default() });
        let mut watch = store.watch("b", "", 1).unwrap();
        let mut quiet = store.watch("c", "", 1).unwrap();
        for step in 0..30 {
            set(&store, "k", &step.to_string()).await.unwrap();
        }
        assert_eq!((store.revision(), store.compacted()), (31, 21));
        assert_eq!(watch.next().await.err(), Some(WatchError::Compacted { compacted: 21 }));
        assert!(quiet.next().now_or_never().is_none(), "a watch that missed nothing goes on");
        assert_eq!(quiet.progress(), 31);
        let compacted = HistoryError::Compacted { requested: 20, compacted: 21 };
        assert_eq!(store.watch("b", "", 20).err(), Some(compacted));
        assert_eq!(store.snapshot_at("b", 20).err(), Some(compacted));
        assert_eq!(drain(&mut store.watch("b", "", 21).unwrap()).len(), 10);
        let future = HistoryError::Future { requested: 32, current: 31 };
        assert_eq!(store.watch("b", "", 32).err(), Some(future));
    });
}

#[test]
fn history_older_than_its_age_is_dropped_in_idle_buckets_and_across_a_restart() {
    run(async {
        let clock = ManualClock::default();
        let disk = SimDisk::new(1);
        let store: Plain = Store::open(disk.clone(), clock.options()).unwrap();
        set(&store, "k", "early").await.unwrap();
        clock.advance(Duration::from_secs(1800));
        store.write(put("c", "k", "late", Expect::Any)).await.unwrap();
        clock.advance(Duration::from_secs(1801));
        store.compact().await.unwrap();
        assert_eq!(store.compacted(), 2);
        let mut watch = store.watch("b", "", 2).unwrap();
        assert_eq!(drain(&mut watch), [""; 0]);
        drop(store);
        let store: Plain = Store::open(disk.restart(), clock.options()).unwrap();
        assert_eq!((store.compacted(), store.revision()), (2, 3));
        clock.advance(Duration::from_secs(1801));
        store.compact().await.unwrap();
        assert_eq!(store.compacted(), 3);
        assert_eq!(store.get("b", "k").unwrap().value, "early 2");
    });
}

#[test]
fn a_watch_resumed_after_a_restart_continues_where_it_was() {
    run(async {
        let disk = SimDisk::new(1);
        let mut seen = Vec::new();
        let mut progress = 1;
        let mut disk = disk;
        for round in 0..5 {
            let store: Plain = Store::open(disk.clone(), Options::default()).unwrap();
            let mut watch = store.watch("b", "", progress).unwrap();
            set(&store, "k", &format!("seen {round}")).await.unwrap();
            seen.extend(drain(&mut watch));
            progress = watch.progress();
            set(&store, "k", &format!("unseen {round}")).await.unwrap();
            if round % 2 == 0 {
                store.close().await;
            }
            disk = disk.power_loss();
        }
        let store: Plain = Store::open(disk, Options::default()).unwrap();
        seen.extend(drain(&mut store.watch("b", "", progress).unwrap()));
        assert_eq!(seen, drain(&mut store.watch("b", "", 0).unwrap()));
        assert_eq!(seen.len(), 10);
    });
}

#[test]
fn a_watch_ends_when_the_store_does_after_delivering_everything() {
    run(async {
        for close in [true, false] {
            let store: Plain = Store::in_memory(Options::default());
            let mut watch = store.watch("b", "", 1).unwrap();
            let mut waiting = store.watch("c", "", 1).unwrap();
            set(&store, "k", "v").await.unwrap();
            let (ended, ()) = join(waiting.next(), async {
                if close {
                    store.close().await;
                    assert!(set(&store, "k", "v").await.is_err());
                }
                drop(store);
            })
            .await;
            assert_eq!(ended.err(), Some(WatchError::Closed));
            assert_eq!(watch.next().await.unwrap().events.len(), 1);
            assert_eq!(watch.next().await.err(), Some(WatchError::Closed));
        }
    });
}

#[test]
fn reached_returns_when_the_revision_is_published() {
    run(async {
        let store: Plain = Store::in_memory(Options::default());
        store.reached(1).await;
        assert!(store.reached(2).now_or_never().is_none());
        let ((), written) = join(store.reached(2), set(&store, "k", "v")).await;
        assert_eq!(written.unwrap().revision, 2);
    });
}

#[test]
fn a_long_history_keeps_its_positions() {
    run(async {
        let store: Plain = Store::in_memory(Options { history_revisions: 9000, ..Options::default() });
        let mut watch = store.watch("b", "", 1).unwrap();
        let mut delivered = 0;
        for step in 0..20_000_u64 {
            set(&store, "k", "v").await.unwrap();
            if step % 4999 == 0 {
                while let Some(batch) = watch.ready().unwrap() {
                    for event in &batch.events {
                        delivered += 1;
                        assert_eq!(event.revision, delivered + 1);
                    }
                }
            }
        }
        let from = store.compacted() + 4500;
        let mut middle = store.watch("b", "", from).unwrap();
        assert_eq!(middle.next().await.unwrap().events[0].revision, from + 1);
        assert_eq!(store.snapshot_at("b", from).unwrap().get("k").unwrap().revision, from);
    });
}
