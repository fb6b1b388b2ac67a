//! Managed server groups of a cluster's machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::Machine;
use capstan_controller::{Call as _, ObserveError, View};
use capstan_openstack_client::compute::ServerGroup;
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackMachine};

use super::call::ClusterCall;
use super::plan::{Decision, Plan};
use crate::error::CloudError;
use crate::project::{Access, CATALOG, SETTLED};
use crate::{mark, server_group};

/// The groups that machines ask for: policies by name. A machine with a wrong policy reports it itself.
pub(super) fn wanted(
    machines: &[Arc<OpenStackMachine>],
    cluster: &OpenStackCluster,
    view: &View,
) -> Result<BTreeMap<String, String>, ObserveError> {
    let mut groups = BTreeMap::new();
    for machine in machines {
        let Some(owner) = owners::of::<Machine>(&machine.metadata, view)? else { continue };
        if let Ok(Some(wanted)) = server_group::wanted(&owner, cluster) {
            groups.insert(wanted.name, wanted.policy);
        }
    }
    Ok(groups)
}

/// The groups that were created for the cluster: ids by name. Clusters without groups list them only when they are deleted.
pub(super) async fn observe(
    object: &OpenStackCluster,
    cluster: &str,
    wanted: &BTreeMap<String, String>,
    access: &Access,
) -> Result<BTreeMap<String, String>, CloudError> {
    let recorded = server_group::recorded(&object.metadata);
    let deleting = object.metadata.is_deleting();
    if wanted.is_empty() && recorded.is_empty() && !deleting {
        return Ok(BTreeMap::new());
    }
    // Servers that run do not need their group, so a lost one is noticed late.
    let complete = !deleting && wanted.keys().eq(recorded.keys());
    let all = access.all::<ServerGroup>(if complete { CATALOG } else { SETTLED }).await?;
    let mark = mark::of(&object.metadata);
    let ours = all.iter().filter(|group| server_group::is_ours(&group.name, cluster, &mark));
    Ok(ours.map(|group| (group.name.clone(), group.id.to_string())).collect())
}

/// Creates groups that machines ask for and deletes those that none does. Returns why one cannot be created.
pub(super) fn keep(plan: &Plan<'_>, decision: &mut Decision) -> Option<String> {
    let (look, held) = (plan.look, &plan.state.server_groups);
    let mut failed = None;
    for (name, policy) in look.seen.wanted_groups.iter().filter(|(name, _)| !held.contains_key(*name)) {
        let call = ClusterCall::CreateServerGroup { name: name.clone(), policy: policy.clone() };
        let failure = look.failures.iter().find(|failure| failure.effect == call.summary());
        failed = failed.or_else(|| failure.map(|failure| failure.error.to_string()));
        decision.call(call);
    }
    for (_, id) in held.iter().filter(|(name, _)| !look.seen.wanted_groups.contains_key(*name)) {
        decision.call(ClusterCall::DeleteServerGroup { id: id.clone() });
    }
    server_group::record(&mut decision.object.metadata, held);
    failed
}
