//! Events of calls to the cloud, in CAPO's words: `SuccessfulCreatePort`, `FailedCreatePort`.

use capstan_controller::{Controller, Decision, Effect, Note};

use crate::cluster::ClusterCall;
use crate::floating_ip_pool::PoolCall;
use crate::server::ServerCall;

/// What a call is reported as when it succeeds, and when it fails.
pub(crate) struct Events {
    done: Note,
    failed: Note,
}

impl Events {
    /// `kind` is part of the reasons; `what` is the type and name of the resource.
    fn create(kind: &str, what: String) -> Option<Self> {
        Some(Self::new(("Create", "Created", "create"), kind, &what))
    }

    fn delete(kind: &str, what: String) -> Option<Self> {
        Some(Self::new(("Delete", "Deleted", "delete"), kind, &what))
    }

    fn associate(what: String) -> Option<Self> {
        Some(Self::new(("Associate", "Associated", "associate"), "FloatingIP", &what))
    }

    fn new((action, past, infinitive): (&str, &str, &str), kind: &str, what: &str) -> Self {
        let (done, failed) = (format!("Successful{action}{kind}"), format!("Failed{action}{kind}"));
        Self {
            done: Note::normal(&done, action, format!("{past} {what}")),
            failed: Note::warning(&failed, action, format!("Failed to {infinitive} {what}")),
        }
    }
}

/// Has the calls of a decision reported, but for those that have an event already.
pub(crate) fn report<C: Controller>(
    mut decision: Decision<C>,
    events: impl Fn(&C::Call) -> Option<Events>,
) -> Decision<C> {
    for planned in &mut decision.effects {
        if let Effect::Call(call) = &planned.effect
            && let Some(Events { done, failed }) = events(call)
        {
            planned.note.get_or_insert(done);
            planned.failure.get_or_insert(failed);
        }
    }
    decision
}

pub(crate) fn of_cluster(call: &ClusterCall) -> Option<Events> {
    match call {
        ClusterCall::CreateNetwork { name, .. } => Events::create("Network", format!("network {name}")),
        ClusterCall::CreateSubnet { name, .. } => Events::create("Subnet", format!("subnet {name}")),
        ClusterCall::CreateRouter { name, .. } => Events::create("Router", format!("router {name}")),
        ClusterCall::CreateGroup { name, .. } => {
            Events::create("SecurityGroup", format!("security group {name}"))
        }
        ClusterCall::CreateBalancer { name, .. } => {
            Events::create("LoadBalancer", format!("load balancer {name}"))
        }
        ClusterCall::CreateListener { name, .. } => Events::create("Listener", format!("listener {name}")),
        ClusterCall::CreatePool { name, .. } => Events::create("Pool", format!("pool {name}")),
        ClusterCall::CreateAddress { .. } => Events::create("FloatingIP", "floating IP".to_owned()),
        ClusterCall::Associate { address, port } => {
            Events::associate(format!("floating IP {address} with port {port}"))
        }
        ClusterCall::CreateServerGroup { name, .. } => {
            Events::create("ServerGroup", format!("server group {name}"))
        }
        ClusterCall::CreateCredential { name, .. } => {
            Events::create("ApplicationCredential", format!("application credential {name}"))
        }
        ClusterCall::CreateImage { image, .. } => Events::create("Image", format!("image {}", image.name)),
        ClusterCall::DeleteAddress { id } => Events::delete("FloatingIP", format!("floating IP {id}")),
        ClusterCall::DeleteBalancer { id } => Events::delete("LoadBalancer", format!("load balancer {id}")),
        ClusterCall::DeletePort { id } => Events::delete("Port", format!("port {id}")),
        ClusterCall::DeleteRouter { id } => Events::delete("Router", format!("router {id}")),
        ClusterCall::DeleteNetwork { id } => Events::delete("Network", format!("network {id}")),
        ClusterCall::DeleteGroup { id } => Events::delete("SecurityGroup", format!("security group {id}")),
        ClusterCall::DeleteServerGroup { id } => Events::delete("ServerGroup", format!("server group {id}")),
        ClusterCall::DeleteCredential { id } => {
            Events::delete("ApplicationCredential", format!("application credential {id}"))
        }
        ClusterCall::DeleteImage { id } => Events::delete("Image", format!("image {id}")),
        ClusterCall::DeleteSnapshot { id } => Events::delete("Snapshot", format!("snapshot {id}")),
        ClusterCall::DeleteVolume { id } => Events::delete("Volume", format!("volume {id}")),
        // Parts of something that is reported, and corrections.
        ClusterCall::SetNameServers { .. }
        | ClusterCall::AddInterface { .. }
        | ClusterCall::RemoveInterface { .. }
        | ClusterCall::AddRules { .. }
        | ClusterCall::RemoveRule { .. }
        | ClusterCall::SetAllowed { .. }
        | ClusterCall::CreateMonitor { .. }
        | ClusterCall::SetMonitor { .. }
        | ClusterCall::SetMembers { .. }
        | ClusterCall::SetTags { .. }
        | ClusterCall::ImportImage { .. } => None,
    }
}

