//! A way in for people: a port of the network's public address that leads to port 22 of a machine.

use std::collections::BTreeSet;

use capstan_capi_core::conditions::{Verdict, state};
use capstan_cloudstack_client::commands::{
    CreateFirewallRule, CreatePortForwardingRule, DeleteFirewallRule, DeletePortForwardingRule,
    ListFirewallRules, ListPortForwardingRules,
};
use capstan_cloudstack_client::model::{PortForwardingRule, VirtualMachine};
use capstan_cloudstack_client::{Code, Error};
use capstan_controller::Look;
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Condition, Conditions};

use super::decide::Decision;
use super::{CloudStackMachines, MachineCall};
use crate::annotation;
use crate::clouds::Access;
use crate::isolated_network::{EVERYBODY, allowed};

/// The machine's port for SSH is forwarded; the message says where.
pub const FORWARDED: &str = "SSHForwarded";

/// The first port that is handed out.
const FIRST_PORT: u16 = 2222;
/// Where machines listen.
const SSH: u16 = 22;
/// How often another port is tried when somebody else was faster.
const TRIES: usize = 5;

/// The address that ports of the machine's network are forwarded from: its id, and what people see.
fn address(look: &Look<CloudStackMachines>) -> Option<(&str, &str)> {
    let network = look.seen.network.as_ref()?;
    let id = Some(network.status.public_ip_id.as_str()).filter(|id| !id.is_empty())?;
    Some((id, network.spec.control_plane_endpoint.host.as_str()))
}

fn is_wanted(look: &Look<CloudStackMachines>) -> bool {
    let cluster = look.seen.infrastructure.as_ref();
    cluster
        .and_then(|cluster| cluster.metadata.annotations.get(annotation::SSH_FORWARDING))
        .is_some_and(|value| value == "true")
}

fn told(look: &Look<CloudStackMachines>) -> Option<&Condition> {
    look.object.status.conditions.condition(FORWARDED)
}

fn tell(look: &Look<CloudStackMachines>, decision: &mut Decision, verdict: Verdict) {
    state(look, &mut decision.object.status.conditions, FORWARDED, verdict, None);
}

/// Has a machine that runs reached by SSH, or no longer, as its cluster's annotation says.
pub(super) fn keep(look: &Look<CloudStackMachines>, vm: &VirtualMachine, decision: &mut Decision) {
    let forwarded = told(look).is_some_and(Condition::is_true);
    if !is_wanted(look) {
        if forwarded && let Some(call) = pending_end(look, vm) {
            decision.call(call);
        } else if forwarded {
            tell(look, decision, Verdict::new(False, "NotWanted", ""));
        }
        return;
    }
    if forwarded {
        return;
    }
    let Some((address, host)) = address(look) else {
        let message = format!(
            "{} is set on the CloudStackCluster, but the machine's network has no public address of its own: only \
             isolated networks forward ports",
            annotation::SSH_FORWARDING
        );
        return tell(look, decision, Verdict::new(False, "NoAddress", message));
    };
    let call = MachineCall::Forward { address: address.to_owned(), id: vm.id.to_string() };
    match (look.result_of(&call), look.failure_of(&call)) {
        (Some(result), _) => {
            let message = format!("{host}:{}", result["port"]);
            return tell(look, decision, Verdict::new(True, "Forwarded", message));
        }
        (None, Some(failure)) => {
            tell(look, decision, Verdict::new(False, "ForwardFailed", failure.error.to_string()));
        }
        (None, None) => tell(look, decision, Verdict::new(False, "Forwarding", "")),
    }
    decision.call(call);
}

/// The call that ends the forwarding of a machine, unless there is none or it cannot be ended.
pub(super) fn pending_end(look: &Look<CloudStackMachines>, vm: &VirtualMachine) -> Option<MachineCall> {
    told(look).filter(|told| told.is_true())?;
    let (address, _) = address(look)?;
    let call = MachineCall::Unforward { address: address.to_owned(), id: vm.id.to_string() };
    let tried = look.failure_of(&call).map_or(0, |failure| failure.attempts);
    (look.result_of(&call).is_none() && tried < 3).then_some(call)
}

