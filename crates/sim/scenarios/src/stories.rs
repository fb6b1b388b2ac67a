//! The stories there are.

use capstan_guest::Timings;

use crate::story::{Act, Story};

/// Versions that an upgrade leads from and to.
const OLD: &str = "v1.35.2";
const NEW: &str = "v1.36.0";

fn story(name: &'static str, control_plane: usize, workers: usize, acts: &[Act]) -> Story {
    let mut all = vec![Act::Create];
    all.extend_from_slice(acts);
    Story {
        name,
        control_plane,
        workers,
        version: OLD,
        acts: all,
        prologue: usize::from(!acts.is_empty()),
        to_the_end: false,
        network: true,
        heartbeats: false,
        timings: Timings::default(),
        extra: None,
    }
}

/// Every story.
pub fn all() -> Vec<Story> {
    use Act::{
        Delete, Idle, KillControlPlane, KillWorker, ScaleControlPlane, ScaleWhilePaused, ScaleWorkers, Strip,
        Upgrade,
    };
    vec![
        Story { network: false, prologue: 0, ..story("bare", 1, 1, &[ScaleWorkers(2), ScaleWhilePaused(1)]) },
        Story { network: false, ..story("bare-life", 1, 1, &[ScaleWorkers(2), Strip, Delete]) },
        story("create", 3, 3, &[]),
        story("idle", 3, 3, &[Idle]),
        Story { heartbeats: true, ..story("idle-with-heartbeats", 3, 3, &[Idle]) },
        Story { prologue: 0, ..story("small", 1, 1, &[Delete]) },
        story("scale-workers", 1, 1, &[ScaleWorkers(3), ScaleWorkers(1)]),
        story("scale-control-plane", 1, 1, &[ScaleControlPlane(3), ScaleControlPlane(1)]),
        story("upgrade", 3, 2, &[Upgrade(NEW)]),
        story("course", 1, 1, &[Upgrade(NEW), Delete]),
        story("heal-worker", 1, 2, &[KillWorker]),
        story("heal-control-plane", 3, 1, &[KillControlPlane]),
        story("strip", 1, 1, &[Strip]),
        story("pause", 1, 1, &[ScaleWhilePaused(2)]),
        story("delete", 3, 2, &[Delete]),
        Story {
            to_the_end: true,
            ..story(
                "life",
                1,
                1,
                &[ScaleControlPlane(3), ScaleWorkers(2), Upgrade(NEW), KillWorker, KillControlPlane, Delete],
            )
        },
    ]
}

/// A story by its name.
pub fn named(name: &str) -> Option<Story> {
    all().into_iter().find(|story| story.name == name)
}
