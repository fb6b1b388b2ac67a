//! Decisions about OpenStackClusters.

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_types::core::{APIEndpoint, FailureDomain, condition as capi};
use capstan_controller::{Call as _, Look};
use capstan_object::ConditionStatus::{self, False, True};
use capstan_openstack_client::network::SecurityGroup;
use capstan_openstack_types::names::finalizer;
use capstan_openstack_types::v1beta2::{
    self, ClusterInitialization, NetworkStatusWithSubnets, SecurityGroupStatus,
};
use capstan_provider_kit::{decide_cluster, decisions};

use super::balancer::{self, Progress};
use super::call::{ClusterCall, Tagged};
use super::dual_stack::Second;
use super::plan::{self, Decision, Group, Plan};
use super::rules::{Groups, Rule, Traffic};
use super::{OpenStackClusters, bastion, credential, delete, dual_stack, image, server_groups};
use crate::condition::{self, reason};
use crate::error::CloudError;
use crate::project::{LOOK_AGAIN, POLL};
use crate::{code, events, mark};

pub(super) fn set(
    look: &Look<OpenStackClusters>,
    decision: &mut Decision,
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    let state = ConditionState::new(status, reason, message);
    set_state(look, &mut decision.object.status.conditions, kind, state, None);
}

/// What failed last, if anything did.
fn last_failure(look: &Look<OpenStackClusters>) -> String {
    look.failures.first().map(|failure| failure.error.to_string()).unwrap_or_default()
}

pub(super) fn decide(look: &Look<OpenStackClusters>) -> Decision {
    let owned = look.seen.cluster.is_some();
    let decision =
        decide_cluster(look, |object| &mut object.status.conditions, delete::delete, owned.then_some(keep));
    events::report(decision, events::of_cluster)
}

/// Reports that the cloud cannot be used.
pub(super) fn unusable(look: &Look<OpenStackClusters>, decision: &mut Decision, error: &CloudError) {
    if error.concerns_credentials() {
        set(look, decision, condition::AUTHENTICATED, False, reason::AUTHENTICATION_FAILED, error.text());
    }
    error.wait(decision);
    let was_made = look.object.status.initialization.as_ref().is_some_and(|done| done.provisioned);
    if was_made && !look.object.metadata.is_deleting() {
        let conditions = &mut decision.object.status.conditions;
        return decisions::cloud_is_silent(look, conditions, error.reason, &error.text());
    }
    set(look, decision, capi::READY, False, error.reason, error.text());
}

fn keep(look: &Look<OpenStackClusters>, decision: &mut Decision) {
    decision.add_finalizer(finalizer::CLUSTER);
    let mark = mark::of(&look.object.metadata);
    decision.object.metadata.annotations.insert(mark::ANNOTATION.to_owned(), mark);
    let state = match &look.seen.cloud {
        Ok(state) => state,
        Err(error) => return unusable(look, decision, error),
    };
    decision.object.status.conditions.retain(|one| one.kind != decisions::CLOUD_REACHABLE);
    let Some(cluster) = look.seen.cluster_name.as_deref() else { return };
    let plan = Plan { look, cluster, state };
    set(look, decision, condition::AUTHENTICATED, True, "OpenStackAuthenticationSucceeded", "");
    decision.object.status.external_network = state.external.clone();
    let network = network(&plan, decision);
    let routed = router(&plan, network.as_ref(), decision);
    let guarded = groups(&plan, network.as_ref(), decision);
    let reached = endpoint(&plan, network.as_ref(), routed, decision);
    failure_domains(&plan, decision);
    bastion::keep(&plan, decision);
    bastion::remove_group(&plan, guarded, decision);
    let failed_group = server_groups::keep(&plan, decision);
    let failed_credential = credential::keep(&plan, decision);
    let failed_image = image::keep(&plan, decision);
    if network.is_some() && routed && guarded && reached {
        decision.object.status.initialization = Some(ClusterInitialization { provisioned: true });
        let failed = failed_group.map(|failure| ("ServerGroupCreateFailed", failure));
        let failed = failed.or(failed_credential.map(|failure| ("ApplicationCredentialFailed", failure)));
        let failed = failed.or(failed_image.map(|failure| ("ImageFailed", failure)));
        let failed = failed.or(state.volumes.refused.clone().map(|why| ("VolumePolicyRefused", why)));
        match failed {
            Some((reason, failure)) => set(look, decision, capi::READY, False, reason, failure),
            None => set(look, decision, capi::READY, True, "Provisioned", ""),
        }
    } else {
        let failure = last_failure(look);
        let message =
            if failure.is_empty() { "the infrastructure is being created".to_owned() } else { failure };
        set(look, decision, capi::READY, False, "Provisioning", message);
    }
    let changing = state.balancer.as_ref().is_some_and(|it| it.balancer.provisioning_status.is_pending());
    decision.again_in(if changing { POLL } else { state.next_round.unwrap_or(LOOK_AGAIN) });
}

