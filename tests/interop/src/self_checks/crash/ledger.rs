//! Compares acknowledged writes, watch events and the final state. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub kind: EventKind,
    pub revision: u64,
    pub name: String,
    pub uid: String,
    /// The counter that the writer put into the object.
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// A write that the server acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    Put { revision: u64, name: String, count: u64 },
    Deleted { name: String, uid: String },
}

/// An object as listed at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub uid: String,
    pub count: u64,
    pub revision: u64,
}

/// Checks a whole run: order, repetition, omissions, and that the events lead to the stored state.
pub fn check(
    watchers: &[Vec<Seen>],
    acknowledged: &[Acknowledged],
    stored: &BTreeMap<String, Stored>,
) -> Result<()> {
    for (number, events) in watchers.iter().enumerate() {
        for pair in events.windows(2) {
            ensure!(
                pair[0].revision < pair[1].revision,
                "watcher {number} saw revision {} after {}: repeated or out of order",
                pair[1].revision,
                pair[0].revision
            );
        }
    }
    let Some(first) = watchers.first() else { bail!("no watcher") };
    for (number, events) in watchers.iter().enumerate().skip(1) {
        let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) = (
            first.iter().map(|event| event.revision).collect(),
            events.iter().map(|event| event.revision).collect(),
        );
        let odd: Vec<_> = ours.symmetric_difference(&theirs).take(5).collect();
        ensure!(odd.is_empty(), "watchers 0 and {number} disagree about revisions {odd:?}");
        let differing = first.iter().zip(events).find(|(ours, theirs)| ours != theirs);
        ensure!(differing.is_none(), "watchers 0 and {number} saw different events: {differing:?}");
    }
    check_acknowledged(first, acknowledged)?;
    check_replay(first, stored)
}

fn check_acknowledged(events: &[Seen], acknowledged: &[Acknowledged]) -> Result<()> {
    let puts: BTreeMap<u64, &Seen> = events
        .iter()
        .filter(|event| event.kind != EventKind::Deleted)
        .map(|event| (event.revision, event))
        .collect();
    let deleted: BTreeSet<&str> = events
        .iter()
        .filter(|event| event.kind == EventKind::Deleted)
        .map(|event| event.uid.as_str())
        .collect();
    for write in acknowledged {
        match write {
            Acknowledged::Put { revision, name, count } => match puts.get(revision) {
                None => bail!("the acknowledged write of {name} at revision {revision} was never seen"),
                Some(event) => ensure!(
                    event.name == *name && event.count == *count,
                    "revision {revision} is {name} with count {count}, but watchers saw {event:?}"
                ),
            },
            Acknowledged::Deleted { name, uid } => {
                ensure!(
                    deleted.contains(uid.as_str()),
                    "the acknowledged deletion of {name} ({uid}) was never seen"
                );
            }
        }
    }
    Ok(())
}

fn check_replay(events: &[Seen], stored: &BTreeMap<String, Stored>) -> Result<()> {
    let mut state: BTreeMap<String, Stored> = BTreeMap::new();
    for event in events {
        let next = Stored { uid: event.uid.clone(), count: event.count, revision: event.revision };
        match (event.kind, state.get(&event.name)) {
            (EventKind::Added, None) => {
                state.insert(event.name.clone(), next);
            }
            (EventKind::Modified, Some(last)) if last.uid == event.uid => {
                state.insert(event.name.clone(), next);
            }
            (EventKind::Deleted, Some(last)) if last.uid == event.uid => {
                state.remove(&event.name);
            }
            (_, last) => bail!("{event:?} cannot follow {last:?}"),
        }
    }
    for name in state.keys().chain(stored.keys()) {
        let (replayed, found) = (state.get(name), stored.get(name));
        ensure!(replayed == found, "{name}: the events lead to {replayed:?}, stored is {found:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(kind: EventKind, revision: u64, count: u64) -> Seen {
        Seen { kind, revision, name: "a".into(), uid: "u".into(), count }
    }

    fn run() -> (Vec<Seen>, Vec<Acknowledged>, BTreeMap<String, Stored>) {
        let events = vec![
            seen(EventKind::Added, 5, 1),
            seen(EventKind::Modified, 6, 2),
            seen(EventKind::Modified, 9, 3),
        ];
        let put = |revision, count| Acknowledged::Put { revision, name: "a".into(), count };
        let stored = BTreeMap::from([("a".to_owned(), Stored { uid: "u".into(), count: 3, revision: 9 })]);
        (events, vec![put(5, 1), put(9, 3)], stored)
    }

    #[test]
    fn a_sound_run_passes_with_an_unacknowledged_write_in_it() {
        let (events, acknowledged, stored) = run();
        check(&[events.clone(), events], &acknowledged, &stored).unwrap();
    }

    #[test]
    fn every_kind_of_fault_is_found() {
        let (events, acknowledged, stored) = run();
        let fails =
            |watchers: &[Vec<Seen>], acknowledged: &[Acknowledged], stored: &BTreeMap<String, Stored>| {
                check(watchers, acknowledged, stored).is_err()
            };
        let mut repeated = events.clone();
        repeated.push(events[2].clone());
        assert!(fails(&[repeated], &acknowledged, &stored), "a repeated event");
        let mut missed = events.clone();
        missed.remove(1);
        assert!(fails(&[events.clone(), missed], &acknowledged, &stored), "one watcher missed an event");
        let mut all_missed = events.clone();
        all_missed.remove(2);
        assert!(fails(&[all_missed], &acknowledged, &stored), "an acknowledged write nobody saw");
        let mut lost = stored.clone();
        lost.clear();
        assert!(fails(std::slice::from_ref(&events), &acknowledged, &lost), "a stored object lost");
        let gone = Acknowledged::Deleted { name: "a".into(), uid: "u".into() };
        assert!(fails(&[events], &[gone], &stored), "an acknowledged deletion undone");
    }
}
