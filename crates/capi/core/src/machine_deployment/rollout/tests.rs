use capstan_object::IntOrString;

use super::*;

fn set(name: &str, wanted: i32, replicas: i32, available: i32) -> SetState {
    SetState {
        name: name.to_owned(),
        wanted,
        replicas,
        available,
        up_to_date: available,
        ..SetState::default()
    }
}

fn rolling(surge: i32, unavailable: i32) -> Strategy {
    Strategy::RollingUpdate {
        max_surge: IntOrString::Int(surge),
        max_unavailable: IntOrString::Int(unavailable),
    }
}

fn rollout(desired: i32, strategy: Strategy, current: SetState, old: Vec<SetState>) -> Rollout {
    Rollout { desired, strategy, current, old, machines: Vec::new() }
}

fn sizes(rollout: &Rollout) -> Vec<i32> {
    let plan = plan(rollout);
    std::iter::once(&plan.current).chain(&plan.old).map(|set| set.replicas).collect()
}

#[test]
fn a_rollout_stays_within_its_bounds() {
    for (what, desired, strategy, current, old, expected) in [
        ("a new deployment is created at once", 3, rolling(1, 0), set("new", 0, 0, 0), vec![], vec![3]),
        ("surge comes first", 3, rolling(1, 0), set("new", 0, 0, 0), vec![set("old", 3, 3, 3)], vec![1, 3]),
        (
            "nothing goes before it is up",
            3,
            rolling(1, 0),
            set("new", 1, 1, 0),
            vec![set("old", 3, 3, 3)],
            vec![1, 3],
        ),
        (
            "one goes for one that is up",
            3,
            rolling(1, 0),
            set("new", 1, 1, 1),
            vec![set("old", 3, 3, 3)],
            vec![1, 2],
        ),
        (
            "without surge one goes first",
            3,
            rolling(0, 1),
            set("new", 0, 0, 0),
            vec![set("old", 3, 3, 3)],
            vec![0, 2],
        ),
        (
            "what is still there counts",
            3,
            rolling(0, 1),
            set("new", 0, 0, 0),
            vec![set("old", 2, 3, 3)],
            vec![0, 2],
        ),
        (
            "and it is replaced when it is gone",
            3,
            rolling(0, 1),
            set("new", 0, 0, 0),
            vec![set("old", 2, 2, 2)],
            vec![1, 2],
        ),
        (
            "the current set shrinks with the deployment",
            2,
            rolling(1, 0),
            set("new", 3, 3, 3),
            vec![],
            vec![2],
        ),
        (
            "the older set goes first",
            3,
            rolling(0, 1),
            set("new", 0, 0, 0),
            vec![
                SetState { created: Some(crate::testing::at(2).into()), ..set("a", 2, 2, 2) },
                SetState { created: Some(crate::testing::at(1).into()), ..set("b", 1, 1, 1) },
            ],
            vec![0, 2, 0],
        ),
        (
            "what never came up goes first, as many as are too many",
            3,
            rolling(1, 0),
            set("new", 1, 1, 1),
            vec![set("old", 3, 3, 0)],
            vec![1, 2],
        ),
        (
            "a machine that never joined goes when its version is taken back, and no other",
            3,
            rolling(1, 0),
            set("back", 3, 3, 3),
            vec![set("abandoned", 1, 1, 0)],
            vec![3, 0],
        ),
        (
            "also without surge, where one was given up for it",
            3,
            rolling(0, 1),
            set("back", 2, 2, 2),
            vec![set("abandoned", 1, 1, 0)],
            vec![2, 0],
        ),
        (
            "a version that no machine was created for yet is taken back",
            3,
            rolling(1, 0),
            set("back", 3, 3, 3),
            vec![set("abandoned", 1, 0, 0)],
            vec![3, 0],
        ),
        (
            "a broken old machine does not stop the rollout",
            3,
            rolling(1, 0),
            set("new", 1, 1, 1),
            vec![set("old", 3, 3, 2)],
            vec![1, 2],
        ),
        (
            "but a broken new machine does",
            3,
            rolling(1, 0),
            set("new", 1, 1, 0),
            vec![set("old", 3, 3, 2)],
            vec![1, 3],
        ),
    ] {
        assert_eq!(sizes(&rollout(desired, strategy, current, old)), expected, "{what}");
    }
}

#[test]
fn on_delete_only_follows_deletions() {
    for (what, desired, current, old, expected) in [
        ("nothing happens by itself", 3, set("new", 0, 0, 0), vec![set("old", 3, 3, 3)], vec![0, 3]),
        (
            "a deleted machine is not made again",
            3,
            set("new", 0, 0, 0),
            vec![set("old", 3, 2, 2)],
            vec![0, 2],
        ),
        ("but on the current set", 3, set("new", 0, 0, 0), vec![set("old", 2, 2, 2)], vec![1, 2]),
        (
            "a smaller deployment takes from old sets",
            2,
            set("new", 1, 1, 1),
            vec![set("old", 2, 2, 2)],
            vec![1, 1],
        ),
        (
            "what was deleted counts towards that",
            1,
            set("new", 1, 1, 1),
            vec![set("old", 3, 2, 2)],
            vec![1, 0],
        ),
    ] {
        assert_eq!(sizes(&rollout(desired, Strategy::OnDelete, current, old)), expected, "{what}");
    }
}

#[test]
fn a_moved_machine_is_counted_once() {
    let moved = |acknowledged: &[&str]| {
        let mut current = set("new", 1, 2, 1);
        current.acknowledged = acknowledged.iter().map(|name| (*name).to_owned()).collect();
        let mut rollout = rollout(3, rolling(1, 0), current, vec![set("old", 2, 1, 1)]);
        rollout.machines = vec![MachineState {
            name: "m1".to_owned(),
            set: "new".to_owned(),
            pending_acknowledge: true,
            updating: true,
        }];
        plan(&rollout).current
    };
    let first = moved(&[]);
    assert_eq!((first.replicas, first.acknowledged.contains("m1")), (2, true));
    assert_eq!(moved(&["m1"]).replicas, 1);
}

#[test]
fn in_place_updates_use_one_machine_of_surge_at_most() {
    let mut old = set("old", 3, 3, 3);
    old.in_place = true;
    let plan = plan(&rollout(3, rolling(3, 0), set("new", 0, 0, 0), vec![old]));
    assert_eq!(plan.current.replicas, 1);
    assert_eq!(plan.old[0].move_to.as_deref(), Some("new"));
    assert!(plan.current.receive_from.contains("old"));
}