/// Reports a part that is not there yet.
fn creating(plan: &Plan<'_>, decision: &mut Decision, kind: &str, failed: &str, call: &ClusterCall) {
    let failure = plan.look.failures.iter().find(|failure| failure.effect == call.summary());
    match failure {
        Some(failure) => set(plan.look, decision, kind, False, failed, failure.error.to_string()),
        None => set(plan.look, decision, kind, False, "Creating", call.summary()),
    }
}

/// The network, once it has a subnet.
fn network(plan: &Plan<'_>, decision: &mut Decision) -> Option<NetworkStatusWithSubnets> {
    let (look, spec) = (plan.look, &plan.object().spec);
    let Some(wanted) = spec.managed_subnets.first() else {
        let existing = plan.state.existing.clone();
        decision.object.status.network.clone_from(&existing);
        let message = "spec has neither managedSubnets nor a network: set one";
        match &existing {
            Some(_) => set(look, decision, condition::NETWORK_READY, True, "NetworkReady", ""),
            None => set(look, decision, condition::NETWORK_READY, False, reason::NETWORK_FAILED, message),
        }
        return existing;
    };
    let name = plan.name();
    let Some(network) = &plan.state.network else {
        let settings = spec.managed_network.clone().unwrap_or_default();
        let call = ClusterCall::CreateNetwork {
            description: plan.description(""),
            mtu: settings.mtu.and_then(|mtu| u32::try_from(mtu).ok()),
            port_security: settings.enable_port_security,
            name: name.clone(),
        };
        creating(plan, decision, condition::NETWORK_READY, reason::NETWORK_FAILED, &call);
        decision.call(call);
        return None;
    };
    tagged(plan, decision, Tagged::Network, network.id.as_str(), &network.tags);
    let Some(subnet) = plan.state.subnets.iter().find(|subnet| plan::same_range(&subnet.cidr, &wanted.cidr))
    else {
        let pools = wanted.allocation_pools.iter().map(|pool| (pool.start.clone(), pool.end.clone()));
        let call = ClusterCall::CreateSubnet {
            description: plan.description(""),
            network: network.id.to_string(),
            cidr: wanted.cidr.clone(),
            name_servers: wanted.dns_nameservers.clone(),
            pools: pools.collect(),
            slaac: false,
            name: name.clone(),
        };
        creating(plan, decision, condition::NETWORK_READY, reason::SUBNET_FAILED, &call);
        decision.call(call);
        return None;
    };
    tagged(plan, decision, Tagged::Subnet, subnet.id.as_str(), &subnet.tags);
    if subnet.dns_nameservers != wanted.dns_nameservers {
        let (subnet, name_servers) = (subnet.id.to_string(), wanted.dns_nameservers.clone());
        decision.call(ClusterCall::SetNameServers { subnet, name_servers });
    }
    let mut subnets = vec![subnet.clone()];
    match dual_stack::subnet(plan, network, &name) {
        Ok(None) => {}
        Ok(Some(Second::Held(held))) => {
            tagged(plan, decision, Tagged::Subnet, held.id.as_str(), &held.tags);
            subnets.push(held.clone());
        }
        Ok(Some(Second::Missing(call))) => {
            creating(plan, decision, condition::NETWORK_READY, reason::SUBNET_FAILED, &call);
            decision.call(*call);
            return None;
        }
        Err(why) => {
            let why = format!("{}: {why}", code::REFUSED);
            set(look, decision, condition::NETWORK_READY, False, reason::SUBNET_FAILED, why);
            return None;
        }
    }
    let status = plan::network_status(network, &subnets);
    decision.object.status.network = Some(status.clone());
    set(look, decision, condition::NETWORK_READY, True, "NetworkReady", "");
    Some(status)
}

