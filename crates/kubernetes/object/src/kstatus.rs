//! How far an object is, as tools outside of Kubernetes read it: the rules of kstatus, by which Flux, Helm, kpt and
//! others wait. Only those for custom resources; kstatus has others for built-in kinds.

use serde::Deserialize;
use serde_json::Value;

use crate::{Condition, ObjectMeta};

/// The condition types that kstatus reads. `Reconciling` and `Stalled` are set only while they hold.
pub mod condition {
    pub const RECONCILING: &str = "Reconciling";
    pub const STALLED: &str = "Stalled";
    pub const READY: &str = "Ready";
}

/// How far an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The actual state is the desired one. Tools that wait go on.
    Current,
    /// It is on its way, with what it waits for.
    InProgress(String),
    /// It does not get there by itself, with the cause. Tools that wait give up.
    Failed(String),
    /// It is being deleted.
    Terminating,
}

impl Progress {
    /// Of an object as the API serves it. Without a status, or without any condition that kstatus reads, it is current.
    pub fn of(object: &Value) -> Self {
        let metadata = ObjectMeta::deserialize(&object["metadata"]).unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let conditions: Vec<Condition> =
            conditions.filter_map(|condition| Condition::deserialize(condition).ok()).collect();
        Self::from(&metadata, object["status"]["observedGeneration"].as_i64(), &conditions)
    }

    /// Of an object with these parts; `observed` is its `status.observedGeneration`, if it has the field.
    pub fn from(metadata: &ObjectMeta, observed: Option<i64>, conditions: &[Condition]) -> Self {
        let generation = metadata.generation;
        if metadata.is_deleting() {
            return Self::Terminating;
        }
        if let Some(observed) = observed.filter(|observed| *observed != generation) {
            return Self::InProgress(format!(
                "generation {generation} is not observed yet, the last one was {observed}"
            ));
        }
        let find = |kind: &str| conditions.iter().find(|condition| condition.kind == kind);
        let holds = |kind: &str| find(kind).filter(|condition| condition.is_true());
        if let Some(condition) = holds(condition::RECONCILING) {
            return Self::InProgress(condition.message.clone());
        }
        if let Some(condition) = holds(condition::STALLED) {
            return Self::Failed(condition.message.clone());
        }
        match find(condition::READY) {
            Some(ready) if !ready.is_true() => Self::InProgress(ready.message.clone()),
            _ => Self::Current,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_is_read_as_kstatus_reads_it() {
        let one = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "R", "message": format!("{kind} {status}"),
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let progress = |what: &str| Progress::InProgress(what.to_owned());
        for (what, status, expected) in [
            ("no status", json!(null), Progress::Current),
            ("nothing that it reads", json!({"conditions": [one("Available", "False")]}), Progress::Current),
            (
                "an earlier generation",
                json!({"observedGeneration": 1, "conditions": [one("Ready", "True")]}),
                progress("generation 2 is not observed yet, the last one was 1"),
            ),
            (
                "the generation of a default",
                json!({"observedGeneration": -1}),
                progress("generation 2 is not observed yet, the last one was -1"),
            ),
            (
                "ready",
                json!({"observedGeneration": 2, "conditions": [one("Ready", "True")]}),
                Progress::Current,
            ),
            ("not ready", json!({"conditions": [one("Ready", "False")]}), progress("Ready False")),
            ("unknown", json!({"conditions": [one("Ready", "Unknown")]}), progress("Ready Unknown")),
            (
                "ready and reconciling",
                json!({"conditions": [one("Ready", "True"), one("Reconciling", "True")]}),
                progress("Reconciling True"),
            ),
            ("reconciled", json!({"conditions": [one("Reconciling", "False")]}), Progress::Current),
            (
                "stalled",
                json!({"conditions": [one("Ready", "False"), one("Stalled", "True")]}),
                Progress::Failed("Stalled True".to_owned()),
            ),
        ] {
            let object = json!({"metadata": {"generation": 2}, "status": status});
            assert_eq!(Progress::of(&object), expected, "{what}");
        }
        let deleted = json!({"metadata": {"generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(Progress::of(&deleted), Progress::Terminating);
    }
}
