//! Round robin over ready keys: by namespace, then by group within a namespace.
//!
//! A tenant with a thousand busy clusters takes as many turns as one with a single cluster, and within a tenant a cluster
//! of a thousand machines as many as one of three. Keys of one group come first in, first out.

use std::collections::BTreeMap;

use capstan_object::Key;

/// Position of a key in the queue, to remove it early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    namespace: String,
    pub group: String,
    turn_at: Turn,
}

/// Sort key: the round of the group, then order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    round: u64,
    sequence: u64,
}

/// Keys of equal priority.
#[derive(Default)]
pub(super) struct Turns {
    namespaces: BTreeMap<String, Namespace>,
    /// The namespaces that have keys, in order of their turns.
    order: BTreeMap<Turn, String>,
    /// The current round.
    round: u64,
    sequence: u64,
    keys: usize,
}

#[derive(Default)]
struct Namespace {
    /// Where it is in the order.
    turn_at: Option<Turn>,
    keys: BTreeMap<Turn, (Key, String)>,
    /// Of each group that has keys, how many and the round of the last one.
    groups: BTreeMap<String, (usize, u64)>,
    round: u64,
}

impl Turns {
    pub fn len(&self) -> usize {
        self.keys
    }

    /// Adds a key of a group of its namespace.
    pub fn add(&mut self, key: &Key, group: &str) -> Position {
        self.sequence += 1;
        self.keys += 1;
        let sequence = self.sequence;
        let namespace = self.namespaces.entry(key.namespace.clone()).or_default();
        if namespace.turn_at.is_none() {
            // It joins the current round, behind those that wait already.
            let turn_at = Turn { round: self.round, sequence };
            namespace.turn_at = Some(turn_at);
            self.order.insert(turn_at, key.namespace.clone());
        }
        // A group that has keys already gets its next turn a round later than its last.
        let (count, round) =
            namespace.groups.get(group).map_or((0, namespace.round), |(count, last)| (*count, last + 1));
        namespace.groups.insert(group.to_owned(), (count + 1, round));
        let turn_at = Turn { round, sequence };
        namespace.keys.insert(turn_at, (key.clone(), group.to_owned()));
        Position { namespace: key.namespace.clone(), group: group.to_owned(), turn_at }
    }

    /// Removes a key before its turn.
    pub fn remove(&mut self, Position { namespace: name, group, turn_at }: &Position) {
        let Some(namespace) = self.namespaces.get_mut(name) else { return };
        if namespace.keys.remove(turn_at).is_none() {
            return;
        }
        self.keys -= 1;
        namespace.leave(group);
        if namespace.keys.is_empty() {
            let empty = self.namespaces.remove(name);
            if let Some(turn_at) = empty.and_then(|namespace| namespace.turn_at) {
                self.order.remove(&turn_at);
            }
        }
    }

    /// Removes the next key.
    pub fn pop(&mut self) -> Option<Key> {
        let (turn, name) = self.order.pop_first()?;
        self.round = self.round.max(turn.round);
        let namespace = self.namespaces.get_mut(&name)?;
        let (turn_at, (key, group)) = namespace.keys.pop_first()?;
        self.keys -= 1;
        namespace.round = namespace.round.max(turn_at.round);
        namespace.leave(&group);
        if namespace.keys.is_empty() {
            self.namespaces.remove(&name);
        } else {
            let next = Turn { round: turn.round + 1, sequence: turn.sequence };
            namespace.turn_at = Some(next);
            self.order.insert(next, name);
        }
        Some(key)
    }
}

impl Namespace {
    /// One key of a group has gone.
    fn leave(&mut self, group: &str) {
        if let Some((count, _)) = self.groups.get_mut(group) {
            *count -= 1;
            if *count == 0 {
                self.groups.remove(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds `namespace/group/name` in this order; returns the order in which they come.
    fn order(keys: &[&str]) -> Vec<String> {
        let mut turns = Turns::default();
        for key in keys {
            let (group, name) = key.rsplit_once('/').expect("a group");
            let (namespace, group) = group.split_once('/').expect("a namespace");
            turns.add(&Key::new(namespace, format!("{group}/{name}")), group);
        }
        assert_eq!(turns.len(), keys.len());
        let order = std::iter::from_fn(|| turns.pop()).map(|key| key.to_string()).collect();
        assert_eq!((turns.len(), turns.namespaces.len(), turns.order.len()), (0, 0, 0));
        order
    }

    #[test]
    fn namespaces_take_turns_and_so_do_the_groups_of_one() {
        for (added, expected) in [
            // One group: first in, first out.
            (&["a/x/3", "a/x/1", "a/x/2"][..], &["a/x/3", "a/x/1", "a/x/2"][..]),
            // A group that comes late does not wait for all of another's.
            (&["a/x/1", "a/x/2", "a/x/3", "a/y/1"], &["a/x/1", "a/y/1", "a/x/2", "a/x/3"]),
            // A namespace does not wait for all groups of another.
            (&["a/x/1", "a/y/1", "a/z/1", "b/x/1", "b/x/2"], &["a/x/1", "b/x/1", "a/y/1", "b/x/2", "a/z/1"]),
        ] {
            assert_eq!(order(added), expected);
        }
    }

    #[test]
    fn who_has_had_many_turns_does_not_wait_for_them_afterwards() {
        let mut turns = Turns::default();
        let add =
            |turns: &mut Turns, namespace: &str, name: &str| turns.add(&Key::new(namespace, name), "group");
        for n in 0..100 {
            add(&mut turns, "a", &n.to_string());
            turns.pop();
        }
        add(&mut turns, "a", "first");
        add(&mut turns, "b", "second");
        let taken = add(&mut turns, "b", "taken out");
        turns.remove(&taken);
        turns.remove(&taken);
        let order: Vec<_> = std::iter::from_fn(|| turns.pop()).map(|key| key.name).collect();
        assert_eq!(order, ["first", "second"]);
    }
}