/// Sets the tags of the manifest where they are missing.
fn tagged(plan: &Plan<'_>, decision: &mut Decision, of: Tagged, id: &str, held: &[String]) {
    let wanted = &plan.object().spec.tags;
    if wanted.iter().any(|tag| !held.contains(tag)) {
        let mut tags = held.to_vec();
        tags.extend(wanted.iter().filter(|tag| !held.contains(tag)).cloned());
        decision.call(ClusterCall::SetTags { of, id: id.to_owned(), tags });
    }
}

/// Whether the network leads out, or need not.
fn router(plan: &Plan<'_>, network: Option<&NetworkStatusWithSubnets>, decision: &mut Decision) -> bool {
    let (look, spec) = (plan.look, &plan.object().spec);
    if !plan::is_managed(spec) {
        return true;
    }
    let Some(subnet) = network.and_then(|network| network.subnets.first()) else { return false };
    let Some(router) = &plan.state.router else {
        let Some(external) = &plan.state.external else { return true };
        let name = plan.name();
        let call = ClusterCall::CreateRouter {
            description: plan.description(""),
            external: external.id.clone(),
            addresses: plan.state.gateway.clone(),
            name: name.clone(),
        };
        creating(plan, decision, condition::ROUTER_READY, reason::ROUTER_FAILED, &call);
        decision.call(call);
        return false;
    };
    tagged(plan, decision, Tagged::Router, router.id.as_str(), &router.tags);
    let gateway = router.external_gateway_info.as_ref().map(|gateway| gateway.external_fixed_ips.as_slice());
    decision.object.status.router = Some(v1beta2::Router {
        name: router.name.clone(),
        id: router.id.to_string(),
        tags: router.tags.clone(),
        ips: gateway.unwrap_or_default().iter().map(|ip| ip.ip_address.clone()).collect(),
    });
    if !plan.state.attached {
        let call = ClusterCall::AddInterface { router: router.id.to_string(), subnet: subnet.id.clone() };
        creating(plan, decision, condition::ROUTER_READY, reason::ROUTER_FAILED, &call);
        decision.call(call);
        return false;
    }
    let second = network.and_then(|network| network.subnets.get(1)).filter(|_| dual_stack::is_dual(plan));
    if let (Some(second), false) = (second, plan.state.attached_ipv6) {
        let call = ClusterCall::AddInterface { router: router.id.to_string(), subnet: second.id.clone() };
        creating(plan, decision, condition::ROUTER_READY, reason::ROUTER_FAILED, &call);
        decision.call(call);
        return false;
    }
    set(look, decision, condition::ROUTER_READY, True, "RouterReady", "");
    true
}

