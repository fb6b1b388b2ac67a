//! RollingUpdate: old sets shrink within the availability bound.

use super::budget::max_unavailable;
use super::{Reason, Step};

impl Step<'_> {
    /// Shrinks old sets: first by unavailable machines, then by any, oldest set first.
    pub(super) fn scale_down_old_sets(&mut self) {
        if self.old.iter().map(|set| set.wanted).sum::<i32>() == 0 {
            return;
        }
        let desired = self.rollout.desired;
        let minimum = (desired - max_unavailable(&self.rollout.strategy, desired)).max(0);
        let wanted: i32 = self.all_sets().map(|set| set.wanted).sum();
        let available: i32 = self.all_sets().map(|set| set.available).sum();
        // Machines already given up, earlier or in this step, that still exist: each may be an available one.
        let leaving: i32 =
            self.all_sets().map(|set| (set.replicas - self.intent(set).min(set.wanted)).max(0)).sum();
        // Machines of the current set that are not available yet slow the rollout down, so that a broken template
        // does not replace everything.
        let not_up = (self.current.wanted - self.current.available).max(0);
        let budget = wanted - leaving - minimum - not_up;
        if budget <= 0 {
            return;
        }
        self.old.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        let mut budget = Budget { machines: budget, available, minimum };
        self.shrink_old_sets(&mut budget, true);
        self.shrink_old_sets(&mut budget, false);
    }

    fn shrink_old_sets(&mut self, budget: &mut Budget, only_unavailable: bool) {
        for set in self.old.clone() {
            if budget.machines <= 0 {
                break;
            }
            let size = self.intent(&set);
            if size <= 0 {
                continue;
            }
            let most = if only_unavailable { (size - set.available).max(0) } else { size };
            let mut down = most.min(budget.machines);
            if down == 0 {
                continue;
            }
            let available_before = budget.available;
            // The set may delete available machines first.
            if set.available > 0 {
                let mut lost = (set.replicas - (size - down).max(0)).max(0);
                if lost > 0 {
                    let spare = budget.available - budget.minimum;
                    if spare < lost {
                        let smallest = (set.replicas - spare.max(0)).min(size);
                        down = (size - smallest).max(0);
                        lost = (set.replicas - smallest).max(0);
                    }
                    budget.available -= set.available.min(lost);
                }
            }
            if down > 0 {
                let reason = if budget.available == available_before {
                    Reason::NothingLost
                } else {
                    Reason::SpareAvailability { available: available_before, minimum: budget.minimum }
                };
                self.intend(&set.name, (size - down).max(0), reason);
                budget.machines = (budget.machines - down).max(0);
            }
        }
    }

    /// Gives up one old machine if neither direction can progress because old machines are unavailable.
    ///
    /// Scaling down assumes that an available machine is deleted, so a broken old machine can block the step that
    /// would remove it; health checks do not remediate machines of old sets.
    pub(super) fn break_deadlock(&mut self) {
        let replicas: i32 = self.old.iter().map(|set| set.replicas).sum();
        let available: i32 = self.old.iter().map(|set| set.available).sum();
        if replicas == 0 || replicas == available {
            return;
        }
        let moving =
            self.all_sets().any(|set| set.wanted != set.replicas || self.intents.contains_key(&set.name));
        if moving || self.current.available != self.current.replicas {
            return;
        }
        let stuck = self.old.iter().find(|set| set.available != set.replicas && set.wanted != 0).cloned();
        if let Some(set) = stuck {
            self.intend(&set.name, (set.wanted - 1).max(0), Reason::Deadlock);
        }
    }
}

struct Budget {
    /// Machines that may still be given up.
    machines: i32,
    /// Available machines in the worst case.
    available: i32,
    /// Minimum of available machines.
    minimum: i32,
}
