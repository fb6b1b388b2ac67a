//! One object of a cluster, reduced to what the views show.

use capstan_controller::operation::{History, Operation};
use capstan_controller::{NotSettled, UNREACHABLE, catalogue};
use capstan_object::{Condition, ConditionStatus, Conditions as _, ObjectMeta, Time};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::add_on;
use crate::topology::{Topology, Unreconciled};

/// State of a part, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Healthy,
    /// Has no summary condition.
    NoConditions,
    Paused,
    /// Not ready yet; nothing failed.
    Waiting,
    Deleting,
    Failing,
}

/// An object of a cluster.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    #[serde(skip)]
    pub uid: String,
    /// Uids of its owners, the controlling owner first.
    #[serde(skip)]
    pub owners: Vec<String>,
    pub conditions: Vec<Condition>,
    pub created: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Time>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// The Kubernetes version in its spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the node of a machine has joined.
    #[serde(skip)]
    pub joined: bool,
    /// The topology of a cluster that has a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// `status.observedGeneration` is older than the object.
    #[serde(rename = "unseen", skip_serializing_if = "std::ops::Not::not")]
    pub unobserved: bool,
    /// Ready and desired replicas.
    #[serde(rename = "copies", skip_serializing_if = "Option::is_none")]
    pub replicas: Option<(i64, i64)>,
    /// The current operation on it, or the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// How long earlier operations on it took.
    #[serde(skip)]
    pub history: History,
    /// How long the current operation takes in all, as a plan has it. Not read from the object: whoever planned sets it.
    #[serde(skip)]
    pub planned: Option<SignedDuration>,
    /// Objects that its spec refers to, as (kind, name), in the order in which they are needed.
    #[serde(skip)]
    pub needs: Vec<(String, String)>,
    /// Those of `needs` that do not exist; set when the part becomes part of a tree.
    #[serde(skip)]
    pub missing: Vec<(String, String)>,
    /// The cluster whose add-ons it records.
    #[serde(skip)]
    pub add_ons_of: Option<String>,
    /// `host:port` of the API server of a cluster.
    #[serde(skip)]
    pub endpoint: Option<String>,
}

/// Summary conditions, the more specific first.
const SUMMARIES: [&str; 3] = ["Available", "Ready", add_on::APPLIED];

/// Type of the condition that a mark of the controller runtime is shown as.
const SETTLED: &str = "Settled";

/// Type of the condition about the connection to a workload cluster.
pub(crate) const PROBE: &str = "RemoteConnectionProbe";

fn not_settled(mark: NotSettled) -> Condition {
    let repeats = capstan_controller::code_in(&mark.message) == Some(catalogue::NOT_SETTLED.id());
    Condition {
        kind: SETTLED.to_owned(),
        status: ConditionStatus::False,
        reason: if repeats { "NotSettled" } else { "ReconcileFailed" }.to_owned(),
        message: mark.message,
        last_transition_time: Time::new(mark.since),
        observed_generation: None,
    }
}

/// What the controller of a cluster is about to report: nobody has to wait for it to know that the cluster is paused.
fn paused_a_moment_ago(object: &Value, metadata: &ObjectMeta) -> Option<Condition> {
    let writers = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let paused = writers.filter(|writer| !writer["fieldsV1"]["f:spec"]["f:paused"].is_null());
    let times = paused.filter_map(|writer| Time::deserialize(&writer["time"]).ok());
    let since = times.max().or(metadata.creation_timestamp)?;
    Some(Condition {
        kind: "Paused".to_owned(),
        status: ConditionStatus::True,
        reason: "Paused".to_owned(),
        message: "Cluster spec.paused is set to true".to_owned(),
        last_transition_time: since,
        observed_generation: None,
    })
}

#[derive(Deserialize)]
struct Shape {
    kind: String,
    #[serde(default)]
    metadata: ObjectMeta,
}

