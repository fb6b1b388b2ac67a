//! Workload controllers, jobs, pod templates, disruption budgets, revisions.

use jiff::Timestamp;
use serde_json::Value;

use super::{Kind, age, deleting, name};
use crate::table::column::{AGE, Header, NAME, boolean, integer, text as column};
use crate::table::human;
use crate::table::read::{
    at, condition_true, containers, int, labels, list, scalar, selector, selector_cell, text,
};

const CONTAINERS: Header<'static> = column("Containers", "names of the containers");
const IMAGES: Header<'static> = column("Images", "images of the containers");
const SELECTOR: Header<'static> = column("Selector", "label selector of its pods");
const TEMPLATE: &[&str] = &["spec", "template", "spec", "containers"];

pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    Some(match (group, kind) {
        ("apps", "Deployment") => &DEPLOYMENT,
        ("apps", "ReplicaSet") => &REPLICA_SET,
        ("apps", "StatefulSet") => &STATEFUL_SET,
        ("apps", "DaemonSet") => &DAEMON_SET,
        ("apps", "ControllerRevision") => &CONTROLLER_REVISION,
        ("batch", "Job") => &JOB,
        ("batch", "CronJob") => &CRON_JOB,
        ("policy", "PodDisruptionBudget") => &DISRUPTION_BUDGET,
        ("", "ReplicationController") => &REPLICATION_CONTROLLER,
        ("", "PodTemplate") => &POD_TEMPLATE,
        _ => return None,
    })
}

static DEPLOYMENT: Kind = Kind::new(
    &[
        NAME,
        column("Ready", "ready replicas of desired replicas"),
        column("Up-to-date", "replicas of the current template"),
        column("Available", "replicas available long enough"),
        AGE,
        CONTAINERS.wide(),
        IMAGES.wide(),
        SELECTOR.wide(),
    ],
    |object, now| {
        let (names, images) = containers(list(object, TEMPLATE));
        let ready = int(object, &["status", "readyReplicas"]);
        vec![
            name(object).into(),
            format!("{ready}/{}", wanted_replicas(object)).into(),
            int(object, &["status", "updatedReplicas"]).into(),
            int(object, &["status", "availableReplicas"]).into(),
            age(object, now),
            names.into(),
            images.into(),
            selector(at(object, &["spec", "selector"])).unwrap_or_else(|()| "<invalid>".into()).into(),
        ]
    },
);

const REPLICA_HEADERS: &[Header<'static>] = &[
    NAME,
    integer("Desired", "desired number of replicas"),
    integer("Current", "current number of replicas"),
    integer("Ready", "ready replicas"),
    AGE,
    CONTAINERS.wide(),
    IMAGES.wide(),
    SELECTOR.wide(),
];

static REPLICA_SET: Kind = Kind::new(REPLICA_HEADERS, |object, now| {
    replica_cells(object, selector_cell(at(object, &["spec", "selector"])), now)
});

static REPLICATION_CONTROLLER: Kind = Kind::new(REPLICA_HEADERS, |object, now| {
    replica_cells(object, labels(at(object, &["spec", "selector"])), now)
});

fn replica_cells(object: &Value, selector: String, now: Timestamp) -> Vec<Value> {
    let (names, images) = containers(list(object, TEMPLATE));
    vec![
        name(object).into(),
        wanted_replicas(object).into(),
        int(object, &["status", "replicas"]).into(),
        int(object, &["status", "readyReplicas"]).into(),
        age(object, now),
        names.into(),
        images.into(),
        selector.into(),
    ]
}

static STATEFUL_SET: Kind = Kind::new(
    &[NAME, column("Ready", "ready replicas of desired replicas"), AGE, CONTAINERS.wide(), IMAGES.wide()],
    |object, now| {
        let (names, images) = containers(list(object, TEMPLATE));
        let ready = int(object, &["status", "readyReplicas"]);
        vec![
            name(object).into(),
            format!("{ready}/{}", wanted_replicas(object)).into(),
            age(object, now),
            names.into(),
            images.into(),
        ]
    },
);

static DAEMON_SET: Kind = Kind::new(
    &[
        NAME,
        integer("Desired", "nodes that should run it"),
        integer("Current", "nodes that run a pod of it"),
        integer("Ready", "nodes where it is ready"),
        integer("Up-to-date", "nodes that run the current template"),
        integer("Available", "nodes where it is available"),
        column("Node Selector", "label selector of the nodes that should run it"),
        AGE,
        CONTAINERS.wide(),
        IMAGES.wide(),
        SELECTOR.wide(),
    ],
    |object, now| {
        let (names, images) = containers(list(object, TEMPLATE));
        let count = |key: &str| Value::from(int(object, &["status", key]));
        vec![
            name(object).into(),
            count("desiredNumberScheduled"),
            count("currentNumberScheduled"),
            count("numberReady"),
            count("updatedNumberScheduled"),
            count("numberAvailable"),
            labels(at(object, &["spec", "template", "spec", "nodeSelector"])).into(),
            age(object, now),
            names.into(),
            images.into(),
            selector_cell(at(object, &["spec", "selector"])).into(),
        ]
    },
);

