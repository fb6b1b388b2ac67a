//! Type-checks ValidatingAdmissionPolicies and records the result in their status.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::keyed::{Keyed, Progress};
use crate::admission::policy::type_checking;
use crate::auth::bucket::VALIDATING_POLICIES;
use crate::call::Call;
use crate::controllers::Committed;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change};
use crate::status::Result;

const USER: &str = "system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller";
const MANAGER: &str = "validatingadmissionpolicy-status";

/// The bucket that this controller watches.
pub(crate) fn watches(bucket: &str) -> bool {
    bucket == VALIDATING_POLICIES
}

pub(crate) struct PolicyTypes;

impl Keyed for PolicyTypes {
    const WORK: &'static str = "type-checking a policy";

    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String> {
        let snapshot = parts.store.snapshot(VALIDATING_POLICIES);
        snapshot.range("", None).map(|entry| entry.key.to_string()).collect()
    }

    fn on_change(&self, _: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>) {
        if !change.gone {
            dirty.insert(change.key.to_string());
        }
    }

    async fn reconcile(&mut self, parts: &Arc<ServerParts>, key: &str) -> Result<Progress> {
        let Some(entry) = parts.store.get(VALIDATING_POLICIES, key) else { return Ok(Progress::Done) };
        // A definition that was just established counts.
        parts.definitions.served().await;
        let registry = parts.registry.load_full();
        let group = "admissionregistration.k8s.io";
        let Some(resource) = registry.find(group, "v1", "validatingadmissionpolicies") else {
            return Ok(Progress::Done);
        };
        let call = parts.internal_call(USER, resource.clone(), "", key).on("status");
        let policy = call.load(&entry).await?;
        if policy["status"]["observedGeneration"].as_i64() == Some(policy.generation()) {
            return Ok(Progress::Done);
        }
        let found = type_checking::warnings(&policy, &registry);
        let type_checking = if found.is_empty() { json!({}) } else { json!({"expressionWarnings": found}) };
        let status = json!({"observedGeneration": policy.generation(), "typeChecking": type_checking});
        let options =
            WriteOptions { field_manager: MANAGER.into(), force: Some(true), ..WriteOptions::default() };
        match change(&call, &Checked(status), &options, WriteKind::Apply).await {
            Err(status) if status.reason != "NotFound" => Err(status),
            _ => Ok(Progress::Done),
        }
    }
}

/// The status to apply.
struct Checked(Value);

impl Change for Checked {
    fn step(&self, call: &Call, _: &Value) -> Result<Step> {
        Ok(Step::Apply(json!({
            "apiVersion": call.resource().api_version(), "kind": call.resource().kind,
            "metadata": {"name": call.name()}, "status": self.0,
        })))
    }
}
