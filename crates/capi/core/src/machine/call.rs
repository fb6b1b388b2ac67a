//! Calls of a Machine to its workload cluster. All are idempotent, so none is journalled.

use capstan_controller::catalogue;
use capstan_controller::{ApiError, Call, Client, Deletion, KindName, Outcome, Patch, View};
use capstan_object::Key;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::workload::{Node, Pod};

/// A call to the workload cluster of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "camelCase")]
pub enum MachineCall {
    /// Patch a Node, guarded by the observed resourceVersion.
    PatchNode {
        node: String,
        /// Merge patch with resourceVersion.
        change: Value,
    },
    /// Make a Node unschedulable.
    Cordon {
        node: String,
    },
    /// Evict pods, as disruption budgets allow. The result is an [`Evicted`].
    #[serde(rename_all = "camelCase")]
    Evict {
        pods: Vec<PodName>,
        /// Overrides the pods' termination grace period.
        grace_seconds: Option<i64>,
    },
    DeleteNode {
        node: String,
    },
}

/// A pod by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

impl PodName {
    pub fn of(pod: &Pod) -> Self {
        Self { namespace: pod.metadata.namespace.clone(), name: pod.metadata.name.clone() }
    }
}

impl std::fmt::Display for PodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Result of an eviction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evicted {
    /// Pods that were not evicted, and why.
    pub refused: Vec<(PodName, String)>,
}

impl Call for MachineCall {
    fn idempotency_key(&self) -> String {
        self.summary()
    }

    fn journalled(&self) -> bool {
        false
    }

    fn summary(&self) -> String {
        match self {
            Self::PatchNode { node, .. } => format!("patch node {node}"),
            Self::Cordon { node } => format!("cordon node {node}"),
            Self::Evict { pods, .. } => {
                let names: Vec<_> = pods.iter().map(ToString::to_string).collect();
                format!("evict pods {}", names.join(", "))
            }
            Self::DeleteNode { node } => format!("delete node {node}"),
        }
    }
}

pub(crate) async fn make(call: &MachineCall, cluster: &Key, view: &View) -> Outcome {
    let Some(workloads) = view.workloads() else {
        return Outcome::failed(catalogue::WORKLOAD_UNREACHABLE, "this plane reaches no workload clusters");
    };
    let client = match workloads.client(cluster).await {
        Ok(client) => client,
        Err(error) => return Outcome::failed(catalogue::WORKLOAD_UNREACHABLE, error.to_string()),
    };
    let nodes = KindName::of::<Node>();
    let result = match call {
        MachineCall::PatchNode { node, change } => patch(&client, &nodes, node, change.clone()).await,
        MachineCall::Cordon { node } => {
            patch(&client, &nodes, node, json!({"spec": {"unschedulable": true}})).await
        }
        MachineCall::DeleteNode { node } => {
            client.delete(&nodes, &Key::new("", node.as_str()), &Deletion::default()).await.map(drop)
        }
        MachineCall::Evict { pods, grace_seconds } => return evict(&client, pods, *grace_seconds).await,
    };
    outcome(result)
}

/// The outcome of an API response.
fn outcome(result: Result<(), ApiError>) -> Outcome {
    match result {
        Ok(()) => Outcome::done(),
        Err(error) if error.is_not_found() => Outcome::done(),
        // Other clients write to Nodes all the time: a conflict is retried with fresh state.
        Err(error) if error.is_conflict() => Outcome::failed(catalogue::API_CONFLICT, error_chain(&error)),
        Err(error) => Outcome::failed(catalogue::API_REFUSED, error_chain(&error)),
    }
}

async fn patch(client: &Client, kind: &KindName, name: &str, change: Value) -> Result<(), ApiError> {
    client.patch(kind, &Key::new("", name), None, &Patch::Merge(change)).await.map(drop)
}

/// Evicts pod by pod. A refusal is a result, not a failure: the others are still evicted.
async fn evict(client: &Client, pods: &[PodName], grace_seconds: Option<i64>) -> Outcome {
    let kind = KindName::of::<Pod>();
    let mut evicted = Evicted::default();
    for pod in pods {
        let mut body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": pod.namespace, "name": pod.name},
            "deleteOptions": {},
        });
        if let Some(seconds) = grace_seconds {
            body["deleteOptions"]["gracePeriodSeconds"] = seconds.into();
        }
        let key = Key::new(pod.namespace.as_str(), pod.name.as_str());
        match client.post_subresource(&kind, &key, "eviction", &body).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => evicted.refused.push((pod.clone(), refusal(&error))),
        }
    }
    match serde_json::to_value(&evicted) {
        Ok(result) => Outcome::Done(result),
        Err(error) => Outcome::failed(catalogue::ENCODE, error.to_string()),
    }
}

/// The server's message; for a terminating namespace, upstream's.
fn refusal(error: &ApiError) -> String {
    match error {
        ApiError::Status { code: 403, message, .. } if message.contains("because it is being terminated") => {
            "Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set \
             deletionTimestamp)"
                .to_owned()
        }
        error => error_chain(error),
    }
}

fn error_chain(error: &ApiError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflicting_node_write_is_retried_not_failed() {
        let answered = |code, reason: &str| Err(ApiError::status(code, reason, "words"));
        for (result, expected) in [
            (Ok(()), Outcome::done()),
            (answered(404, "NotFound"), Outcome::done()),
            (answered(409, "Conflict"), Outcome::failed(catalogue::API_CONFLICT, "words")),
            (answered(403, "Forbidden"), Outcome::failed(catalogue::API_REFUSED, "words")),
        ] {
            assert_eq!(outcome(result), expected);
        }
    }
}
