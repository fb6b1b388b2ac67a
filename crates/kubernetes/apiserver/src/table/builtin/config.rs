//! Nodes, namespaces, configuration, events, leases, quotas, priority and runtime classes.

use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

use super::{Kind, age, name};
use crate::table::column::{AGE, NAME, boolean, integer, text as column};
use crate::table::human;
use crate::table::read::{at, condition, entries, flag, int, list, scalar, text, text_or};

pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    Some(match (group, kind) {
        ("", "Node") => &NODE,
        ("", "Namespace") => &NAMESPACE,
        ("", "Secret") => &SECRET,
        ("", "ConfigMap") => &CONFIG_MAP,
        ("", "ServiceAccount") => &SERVICE_ACCOUNT,
        ("", "ResourceQuota") => &RESOURCE_QUOTA,
        ("", "ComponentStatus") => &COMPONENT_STATUS,
        ("" | "events.k8s.io", "Event") => &EVENT,
        ("coordination.k8s.io", "Lease") => &LEASE,
        ("scheduling.k8s.io", "PriorityClass") => &PRIORITY_CLASS,
        ("node.k8s.io", "RuntimeClass") => &RUNTIME_CLASS,
        _ => return None,
    })
}

static NODE: Kind = Kind::new(
    &[
        NAME,
        column("Status", "whether the node is ready"),
        column("Roles", "roles of the node"),
        AGE,
        column("Version", "version of its kubelet"),
        column("Internal-IP", "IP address inside the cluster").wide(),
        column("External-IP", "IP address outside the cluster").wide(),
        column("OS-Image", "operating system").wide(),
        column("Kernel-Version", "kernel and architecture").wide(),
        column("Container-Runtime", "container runtime").wide(),
    ],
    |object, now| {
        let info = at(object, &["status", "nodeInfo"]);
        let address = |kind: &str| {
            let addresses = list(object, &["status", "addresses"]);
            let found = addresses.iter().find(|address| address["type"] == kind);
            Value::from(found.map_or("<none>", |address| text(address, &["address"])))
        };
        let kernel = text_or(info, &["kernelVersion"], "<unknown>");
        let kernel = match text(info, &["architecture"]) {
            "" => kernel.to_owned(),
            architecture => format!("{kernel} ({architecture})"),
        };
        vec![
            name(object).into(),
            node_status(object).into(),
            node_roles(object).into(),
            age(object, now),
            text(info, &["kubeletVersion"]).into(),
            address("InternalIP"),
            address("ExternalIP"),
            text_or(info, &["osImage"], "<unknown>").into(),
            kernel.into(),
            text_or(info, &["containerRuntimeVersion"], "<unknown>").into(),
        ]
    },
);

