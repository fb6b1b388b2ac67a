//! Keeps the priority levels and flow schemas that every server has, and reports schemas without a level.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use capstan_builtin::flowcontrol::{self, AUTO_UPDATE, Bootstrap};
use serde_json::{Value, json};

use super::{Changes, alive, retry::Retry};
use crate::auth::bucket::{FLOW_SCHEMAS, PRIORITY_LEVELS};
use crate::call::Call;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change, create_object};
use crate::status::Result;

const USER: &str = "system:apiserver";
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The buckets that this controller watches.
pub(crate) fn watches(bucket: &str) -> bool {
    matches!(bucket, FLOW_SCHEMAS | PRIORITY_LEVELS)
}

/// Runs the controller until the server shuts down.
pub(crate) async fn run(parts: Weak<ServerParts>, mut changes: Changes) {
    let mut retry = Retry::new();
    loop {
        tokio::select! {
            biased;
            change = changes.recv() => if change.is_none() { return },
            () = retry.next() => {}
        }
        // One reconcile covers all changes before it.
        while changes.try_recv().is_ok() {}
        let Some(parts) = alive(&parts) else { return };
        match ensure(&parts).await {
            Ok(()) => retry.succeeded(&()),
            Err(status) => {
                tracing::debug!(error = %status, "reconciling flow control failed; retrying");
                retry.failed(());
            }
        }
    }
}

/// Creates and updates the objects that every server has, then the conditions of all schemas. Writes nothing if
/// everything is in order.
pub(crate) async fn ensure(parts: &Arc<ServerParts>) -> Result<()> {
    for bootstrap in flowcontrol::bootstrap() {
        ensure_object(parts, bootstrap).await?;
    }
    let levels: BTreeSet<String> =
        parts.store.snapshot(PRIORITY_LEVELS).range("", None).map(|entry| entry.key.to_string()).collect();
    let schemas: Vec<Value> = parts
        .store
        .snapshot(FLOW_SCHEMAS)
        .range("", None)
        .filter_map(|entry| serde_json::from_slice(&entry.value).ok())
        .collect();
    for schema in schemas {
        let level = schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default();
        report_dangling(parts, &schema, level, !levels.contains(level)).await?;
    }
    Ok(())
}

fn call(parts: &Arc<ServerParts>, plural: &str, name: &str) -> Option<Call> {
    let registry = parts.registry.load_full();
    let resource = registry.find(GROUP, "v1", plural)?.clone();
    Some(parts.internal_call(USER, resource, "", name))
}

async fn ensure_object(parts: &Arc<ServerParts>, bootstrap: &Bootstrap) -> Result<()> {
    let plural = format!("{}s", bootstrap.kind.to_lowercase());
    let Some(call) = call(parts, &plural, bootstrap.name) else { return Ok(()) };
    let Some(entry) = parts.store.get(&call.resource().bucket, &call.key()) else {
        let object = crate::ownership::update(&call, None, bootstrap.object(), PRODUCER).await?;
        return match create_object(&call, object, &WriteOptions::default(), WriteKind::Create).await {
            Err(status) if status.reason != "AlreadyExists" => Err(status),
            _ => Ok(()),
        };
    };
    let current = call.load(&entry).await?;
    if revised(bootstrap, &current).is_none() {
        return Ok(());
    }
    match change(&call, &Revised(bootstrap), &WriteOptions::default(), WriteKind::Update).await {
        Err(status) if status.reason != "NotFound" => Err(status),
        _ => Ok(()),
    }
}

/// The object as it should be, if it is not. As upstream, the spec of a suggested object is updated if its annotation
/// says so, or if it has none and was never changed.
fn revised(bootstrap: &Bootstrap, current: &Value) -> Option<Value> {
    let annotation = current["metadata"]["annotations"][AUTO_UPDATE].as_str();
    let stated = match annotation {
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Some(true),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Some(false),
        _ => None,
    };
    let updates = bootstrap.mandatory || stated.unwrap_or(current.generation() == 1);
    let mut wanted = bootstrap.spec.clone();
    // How much the exempt level lends is up to administrators.
    if bootstrap.kind == "PriorityLevelConfiguration"
        && bootstrap.name == "exempt"
        && let Some(own) = current["spec"].get("exempt")
    {
        wanted["exempt"] = own.clone();
    }
    let spec_differs = updates && current["spec"] != wanted;
    if !spec_differs && stated == Some(updates) {
        return None;
    }
    let mut revised = current.clone();
    if spec_differs {
        revised["spec"] = wanted;
    }
    if stated != Some(updates) {
        let annotations = revised.meta_mut().entry("annotations").or_insert_with(|| json!({}));
        annotations[AUTO_UPDATE] = json!(updates.to_string());
    }
    Some(revised)
}

struct Revised<'a>(&'a Bootstrap);

impl Change for Revised<'_> {
    fn step(&self, _: &Call, current: &Value) -> Result<Step> {
        Ok(match revised(self.0, current) {
            Some(object) => Step::Write { object, manager: PRODUCER.into() },
            None => Step::Edit(current.clone()),
        })
    }
}

/// Sets the condition `Dangling` of a schema.
async fn report_dangling(
    parts: &Arc<ServerParts>,
    schema: &Value,
    level: &str,
    dangling: bool,
) -> Result<()> {
    let (status, reason, what) = match dangling {
        true => ("True", "NotFound", "but there is no such object"),
        false => ("False", "Found", "and it exists"),
    };
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {what}");
    let conditions = schema["status"]["conditions"].as_array().into_iter().flatten();
    let known = conditions.into_iter().find(|condition| condition["type"] == "Dangling");
    let same = |key: &str, value: &str| known.is_some_and(|condition| condition[key] == value);
    if same("status", status) && same("reason", reason) && same("message", &message) {
        return Ok(());
    }
    let Some(call) = call(parts, "flowschemas", schema.name()) else { return Ok(()) };
    let call = call.on("status");
    let condition = json!({
        "type": "Dangling", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": parts.env.now_rfc3339(),
    });
    let options =
        WriteOptions { field_manager: CONSUMER.into(), force: Some(true), ..WriteOptions::default() };
    match change(&call, &Condition(condition), &options, WriteKind::Apply).await {
        Err(status) if status.reason != "NotFound" => Err(status),
        _ => Ok(()),
    }
}

struct Condition(Value);

impl Change for Condition {
    fn step(&self, call: &Call, _: &Value) -> Result<Step> {
        Ok(Step::Apply(json!({
            "apiVersion": call.resource().api_version(), "kind": call.resource().kind,
            "metadata": {"name": call.name()}, "status": {"conditions": [self.0]},
        })))
    }
}