impl Part {
    /// Reads an object as the API serves it; `None` if the value is not an object.
    pub fn of(object: &Value) -> Option<Self> {
        let Shape { kind, metadata } = Shape::deserialize(object).ok()?;
        let mut conditions: Vec<Condition> = object["status"]["conditions"]
            .as_array()
            .map(|list| list.iter().filter_map(|item| Condition::deserialize(item).ok()).collect())
            .unwrap_or_default();
        if let Some(error) = metadata.annotations.get(UNREACHABLE) {
            explain_probe(&mut conditions, &object["spec"]["controlPlaneEndpoint"], error);
        }
        if kind == "Cluster" && object["spec"]["paused"] == true && !conditions.is_condition_true("Paused") {
            conditions.retain(|condition| condition.kind != "Paused");
            conditions.extend(paused_a_moment_ago(object, &metadata));
        }
        conditions.extend(NotSettled::of(&metadata).into_iter().map(not_settled));
        conditions.extend(add_on::applied(&kind, &metadata, object));
        let mut owners: Vec<_> = metadata.owner_references.iter().collect();
        owners.sort_by_key(|owner| owner.controller != Some(true));
        let desired = object["spec"]["replicas"].as_i64();
        let ready = object["status"]["readyReplicas"].as_i64();
        let observed = object["status"]["observedGeneration"].as_i64();
        Some(Self {
            unobserved: observed.is_some_and(|generation| generation < metadata.generation),
            uid: metadata.uid.clone(),
            owners: owners.into_iter().map(|owner| owner.uid.clone()).collect(),
            created: metadata.creation_timestamp,
            deleted: metadata.deletion_timestamp,
            version: version(object),
            joined: object["status"]["nodeRef"]["name"].as_str().is_some_and(|node| !node.is_empty()),
            topology: Topology::of(object).filter(|_| kind == "Cluster"),
            replicas: desired.map(|desired| (ready.unwrap_or_default(), desired)),
            needs: needs(&kind, &object["spec"]),
            missing: Vec::new(),
            add_ons_of: add_on::cluster_of(&kind, object),
            endpoint: endpoint(&object["spec"]["controlPlaneEndpoint"]),
            operation: Operation::of(&metadata),
            history: History::of(&metadata),
            planned: None,
            finalizers: metadata.finalizers,
            namespace: metadata.namespace,
            name: metadata.name,
            kind,
            conditions,
        })
    }

    /// `Kind/name`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    pub fn summary(&self) -> Option<&Condition> {
        SUMMARIES.iter().find_map(|kind| self.conditions.condition(kind))
    }

    pub fn state(&self) -> State {
        if self.deleted.is_some() {
            return State::Deleting;
        }
        if self.conditions.is_condition_true("Paused") {
            return State::Paused;
        }
        if self.not_settled().is_some() {
            return State::Failing;
        }
        if self.unreconciled_by(&[Unreconciled::Failed]).is_some() {
            return State::Failing;
        }
        let Some(summary) = self.summary() else { return State::NoConditions };
        match summary.status {
            ConditionStatus::True if self.unobserved || self.change_in_progress().is_some() => State::Waiting,
            // An upgrade of which no part has begun, or that has to go on.
            ConditionStatus::True if self.topology_in_progress().is_some() => State::Waiting,
            ConditionStatus::True => State::Healthy,
            _ if self.conditions.iter().any(|condition| failed(condition) || lacks_reference(condition)) => {
                State::Failing
            }
            _ => State::Waiting,
        }
    }

    /// The condition of a controller that repeats the same change, or keeps failing.
    pub(crate) fn not_settled(&self) -> Option<&Condition> {
        self.conditions.condition(SETTLED).filter(|settled| !settled.is_true())
    }

    /// The condition that reports a rollout, a remediation or scaling; the part may be healthy meanwhile.
    pub fn change_in_progress(&self) -> Option<&Condition> {
        const CHANGES: [&str; 4] = ["RollingOut", "Remediating", "ScalingUp", "ScalingDown"];
        CHANGES.iter().find_map(|kind| self.conditions.condition(kind).filter(|change| change.is_true()))
    }

    /// The condition of a topology that is being upgraded, or would be but for a hook.
    pub(crate) fn topology_in_progress(&self) -> Option<&Condition> {
        self.unreconciled_by(&[Unreconciled::Upgrading, Unreconciled::Hook])
    }

    /// The condition that explains its state best: failures before waits, specific conditions before summaries.
    pub fn explaining_condition(&self) -> Option<&Condition> {
        // A deferred upgrade is no reason to wait for anything.
        let open = |condition: &&Condition| {
            is_open(condition) && Unreconciled::of(condition) != Some(Unreconciled::Deferred)
        };
        // Without a reconciled topology, parts may be missing or outdated: what they report follows from that.
        let topology = || {
            self.unreconciled_by(&[
                Unreconciled::Failed,
                Unreconciled::ClassNotReconciled,
                Unreconciled::Hook,
            ])
        };
        let failing = self.conditions.iter().filter(open).find(|condition| failed(condition));
        let waiting = || {
            let parts = self.conditions.iter().filter(open);
            parts.filter(|condition| !SUMMARIES.contains(&condition.kind.as_str())).min_by_key(|condition| {
                (condition.status == ConditionStatus::Unknown, condition.last_transition_time)
            })
        };
        let deleting = || self.conditions.condition("Deleting").filter(|deleting| deleting.is_true());
        let paused = || self.conditions.condition("Paused").filter(|paused| paused.is_true());
        let blocked = || self.conditions.iter().find(|condition| blocked(condition));
        match self.deleted {
            _ if self.not_settled().is_some() => self.not_settled(),
            Some(_) => self.unreconciled_by(&[Unreconciled::Hook]).or_else(deleting),
            None if paused().is_some() => paused(),
            None => topology()
                .or(failing)
                .or_else(|| self.unreachable())
                .or_else(blocked)
                .or_else(waiting)
                .or_else(|| self.summary().filter(open))
                .or_else(|| self.change_in_progress()),
        }
    }
}

