//! Which MachineSet is the deployment's current one.

use std::sync::Arc;

use capstan_capi_types::core::{MachineDeployment, MachineSet};
use capstan_object::Time;
use jiff::Timestamp;

use crate::template::differences;

/// The current MachineSet, and all others.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The set with the deployment's template, if there is one.
    pub current: Option<Arc<MachineSet>>,
    /// All others, largest first.
    pub old: Vec<Arc<MachineSet>>,
}

/// Finds the set that matches the deployment's template. Of several the largest is chosen, so that the fewest
/// machines are replaced; once `rollout.after` has passed, only a set created since then matches.
pub fn choose(deployment: &MachineDeployment, sets: &[Arc<MachineSet>], now: Timestamp) -> Choice {
    let mut sets = sets.to_vec();
    sets.sort_by_key(|set| {
        let name = set.metadata.name.clone();
        (std::cmp::Reverse(set.spec.replicas.unwrap_or(0)), set.metadata.creation_timestamp, name)
    });
    let due = deployment.spec.rollout.after.filter(|after| now >= after.timestamp());
    let is_new_enough = |created: Option<Time>| due.is_none_or(|after| created >= Some(after));
    let current = sets.iter().position(|set| {
        differences(&set.spec.template, &deployment.spec.template).is_empty()
            && is_new_enough(set.metadata.creation_timestamp)
    });
    let current = current.map(|at| sets.remove(at));
    Choice { current, old: sets }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    fn set(name: &str, version: &str, replicas: i32, created: i64) -> Arc<MachineSet> {
        let mut set = MachineSet::default();
        set.metadata.name = name.to_owned();
        set.metadata.creation_timestamp = Some(at(created).into());
        set.spec.replicas = Some(replicas);
        set.spec.template.spec.version = version.to_owned();
        Arc::new(set)
    }

    #[test]
    fn the_current_set_has_the_template_and_is_new_enough() {
        let sets =
            [set("a", "v1", 3, 0), set("b", "v2", 1, 10), set("c", "v2", 2, 20), set("d", "v2", 2, 15)];
        for (what, version, after, now, expected) in [
            ("the largest that matches, the elder of equals", "v2", None, 100, Some("d")),
            ("one that matches an older template again", "v1", None, 100, Some("a")),
            ("none matches", "v3", None, 100, None),
            ("a rollout asked for later does not count yet", "v2", Some(200), 100, Some("d")),
            ("a rollout that is due wants a set made since", "v2", Some(18), 100, Some("c")),
            ("made at that very moment is since", "v2", Some(20), 100, Some("c")),
            ("none was made since", "v2", Some(50), 100, None),
        ] {
            let mut deployment = MachineDeployment::default();
            deployment.spec.template.spec.version = version.to_owned();
            deployment.spec.rollout.after = after.map(|after| at(after).into());
            let choice = choose(&deployment, &sets, at(now));
            assert_eq!(choice.current.as_ref().map(|set| set.metadata.name.as_str()), expected, "{what}");
            assert_eq!(choice.old.len(), if expected.is_some() { 3 } else { 4 }, "{what}");
        }
    }
}
