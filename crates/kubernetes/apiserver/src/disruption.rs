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
                "InternalError",
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
        let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
        if allowed <= 0 {
            let need = budget["status"]["desiredHealthy"].as_i64().unwrap_or(0);
            let have = budget["status"]["currentHealthy"].as_i64().unwrap_or(0);
            return Err(refusal(
                budget,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                format!(
                    "The disruption budget {} needs {need} healthy pods and has {have} currently",
                    budget.name()
                ),
                None,
            ));
        }
        let mut budget = budget.clone();
        let status = &mut budget["status"];
        status["disruptionsAllowed"] = (allowed - 1).into();
        if !status["disruptedPods"].is_object() {
            status["disruptedPods"] = json!({});
        }
        status["disruptedPods"][&self.pod] = call.parts.env.now_rfc3339().into();
        Ok(Step::Edit(budget))
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
