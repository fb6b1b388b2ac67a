//! Pods, whose STATUS column summarises the state of all containers.

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
        column("Status", "state of the pod"),
        column("Restarts", "number of container restarts, and time since the last"),
        AGE,
        column("IP", "IP address of the pod").wide(),
        column("Node", "node the pod runs on").wide(),
        column("Nominated Node", "node where lower-priority pods are preempted for the pod").wide(),
        column("Readiness Gates", "readiness gates that pass, of all gates").wide(),
    ],
    cells,
    conditions,
};

pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    ((group, kind) == ("", "Pod")).then_some(&POD)
}

/// Summary of a pod's containers.
#[derive(Default)]
struct ContainerSummary {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl ContainerSummary {
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
    let summary = summarise(pod);

    let mut restarts = summary.restarts.to_string();
    if let Some(last) = summary.last_restart.filter(|_| summary.restarts != 0) {
        restarts = format!("{restarts} ({} ago)", human::between(last, now));
    }
    let ip = match list(pod, &["status", "podIPs"]).first() {
        Some(first) => text_or(first, &["ip"], "<none>"),
        None => text_or(pod, &["status", "podIP"], "<none>"),
    };
    vec![
        name(pod).into(),
        format!("{}/{total}", summary.ready).into(),
        summary.reason.into(),
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

fn summarise(pod: &Value) -> ContainerSummary {
    let phase = text(pod, &["status", "phase"]);
    let mut summary = ContainerSummary {
        reason: text_or(pod, &["status", "reason"], phase).into(),
        ..ContainerSummary::default()
    };
    let gated = list(pod, &["status", "conditions"])
        .iter()
        .any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated");
    if gated {
        summary.reason = "SchedulingGated".into();
    }

    let (initializing, sidecars) = summarise_init_containers(pod, &mut summary);
    if !initializing || condition_true(pod, &["status", "conditions"], "Initialized") {
        // Restarts of finished init containers no longer count, those of sidecars do.
        summary.restarts = sidecars.restarts;
        summary.last_restart = sidecars.last_restart;
        summarise_containers(pod, &mut summary);
    }

    if deleting(pod) {
        if text(pod, &["status", "reason"]) == "NodeLost" {
            summary.reason = "Unknown".into();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            summary.reason = "Terminating".into();
        }
    }
    summary
}

/// Summarises init containers up to the first unfinished one. Returns whether there is one, and the restarts of
/// sidecars only.
fn summarise_init_containers(pod: &Value, summary: &mut ContainerSummary) -> (bool, ContainerSummary) {
    let specs = list(pod, &["spec", "initContainers"]);
    let mut sidecars = ContainerSummary::default();
    for (index, container) in list(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        let sidecar = specs.iter().any(|spec| spec["name"] == container["name"] && is_sidecar(spec));
        summary.count_restarts(container);
        if sidecar {
            sidecars.count_restarts(container);
        }
        let terminated = at(container, &["state", "terminated"]);
        if !terminated.is_null() && int(terminated, &["exitCode"]) == 0 {
            continue;
        }
        if sidecar && flag(container, &["started"]) {
            summary.ready += usize::from(flag(container, &["ready"]));
            continue;
        }
        let waiting = text(container, &["state", "waiting", "reason"]);
        summary.reason = if !terminated.is_null() {
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

fn summarise_containers(pod: &Value, summary: &mut ContainerSummary) {
    let mut running = false;
    let mut failure = String::new();
    for container in list(pod, &["status", "containerStatuses"]).iter().rev() {
        summary.count_restarts(container);
        let waiting = text(container, &["state", "waiting", "reason"]);
        let terminated = at(container, &["state", "terminated"]);
        if !waiting.is_empty() {
            summary.reason = waiting.into();
        } else if !terminated.is_null() {
            summary.reason = ending(terminated);
            if int(terminated, &["exitCode"]) != 0 {
                failure.clone_from(&summary.reason);
            }
        } else if flag(container, &["ready"]) && !at(container, &["state", "running"]).is_null() {
            running = true;
            summary.ready += 1;
        }
    }
    // A pod is not completed while another container still runs.
    if summary.reason == "Completed" {
        if running && condition_true(pod, &["status", "conditions"], "Ready") {
            summary.reason = "Running".into();
        } else if !failure.is_empty() {
            summary.reason = failure;
        } else if running {
            summary.reason = "NotReady".into();
        }
    }
}

/// The reason of a terminated container.
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
