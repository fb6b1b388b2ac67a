//! Eviction: enforces PodDisruptionBudgets.

use ::http::StatusCode;
use capstan_schema::selector::LabelSelector;
use serde_json::{Value, json};

use crate::call::Call;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::Meta;
use crate::pipeline::{Change, Step, change};
use crate::status::{Cause, Details, Result, Status};

const BUCKET: &str = "policy/poddisruptionbudgets";
const ALLOWED: &str = "DisruptionAllowed";
/// Evictions that the disruption controller has not seen yet.
const MAX_DISRUPTED: usize = 2000;

/// Takes one disruption from the budgets of a Pod, or rejects the eviction.
pub(crate) async fn permit(call: &Call, pod: &Value, dry_run: bool) -> Result<()> {
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"))
        || pod.is_terminating()
    {
        return Ok(());
    }
    let prefix = format!("{}/", call.namespace());
    let mut budgets = Vec::new();
    for entry in call.parts.store.snapshot(BUCKET).range(&prefix, None) {
        let budget: Value = serde_json::from_slice(&entry.value).map_err(Status::internal)?;
        let selector = LabelSelector::from_object(&budget["spec"]["selector"])
            .map_err(|e| Status::internal(format!("a disruption budget's selector is broken: {e}")))?;
        if selector.matches(|key| pod.label(key)) {
            budgets.push(budget);
        }
    }
    let budget = match budgets.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(Status::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let resource = call.registry.find("policy", "v1", "poddisruptionbudgets").cloned();
    let Some(resource) = resource else { return Ok(()) };
    let status_call =
        call.parts.internal_call("system:apiserver", resource, call.namespace(), budget.name()).on("status");
    let options = WriteOptions { dry_run, ..WriteOptions::default() };
    let spend = Spend { pod: pod.name().to_owned() };
    change(&status_call, &spend, &options, WriteKind::Update).await.map(|_| ())
}

struct Spend {
    pod: String,
}

impl Change for Spend {
    fn step(&self, call: &Call, budget: &Value) -> Result<Step> {
        let observed = budget["status"]["observedGeneration"].as_i64().unwrap_or(0);
        if observed < budget.generation() {
            return Err(refusal(
                budget,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                format!("The disruption budget {} is still being processed by the server.", budget.name()),
                Some(10),
            ));
        }
        let status = &budget["status"];
        let count = |field: &str| status[field].as_i64().unwrap_or(0);
        let allowed = count("disruptionsAllowed");
        let forbidden =
            |why: &str| Err(Status::forbidden("policy", "poddisruptionbudget", budget.name(), why));
        if allowed < 0 {
            return forbidden("pdb disruptions allowed is negative");
        }
        if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MAX_DISRUPTED) {
            return forbidden(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            );
        }
        if allowed == 0 {
            return Err(refusal(
                budget,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                exhausted(budget.name(), status),
                None,
            ));
        }
        let now = call.parts.env.now_rfc3339();
        let mut budget = budget.clone();
        let status = &mut budget["status"];
        status["disruptionsAllowed"] = (allowed - 1).into();
        if allowed == 1 {
            deny_disruptions(status, &now);
        }
        if !status["disruptedPods"].is_object() {
            status["disruptedPods"] = json!({});
        }
        status["disruptedPods"][&self.pod] = now.into();
        Ok(Step::Write { object: budget, manager: call.manager("") })
    }
}

/// Why a budget allows no disruption.
fn exhausted(name: &str, status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let denied = conditions.into_iter().find(|condition| condition["type"] == ALLOWED);
    let denied = denied.filter(|condition| condition["status"] == "False" && condition["message"] != "");
    let text = |field: &str| denied.and_then(|condition| condition[field].as_str()).unwrap_or_default();
    let (need, have) =
        (status["desiredHealthy"].as_i64().unwrap_or(0), status["currentHealthy"].as_i64().unwrap_or(0));
    let what = format!("The disruption budget {name}");
    match text("reason") {
        // The numbers cannot be trusted then.
        "SyncFailed" => format!(
            "{what} does not allow evicting pods currently because it failed sync: {}",
            text("message")
        ),
        _ if have <= need => format!("{what} needs {need} healthy pods and has {have} currently"),
        "" => format!("{what} does not allow evicting pods currently"),
        reason => format!("{what} does not allow evicting pods currently ({reason}): {}", text("message")),
    }
}

/// The last disruption was taken: the condition follows, as the disruption controller would set it.
fn deny_disruptions(status: &mut Value, now: &str) {
    let observed = status["observedGeneration"].clone();
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    let known = conditions.iter_mut().find(|condition| condition["type"] == ALLOWED);
    match known {
        Some(condition) => {
            if condition["status"] != "False" {
                condition["status"] = "False".into();
                condition["lastTransitionTime"] = now.into();
            }
            condition["reason"] = "InsufficientPods".into();
            condition["message"] = "".into();
            condition["observedGeneration"] = observed;
        }
        None => conditions.push(json!({
            "type": ALLOWED, "status": "False", "observedGeneration": observed, "lastTransitionTime": now,
            "reason": "InsufficientPods", "message": "",
        })),
    }
}

fn refusal(_: &Value, message: &str, cause: String, retry_after: Option<u32>) -> Status {
    let mut status = Status::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    status.retry_after = retry_after;
    status.details = Some(Box::new(Details {
        causes: vec![Cause { reason: "DisruptionBudget".into(), message: cause, field: String::new() }],
        retry_after_seconds: retry_after.unwrap_or(0),
        ..Details::default()
    }));
    status
}