/// Rules of a machine's SSH on an address, and every port that is taken there.
async fn rules(
    address: &str,
    id: &str,
    access: &Access,
) -> Result<(Vec<PortForwardingRule>, BTreeSet<u16>), Error> {
    let question = ListPortForwardingRules {
        ipaddressid: Some(address.into()),
        scope: access.scope(),
        ..ListPortForwardingRules::default()
    };
    let mut all = access.client.list(&question).await?;
    let range = |rule: &PortForwardingRule| {
        let first = rule.publicport.unwrap_or_default();
        first..=rule.publicendport.unwrap_or(first)
    };
    let taken = all.iter().flat_map(range).collect();
    all.retain(|rule| {
        rule.privateport == Some(SSH)
            && rule.virtualmachineid.as_ref().is_some_and(|machine| machine.as_str() == id)
    });
    Ok((all, taken))
}

/// The port that leads to a machine, if one does.
pub(super) async fn port_of(address: &str, id: &str, access: &Access) -> Result<Option<u16>, Error> {
    let (own, _) = rules(address, id, access).await?;
    Ok(own.first().and_then(|rule| rule.publicport))
}

/// Forwards the first free port. CloudStack refuses a port that is taken, so no two machines get the same.
pub(super) async fn forward(address: &str, id: &str, who: &[String], access: &Access) -> Result<u16, Error> {
    let everybody = who == [EVERYBODY];
    let (own, mut taken) = rules(address, id, access).await?;
    let known = own.first().and_then(|rule| rule.publicport);
    let mut tries = 0;
    let port = loop {
        if let Some(port) = known {
            break port;
        }
        let port = (FIRST_PORT..=u16::MAX).find(|port| !taken.contains(port)).unwrap_or(FIRST_PORT);
        let request = CreatePortForwardingRule {
            ipaddressid: address.into(),
            protocol: "tcp".to_owned(),
            publicport: port,
            publicendport: None,
            privateport: SSH,
            privateendport: None,
            virtualmachineid: id.into(),
            networkid: None,
            openfirewall: Some(everybody),
        };
        match access.client.run(&request).await {
            Ok(_) => break port,
            // A machine beside this one, or a load balancer, has it.
            Err(error) if error.code() == Some(Code::RuleConflict) && tries < TRIES => {
                taken.insert(port);
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    };
    if !everybody && openings(address, port, access).await?.is_empty() {
        let request = CreateFirewallRule {
            ipaddressid: address.into(),
            protocol: "tcp".to_owned(),
            startport: Some(port),
            endport: Some(port),
            cidrlist: who.to_vec(),
            icmptype: None,
            icmpcode: None,
        };
        access.client.run(&request).await?;
    }
    Ok(port)
}

/// What lets packets in to exactly this port.
async fn openings(
    address: &str,
    port: u16,
    access: &Access,
) -> Result<Vec<capstan_cloudstack_client::FirewallRuleId>, Error> {
    let question = ListFirewallRules {
        ipaddressid: Some(address.into()),
        scope: access.scope(),
        ..ListFirewallRules::default()
    };
    let found = access.client.list(&question).await?.into_iter();
    let exact =
        found.filter(|rule| rule.startport == Some(port) && rule.endport.is_none_or(|end| end == port));
    Ok(exact.map(|rule| rule.id).collect())
}

/// Ends the forwarding, with what let packets in.
pub(super) async fn end(address: &str, id: &str, access: &Access) -> Result<(), Error> {
    let (own, _) = rules(address, id, access).await?;
    let gone = |done: Result<(), Error>| match done {
        // Not known any more.
        Err(error) if error.code() == Some(Code::Parameter) => Ok(()),
        done => done,
    };
    for rule in own {
        // The firewall first: without the rule nobody knows its port any more.
        for opening in openings(address, rule.publicport.unwrap_or_default(), access).await? {
            gone(access.client.run(&DeleteFirewallRule { id: opening }).await.map(drop))?;
        }
        gone(access.client.run(&DeletePortForwardingRule { id: rule.id }).await.map(drop))?;
    }
    Ok(())
}

/// Who may come in.
pub(super) fn sources(seen: &super::Seen) -> Vec<String> {
    seen.infrastructure.as_ref().map_or_else(|| vec![EVERYBODY.to_owned()], |cluster| allowed(cluster))
}
