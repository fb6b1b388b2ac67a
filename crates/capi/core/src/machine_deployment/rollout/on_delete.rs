//! OnDelete: old sets follow what people deleted, and shrink with the deployment.

use super::{Reason, Step};

impl Step<'_> {
    /// Old sets forget machines that are gone; if the deployment shrank, the oldest set gives up more.
    pub(super) fn follow_deletions(&mut self) {
        let old_total: i32 = self.old.iter().map(|set| set.wanted).sum();
        if old_total == 0 {
            return;
        }
        let mut excess = (old_total + self.intent(&self.current) - self.rollout.desired).max(0);
        self.old.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));

        // What an old set asks for and does not have was deleted, or belonged to a set that was current
        // when the template changed again. Either way it is not created here any more.
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
