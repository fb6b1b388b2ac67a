//! Deletion of an OpenStackCluster: everything that was created for it goes, nothing else.

use capstan_capi_core::conditions::shortened;
use capstan_capi_types::core::{condition as capi, reason as capi_reason};
use capstan_controller::{Look, Wait};
use capstan_object::ConditionStatus::False;
use capstan_openstack_client::load_balancer::ProvisioningStatus;
use capstan_openstack_client::network::Subnet;
use capstan_openstack_types::names::finalizer;

use super::call::ClusterCall;
use super::decide::{set, unusable};
use super::observed::CloudState;
use super::plan::{Decision, Plan};
use super::{OpenStackClusters, bastion, credential, image, plan, services, volumes};
use crate::project::POLL;

/// Maximum number of names in a message.
const SHOWN: usize = 3;

pub(super) fn delete(look: &Look<OpenStackClusters>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == finalizer::CLUSTER) {
        return;
    }
    if !look.seen.machines.is_empty() {
        let machines = shortened(&look.seen.machines, SHOWN);
        let message = format!("the network is kept until these machines are deleted: {machines}");
        decision.wait(Wait::on("WaitingForMachines", message.as_str()));
        set(look, decision, capi::READY, False, capi_reason::DELETING, message);
        return;
    }
    let state = match &look.seen.cloud {
        Ok(state) => state,
        Err(error) => return unusable(look, decision, error),
    };
    let cluster = look.seen.cluster_name.as_deref().unwrap_or_default();
    if !bastion::remove(&Plan { look, cluster, state }, decision) {
        set(look, decision, capi::READY, False, capi_reason::DELETING, "the bastion is being deleted");
        decision.again_in(POLL);
        return;
    }
    let calls = calls(look, state);
    let pending = state.balancer.as_ref().is_some_and(|held| held.balancer.provisioning_status.is_pending());
    let importing = image::leaving(&state.images);
    let volumes = volumes::count(&state.volumes);
    let waiting = pending || !state.services.is_empty() || importing.is_some() || volumes > 0;
    if calls.is_empty() && !waiting {
        decision.remove_finalizer(finalizer::CLUSTER);
        return;
    }
    let failure = look.failures.first().map(|failure| failure.error.to_string());
    let message = match failure {
        Some(failure) => failure,
        None if pending => "the load balancer is being deleted".to_owned(),
        None if !state.services.is_empty() => {
            format!("load balancers of Services are being deleted: {} left", state.services.len())
        }
        None => match importing {
            Some(image) => format!("image {image} is deleted once Glance has imported it"),
            None if volumes > 0 => {
                format!("volumes and snapshots of PersistentVolumes are being deleted: {volumes} left")
            }
            None => String::new(),
        },
    };
    set(look, decision, capi::READY, False, capi_reason::DELETING, message);
    for call in calls {
        decision.call(call);
    }
    decision.again_in(POLL);
}

/// What can be removed now, in order.
fn calls(look: &Look<OpenStackClusters>, state: &CloudState) -> Vec<ClusterCall> {
    let spec = &look.object.spec;
    let mut calls = Vec::new();
    let given = plan::given_floating_ip(spec).is_some();
    let cluster = look.seen.cluster_name.as_deref().unwrap_or_default();
    let ours = |description: &str| plan::created_address(&look.object, cluster, description);
    let address = state.address.as_ref().filter(|held| !given && ours(&held.description));
    calls.extend(address.map(|held| ClusterCall::DeleteAddress { id: held.id.to_string() }));
    if let Some(held) = &state.balancer {
        if !held.balancer.provisioning_status.is_pending()
            && held.balancer.provisioning_status != ProvisioningStatus::Deleted
        {
            calls.push(ClusterCall::DeleteBalancer { id: held.balancer.id.to_string() });
        }
        // Its ports keep network and groups.
        return calls;
    }
    if !state.services.is_empty() {
        calls.extend(services::removal(&state.services));
        return calls;
    }
    if plan::is_managed(spec) {
        let router = state.router.as_ref();
        if let (Some(router), true) = (router, state.attached || state.attached_ipv6) {
            let joined = |subnet: &&Subnet| match subnet.cidr.contains(':') {
                true => state.attached_ipv6,
                false => state.attached,
            };
            let subnets = state.subnets.iter().filter(joined).map(|subnet| ClusterCall::RemoveInterface {
                router: router.id.to_string(),
                subnet: subnet.id.to_string(),
            });
            calls.extend(subnets);
        }
        if let Some(router) = router.filter(|_| spec.router.is_none()) {
            calls.push(ClusterCall::DeleteRouter { id: router.id.to_string() });
        }
        // Ports without a device are left over from servers that were never created.
        let unused = state.ports.iter().filter(|port| port.device_id.is_empty());
        calls.extend(unused.map(|port| ClusterCall::DeletePort { id: port.id.to_string() }));
        calls.extend(
            state.network.as_ref().map(|network| ClusterCall::DeleteNetwork { id: network.id.to_string() }),
        );
    }
    let server_groups = state.server_groups.values();
    calls.extend(server_groups.map(|id| ClusterCall::DeleteServerGroup { id: id.clone() }));
    calls.extend(credential::removal(&state.credentials));
    calls.extend(image::removal(&state.images));
    calls.extend(state.groups.values().map(|group| ClusterCall::DeleteGroup { id: group.id.to_string() }));
    calls.extend(volumes::removal(&state.volumes));
    calls
}
