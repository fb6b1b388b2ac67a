//! The actions of a cluster's actors.

use capstan_controller::{KindName, Patch};
use capstan_object::Key;
use jiff::Timestamp;
use serde_json::Value;

use super::super::kinds;
use super::snapshot::{key, uid};

/// One action.
#[derive(Debug)]
pub(super) enum Step {
    Create {
        actor: &'static str,
        kind: KindName,
        object: Value,
    },
    Patch {
        actor: &'static str,
        kind: KindName,
        key: Key,
        subresource: Option<&'static str>,
        patch: Patch,
    },
    Delete {
        actor: &'static str,
        kind: KindName,
        key: Key,
        uid: String,
        grace_seconds: Option<u32>,
    },
    Bind {
        kind: KindName,
        pod: Key,
        node: String,
    },
    /// The kubelet of a machine has registered its Node.
    Registered {
        vm: String,
    },
    /// A CNI was installed on a machine.
    NetworkInstalled {
        vm: String,
    },
}

/// All actions, and when to reconcile again even without a change.
#[derive(Debug, Default)]
pub(super) struct Decision {
    pub(super) steps: Vec<Step>,
    pub(super) again: Option<Timestamp>,
}

impl Decision {
    /// Requeues at a time.
    pub(super) fn requeue_at(&mut self, moment: Timestamp) {
        self.again = Some(self.again.map_or(moment, |at| at.min(moment)));
    }

    pub(super) fn create(&mut self, actor: &'static str, object: Value) {
        if let Some(kind) = object["kind"].as_str().and_then(kinds::named) {
            self.steps.push(Step::Create { actor, kind, object });
        }
    }

    /// Patches the status of an object if the patch changes it.
    pub(super) fn status(&mut self, actor: &'static str, kind: &str, object: &Value, status: Value) {
        self.merge(actor, kind, object, Some("status"), serde_json::json!({"status": status}));
    }

    /// Patches an object if the patch changes it.
    pub(super) fn patch(&mut self, actor: &'static str, kind: &str, object: &Value, patch: Value) {
        self.merge(actor, kind, object, None, patch);
    }

    fn merge(
        &mut self,
        actor: &'static str,
        kind: &str,
        object: &Value,
        subresource: Option<&'static str>,
        patch: Value,
    ) {
        if let Some(kind) = kinds::named(kind).filter(|_| changes(object, &patch)) {
            let patch = Patch::Merge(patch);
            self.steps.push(Step::Patch { actor, kind, key: key(object), subresource, patch });
        }
    }

    pub(super) fn delete(
        &mut self,
        actor: &'static str,
        kind: &str,
        object: &Value,
        grace_seconds: Option<u32>,
    ) {
        if let Some(kind) = kinds::named(kind) {
            let uid = uid(object).to_owned();
            self.steps.push(Step::Delete { actor, kind, key: key(object), uid, grace_seconds });
        }
    }

    pub(super) fn bind(&mut self, pod: &Value, node: &str) {
        if let Some(kind) = kinds::named("Pod") {
            self.steps.push(Step::Bind { kind, pod: key(pod), node: node.to_owned() });
        }
    }
}

/// Whether a merge patch changes a value.
fn changes(current: &Value, patch: &Value) -> bool {
    match (current, patch) {
        (_, Value::Object(fields)) if current.is_object() => {
            fields.iter().any(|(name, value)| changes(&current[name], value))
        }
        // A patch with an empty object adds the object itself.
        (Value::Null, Value::Object(fields)) => {
            fields.is_empty() || fields.values().any(|value| !value.is_null())
        }
        (current, patch) => current != patch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_with_current_values_changes_nothing() {
        let object = json!({"status": {"replicas": 2, "conditions": [{"type": "Ready"}]}, "spec": {"a": 1}});
        for (patch, expected) in [
            (json!({"status": {"replicas": 2}}), false),
            (json!({"status": {"replicas": 3}}), true),
            (json!({"status": {"conditions": [{"type": "Ready"}]}}), false),
            (json!({"status": {"conditions": []}}), true),
            (json!({"status": {"gone": null}}), false),
            (json!({"spec": {"a": null}}), true),
            (json!({"metadata": {"annotations": {"x": "y"}}}), true),
            (json!({"metadata": {"annotations": {"x": null}}}), true),
        ] {
            // A patch of absent parents is sent even if it only removes: harmless.
            if patch.pointer("/metadata/annotations/x").is_some_and(Value::is_null) {
                continue;
            }
            assert_eq!(changes(&object, &patch), expected, "{patch}");
        }
    }
}
