//! Scaling a deployment whose rollout is paused: every set keeps its share.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use capstan_capi_types::core::{MachineDeployment, MachineSet, annotation};

use super::choose::Choice;
use super::rollout::{Strategy, max_surge};

/// New sizes by name; sets that keep their size are omitted.
pub fn scale(deployment: &MachineDeployment, strategy: &Strategy, choice: &Choice) -> BTreeMap<String, i32> {
    let desired = deployment.spec.replicas.unwrap_or(0);
    let active: Vec<&MachineSet> =
        choice.old.iter().chain(&choice.current).map(AsRef::as_ref).filter(|set| size(set) > 0).collect();
    let to = |set: &MachineSet, replicas: i32| (set.metadata.name.clone(), replicas);
    match active.as_slice() {
        // Without any machines the newest set gets them all.
        [] => {
            let newest =
                choice.old.iter().max_by_key(|set| (set.metadata.creation_timestamp, &set.metadata.name));
            choice.current.as_ref().or(newest).map(|set| to(set, desired)).into_iter().collect()
        }
        [only] => BTreeMap::from([to(only, desired)]),
        _ if choice.current.as_deref().is_some_and(|current| is_saturated(current, desired)) => {
            let old = choice.old.iter().filter(|set| size(set) > 0);
            old.map(|set| to(set, 0)).collect()
        }
        _ if *strategy == Strategy::OnDelete => BTreeMap::new(),
        _ => shares(deployment, strategy, active),
    }
}

fn size(set: &MachineSet) -> i32 {
    set.spec.replicas.unwrap_or(0)
}

/// The set has all machines of the deployment, and they are available.
fn is_saturated(set: &MachineSet, desired: i32) -> bool {
    let annotated =
        set.metadata.annotations.get(annotation::DESIRED_REPLICAS).and_then(|text| text.parse().ok());
    size(set) == desired
        && annotated == Some(desired)
        && set.status.available_replicas.unwrap_or(0) == desired
}

fn shares(
    deployment: &MachineDeployment,
    strategy: &Strategy,
    mut sets: Vec<&MachineSet>,
) -> BTreeMap<String, i32> {
    let desired = deployment.spec.replicas.unwrap_or(0);
    let allowed = if desired > 0 { desired + max_surge(strategy, desired) } else { 0 };
    let total: i32 = sets.iter().map(|set| size(set)).sum();
    let to_add = allowed - total;
    if to_add == 0 {
        return BTreeMap::new();
    }
    // Larger sets first; of equal ones the newer grows and the older shrinks.
    sets.sort_by_key(|set| (Reverse(size(set)), set.metadata.creation_timestamp));
    if to_add > 0 {
        sets.sort_by_key(|set| (Reverse(size(set)), Reverse(set.metadata.creation_timestamp)));
    }
    let mut added = 0;
    let mut sizes = BTreeMap::new();
    for set in &sets {
        let left = to_add - added;
        let share = if left == 0 { 0 } else { share(deployment, strategy, set) };
        let share = if to_add > 0 { share.min(left) } else { share.max(left) };
        added += share;
        sizes.insert(set.metadata.name.clone(), size(set) + share);
    }
    // The rounding remainder goes to the largest.
    if let Some(largest) = sets.first().and_then(|set| sizes.get_mut(&set.metadata.name)) {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

/// By how much one set changes to keep its share.
fn share(deployment: &MachineDeployment, strategy: &Strategy, set: &MachineSet) -> i32 {
    let desired = deployment.spec.replicas.unwrap_or(0);
    if desired == 0 {
        return -size(set);
    }
    let most_before =
        set.metadata.annotations.get(annotation::MAX_REPLICAS).and_then(|text| text.parse::<i32>().ok());
    let most_before = most_before.or(deployment.status.replicas).unwrap_or(0);
    let most = desired + max_surge(strategy, desired);
    if most_before <= 0 {
        return 0;
    }
    // Rounded half up, in integers, so that it is deterministic.
    let (size, most, most_before) = (i64::from(size(set)), i64::from(most), i64::from(most_before));
    let scaled = (2 * size * most + most_before).div_euclid(2 * most_before);
    i32::try_from(scaled - size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_object::IntOrString;

    use super::*;
    use crate::testing::at;

    fn set(name: &str, replicas: i32, created: i64, max: &str) -> Arc<MachineSet> {
        let mut set = MachineSet::default();
        set.metadata.name = name.to_owned();
        set.metadata.creation_timestamp = Some(at(created).into());
        set.metadata.annotations.insert(annotation::MAX_REPLICAS.to_owned(), max.to_owned());
        set.metadata.annotations.insert(annotation::DESIRED_REPLICAS.to_owned(), "10".to_owned());
        set.spec.replicas = Some(replicas);
        set.status.available_replicas = Some(replicas);
        Arc::new(set)
    }

    #[test]
    fn every_set_keeps_its_share() {
        for (what, desired, current, old, expected) in [
            ("an only set takes all", 5, Some(set("n", 3, 2, "3")), vec![], vec![("n", 5)]),
            (
                "a set with no machines beside it too",
                5,
                Some(set("n", 3, 2, "3")),
                vec![set("o", 0, 1, "3")],
                vec![("n", 5)],
            ),
            (
                "the newest takes all if none has any",
                4,
                None,
                vec![set("a", 0, 1, "3"), set("b", 0, 2, "3")],
                vec![("b", 4)],
            ),
            (
                "a full current set leaves nothing for others",
                10,
                Some(set("n", 10, 2, "10")),
                vec![set("o", 2, 1, "10")],
                vec![("o", 0)],
            ),
            (
                "doubled replicas are distributed",
                20,
                Some(set("n", 4, 2, "10")),
                vec![set("o", 6, 1, "10")],
                vec![("n", 8), ("o", 12)],
            ),
            (
                "half as many too",
                5,
                Some(set("n", 4, 2, "10")),
                vec![set("o", 6, 1, "10")],
                vec![("n", 2), ("o", 3)],
            ),
            (
                "nothing is left of nothing",
                0,
                Some(set("n", 4, 2, "10")),
                vec![set("o", 6, 1, "10")],
                vec![("n", 0), ("o", 0)],
            ),
            (
                "the newer of equals takes what is left over",
                11,
                Some(set("n", 5, 2, "10")),
                vec![set("o", 5, 1, "10")],
                vec![("n", 6), ("o", 5)],
            ),
        ] {
            let mut deployment = MachineDeployment::default();
            deployment.spec.replicas = Some(desired);
            let strategy = Strategy::RollingUpdate {
                max_surge: IntOrString::Int(0),
                max_unavailable: IntOrString::Int(1),
            };
            let sizes = scale(&deployment, &strategy, &Choice { current, old });
            let expected: BTreeMap<_, _> =
                expected.into_iter().map(|(name, size)| (name.to_owned(), size)).collect();
            assert_eq!(sizes, expected, "{what}");
        }
    }
}