/// Whether the managed security groups have their rules.
fn groups(plan: &Plan<'_>, network: Option<&NetworkStatusWithSubnets>, decision: &mut Decision) -> bool {
    let (look, object) = (plan.look, plan.object());
    let Some(spec) = &object.spec.managed_security_groups else { return true };
    let bastion = plan::wants_bastion(&object.spec);
    let mut complete = true;
    for group in [Group::ControlPlane, Group::Worker, Group::Bastion] {
        let held = plan.state.groups.get(&group);
        if group == Group::Bastion && !bastion {
            continue;
        }
        let Some(held) = held else {
            let name = plan::group_name(object, plan.cluster, group);
            let description = mark::with("Cluster API managed group", &mark::of(&object.metadata));
            let call = ClusterCall::CreateGroup { name: name.clone(), description };
            creating(plan, decision, condition::GROUPS_READY, reason::GROUP_FAILED, &call);
            decision.call(call);
            complete = false;
            continue;
        };
        tagged(plan, decision, Tagged::SecurityGroup, held.id.as_str(), &held.tags);
        let status = SecurityGroupStatus { name: held.name.clone(), id: held.id.to_string() };
        let slot = match group {
            Group::ControlPlane => &mut decision.object.status.control_plane_security_group,
            Group::Worker => &mut decision.object.status.worker_security_group,
            Group::Bastion => &mut decision.object.status.bastion_security_group,
        };
        *slot = Some(status);
    }
    // Rules name other groups and the subnets.
    let (Some(network), true) = (network, complete) else { return false };
    let id = |group: Group| plan.state.groups.get(&group).map(|held| held.id.as_str());
    let groups = Groups {
        control_plane: id(Group::ControlPlane).unwrap_or_default(),
        worker: id(Group::Worker).unwrap_or_default(),
        bastion: id(Group::Bastion).filter(|_| bastion),
    };
    let cidrs: Vec<String> = network.subnets.iter().map(|subnet| subnet.cidr.clone()).collect();
    let ipv6 = dual_stack::is_dual(plan);
    let traffic = Traffic { spec, groups, ports: &plan::ports(&object.spec), cidrs: &cidrs, ipv6 };
    for (group, held) in &plan.state.groups {
        if *group == Group::Bastion && !bastion {
            continue;
        }
        complete &= same_rules(plan, held, &traffic.rules((*group).into()), decision);
    }
    if complete {
        set(look, decision, condition::GROUPS_READY, True, "SecurityGroupsReady", "");
    }
    if !bastion {
        decision.object.status.bastion_security_group = None;
    }
    complete
}

/// Makes the rules of a group those that are wanted; whether they are already.
fn same_rules(plan: &Plan<'_>, group: &SecurityGroup, wanted: &[Rule], decision: &mut Decision) -> bool {
    let held: Vec<(String, Rule)> =
        group.security_group_rules.iter().map(|rule| (rule.id.to_string(), Rule::held(rule))).collect();
    let surplus = held.iter().filter(|(_, rule)| !wanted.iter().any(|wanted| wanted.same(rule)));
    let surplus: Vec<&String> = surplus.map(|(id, _)| id).collect();
    for rule in &surplus {
        let call = ClusterCall::RemoveRule { group: group.id.to_string(), rule: (*rule).clone() };
        decision.call(call);
    }
    let missing = wanted.iter().filter(|wanted| !held.iter().any(|(_, rule)| wanted.same(rule)));
    let rules: Vec<Rule> = missing.cloned().collect();
    if rules.is_empty() {
        return surplus.is_empty();
    }
    let call = ClusterCall::AddRules { group: group.id.to_string(), rules };
    creating(plan, decision, condition::GROUPS_READY, reason::GROUP_FAILED, &call);
    decision.call(call);
    false
}