static CONTROLLER_REVISION: Kind = Kind::new(
    &[
        NAME,
        column("Controller", "controller that owns the revision"),
        column("Revision", "number of the revision"),
        AGE,
    ],
    |object, now| {
        let owners = list(object, &["metadata", "ownerReferences"]);
        let controller = owners.iter().find(|owner| owner["controller"] == true).map(|owner| {
            let kind = text(owner, &["kind"]);
            let qualified = match text(owner, &["apiVersion"]).split_once('/') {
                Some((group, _)) => format!("{kind}.{group}"),
                None => kind.to_owned(),
            };
            format!("{}/{}", qualified.to_lowercase(), text(owner, &["name"]))
        });
        vec![
            name(object).into(),
            controller.unwrap_or_else(|| "<none>".into()).into(),
            int(object, &["revision"]).into(),
            age(object, now),
        ]
    },
);

static JOB: Kind = Kind::new(
    &[
        NAME,
        column("Status", "status of the job"),
        column("Completions", "successful pods of required completions"),
        column("Duration", "time the job took, or time since its start"),
        AGE,
        CONTAINERS.wide(),
        IMAGES.wide(),
        SELECTOR.wide(),
    ],
    |object, now| {
        let (names, images) = containers(list(object, TEMPLATE));
        vec![
            name(object).into(),
            job_status(object).into(),
            job_completions(object).into(),
            job_duration(object, now).into(),
            age(object, now),
            names.into(),
            images.into(),
            selector_cell(at(object, &["spec", "selector"])).into(),
        ]
    },
);

fn job_status(job: &Value) -> &'static str {
    let is = |condition| condition_true(job, &["status", "conditions"], condition);
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if deleting(job) {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn job_completions(job: &Value) -> String {
    let succeeded = int(job, &["status", "succeeded"]);
    match (at(job, &["spec", "completions"]).as_i64(), int(job, &["spec", "parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Value, now: Timestamp) -> String {
    let moment = |key: &str| human::parse(at(job, &["status", key]));
    moment("startTime")
        .map_or_else(String::new, |start| human::between(start, moment("completionTime").unwrap_or(now)))
}

static CRON_JOB: Kind = Kind::new(
    &[
        NAME,
        column("Schedule", "schedule of the jobs, as a cron expression"),
        column("Timezone", "time zone of the schedule"),
        boolean("Suspend", "whether the schedule is suspended"),
        integer("Active", "running jobs"),
        column("Last Schedule", "time since the last start"),
        AGE,
        CONTAINERS.wide(),
        IMAGES.wide(),
        SELECTOR.wide(),
    ],
    |object, now| {
        let template: &[&str] = &["spec", "jobTemplate", "spec"];
        let job = at(object, template);
        let (names, images) = containers(list(job, &["template", "spec", "containers"]));
        let last = at(object, &["status", "lastScheduleTime"]);
        let zone = at(object, &["spec", "timeZone"]).as_str().unwrap_or("<none>");
        let suspend = match at(object, &["spec", "suspend"]) {
            Value::Bool(true) => "True",
            Value::Bool(false) => "False",
            _ => "<unset>",
        };
        vec![
            name(object).into(),
            text(object, &["spec", "schedule"]).into(),
            zone.into(),
            suspend.into(),
            list(object, &["status", "active"]).len().into(),
            if last.is_null() { "<none>".into() } else { human::since(last, now).into() },
            age(object, now),
            names.into(),
            images.into(),
            selector_cell(&job["selector"]).into(),
        ]
    },
);

static DISRUPTION_BUDGET: Kind = Kind::new(
    &[
        NAME,
        column("Min Available", "pods that must stay available"),
        column("Max Unavailable", "pods that may be unavailable"),
        integer("Allowed Disruptions", "pods that may be evicted now"),
        AGE,
    ],
    |object, now| {
        let bound = |key: &str| match at(object, &["spec", key]) {
            Value::Null => "N/A".to_owned(),
            value => scalar(value),
        };
        vec![
            name(object).into(),
            bound("minAvailable").into(),
            bound("maxUnavailable").into(),
            int(object, &["status", "disruptionsAllowed"]).into(),
            age(object, now),
        ]
    },
);

static POD_TEMPLATE: Kind =
    Kind::new(&[NAME, CONTAINERS, IMAGES, column("Pod Labels", "labels of the pods")], |object, _| {
        let (names, images) = containers(list(object, &["template", "spec", "containers"]));
        vec![
            name(object).into(),
            names.into(),
            images.into(),
            labels(at(object, &["template", "metadata", "labels"])).into(),
        ]
    });

fn wanted_replicas(object: &Value) -> i64 {
    int(object, &["spec", "replicas"])
}
