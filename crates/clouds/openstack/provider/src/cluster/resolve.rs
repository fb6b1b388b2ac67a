//! Outcomes of calls whose response was lost: what the cloud has now decides.

use std::time::Duration;

use capstan_controller::{Intent, ObserveError, Resolution, View};
use capstan_openstack_client::compute::ServerGroup;
use capstan_openstack_client::image::{Image, ImageStatus};
use capstan_openstack_client::load_balancer::{Listener, LoadBalancer, Pool};
use capstan_openstack_client::network::{FloatingIp, Network, Port, Router, SecurityGroup, Subnet};
use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_provider_kit::resolution;

use super::call::ClusterCall;
use super::{make, plan};
use crate::error::CloudError;
use crate::mark::{self, Owner};
use crate::project::{Access, SETTLED};

pub(super) async fn resolve(
    intent: &Intent<ClusterCall>,
    object: &OpenStackCluster,
    view: &View,
    access: &Access,
) -> Result<Resolution, ObserveError> {
    make::forget(&intent.call, access).await;
    let mark = mark::of(&object.metadata);
    let (there, wanted) = found(&intent.call, &mark, access).await?;
    Ok(resolution(there == wanted, wanted, (intent.at.timestamp(), view.now()), "OpenStack"))
}

/// Whether what the call concerns is there, and whether it is to be there after the call.
async fn found(call: &ClusterCall, mark: &str, access: &Access) -> Result<(bool, bool), CloudError> {
    let age: Duration = SETTLED;
    let ours = |name: &str, held: &str, description: &str| {
        held == name && mark::owner(description, mark) != Owner::Foreign
    };
    Ok(match call {
        ClusterCall::CreateNetwork { name, .. } => {
            (access.all::<Network>(age).await?.iter().any(|it| ours(name, &it.name, &it.description)), true)
        }
        ClusterCall::CreateSubnet { network, cidr, .. } => {
            let all = access.all::<Subnet>(age).await?;
            (all.iter().any(|it| it.network_id.as_str() == network && plan::same_range(&it.cidr, cidr)), true)
        }
        ClusterCall::CreateRouter { name, .. } => {
            (access.all::<Router>(age).await?.iter().any(|it| ours(name, &it.name, &it.description)), true)
        }
        ClusterCall::AddInterface { router, subnet } => (has_interface(router, subnet, access).await?, true),
        ClusterCall::RemoveInterface { router, subnet } => {
            (has_interface(router, subnet, access).await?, false)
        }
        ClusterCall::CreateGroup { name, .. } => {
            let all = access.all::<SecurityGroup>(age).await?;
            (all.iter().any(|it| ours(name, &it.name, &it.description)), true)
        }
        ClusterCall::CreateBalancer { name, .. } => {
            let all = access.all::<LoadBalancer>(age).await?;
            (all.iter().any(|it| ours(name, &it.name, &it.description)), true)
        }
        ClusterCall::CreateListener { balancer, port, .. } => {
            let all = access.all::<Listener>(age).await?;
            let there = |it: &Listener| {
                it.protocol_port == *port && it.loadbalancers.iter().any(|of| of.id.as_str() == balancer)
            };
            (all.iter().any(there), true)
        }
        ClusterCall::CreatePool { listener, .. } => {
            let all = access.all::<Pool>(age).await?;
            (all.iter().any(|it| it.listeners.iter().any(|of| of.id.as_str() == listener)), true)
        }
        ClusterCall::CreateMonitor { pool, .. } => {
            let all = access.all::<Pool>(age).await?;
            (all.iter().any(|it| it.id.as_str() == pool && it.healthmonitor_id.is_some()), true)
        }
        ClusterCall::CreateAddress { description, .. } => {
            (access.all::<FloatingIp>(age).await?.iter().any(|it| it.description == *description), true)
        }
        ClusterCall::DeleteAddress { id } => {
            (access.all::<FloatingIp>(age).await?.iter().any(|it| it.id.as_str() == id), false)
        }
        ClusterCall::DeleteBalancer { id } => {
            let all = access.all::<LoadBalancer>(age).await?;
            let stays = |it: &LoadBalancer| it.id.as_str() == id && !it.provisioning_status.is_pending();
            (all.iter().any(stays), false)
        }
        ClusterCall::DeletePort { id } => {
            (access.all::<Port>(age).await?.iter().any(|it| it.id.as_str() == id), false)
        }
        ClusterCall::DeleteRouter { id } => {
            (access.all::<Router>(age).await?.iter().any(|it| it.id.as_str() == id), false)
        }
        ClusterCall::DeleteNetwork { id } => {
            (access.all::<Network>(age).await?.iter().any(|it| it.id.as_str() == id), false)
        }
        ClusterCall::DeleteGroup { id } => {
            (access.all::<SecurityGroup>(age).await?.iter().any(|it| it.id.as_str() == id), false)
        }
        ClusterCall::CreateServerGroup { name, .. } => {
            (access.all::<ServerGroup>(age).await?.iter().any(|it| it.name == *name), true)
        }
        ClusterCall::DeleteServerGroup { id } => {
            (access.all::<ServerGroup>(age).await?.iter().any(|it| it.id.as_str() == id), false)
        }
        ClusterCall::CreateCredential { name, .. } => {
            (access.application_credentials(age).await?.iter().any(|it| it.name == *name), true)
        }
        ClusterCall::DeleteCredential { id } => {
            (access.application_credentials(age).await?.iter().any(|it| it.id.as_str() == id), false)
        }
        ClusterCall::CreateImage { image, mark } => {
            let all = access.all::<Image>(age).await?;
            let made =
                |it: &Image| it.name == image.name && it.property(mark::METADATA) == Some(mark.as_str());
            (all.iter().any(made), true)
        }
        ClusterCall::ImportImage { id, .. } => {
            let all = access.all::<Image>(age).await?;
            let begun = |it: &Image| it.id.as_str() == id && it.status != ImageStatus::Queued;
            (all.iter().any(begun), true)
        }
        ClusterCall::DeleteImage { id } => {
            (access.all::<Image>(age).await?.iter().any(|it| it.id.as_str() == id), false)
        }
        // Deleted again if they are still there.
        ClusterCall::DeleteSnapshot { .. } | ClusterCall::DeleteVolume { .. } => (true, true),
        // Decided anew from the rules as they are. A rule exists once, whoever asks twice.
        ClusterCall::AddRules { .. }
        | ClusterCall::RemoveRule { .. }
        | ClusterCall::SetNameServers { .. }
        | ClusterCall::SetAllowed { .. }
        | ClusterCall::SetMonitor { .. }
        | ClusterCall::SetMembers { .. }
        | ClusterCall::Associate { .. }
        | ClusterCall::SetTags { .. } => (true, true),
    })
}

async fn has_interface(router: &str, subnet: &str, access: &Access) -> Result<bool, CloudError> {
    let ports = access.all::<Port>(SETTLED).await?;
    Ok(ports.iter().any(|port| {
        port.device_id == router && port.fixed_ips.iter().any(|ip| ip.subnet_id.as_str() == subnet)
    }))
}
