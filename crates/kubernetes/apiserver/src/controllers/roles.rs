//! Maintains the rules of aggregated ClusterRoles.

use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::{Changes, alive, retry::Retry};
use crate::auth::bucket::CLUSTER_ROLES;
use crate::auth::rbac;
use crate::call::Call;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change};
use crate::status::Result;

const USER: &str = "system:serviceaccount:kube-system:clusterrole-aggregation-controller";
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The bucket that this controller watches.
pub(crate) fn watches(bucket: &str) -> bool {
    bucket == CLUSTER_ROLES
}

/// Runs the controller until the server shuts down.
pub(crate) async fn run(parts: Weak<ServerParts>, mut changes: Changes) {
    let mut retry = Retry::new();
    let mut first = true;
    loop {
        if !std::mem::take(&mut first) {
            tokio::select! {
                biased;
                change = changes.recv() => if change.is_none() { return },
                () = retry.next() => {}
            }
        }
        // One reconcile covers all changes before it.
        while changes.try_recv().is_ok() {}
        let Some(parts) = alive(&parts) else { return };
        match aggregate(&parts).await {
            Ok(()) => retry.succeeded(&()),
            Err(status) => {
                tracing::debug!(error = %status, "aggregating ClusterRoles failed; retrying");
                retry.failed(());
            }
        }
    }
}

/// Updates every aggregated role. A role that aggregates another aggregated one follows with the change of that one.
async fn aggregate(parts: &Arc<ServerParts>) -> Result<()> {
    let registry = parts.registry.load_full();
    let Some(resource) = registry.find("rbac.authorization.k8s.io", "v1", "clusterroles") else {
        return Ok(());
    };
    let roles: Vec<Arc<Value>> = parts
        .store
        .snapshot(CLUSTER_ROLES)
        .range("", None)
        .filter_map(|entry| serde_json::from_slice(&entry.value).ok())
        .map(Arc::new)
        .collect();
    for role in &roles {
        let Some(rules) = rbac::aggregated_rules(role, &roles) else { continue };
        let call = parts.internal_call(USER, resource.clone(), "", role.name());
        let options =
            WriteOptions { field_manager: MANAGER.into(), force: Some(true), ..WriteOptions::default() };
        match change(&call, &Rules(rules), &options, WriteKind::Apply).await {
            Err(status) if status.reason != "NotFound" => return Err(status),
            _ => {}
        }
    }
    Ok(())
}

/// The rules to apply.
struct Rules(Value);

impl Change for Rules {
    fn step(&self, call: &Call, _: &Value) -> Result<Step> {
        let mut role = json!({
            "apiVersion": call.resource().api_version(), "kind": call.resource().kind,
            "metadata": {"name": call.name()},
        });
        // Without rules the field is not applied, so that it is removed with its last owner.
        if self.0.as_array().is_some_and(|rules| !rules.is_empty()) {
            role["rules"] = self.0.clone();
        }
        Ok(Step::Apply(role))
    }
}