fn node_status(node: &Value) -> String {
    // The last of several conditions of one type counts.
    let ready = list(node, &["status", "conditions"]).iter().rev().find(|c| c["type"] == "Ready");
    let mut status = match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(node, &["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(node: &Value) -> String {
    let labels = at(node, &["metadata", "labels"]).as_object();
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return "<none>".into();
    }
    roles.into_iter().collect::<Vec<_>>().join(",")
}

static NAMESPACE: Kind = Kind::new(&[NAME, column("Status", "phase"), AGE], |object, now| {
    vec![name(object).into(), text(object, &["status", "phase"]).into(), age(object, now)]
});

static SECRET: Kind = Kind::new(
    &[NAME, column("Type", "type of the secret"), column("Data", "number of entries"), AGE],
    |object, now| {
        vec![
            name(object).into(),
            text(object, &["type"]).into(),
            entries(object, &["data"]).into(),
            age(object, now),
        ]
    },
);

static CONFIG_MAP: Kind = Kind::new(&[NAME, column("Data", "number of entries"), AGE], |object, now| {
    let count = entries(object, &["data"]) + entries(object, &["binaryData"]);
    vec![name(object).into(), count.into(), age(object, now)]
});

static SERVICE_ACCOUNT: Kind =
    Kind::new(&[NAME, AGE], |object, now| vec![name(object).into(), age(object, now)]);

static RESOURCE_QUOTA: Kind = Kind::new(
    &[NAME, column("Request", "used and allowed requests"), column("Limit", "used and allowed limits"), AGE],
    |object, now| {
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (resource, hard) in at(object, &["status", "hard"]).as_object().into_iter().flatten() {
            let used = match &at(object, &["status", "used"])[resource] {
                Value::Null => "0".to_owned(),
                used => scalar(used),
            };
            let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
            column.push(format!("{resource}: {used}/{}", scalar(hard)));
        }
        vec![name(object).into(), requests.join(", ").into(), limits.join(", ").into(), age(object, now)]
    },
);

static COMPONENT_STATUS: Kind = Kind::new(
    &[
        NAME,
        column("Status", "whether it is healthy"),
        column("Message", "message of the check"),
        column("Error", "error of the check"),
    ],
    |object, _| {
        let healthy = condition(object, &["conditions"], "Healthy");
        let status = match healthy {
            Some(condition) if condition["status"] == "True" => "Healthy",
            Some(_) => "Unhealthy",
            None => "Unknown",
        };
        let said = |key: &str| Value::from(healthy.map_or("", |condition| text(condition, &[key])));
        vec![name(object).into(), status.into(), said("message"), said("error")]
    },
);

static EVENT: Kind = Kind::new(
    &[
        column("Last Seen", "time since the last occurrence"),
        column("Type", "Normal or Warning"),
        column("Reason", "reason of the event"),
        column("Object", "object that the event is about"),
        column("Subobject", "part of the object").wide(),
        column("Source", "component that reported the event").wide(),
        column("Message", "message of the event"),
        column("First Seen", "time since the first occurrence").wide(),
        column("Count", "number of occurrences").wide(),
        NAME.wide(),
    ],
    event_cells,
);

/// Core events and events of `events.k8s.io` have different field names.
fn event_cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &[&str], new: &[&str]| match at(event, core) {
        Value::Null => at(event, new).clone(),
        value => value.clone(),
    };
    let since = |time: &Value| human::since(time, now);
    let first_time = either(&["firstTimestamp"], &["deprecatedFirstTimestamp"]);
    let last_time = either(&["lastTimestamp"], &["deprecatedLastTimestamp"]);
    let count = either(&["count"], &["deprecatedCount"]).as_i64().unwrap_or(0);
    let object = either(&["involvedObject"], &["regarding"]);
    let source = either(&["source"], &["deprecatedSource"]);
    let message = either(&["message"], &["note"]);

    let first = if first_time.is_null() { since(&event["eventTime"]) } else { since(&first_time) };
    let (last, count) = match &event["series"] {
        Value::Null if last_time.is_null() => (first.clone(), count.max(1)),
        Value::Null => (since(&last_time), count.max(1)),
        series => (since(&series["lastObservedTime"]), int(series, &["count"])),
    };
    let kind = text(&object, &["kind"]).to_lowercase();
    let target = match text(&object, &["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let reporter = text_or(event, &["reportingComponent"], text(event, &["reportingController"]));
    let component = text_or(&source, &["component"], reporter);
    let host = text_or(&source, &["host"], text(event, &["reportingInstance"]));
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    vec![
        last.into(),
        text(event, &["type"]).into(),
        text(event, &["reason"]).into(),
        target.into(),
        text(&object, &["fieldPath"]).into(),
        source.into(),
        message.as_str().unwrap_or("").trim().into(),
        first.into(),
        count.into(),
        name(event).into(),
    ]
}

static LEASE: Kind = Kind::new(&[NAME, column("Holder", "holder of the lease"), AGE], |object, now| {
    vec![name(object).into(), text(object, &["spec", "holderIdentity"]).into(), age(object, now)]
});

static PRIORITY_CLASS: Kind = Kind::new(
    &[
        NAME,
        integer("Value", "priority of its pods"),
        boolean("Global-Default", "whether it is the default class"),
        AGE,
        column("PreemptionPolicy", "whether its pods preempt others"),
    ],
    |object, now| {
        vec![
            name(object).into(),
            int(object, &["value"]).into(),
            flag(object, &["globalDefault"]).into(),
            age(object, now),
            text(object, &["preemptionPolicy"]).into(),
        ]
    },
);

static RUNTIME_CLASS: Kind =
    Kind::new(&[NAME, column("Handler", "container runtime handler"), AGE], |object, now| {
        vec![name(object).into(), text(object, &["handler"]).into(), age(object, now)]
    });
