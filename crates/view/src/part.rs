//! One object, as far as people care.

use capstan_controller::operation::{History, Operation};
use capstan_object::{Condition, ConditionStatus, Conditions as _, ObjectMeta, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a part of a cluster does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// As wanted.
    Well,
    /// It says nothing of itself.
    Silent,
    /// Somebody asked that nothing be done to it.
    Paused,
    /// Not as wanted yet, and nothing failed.
    Waiting,
    /// It goes.
    Going,
    /// Something failed.
    Failing,
}

/// An object of a cluster.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    #[serde(skip)]
    pub uid: String,
    /// Who owns it, the controlling owner first.
    #[serde(skip)]
    pub owners: Vec<String>,
    /// What it says of itself.
    pub conditions: Vec<Condition>,
    /// When it was made.
    pub created: Option<Time>,
    /// Since when it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Time>,
    /// Who wants to be asked before it goes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// The version of Kubernetes it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its controller has not looked at it since it was last changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
    /// Ready and wanted copies of what it keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<(i64, i64)>,
    /// What is being done about it, or was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// How long earlier operations on it took.
    #[serde(skip)]
    pub history: History,
    /// Objects its spec names, as (kind, name), in the order in which they are needed.
    #[serde(skip)]
    pub needs: Vec<(String, String)>,
}

/// Conditions that sum an object up, the more telling first.
const SUMMARIES: [&str; 2] = ["Available", "Ready"];

/// What a reader asks of any object.
#[derive(Deserialize)]
struct Shape {
    kind: String,
    #[serde(default)]
    metadata: ObjectMeta,
}

impl Part {
    /// Reads an object as the API serves it; `None` if it is none.
    pub fn of(object: &Value) -> Option<Self> {
        let Shape { kind, metadata } = Shape::deserialize(object).ok()?;
        let conditions: Vec<Condition> = object["status"]["conditions"]
            .as_array()
            .map(|list| list.iter().filter_map(|item| Condition::deserialize(item).ok()).collect())
            .unwrap_or_default();
        let mut owners: Vec<_> = metadata.owner_references.iter().collect();
        owners.sort_by_key(|owner| owner.controller != Some(true));
        let wanted = object["spec"]["replicas"].as_i64();
        let ready = object["status"]["readyReplicas"].as_i64();
        let looked_at = object["status"]["observedGeneration"].as_i64();
        Some(Self {
            unseen: looked_at.is_some_and(|generation| generation < metadata.generation),
            uid: metadata.uid.clone(),
            owners: owners.into_iter().map(|owner| owner.uid.clone()).collect(),
            created: metadata.creation_timestamp,
            deleted: metadata.deletion_timestamp,
            version: version(object),
            copies: wanted.map(|wanted| (ready.unwrap_or_default(), wanted)),
            needs: needs(&kind, &object["spec"]),
            operation: Operation::of(&metadata),
            history: History::of(&metadata),
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

    /// The condition that sums it up.
    pub fn summary(&self) -> Option<&Condition> {
        SUMMARIES.iter().find_map(|kind| self.conditions.condition(kind))
    }

    /// How it does.
    pub fn standing(&self) -> Standing {
        if self.deleted.is_some() {
            return Standing::Going;
        }
        if self.conditions.is_condition_true("Paused") {
            return Standing::Paused;
        }
        let Some(summary) = self.summary() else { return Standing::Silent };
        match summary.status {
            ConditionStatus::True if self.unseen || self.under_way().is_some() => Standing::Waiting,
            ConditionStatus::True => Standing::Well,
            _ if self.conditions.iter().any(|condition| failed(condition) || lacks(condition)) => {
                Standing::Failing
            }
            _ => Standing::Waiting,
        }
    }

    /// What is being done with it although it does well: it is rolled out, scaled or healed.
    pub fn under_way(&self) -> Option<&Condition> {
        const CHANGES: [&str; 4] = ["RollingOut", "Remediating", "ScalingUp", "ScalingDown"];
        CHANGES.iter().find_map(|kind| self.conditions.condition(kind).filter(|change| change.is_true()))
    }

    /// Its most telling sentence: what fails before what waits, what it is made of before their sum.
    pub fn complaint(&self) -> Option<&Condition> {
        let open = |condition: &&Condition| holds_back(condition);
        let failing = self.conditions.iter().filter(open).find(|condition| failed(condition));
        let waiting = || {
            let parts = self.conditions.iter().filter(open);
            parts.filter(|condition| !SUMMARIES.contains(&condition.kind.as_str())).min_by_key(|condition| {
                (condition.status == ConditionStatus::Unknown, condition.last_transition_time)
            })
        };
        let going = || self.conditions.condition("Deleting").filter(|deleting| deleting.is_true());
        let paused = || self.conditions.condition("Paused").filter(|paused| paused.is_true());
        let blocked = || self.conditions.iter().find(|condition| blocked(condition));
        match self.deleted {
            Some(_) => going(),
            None if paused().is_some() => paused(),
            None => failing
                .or_else(blocked)
                .or_else(waiting)
                .or_else(|| self.summary().filter(open))
                .or_else(|| self.under_way()),
        }
    }
}

/// Whether a condition says that something is not as it should be. Conditions that tell of trouble or of a change
/// when they are true (`Deleting`, `ScalingUp` …) never hold anything back when they are false.
fn holds_back(condition: &Condition) -> bool {
    const OF_CHANGE: [&str; 7] =
        ["Deleting", "Paused", "RollingOut", "Remediating", "ScalingUp", "ScalingDown", "Updating"];
    !condition.is_true() && !OF_CHANGE.contains(&condition.kind.as_str())
}

/// Whether a condition tells of a failure rather than of something that is not there yet: it carries an error code,
/// or its reason says so. What could not be looked at is not known, and no failure.
fn failed(condition: &Condition) -> bool {
    const NOT_SEEN: [&str; 2] = ["InspectionFailed", "ProbeFailed"];
    let reason = condition.reason.as_str();
    let says_so = condition.status == ConditionStatus::False
        && !NOT_SEEN.contains(&reason)
        && ["Failed", "Error", "Invalid"].iter().any(|word| reason.contains(word));
    holds_back(condition) && (says_so || code(condition).is_some())
}

/// Whether a condition tells of a change that cannot go on, in the words that Cluster API has for it.
fn blocked(condition: &Condition) -> bool {
    condition.is_true() && condition.message.contains("is blocked because")
}

/// Whether it cannot go on before somebody makes what it needs.
fn lacks(condition: &Condition) -> bool {
    blocked(condition) && condition.message.contains("does not exist")
}

/// The error code that a condition carries, among the first words of its message.
pub(crate) fn code(condition: &Condition) -> Option<&str> {
    capstan_controller::code_in(&condition.message)
}

fn version(object: &Value) -> Option<String> {
    let spec = &object["spec"];
    let places = [&spec["version"], &spec["template"]["spec"]["version"], &spec["topology"]["version"]];
    places.iter().find_map(|place| place.as_str()).map(str::to_owned)
}

/// What an object refers to as its own, in the order in which a cluster needs it.
fn needs(kind: &str, spec: &Value) -> Vec<(String, String)> {
    let places: &[&Value] = match kind {
        "Cluster" => &[&spec["infrastructureRef"], &spec["controlPlaneRef"]],
        "Machine" => &[&spec["bootstrap"]["configRef"], &spec["infrastructureRef"]],
        _ => &[],
    };
    let named = places.iter().filter_map(|place| Some((place["kind"].as_str()?, place["name"].as_str()?)));
    named.map(|(kind, name)| (kind.to_owned(), name.to_owned())).collect()
}
