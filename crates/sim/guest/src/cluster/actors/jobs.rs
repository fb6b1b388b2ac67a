//! Jobs: Pods until enough have succeeded.

use serde_json::{Value, json};

use super::conditions::{self, ConditionUpdate};
use super::decision::Decision;
use super::snapshot::{Snapshot, has_ended, is_deleting, uid};
use super::template;

const ACTOR: &str = "kube-controller-manager";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for job in snapshot.all("Job").filter(|job| !is_deleting(job) && !conditions::is_true(job, "Complete")) {
        keep(snapshot, job, out);
    }
}

fn keep(snapshot: &Snapshot, job: &Value, out: &mut Decision) {
    let spec = &job["spec"];
    let pods: Vec<&Value> = snapshot.controlled("Pod", job).collect();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let active = number(pods.iter().filter(|pod| !has_ended(pod) && !is_deleting(pod)).count());
    let succeeded = number(pods.iter().filter(|pod| pod["status"]["phase"] == "Succeeded").count());
    let wanted = spec["completions"].as_i64().unwrap_or(1);
    let parallel = if spec["suspend"] == true { 0 } else { spec["parallelism"].as_i64().unwrap_or(1) };
    for _ in active..parallel.min(wanted - succeeded) {
        let labels = [("batch.kubernetes.io/controller-uid", uid(job))];
        out.create(ACTOR, template::pod("batch/v1", "Job", job, &labels));
    }
    let ready = number(pods.iter().filter(|pod| conditions::is_true(pod, "Ready")).count());
    let present = |count: i64| if count == 0 { Value::Null } else { count.into() };
    let mut status = json!({"active": present(active), "succeeded": present(succeeded), "ready": ready});
    if job["status"]["startTime"].is_null() && parallel > 0 {
        status["startTime"] = snapshot.stamp().into();
    }
    if succeeded >= wanted && !job["status"]["startTime"].is_null() {
        let reason = "CompletionsReached";
        let message = "Reached expected number of succeeded pods";
        let updates = ["SuccessCriteriaMet", "Complete"].map(|of| ConditionUpdate {
            of,
            status: "True",
            reason,
            message,
        });
        status["completionTime"] = snapshot.stamp().into();
        status["conditions"] = conditions::with(job, &updates, &snapshot.stamp());
    }
    out.status(ACTOR, "Job", job, status);
}
