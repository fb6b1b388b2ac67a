//! OnDelete: old sets shrink with machines that users delete, and with the deployment.

use super::{Reason, Step};

impl Step<'_> {
    /// Reduces old sets by machines that are gone; if the deployment shrank, the oldest set shrinks further.
    pub(super) fn follow_deletions(&mut self) {
        let old_total: i32 = self.old.iter().map(|set| set.wanted).sum();
        if old_total == 0 {
            return;
        }
        let mut excess = (old_total + self.intent(&self.current) - self.rollout.desired).max(0);
        self.old.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));

        // A machine that an old set lacks was deleted, or the template changed again before it was created. Either
        // way it is not created here any more.
        for set in self.old.clone() {
            let gone = (set.wanted - set.replicas).max(0);
            if set.wanted > 0 && gone > 0 {
                self.intend(&set.name, set.wanted - gone, Reason::DeletedByUser);
                excess -= gone;
            }
        }
        for set in self.old.clone() {
            if excess <= 0 {
                break;
            }
            let down = self.intent(&set).min(excess);
            if down > 0 {
                self.intend(&set.name, self.intent(&set) - down, Reason::AboveDesired);
                excess -= down;
            }
        }
    }
}
