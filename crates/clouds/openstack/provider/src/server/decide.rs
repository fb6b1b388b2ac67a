//! Decisions about OpenStackServers.

use std::time::Duration;

use capstan_capi_types::core::reason as capi_reason;
use capstan_controller::{Effect, Look, Note, Wait};
use capstan_object::ConditionStatus::{self, False, True};
use capstan_openstack_client::block_storage::VolumeStatus;
use capstan_openstack_client::compute::{Server, ServerStatus};
use capstan_openstack_client::network::Port;
use capstan_openstack_types::NodeAddress;
use capstan_openstack_types::names::finalizer;
use capstan_openstack_types::v1alpha1::ServerResources;
use capstan_openstack_types::v1beta1::PortStatus;
use capstan_provider_kit::{decide_machine, decisions};

use super::call::ServerCall;
use super::observed::{ServerState, is_pending};
use super::{OpenStackServers, SERVER_ID, SUB_PORTS, address_pairs, create, floating_ip};
use crate::condition::{self, reason};
use crate::error::CloudError;
use crate::project::POLL;
use crate::{code, events, mark};

pub(super) type Decision = capstan_controller::Decision<OpenStackServers>;

pub(super) fn decide(look: &Look<OpenStackServers>) -> Decision {
    let decision = decide_machine(look, |object| &mut object.status.conditions, delete, Some(keep));
    events::report(decision, events::of_server)
}

pub(super) fn set(
    look: &Look<OpenStackServers>,
    decision: &mut Decision,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    condition::set_instance(look, &mut decision.object.status.conditions, status, reason, message.into());
}

pub(super) fn unusable(look: &Look<OpenStackServers>, decision: &mut Decision, error: &CloudError) {
    error.wait(decision);
    if look.object.status.ready && !look.object.metadata.is_deleting() {
        let conditions = &mut decision.object.status.conditions;
        return decisions::cloud_is_silent(look, conditions, error.reason, &error.text());
    }
    set(look, decision, False, error.reason, error.text());
}

fn keep(look: &Look<OpenStackServers>, decision: &mut Decision) {
    decision.add_finalizer(finalizer::SERVER);
    let mark = mark::of(&look.object.metadata);
    decision.object.metadata.annotations.insert(mark::ANNOTATION.to_owned(), mark);
    let state = match &look.seen.cloud {
        Ok(state) => state,
        Err(error) => return unusable(look, decision, error),
    };
    decision.object.status.conditions.retain(|one| one.kind != decisions::CLOUD_REACHABLE);
    let ports: Vec<&Port> = state.ports.iter().flatten().collect();
    if !ports.is_empty() && ports.len() == state.ports.len() {
        let ports = ports.iter().map(|port| PortStatus { id: port.id.to_string() }).collect();
        decision.object.status.resources = Some(ServerResources { ports });
    }
    match (&state.server, &state.resolved) {
        (Some(server), _) => {
            report(look, decision, server, &ports, state.look_again());
            keep_address_pairs(look, decision, state);
            if let Some(floating_ip) = &state.floating_ip {
                floating_ip::keep(look, decision, floating_ip);
            }
        }
        (None, Some(Ok(resolved))) => create::create(look, decision, state, resolved),
        (None, Some(Err(error))) => unusable(look, decision, error),
        (None, None) => {
            let status = &mut decision.object.status;
            status.ready = false;
            status.instance_state = Some("DELETED".to_owned());
            let message = "The server was unexpectedly deleted; it is not created again";
            set(look, decision, False, reason::DELETED, message);
            decision.again_in(state.look_again());
        }
    }
}

/// Addresses of a server: of its ports in their order, then floating ones, then its name.
fn addresses(server: &Server, ports: &[&Port]) -> Vec<NodeAddress> {
    let address =
        |kind: &str, address: &str| NodeAddress { kind: kind.to_owned(), address: address.to_owned() };
    let fixed = ports.iter().flat_map(|port| &port.fixed_ips);
    let mut all: Vec<NodeAddress> = fixed.map(|ip| address("InternalIP", &ip.ip_address)).collect();
    let floating = server.addresses.values().flatten().filter(|it| it.kind == "floating");
    all.extend(floating.map(|it| address("ExternalIP", &it.addr)));
    all.push(address("InternalDNS", &server.name));
    all
}

fn report(
    look: &Look<OpenStackServers>,
    decision: &mut Decision,
    server: &Server,
    ports: &[&Port],
    settled: Duration,
) {
    let annotations = &mut decision.object.metadata.annotations;
    annotations.remove(create::REFUSED);
    annotations.insert(SERVER_ID.to_owned(), server.id.to_string());
    let status = &mut decision.object.status;
    status.instance_id = Some(server.id.to_string());
    status.instance_state = Some(server.status.as_str().to_owned());
    status.addresses = addresses(server, ports);
    status.ready = server.status == ServerStatus::Active;
    match &server.status {
        ServerStatus::Active => set(look, decision, True, "InstanceReady", ""),
        ServerStatus::Build => set(look, decision, False, reason::NOT_READY, "the server is being built"),
        ServerStatus::Error => {
            let fault = server.fault.as_ref().map(|fault| fault.message.clone()).unwrap_or_default();
            let why = if fault.is_empty() { String::new() } else { format!(": {fault}") };
            let message = format!(
                "{}: server {} is in state ERROR{why}; delete its Machine, or let a MachineHealthCheck replace it",
                code::SERVER,
                server.id
            );
            set(look, decision, False, reason::STATE_ERROR, message);
        }
        other => {
            let message = format!("the server is in state {}", other.as_str());
            set(look, decision, ConditionStatus::Unknown, reason::NOT_READY, message);
        }
    }
    decision.again_in(if is_pending(server) { POLL } else { settled });
}

