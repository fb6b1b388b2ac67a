//! In-place updates: machines of old sets are moved instead of being replaced.
//!
//! Moved machines are counted once: the MachineSet marks them as pending, the planner adds them to the
//! current set's size and names them as acknowledged, the MachineSet drops the mark.

use std::collections::BTreeSet;

use super::budget::max_surge;
use super::{Reason, Step};

impl Step<'_> {
    /// Counts machines that arrived from old sets, before any size is planned.
    pub(super) fn acknowledge_moved_machines(&mut self) {
        let pending: BTreeSet<String> = self
            .rollout
            .machines
            .iter()
            .filter(|machine| machine.pending_acknowledge && machine.set == self.current.name)
            .map(|machine| machine.name.clone())
            .collect();
        let arrived = pending.difference(&self.current.acknowledged).count();
        let name = self.current.name.clone();
        if let (Ok(arrived), true) = (i32::try_from(arrived), arrived > 0) {
            self.current.wanted += arrived;
            self.note(&name, Reason::Acknowledged(pending.iter().cloned().collect()));
        }
        self.plan_of(&name).acknowledged = pending;
    }

    /// Lets old sets that can be updated in place move their machines. Uses surge only if nothing else makes
    /// progress: then one machine, never more.
    pub(super) fn prefer_in_place_updates(&mut self) {
        if self.current.wanted >= self.rollout.desired {
            return;
        }
        let current = self.current.name.clone();
        let candidates: BTreeSet<String> = self
            .old
            .iter()
            .filter(|set| set.replicas > 0 && set.in_place)
            .map(|set| set.name.clone())
            .collect();
        if candidates.is_empty() {
            return;
        }
        for name in &candidates {
            self.note(name, Reason::MovesTo(current.clone()));
            self.plan_of(name).move_to = Some(current.clone());
        }
        self.plan_of(&current).receive_from = candidates;

        let up = self.intent(&self.current) - self.current.wanted;
        let without_surge = (up - max_surge(&self.rollout.strategy, self.rollout.desired)).max(0);
        if up <= 0 || up == without_surge {
            return;
        }
        let up = if without_surge == 0 && !self.is_moving() {
            self.note(&current, Reason::OneForInPlace);
            1
        } else {
            self.note(&current, Reason::SurgeDropped(up - without_surge));
            without_surge
        };
        if up == 0 {
            self.intents.remove(&current);
        } else {
            self.intents.insert(current, self.current.wanted + up);
        }
    }

    /// Something is in progress: a set is scaling, a machine is being updated, or is not available again after its
    /// update.
    fn is_moving(&self) -> bool {
        let current = &self.current;
        current.wanted != current.replicas
            || current.wanted != current.up_to_date
            || current.wanted != current.available
            || self.old.iter().any(|set| set.wanted < set.replicas || self.intent(set) < set.wanted)
            || self.rollout.machines.iter().any(|machine| machine.updating)
    }
}
