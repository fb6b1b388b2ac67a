//! The bastion: an OpenStackServer of the cluster, and its floating IP.

use capstan_controller::{Deletion, Effect, Note, ObjectRef};
use capstan_object::{ObjectMeta, OwnerReference};
use capstan_openstack_types::names;
use capstan_openstack_types::v1alpha1::{OpenStackServer, OpenStackServerSpec};
use capstan_openstack_types::v1beta2::{Bastion, BastionStatus};

use super::call::ClusterCall;
use super::plan::{self, Decision, Group, Plan};
use crate::mark;
use crate::server_spec::{Surroundings, server_spec};

/// What the floating IP of a bastion is for, in its description.
pub(super) const ADDRESS: &str = "bastion";

/// Keeps the bastion of the manifest, or removes the one that is no longer in it. The cluster does not wait for it.
pub(super) fn keep(plan: &Plan<'_>, decision: &mut Decision) {
    let wanted = plan.object().spec.bastion.as_ref().filter(|_| plan::wants_bastion(&plan.object().spec));
    let held = plan.look.seen.bastion.as_deref();
    let Some(wanted) = wanted else {
        remove(plan, decision);
        decision.object.status.bastion = None;
        return;
    };
    match (spec(plan, wanted), held) {
        (Some(spec), None) => create(plan, spec, decision),
        // A server cannot be changed: it is replaced.
        (Some(spec), Some(held)) if held.spec != spec => delete_server(held, decision),
        (_, Some(held)) => report(plan, wanted, held, decision),
        (None, None) => {}
    }
}

/// What the bastion's server is to be, once the network is known.
fn spec(plan: &Plan<'_>, bastion: &Bastion) -> Option<OpenStackServerSpec> {
    let cluster = plan.object();
    cluster.status.network.as_ref()?;
    let group = cluster.status.bastion_security_group.as_ref().map(|group| group.id.as_str());
    if cluster.spec.managed_security_groups.is_some() && group.is_none() {
        return None;
    }
    let zone = bastion.availability_zone.clone();
    server_spec(bastion.spec.as_ref()?, &Surroundings { cluster, zone, user_data: None, group }).ok()
}

fn create(plan: &Plan<'_>, spec: OpenStackServerSpec, decision: &mut Decision) {
    let cluster = plan.object();
    let name = names::bastion(plan.cluster);
    let mut metadata = ObjectMeta::named(cluster.metadata.namespace.as_str(), name.as_str());
    metadata.labels.insert(capstan_capi_types::core::label::CLUSTER_NAME.to_owned(), plan.cluster.to_owned());
    let mark = format!("{}-bastion", mark::of(&cluster.metadata));
    metadata.annotations.insert(mark::ANNOTATION.to_owned(), mark);
    metadata.owner_references.push(OwnerReference::controlled_by(cluster));
    let server = OpenStackServer { metadata, spec, ..OpenStackServer::default() };
    let note = Note::normal("SuccessfulCreateServer", "Create", format!("Created OpenStackServer {name}"));
    decision.then_noting(Effect::create(&server), note);
}

fn delete_server(server: &OpenStackServer, decision: &mut Decision) {
    if server.metadata.deletion_timestamp.is_none() {
        decision.then(Effect::Delete { target: ObjectRef::to(server), deletion: Deletion::default() });
    }
}

fn report(plan: &Plan<'_>, wanted: &Bastion, server: &OpenStackServer, decision: &mut Decision) {
    let status = &server.status;
    let internal = status.addresses.iter().find(|address| address.kind == "InternalIP");
    let held = plan.state.bastion_address.as_ref();
    decision.object.status.bastion = Some(BastionStatus {
        id: status.instance_id.clone().unwrap_or_default(),
        name: server.metadata.name.clone(),
        ssh_key_name: server.spec.ssh_key_name.clone(),
        state: status.instance_state.clone().unwrap_or_default(),
        ip: internal.map(|address| address.address.clone()).unwrap_or_default(),
        floating_ip: held.map(|held| held.floating_ip_address.clone()).unwrap_or_default(),
        ..BastionStatus::default()
    });
    let port = status.resources.as_ref().and_then(|resources| resources.ports.first());
    let (Some(port), true, Some(external)) = (port, status.ready, &plan.state.external) else { return };
    match held {
        None => {
            decision.call(ClusterCall::CreateAddress {
                description: plan.description(ADDRESS),
                network: external.id.clone(),
                port: Some(port.id.clone()),
                address: wanted.floating_ip.clone(),
            });
        }
        Some(held) if held.port_id.as_ref().is_none_or(|leads| leads.as_str() != port.id) => {
            let (address, port) = (held.id.to_string(), port.id.clone());
            decision.call(ClusterCall::Associate { address, port });
        }
        Some(_) => {}
    }
}

/// Removes the security group of a bastion that is gone. Neutron keeps it while the server's port is in it, and while rules
/// of the other groups name it. Nothing waits for it: another port may be in it as long as an operator likes.
pub(super) fn remove_group(plan: &Plan<'_>, guarded: bool, decision: &mut Decision) {
    let gone = plan.look.seen.bastion.is_none() && !plan::wants_bastion(&plan.object().spec);
    let managed = plan.object().spec.managed_security_groups.is_some();
    let Some(group) = plan.state.groups.get(&Group::Bastion).filter(|_| gone && managed && guarded) else {
        return;
    };
    let (name, id) = (&group.name, group.id.to_string());
    decision
        .best_effort_noting(
            Effect::Call(ClusterCall::DeleteGroup { id }),
            Note::normal("SuccessfulDeleteSecurityGroup", "Delete", format!("Deleted security group {name}")),
        )
        .or_noting(Note::warning(
            "FailedDeleteSecurityGroup",
            "Delete",
            format!("Security group {name} of the bastion was not deleted"),
        ));
}

/// Removes address and server; whether nothing is left.
pub(super) fn remove(plan: &Plan<'_>, decision: &mut Decision) -> bool {
    let given = plan.object().spec.bastion.as_ref().is_some_and(|bastion| bastion.floating_ip.is_some());
    let created = |description: &str| plan::created_address(plan.object(), plan.cluster, description);
    let address = plan.state.bastion_address.as_ref();
    let address = address.filter(|held| !given && created(&held.description));
    if let Some(held) = address {
        decision.call(ClusterCall::DeleteAddress { id: held.id.to_string() });
    }
    let server = plan.look.seen.bastion.as_deref();
    if let Some(server) = server {
        delete_server(server, decision);
    }
    address.is_none() && server.is_none()
}