/// Whether the API server can be reached once there is one.
fn endpoint(
    plan: &Plan<'_>,
    network: Option<&NetworkStatusWithSubnets>,
    routed: bool,
    decision: &mut Decision,
) -> bool {
    let (look, spec) = (plan.look, &plan.object().spec);
    let floating = plan::wants_floating_ip(spec);
    let given = spec.control_plane_endpoint.as_ref().filter(|endpoint| !endpoint.host.is_empty());
    let host = if let Some(settings) = plan::load_balancer(spec) {
        let (balancer, usable) = match balancer::keep(plan, settings, network, decision) {
            Progress::Usable(balancer) => (balancer, true),
            Progress::Building(balancer) => (balancer, false),
            Progress::Missing => {
                let message = look
                    .failures
                    .iter()
                    .find(|failure| failure.effect.starts_with("create-balancer"))
                    .map(|failure| failure.error.to_string());
                let reason = if message.is_some() { reason::ENDPOINT_FAILED } else { "Creating" };
                let message = message.unwrap_or_else(|| "waiting for the load balancer".to_owned());
                set(look, decision, condition::ENDPOINT_READY, False, reason, message);
                return false;
            }
            Progress::Broken(error) => {
                set(look, decision, condition::ENDPOINT_READY, False, error.reason, error.text());
                error.wait(decision);
                return false;
            }
        };
        let public = if floating {
            floating_ip(plan, Some(balancer.vip_port_id.as_str()), routed, decision)
        } else {
            Some(balancer.vip_address.clone())
        };
        let Some(public) = public else { return false };
        decision.object.status.api_server_managed_load_balancer = Some(v1beta2::LoadBalancer {
            name: balancer.name.clone(),
            id: balancer.id.to_string(),
            ip: public.clone(),
            internal_ip: balancer.vip_address.clone(),
            allowed_cidrs: settings.allowed_cidrs.clone(),
            tags: balancer.tags.clone(),
            load_balancer_network: plan.state.balancer_network.clone(),
        });
        if !usable {
            set(
                look,
                decision,
                condition::ENDPOINT_READY,
                False,
                "Creating",
                "the load balancer is being built",
            );
            return false;
        }
        public
    } else if floating && (given.is_none() || plan.state.address.is_some()) {
        // One control plane machine has the address.
        let first = plan.state.control_plane.values().map(|node| node.port.as_str()).next();
        let Some(address) = floating_ip(plan, first, routed, decision) else { return false };
        address
    } else if let Some(endpoint) = given {
        endpoint.host.clone()
    } else if let Some(address) = plan::fixed_ip(spec) {
        address.clone()
    } else {
        let message =
            "set spec.controlPlaneEndpoint, spec.apiServer.fixedIP or spec.apiServer.managedLoadBalancer";
        set(look, decision, condition::ENDPOINT_READY, False, reason::ENDPOINT_FAILED, message);
        return false;
    };
    if given.is_none() {
        let endpoint = APIEndpoint { host, port: i32::from(plan::api_port(spec)) };
        decision.object.spec.control_plane_endpoint = Some(endpoint);
    }
    set(look, decision, condition::ENDPOINT_READY, True, "APIEndpointReady", "");
    true
}

/// The floating IP of the API server, leading to a port if one is given.
fn floating_ip(plan: &Plan<'_>, port: Option<&str>, routed: bool, decision: &mut Decision) -> Option<String> {
    let (look, spec) = (plan.look, &plan.object().spec);
    let Some(held) = &plan.state.address else {
        let Some(external) = &plan.state.external else {
            let message = "there is no external network for a floating IP: set spec.externalNetwork, or \
                           spec.apiServer.enableFloatingIP to false";
            set(look, decision, condition::ENDPOINT_READY, False, reason::ENDPOINT_FAILED, message);
            return None;
        };
        // Neutron wants a way from the external network to the port.
        if routed {
            let call = ClusterCall::CreateAddress {
                description: plan.description(plan::API_ADDRESS),
                network: external.id.clone(),
                port: port.map(str::to_owned),
                address: plan::wanted_floating_ip(spec).cloned(),
            };
            creating(plan, decision, condition::ENDPOINT_READY, reason::ENDPOINT_FAILED, &call);
            decision.call(call);
        }
        return None;
    };
    tagged(plan, decision, Tagged::FloatingIp, held.id.as_str(), &held.tags);
    let leads_to = held.port_id.as_ref().map(|port| port.as_str());
    let nodes = || plan.state.control_plane.values().any(|node| Some(node.port.as_str()) == leads_to);
    let right = match plan::load_balancer(spec) {
        Some(_) => leads_to == port,
        // Whichever control plane machine has it keeps it.
        None => port.is_none() || nodes(),
    };
    if let (false, Some(port)) = (right, port) {
        decision.call(ClusterCall::Associate { address: held.id.to_string(), port: port.to_owned() });
    }
    Some(held.floating_ip_address.clone())
}

fn failure_domains(plan: &Plan<'_>, decision: &mut Decision) {
    let spec = &plan.object().spec;
    let chosen = &spec.control_plane_availability_zones;
    let domain = |zone: &String| FailureDomain {
        name: zone.clone(),
        control_plane: Some(match chosen.is_empty() {
            true => spec.control_plane_omit_availability_zone != Some(true),
            false => chosen.contains(zone),
        }),
        ..FailureDomain::default()
    };
    decision.object.status.failure_domains = plan.state.zones.iter().map(domain).collect();
}