/// Whether a condition reports that something is missing. Conditions with negative polarity, or about a change
/// (`Deleting`, `ScalingUp` …), report nothing when they are false.
fn is_open(condition: &Condition) -> bool {
    const CHANGES: [&str; 7] =
        ["Deleting", "Paused", "RollingOut", "Remediating", "ScalingUp", "ScalingDown", "Updating"];
    !condition.is_true() && !CHANGES.contains(&condition.kind.as_str())
}

/// Whether a condition reports a failure rather than a wait: it has an error code, or its reason says so. A failed
/// inspection means that the state is unknown, not that something failed.
fn failed(condition: &Condition) -> bool {
    const NOT_INSPECTED: [&str; 2] = ["InspectionFailed", "ProbeFailed"];
    let reason = condition.reason.as_str();
    let failed_by_reason = condition.status == ConditionStatus::False
        && !NOT_INSPECTED.contains(&reason)
        && ["Failed", "Error", "Invalid"].iter().any(|word| reason.contains(word));
    is_open(condition) && (failed_by_reason || code(condition).is_some())
}

/// Whether a condition reports a blocked change, in Cluster API's words.
pub(crate) fn blocked(condition: &Condition) -> bool {
    condition.is_true() && condition.message.contains("is blocked because")
}

/// Whether a change is blocked by an object that does not exist.
fn lacks_reference(condition: &Condition) -> bool {
    blocked(condition) && condition.message.contains("does not exist")
}

pub(crate) fn code(condition: &Condition) -> Option<&str> {
    capstan_controller::code_in(&condition.message)
}

/// Adds address and error of the last probe to the condition about it, which has Cluster API's text.
fn explain_probe(conditions: &mut [Condition], address: &Value, error: &str) {
    let probes = conditions.iter_mut().filter(|it| it.kind == PROBE && !it.is_true());
    for probe in probes {
        let at = endpoint(address).map(|address| format!("{address}: ")).unwrap_or_default();
        probe.message = format!("{}: {at}{error}", probe.message);
    }
}

fn endpoint(endpoint: &Value) -> Option<String> {
    let host = endpoint["host"].as_str().filter(|host| !host.is_empty())?;
    Some(format!("{host}:{}", endpoint["port"]))
}

fn version(object: &Value) -> Option<String> {
    let spec = &object["spec"];
    let fields = [&spec["version"], &spec["template"]["spec"]["version"], &spec["topology"]["version"]];
    fields.iter().find_map(|field| field.as_str()).map(str::to_owned)
}

/// The objects that an object refers to, in the order in which a cluster needs them.
fn needs(kind: &str, spec: &Value) -> Vec<(String, String)> {
    let references: &[&Value] = match kind {
        "Cluster" => &[&spec["infrastructureRef"], &spec["controlPlaneRef"]],
        "Machine" => &[&spec["bootstrap"]["configRef"], &spec["infrastructureRef"]],
        _ => &[],
    };
    let named = references.iter().filter_map(|it| Some((it["kind"].as_str()?, it["name"].as_str()?)));
    named.map(|(kind, name)| (kind.to_owned(), name.to_owned())).collect()
}
