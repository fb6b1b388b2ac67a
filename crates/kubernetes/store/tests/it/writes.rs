//! Compare-and-swap, transactions, reads of the present and the past.

use capstan_store::{Expect, HistoryError, Options, Store, WriteError};

use crate::support::{Plain, delete, drain, put, run, set};

fn memory() -> Plain {
    Store::in_memory(Options::default())
}

#[test]
fn the_first_write_has_revision_two_because_zero_and_one_mean_something_to_clients() {
    run(async {
        let store = memory();
        assert_eq!(store.revision(), 1);
        let written = set(&store, "k", "v").await.unwrap();
        assert_eq!(written.revision, 2);
        assert_eq!(store.get("b", "k").unwrap().value, "v 2");
    });
}

#[test]
fn a_write_happens_only_if_the_key_holds_what_it_expects() {
    run(async {
        let store = memory();
        let conflict = |result| match result {
            Err(WriteError::Conflict { current, .. }) => current.map(|e: std::sync::Arc<_>| e.revision),
            other => panic!("{other:?}"),
        };
        assert_eq!(conflict(store.write(put("b", "k", "v", Expect::Revision(1))).await), None);
        assert_eq!(conflict(store.write(delete("b", "k", Expect::Any)).await), None);
        store.write(put("b", "k", "v", Expect::Absent)).await.unwrap();
        assert_eq!(conflict(store.write(put("b", "k", "v", Expect::Absent)).await), Some(2));
        assert_eq!(conflict(store.write(put("b", "k", "v", Expect::Revision(1))).await), Some(2));
        assert_eq!(conflict(store.write(delete("b", "k", Expect::Revision(1))).await), Some(2));
        assert_eq!(conflict(store.write(delete("b", "k", Expect::Absent)).await), Some(2));
        store.write(put("b", "k", "w", Expect::Revision(2))).await.unwrap();
        let written = store.write(delete("b", "k", Expect::Revision(3))).await.unwrap();
        assert_eq!((written.revision, written.last.unwrap()), (4, "last 4".into()));
        assert!(store.get("b", "k").is_none());
        assert_eq!((store.revision(), store.bucket_revision("b"), store.bucket_revision("x")), (4, 4, 0));
    });
}

#[test]
fn a_transaction_is_all_or_nothing_and_has_one_revision() {
    run(async {
        let store = memory();
        let both = vec![put("a", "k", "v", Expect::Absent), put("b", "k", "v", Expect::Absent)];
        let written = store.write_all(both.clone()).await.unwrap();
        assert_eq!(written.iter().map(|w| w.revision).collect::<Vec<_>>(), [2, 2]);
        let mixed = vec![put("a", "new", "v", Expect::Absent), put("b", "k", "v", Expect::Absent)];
        let error = store.write_all(mixed).await.unwrap_err();
        assert!(matches!(error, WriteError::Conflict { index: 1, .. }), "{error}");
        assert!(store.get("a", "new").is_none());
        assert_eq!(store.revision(), 2);
        let twice = vec![put("a", "k", "v", Expect::Any), delete("a", "k", Expect::Any)];
        assert!(matches!(store.write_all(twice).await, Err(WriteError::Invalid(_))));
    });
}

#[test]
fn a_range_is_ordered_and_bounded_by_its_prefix() {
    run(async {
        let store = memory();
        for key in ["b/2", "a/1", "b/1", "b0", "c/1", "b/3"] {
            set(&store, key, "v").await.unwrap();
        }
        let snapshot = store.snapshot("b");
        set(&store, "b/4", "later").await.unwrap();
        let keys = |prefix, after| {
            snapshot.range(prefix, after).map(|entry| entry.key.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(keys("", None), "a/1 b/1 b/2 b/3 b0 c/1");
        assert_eq!(keys("b/", None), "b/1 b/2 b/3");
        assert_eq!(keys("b/", Some("b/1")), "b/2 b/3");
        assert_eq!(keys("b/", Some("a/9")), "b/1 b/2 b/3");
        assert_eq!(keys("b/", Some("c")), "");
        assert_eq!((snapshot.count(""), snapshot.count("b/"), snapshot.revision()), (6, 3, 7));
    });
}

#[test]
fn an_older_revision_is_read_as_it_was() {
    run(async {
        let store = memory();
        set(&store, "k", "one").await.unwrap();
        set(&store, "l", "two").await.unwrap();
        set(&store, "k", "three").await.unwrap();
        store.write(delete("b", "l", Expect::Any)).await.unwrap();
        let at = |revision| {
            let snapshot = store.snapshot_at("b", revision).unwrap();
            let values: Vec<_> =
                snapshot.range("", None).map(|e| String::from_utf8_lossy(&e.value).into_owned()).collect();
            values.join(",")
        };
        let all: Vec<_> = (0..=5).map(at).collect();
        assert_eq!(all, ["", "", "one 2", "one 2,two 3", "three 4,two 3", "three 4"]);
        let future = store.snapshot_at("b", 6).map(|_| ()).unwrap_err();
        assert_eq!(future, HistoryError::Future { requested: 6, current: 5 });
    });
}

#[test]
fn stores_of_one_seed_start_equal_and_are_independent() {
    run(async {
        let first = memory();
        set(&first, "k", "v").await.unwrap();
        let seed = first.seed();
        let [one, other] = [(); 2].map(|()| Store::in_memory_from(Options::default(), &seed));
        let entries = [&first, &one, &other].map(|store| store.get("b", "k").unwrap());
        assert!(
            entries.iter().all(|entry| std::sync::Arc::ptr_eq(entry, &entries[0])),
            "an entry exists once"
        );
        assert_eq!((one.revision(), one.compacted()), (2, 2), "the seed has no history");
        let mut watch = one.watch("b", "", 2).unwrap();
        set(&one, "k", "w").await.unwrap();
        assert_eq!(drain(&mut watch), ["3:k:v 2:w 3"]);
        assert_eq!(first.get("b", "k").unwrap().value, "v 2");
        assert_eq!((other.get("b", "k").unwrap().value.clone(), other.revision()), ("v 2".into(), 2));
    });
}