pub(crate) fn of_server(call: &ServerCall) -> Option<Events> {
    match call {
        ServerCall::CreatePort { name, .. } => Events::create("Port", format!("port {name}")),
        ServerCall::CreateTrunk { name, .. } => Events::create("Trunk", format!("trunk {name}")),
        ServerCall::CreateVolume { name, .. } => Events::create("Volume", format!("volume {name}")),
        ServerCall::CreateServer { name, .. } => Events::create("Server", format!("server {name}")),
        ServerCall::AssociateAddress { address, port } => {
            Events::associate(format!("floating IP {address} with port {port}"))
        }
        ServerCall::DeleteServer { id } => Events::delete("Server", format!("server {id}")),
        ServerCall::DeleteTrunk { id } => Events::delete("Trunk", format!("trunk {id}")),
        ServerCall::DeletePort { id } => Events::delete("Port", format!("port {id}")),
        ServerCall::DeleteVolume { id } => Events::delete("Volume", format!("volume {id}")),
        ServerCall::SetPortTags { .. }
        | ServerCall::SetTrunkTags { .. }
        | ServerCall::SetAddressPairs { .. }
        | ServerCall::RemoveSubPorts { .. } => None,
    }
}

pub(crate) fn of_pool(call: &PoolCall) -> Option<Events> {
    match call {
        PoolCall::DeleteAddress { id } => Events::delete("FloatingIP", format!("floating IP {id}")),
        PoolCall::CreateAddress { .. } => Events::create("FloatingIP", "floating IP".to_owned()),
        PoolCall::SetTags { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_and_failure_have_the_reasons_and_words_of_capo() {
        let shown = |events: Option<Events>| {
            let Events { done, failed } = events.expect("it is reported");
            [done, failed].map(|note| format!("{} {}: {}", note.action, note.reason, note.message))
        };
        let id = || "7c6".to_owned();
        let table = [
            (
                shown(of_server(&ServerCall::CreatePort { name: "a-0".to_owned(), order: None })),
                [
                    "Create SuccessfulCreatePort: Created port a-0",
                    "Create FailedCreatePort: Failed to create port a-0",
                ],
            ),
            (
                shown(of_server(&ServerCall::AssociateAddress { address: "1.2.3.4".to_owned(), port: id() })),
                [
                    "Associate SuccessfulAssociateFloatingIP: Associated floating IP 1.2.3.4 with port 7c6",
                    "Associate FailedAssociateFloatingIP: Failed to associate floating IP 1.2.3.4 with port 7c6",
                ],
            ),
            (
                shown(of_cluster(&ClusterCall::DeleteGroup { id: id() })),
                [
                    "Delete SuccessfulDeleteSecurityGroup: Deleted security group 7c6",
                    "Delete FailedDeleteSecurityGroup: Failed to delete security group 7c6",
                ],
            ),
        ];
        for (events, expected) in table {
            assert_eq!(events, expected);
        }
    }
}