/// Gives live ports their allowed address pairs. A port that Neutron refuses to change keeps nothing else from happening.
fn keep_address_pairs(look: &Look<OpenStackServers>, decision: &mut Decision, state: &ServerState) {
    let Some(pairs) = &look.seen.pairs else { return };
    let outdated = address_pairs::outdated(pairs, &state.ports, &mark::of(&look.object.metadata));
    if outdated.is_empty() {
        return address_pairs::record(&mut decision.object, pairs);
    }
    for (port, pairs) in outdated {
        let done = format!("Set allowed address pairs of port {port}");
        let failed = format!("Allowed address pairs of port {port} were not set");
        decision
            .best_effort_noting(
                Effect::Call(ServerCall::SetAddressPairs { port, pairs }),
                Note::normal("AllowedAddressPairsSet", "Update", done),
            )
            .or_noting(Note::warning("AllowedAddressPairsFailed", "Update", failed));
    }
}

/// Whether Cinder deletes a volume in this state. Nova detaches those of a server that goes, and deletes them itself.
fn is_removable(status: &VolumeStatus) -> bool {
    matches!(status, VolumeStatus::Available | VolumeStatus::Error | VolumeStatus::ErrorDeleting)
}

/// Ports that go with the trunks: those that they carry, and those that were taken from them before.
fn sub_ports(state: &ServerState) -> Vec<String> {
    let carried = state.trunks.iter().flat_map(|trunk| &trunk.sub_ports);
    let mut all: Vec<String> = carried.map(|sub| sub.port_id.to_string()).collect();
    for freed in &state.sub_ports {
        if !all.contains(freed) {
            all.push(freed.clone());
        }
    }
    all
}

/// The server goes first, then what it used. Of its volumes only those that Nova did not delete with it.
fn delete(look: &Look<OpenStackServers>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == finalizer::SERVER) {
        return;
    }
    let state = match &look.seen.cloud {
        Ok(state) => state,
        Err(error) => return unusable(look, decision, error),
    };
    let failure = look.failures.first().map(|failure| failure.error.to_string()).unwrap_or_default();
    if let Some(server) = &state.server {
        set(look, decision, False, capi_reason::DELETING, failure);
        if server.task_state.as_deref() != Some("deleting") {
            decision.call(ServerCall::DeleteServer { id: server.id.to_string() });
        }
        decision.again_in(POLL);
        return;
    }
    let sub_ports = sub_ports(state);
    if !sub_ports.is_empty() {
        // Before they are taken from their trunk: whatever becomes of the calls after that, they are found.
        decision.object.metadata.annotations.insert(SUB_PORTS.to_owned(), sub_ports.join(","));
    }
    let carried = state.trunks.iter().filter(|trunk| !trunk.sub_ports.is_empty());
    let freed = carried.map(|trunk| ServerCall::RemoveSubPorts {
        trunk: trunk.id.to_string(),
        ports: trunk.sub_ports.iter().map(|sub| sub.port_id.to_string()).collect(),
    });
    let sub_ports = sub_ports.into_iter().map(|id| ServerCall::DeletePort { id });
    let trunks = state.trunks.iter().map(|trunk| ServerCall::DeleteTrunk { id: trunk.id.to_string() });
    let ports = state.ports.iter().flatten().map(|port| ServerCall::DeletePort { id: port.id.to_string() });
    let (removable, others): (Vec<_>, Vec<_>) =
        state.volumes.iter().partition(|volume| is_removable(&volume.status));
    let volumes = removable.iter().map(|volume| ServerCall::DeleteVolume { id: volume.id.to_string() });
    let calls: Vec<ServerCall> = freed.chain(sub_ports).chain(trunks).chain(ports).chain(volumes).collect();
    let busy = others.iter().find(|volume| volume.status != VolumeStatus::Deleting);
    if let Some(volume) = busy {
        let message = format!("volume {} ({}) is {}", volume.name, volume.id, volume.status.as_str());
        decision.wait(Wait::on("WaitingForVolume", message));
    } else if calls.is_empty() {
        let claim = state.floating_ip.as_ref();
        if !claim.is_some_and(|claim| floating_ip::release(look, decision, claim)) {
            decision.remove_finalizer(finalizer::SERVER);
        }
        return;
    }
    set(look, decision, False, capi_reason::DELETING, failure);
    for call in calls {
        decision.call(call);
    }
    decision.again_in(POLL);
}
