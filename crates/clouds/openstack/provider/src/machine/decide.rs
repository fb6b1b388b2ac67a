//! Decisions about OpenStackMachines.

use capstan_capi_types::core::{Machine, reason as capi_reason};
use capstan_controller::{Deletion, Effect, Look, Note, ObjectRef, Wait};
use capstan_object::ConditionStatus::{self, False, True, Unknown};
use capstan_openstack_types::names::{self, finalizer};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{MachineInitialization, OpenStackCluster, ServerGroupParam};
use capstan_provider_kit::{decide_machine, decisions};

use super::{OpenStackMachines, spec};
use crate::condition::{self, INSTANCE_READY, reason};
use crate::server_group;

type Decision = capstan_controller::Decision<OpenStackMachines>;

pub(super) fn decide(look: &Look<OpenStackMachines>) -> Decision {
    let owned = look.seen.machine.as_ref();
    let keep = owned.map(|machine| |look: &Look<_>, decision: &mut Decision| keep(look, machine, decision));
    decide_machine(look, |object| &mut object.status.conditions, delete, keep)
}

fn set(
    look: &Look<OpenStackMachines>,
    decision: &mut Decision,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    condition::set_instance(look, &mut decision.object.status.conditions, status, reason, message.into());
}

fn wait(look: &Look<OpenStackMachines>, decision: &mut Decision, reason: &str, what: &str) {
    decision.wait(Wait::on(reason, what));
    set(look, decision, False, reason, format!("Waiting for {what}"));
}

/// The server that was made for this machine. One of another owner is not touched.
fn own_server(look: &Look<OpenStackMachines>) -> Option<&OpenStackServer> {
    let server = look.seen.server.as_deref()?;
    let uid = &look.object.metadata.uid;
    server.metadata.owner_references.iter().any(|owner| owner.uid == *uid).then_some(server)
}

fn keep(look: &Look<OpenStackMachines>, machine: &Machine, decision: &mut Decision) {
    decision.add_finalizer(finalizer::MACHINE);
    if let Some(server) = own_server(look) {
        return report(look, server, decision);
    }
    if look.seen.server.is_some() {
        let message = format!(
            "OpenStackServer {} belongs to another object: delete it, or rename the machine",
            look.object.metadata.name
        );
        return set(look, decision, False, reason::INVALID_SPEC, message);
    }
    if look.object.status.initialization.as_ref().is_some_and(|done| done.provisioned)
        || look.object.spec.provider_id.is_some()
    {
        let message = "its OpenStackServer is gone; the machine is not created again";
        return set(look, decision, False, reason::DELETED, message);
    }
    let Some(cluster) = look.seen.cluster.as_ref() else {
        return wait(look, decision, reason::WAITING_FOR_CLUSTER, "the Cluster");
    };
    let infrastructure = look.seen.infrastructure.as_deref().filter(|it| is_provisioned(it));
    let Some(infrastructure) = infrastructure else {
        return wait(look, decision, reason::WAITING_FOR_CLUSTER, "the infrastructure of the cluster");
    };
    if let Some((_, what)) = decisions::waits_for(machine, cluster) {
        return wait(look, decision, reason::WAITING_FOR_BOOT_DATA, what);
    }
    let group = match server_group::wanted(machine, infrastructure) {
        // The manifest's own group counts more.
        Ok(Some(wanted)) if look.object.spec.server_group.is_none() => {
            let Some(id) = server_group::recorded(&infrastructure.metadata).remove(&wanted.name) else {
                return wait(look, decision, reason::WAITING_FOR_CLUSTER, "the server group of the machine");
            };
            Some(id)
        }
        Ok(_) => None,
        Err(why) => return set(look, decision, False, reason::INVALID_SPEC, why),
    };
    match spec::server_of(&look.object, machine, infrastructure) {
        Ok(mut server) => {
            if group.is_some() {
                server.spec.server_group = Some(ServerGroupParam { id: group, filter: None });
            }
            let name = &server.metadata.name;
            let note =
                Note::normal("SuccessfulCreateServer", "Create", format!("Created OpenStackServer {name}"));
            set(look, decision, False, reason::NOT_READY, "the server is being created");
            decision.then_noting(Effect::create(&server), note);
        }
        Err(why) => set(look, decision, False, reason::INVALID_SPEC, why),
    }
}

fn is_provisioned(cluster: &OpenStackCluster) -> bool {
    cluster.status.initialization.as_ref().is_some_and(|done| done.provisioned)
}

/// Reports the state of the server.
fn report(look: &Look<OpenStackMachines>, server: &OpenStackServer, decision: &mut Decision) {
    let (from, object) = (&server.status, &mut decision.object);
    // Where CAPO records it.
    if let Some(pairs) = server.metadata.annotations.get(names::ADDRESS_PAIRS_ANNOTATION) {
        object.metadata.annotations.insert(names::ADDRESS_PAIRS_ANNOTATION.to_owned(), pairs.clone());
    }
    object.status.instance_id.clone_from(&from.instance_id);
    object.status.instance_state.clone_from(&from.instance_state);
    object.status.addresses.clone_from(&from.addresses);
    let message = from
        .conditions
        .iter()
        .find(|condition| condition.kind == INSTANCE_READY)
        .map(|condition| condition.message.clone())
        .unwrap_or_default();
    match (from.instance_state.as_deref(), &from.instance_id) {
        (Some("ACTIVE"), Some(id)) => {
            let region =
                look.object.spec.identity_ref.as_ref().map(|it| it.region.clone()).unwrap_or_default();
            object.spec.provider_id = Some(names::provider_id(&region, id));
            object.status.initialization = Some(MachineInitialization { provisioned: true });
            set(look, decision, True, "InstanceReady", "");
        }
        (Some("ERROR"), _) => set(look, decision, False, reason::STATE_ERROR, message),
        (Some("DELETED"), _) => set(look, decision, False, reason::DELETED, message),
        (Some("BUILD") | None, _) => {
            let why = match message.is_empty() {
                true => "the server is being created".to_owned(),
                false => message,
            };
            set(look, decision, False, reason::NOT_READY, why);
        }
        (Some(state), _) => {
            set(look, decision, Unknown, reason::NOT_READY, format!("the server is in state {state}"));
        }
    }
}

fn delete(look: &Look<OpenStackMachines>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == finalizer::MACHINE) {
        return;
    }
    let Some(server) = own_server(look) else {
        decision.remove_finalizer(finalizer::MACHINE);
        return;
    };
    decision.wait(Wait::on(capi_reason::DELETING, format!("OpenStackServer {}", server.metadata.name)));
    let waiting = server.status.conditions.iter().find(|condition| condition.kind == INSTANCE_READY);
    let message = waiting.map(|condition| condition.message.clone()).unwrap_or_default();
    set(look, decision, False, capi_reason::DELETING, message);
    if !server.metadata.is_deleting() {
        decision.then(Effect::Delete { target: ObjectRef::to(server), deletion: Deletion::default() });
    }
}
