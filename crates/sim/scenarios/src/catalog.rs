//! The scenarios.

use capstan_guest::Timings;

use crate::class::VERSIONS;
use crate::scenario::{Act, ClusterScenario};

/// Versions before and after an upgrade, and one that is two minors from the last.
const OLDEST: &str = VERSIONS[0];
const OLD: &str = VERSIONS[1];
const NEW: &str = VERSIONS[2];

fn scenario(name: &'static str, control_plane: usize, workers: usize, acts: &[Act]) -> ClusterScenario {
    let mut all = vec![Act::Create];
    all.extend_from_slice(acts);
    ClusterScenario {
        name,
        control_plane,
        workers,
        version: OLD,
        acts: all,
        prologue: usize::from(!acts.is_empty()),
        run_to_end: false,
        network: true,
        class: false,
        pool: false,
        heartbeats: false,
        timings: Timings::default(),
        extra: None,
    }
}

fn of_class(name: &'static str, control_plane: usize, workers: usize, acts: &[Act]) -> ClusterScenario {
    ClusterScenario { class: true, ..scenario(name, control_plane, workers, acts) }
}

fn with_pool(name: &'static str, control_plane: usize, workers: usize, acts: &[Act]) -> ClusterScenario {
    ClusterScenario { pool: true, ..scenario(name, control_plane, workers, acts) }
}

pub fn all() -> Vec<ClusterScenario> {
    use Act::{
        ChangeMemory, Delete, EditClass, Idle, KillControlPlane, KillWorker, Rebase, ScaleControlPlane,
        ScaleWhilePaused, ScaleWorkers, Strip, Upgrade,
    };
    vec![
        ClusterScenario {
            network: false,
            prologue: 0,
            ..scenario("bare", 1, 1, &[ScaleWorkers(2), ScaleWhilePaused(1)])
        },
        ClusterScenario { network: false, ..scenario("bare-life", 1, 1, &[ScaleWorkers(2), Strip, Delete]) },
        scenario("create", 3, 3, &[]),
        scenario("idle", 3, 3, &[Idle]),
        ClusterScenario { heartbeats: true, ..scenario("idle-with-heartbeats", 3, 3, &[Idle]) },
        ClusterScenario { prologue: 0, ..scenario("small", 1, 1, &[Delete]) },
        scenario("scale-workers", 1, 1, &[ScaleWorkers(3), ScaleWorkers(1)]),
        scenario("scale-control-plane", 1, 1, &[ScaleControlPlane(3), ScaleControlPlane(1)]),
        scenario("upgrade", 3, 2, &[Upgrade(NEW)]),
        scenario("upgrade-delete", 1, 1, &[Upgrade(NEW), Delete]),
        scenario("heal-worker", 1, 2, &[KillWorker]),
        scenario("heal-control-plane", 3, 1, &[KillControlPlane]),
        scenario("strip", 1, 1, &[Strip]),
        scenario("pause", 1, 1, &[ScaleWhilePaused(2)]),
        scenario("delete", 3, 2, &[Delete]),
        with_pool("pool", 1, 3, &[ScaleWorkers(4), ScaleWorkers(2), Upgrade(NEW), Delete]),
        with_pool("pool-strip", 1, 1, &[Strip]),
        ClusterScenario {
            network: false,
            prologue: 0,
            ..with_pool("pool-bare", 1, 1, &[ScaleWorkers(2), ScaleWorkers(1)])
        },
        of_class("class", 1, 1, &[ScaleWorkers(2), ChangeMemory(2048), Delete]),
        of_class("class-upgrade", 1, 1, &[Upgrade(NEW)]),
        ClusterScenario { version: OLDEST, ..of_class("class-chain", 1, 1, &[Upgrade(NEW)]) },
        of_class("class-edit", 1, 1, &[EditClass(2048), Delete]),
        of_class("class-rebase", 1, 1, &[Rebase(3072), ScaleWorkers(2), Delete]),
        ClusterScenario {
            pool: true,
            ..of_class(
                "class-pool",
                1,
                2,
                &[ScaleWorkers(3), ChangeMemory(2048), Upgrade(NEW), ScaleWorkers(1), Delete],
            )
        },
        of_class("class-idle", 1, 1, &[Idle]),
        ClusterScenario { network: false, prologue: 0, ..of_class("class-bare", 1, 1, &[ScaleWorkers(2)]) },
        ClusterScenario {
            run_to_end: true,
            ..scenario(
                "life",
                1,
                1,
                &[ScaleControlPlane(3), ScaleWorkers(2), Upgrade(NEW), KillWorker, KillControlPlane, Delete],
            )
        },
    ]
}

pub fn named(name: &str) -> Option<ClusterScenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}
