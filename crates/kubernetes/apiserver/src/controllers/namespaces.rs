//! Deletes the contents of terminating namespaces, then removes their finalizer.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::keyed::{Keyed, Progress};
use crate::call::Call;
use crate::controllers::Committed;
use crate::http::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change};
use crate::status::Result;
use crate::verbs::delete::delete_object;

const BUCKET: &str = "/namespaces";
/// The finalizer in `spec.finalizers` that this controller removes.
const FINALIZER: &str = "kubernetes";

/// Tracks namespaces that are not empty yet.
#[derive(Default)]
pub(crate) struct Namespaces {
    terminating: BTreeSet<String>,
}

impl Keyed for Namespaces {
    const WORK: &'static str = "deleting the contents of a namespace";

    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String> {
        let snapshot = parts.store.snapshot(BUCKET);
        snapshot.range("", None).filter(|e| e.digest().terminating).map(|e| e.key.to_string()).collect()
    }

    fn on_change(&self, parts: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>) {
        if *change.bucket == *BUCKET {
            if parts.store.get(BUCKET, &change.key).is_some_and(|e| e.digest().terminating) {
                dirty.insert(change.key.to_string());
            }
        } else if let Some((namespace, _)) = change.key.split_once('/')
            && self.terminating.contains(namespace)
            && change.gone
        {
            dirty.insert(namespace.to_owned());
        }
    }

    async fn reconcile(&mut self, parts: &Arc<ServerParts>, namespace: &str) -> Result<Progress> {
        self.terminating.insert(namespace.to_owned());
        let progress = empty(parts, namespace).await?;
        if matches!(progress, Progress::Done) {
            self.terminating.remove(namespace);
        }
        Ok(progress)
    }
}

/// Deletes the contents of a namespace. Settled when the namespace could be finalized.
async fn empty(parts: &Arc<ServerParts>, namespace: &str) -> Result<Progress> {
    let Some(entry) = parts.store.get(BUCKET, namespace) else { return Ok(Progress::Done) };
    if !entry.digest().terminating {
        return Ok(Progress::Done);
    }
    let registry = parts.registry.load_full();
    let prefix = format!("{namespace}/");
    let mut remaining: Vec<(String, usize)> = Vec::new();
    let mut failure = None;
    let mut seen = BTreeSet::new();
    for resource in registry.resources.values().flatten().filter(|r| r.namespaced) {
        if !seen.insert(resource.bucket.clone()) {
            continue;
        }
        for entry in parts.store.snapshot(&resource.bucket).range(&prefix, None) {
            if entry.digest().terminating {
                continue;
            }
            let name = entry.key.split_once('/').map_or("", |(_, name)| name);
            let call = parts.internal_call(USER, resource.clone(), namespace, name);
            let options =
                DeleteOptions { propagation: Some("Background".into()), ..DeleteOptions::default() };
            if let Err(status) = delete_object(&call, &entry.key, &options).await
                && status.reason != "NotFound"
            {
                failure = Some(status);
            }
        }
        let left = parts.store.snapshot(&resource.bucket).count(&prefix);
        if left > 0 {
            let name = crate::status::qualified(&resource.group, &resource.plural);
            remaining.push((name, left));
        }
    }
    let call = |subresource: &str| -> Option<Call> {
        let resource = registry.find("", "v1", "namespaces")?.clone();
        Some(parts.internal_call(USER, resource, "", namespace).on(subresource))
    };
    if let Some(status) = failure {
        return Err(status);
    }
    let edit =
        if remaining.is_empty() { Edit::Finalize } else { Edit::Report(conditions(parts, &remaining)) };
    let subresource = if remaining.is_empty() { "finalize" } else { "status" };
    if let Some(call) = call(subresource) {
        match change(&call, &edit, &WriteOptions::default(), WriteKind::Update).await {
            Err(status) if status.reason != "NotFound" => return Err(status),
            _ => {}
        }
    }
    Ok(if remaining.is_empty() { Progress::Done } else { Progress::Waiting })
}

const USER: &str = "system:serviceaccount:kube-system:namespace-controller";

enum Edit {
    Finalize,
    Report(Vec<Value>),
}

impl Change for Edit {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let mut object = current.clone();
        match self {
            Self::Finalize => {
                if let Some(finalizers) = object["spec"]["finalizers"].as_array_mut() {
                    finalizers.retain(|f| f != FINALIZER);
                }
            }
            Self::Report(conditions) => {
                // Unchanged conditions keep their transition time.
                let before = current["status"]["conditions"].as_array().cloned().unwrap_or_default();
                let merged: Vec<Value> = conditions
                    .iter()
                    .map(|new| {
                        let same = before.iter().find(|old| {
                            ["type", "status", "reason", "message"].iter().all(|key| old[key] == new[key])
                        });
                        same.unwrap_or(new).clone()
                    })
                    .collect();
                object["status"]["conditions"] = merged.into();
            }
        }
        Ok(Step::Write { object, manager: call.manager("") })
    }
}

/// Conditions of a namespace that cannot be finalized yet.
fn conditions(parts: &ServerParts, remaining: &[(String, usize)]) -> Vec<Value> {
    let now = parts.env.now_rfc3339();
    let condition = |kind: &str, status: &str, reason: &str, message: String| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
    let list: Vec<String> =
        remaining.iter().map(|(name, n)| format!("{name} has {n} resource instances")).collect();
    vec![
        condition(
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered".into(),
        ),
        condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".into(),
        ),
        condition(
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".into(),
        ),
        condition(
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", list.join(", ")),
        ),
        condition(
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            format!("Some content in the namespace has finalizers remaining: {}", list.join(", ")),
        ),
    ]
}
