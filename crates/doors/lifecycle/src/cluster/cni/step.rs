//! The next step of a CNI. Pure, in EKS Anywhere's order.

use super::{CniSeen, Rollout, Running};
use crate::cni::Manifests;

/// What is known when the next step is chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation<'a> {
    /// Something was installed before.
    pub installed: bool,
    /// The recorded version is the desired one.
    pub recorded: bool,
    /// Every part was applied.
    pub applied: bool,
    /// The check of a version may have left something.
    pub marked: bool,
    /// Other versions are checked before they are installed.
    pub has_preflight: bool,
    pub seen: &'a CniSeen,
}

#[derive(Debug, PartialEq)]
pub(super) enum Step<'a> {
    /// There is nothing to do.
    Done,
    Write(&'a Manifests),
    /// Mark the add-on: what follows leaves something in the workload cluster.
    Mark,
    StartPreflight,
    EndPreflight,
    /// The workload cluster is not as it has to be for the next step.
    Wait(String),
    /// The API of the control plane has to answer first.
    WaitForControlPlane,
    /// The manifests cannot be made.
    Fail(String),
}

pub(super) fn next<'a>(situation: &Situation<'a>) -> Step<'a> {
    let Situation { installed, recorded, applied, marked, has_preflight, seen } = *situation;
    if recorded {
        return if marked && applied { Step::EndPreflight } else { Step::Done };
    }
    let manifests = match &seen.manifests {
        None => return Step::WaitForControlPlane,
        Some(Err(why)) => return Step::Fail(why.clone()),
        Some(Ok(manifests)) => &**manifests,
    };
    if !installed || !has_preflight {
        return Step::Write(manifests);
    }
    let running = match &seen.running {
        None => return Step::WaitForControlPlane,
        Some(Err(why)) => return Step::Wait(why.clone()),
        Some(Ok(running)) => running,
    };
    if !running.is_other_version(manifests) {
        return Step::Write(manifests);
    }
    check(running, marked).unwrap_or(Step::Write(manifests))
}

/// The next step until the version was checked on every node.
fn check(running: &Running, marked: bool) -> Option<Step<'static>> {
    let wait = |what: &str, rollout: &Rollout| {
        Some(Step::Wait(format!("{what} is not ready: {} of {}", rollout.ready, rollout.desired)))
    };
    let agent = running.agent.as_ref()?;
    if !agent.is_ready() {
        return wait("DaemonSet cilium", agent);
    }
    if !marked {
        return Some(Step::Mark);
    }
    let (Some(preflight), Some(checks)) = (&running.preflight, &running.preflight_check) else {
        return Some(Step::StartPreflight);
    };
    // It runs where the agents do.
    let preflight = Rollout { desired: agent.ready, ..preflight.clone() };
    if !preflight.is_ready() {
        return wait("DaemonSet cilium-pre-flight-check", &preflight);
    }
    match checks.is_ready() {
        true => None,
        false => wait("Deployment cilium-pre-flight-check", checks),
    }
}
