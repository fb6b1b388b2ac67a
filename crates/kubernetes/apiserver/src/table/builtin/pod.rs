//! Pods: the one kind whose status is a story told in one word.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Kind, age, deleting, name};
use crate::table::column::{AGE, NAME, text as column};
use crate::table::human;
use crate::table::read::{at, condition_true, flag, int, list, text, text_or};

static POD: Kind = Kind {
    headers: &[
        NAME,
        column("Ready", "ready containers of all containers"),
        column("Status", "what the containers are doing, in a word"),
        column("Restarts", "how often containers restarted, and when last"),
        AGE,
        column("IP", "address of the pod").wide(),
        column("Node", "node the pod runs on").wide(),
        column("Nominated Node", "node that is being cleared for the pod").wide(),
        column("Readiness Gates", "fulfilled readiness gates of all gates").wide(),
    ],
    cells,
    conditions,
};

/// The printer of `Pod`.
pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    ((group, kind) == ("", "Pod")).then_some(&POD)
}

/// What is told of a pod's containers.
#[derive(Default)]
struct Story {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Story {
    fn count_restarts(&mut self, container: &Value) {
        self.restarts += int(container, &["restartCount"]);
        let finished = human::parse(at(container, &["lastState", "terminated", "finishedAt"]));
        self.last_restart = self.last_restart.max(finished);
    }
}

fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let init = list(pod, &["spec", "initContainers"]);
    let sidecars = init.iter().filter(|container| is_sidecar(container)).count();
    let total = list(pod, &["spec", "containers"]).len() + sidecars;
    let story = told(pod);

    let mut restarts = story.restarts.to_string();
    if let Some(last) = story.last_restart.filter(|_| story.restarts != 0) {
        restarts = format!("{restarts} ({} ago)", human::between(last, now));
    }
    let ip = match list(pod, &["status", "podIPs"]).first() {
        Some(first) => text_or(first, &["ip"], "<none>"),
        None => text_or(pod, &["status", "podIP"], "<none>"),
    };
    vec![
        name(pod).into(),
        format!("{}/{total}", story.ready).into(),
        story.reason.into(),
        restarts.into(),
        age(pod, now),
        ip.into(),
        text_or(pod, &["spec", "nodeName"], "<none>").into(),
        text_or(pod, &["status", "nominatedNodeName"], "<none>").into(),
        readiness_gates(pod).into(),
    ]
}

fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, &["status", "phase"]) {
        "Succeeded" => ("Succeeded", "the pod ran to completion"),
        "Failed" => ("Failed", "the pod failed"),
        _ => return None,
    };
    Some(json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }]))
}

fn told(pod: &Value) -> Story {
    let phase = text(pod, &["status", "phase"]);
    let mut story = Story { reason: text_or(pod, &["status", "reason"], phase).into(), ..Story::default() };
    let gated = list(pod, &["status", "conditions"])
        .iter()
        .any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated");
    if gated {
        story.reason = "SchedulingGated".into();
    }

    let (initializing, sidecars) = tell_init_containers(pod, &mut story);
    if !initializing || condition_true(pod, &["status", "conditions"], "Initialized") {
        // Restarts of finished init containers no longer count, those of sidecars do.
        story.restarts = sidecars.restarts;
        story.last_restart = sidecars.last_restart;
        tell_containers(pod, &mut story);
    }

    if deleting(pod) {
        if text(pod, &["status", "reason"]) == "NodeLost" {
            story.reason = "Unknown".into();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            story.reason = "Terminating".into();
        }
    }
    story
}

/// Tells of init containers up to the first unfinished one; returns whether there is one, and the
/// restarts of sidecars alone.
fn tell_init_containers(pod: &Value, story: &mut Story) -> (bool, Story) {
    let specs = list(pod, &["spec", "initContainers"]);
    let mut sidecars = Story::default();
    for (index, container) in list(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        let sidecar = specs.iter().any(|spec| spec["name"] == container["name"] && is_sidecar(spec));
        story.count_restarts(container);
        if sidecar {
            sidecars.count_restarts(container);
        }
        let terminated = at(container, &["state", "terminated"]);
        if !terminated.is_null() && int(terminated, &["exitCode"]) == 0 {
            continue;
        }
        if sidecar && flag(container, &["started"]) {
            story.ready += usize::from(flag(container, &["ready"]));
            continue;
        }
        let waiting = text(container, &["state", "waiting", "reason"]);
        story.reason = if !terminated.is_null() {
            format!("Init:{}", ending(terminated))
        } else if !matches!(waiting, "" | "PodInitializing") {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", specs.len())
        };
        return (true, sidecars);
    }
    (false, sidecars)
}

fn tell_containers(pod: &Value, story: &mut Story) {
    let mut running = false;
    let mut failure = String::new();
    for container in list(pod, &["status", "containerStatuses"]).iter().rev() {
        story.count_restarts(container);
        let waiting = text(container, &["state", "waiting", "reason"]);
        let terminated = at(container, &["state", "terminated"]);
        if !waiting.is_empty() {
            story.reason = waiting.into();
        } else if !terminated.is_null() {
            story.reason = ending(terminated);
            if int(terminated, &["exitCode"]) != 0 {
                failure.clone_from(&story.reason);
            }
        } else if flag(container, &["ready"]) && !at(container, &["state", "running"]).is_null() {
            running = true;
            story.ready += 1;
        }
    }
    // One finished container does not make a pod completed while another still runs.
    if story.reason == "Completed" {
        if running && condition_true(pod, &["status", "conditions"], "Ready") {
            story.reason = "Running".into();
        } else if !failure.is_empty() {
            story.reason = failure;
        } else if running {
            story.reason = "NotReady".into();
        }
    }
}

/// How a container ended.
fn ending(terminated: &Value) -> String {
    let reason = text(terminated, &["reason"]);
    if !reason.is_empty() {
        return reason.into();
    }
    match int(terminated, &["signal"]) {
        0 => format!("ExitCode:{}", int(terminated, &["exitCode"])),
        signal => format!("Signal:{signal}"),
    }
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".into();
    }
    let fulfilled = gates
        .iter()
        .filter(|gate| condition_true(pod, &["status", "conditions"], text(gate, &["conditionType"])))
        .count();
    format!("{fulfilled}/{}", gates.len())
}
