//! A way in for people: a port of the network's public address that leads to port 22 of a machine.

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_cloudstack_client::model::{MachineState, VirtualMachine};
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::Look;
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Condition, Conditions};

use super::decide::{Decision, failure_of};
use super::forwarding::{AddressRules, Question};
use super::{CloudStackMachines, MachineCall, Seen};
use crate::annotation;
use crate::code;
use crate::error::{CloudError, PATIENCE};
use crate::isolated_network::{EVERYBODY, allowed};

/// The machine's port for SSH is forwarded; the message says where.
pub const FORWARDED: &str = "SSHForwarded";

/// The port could not be forwarded, so more has to be known of the address.
const FORWARD_FAILED: &str = "ForwardFailed";

/// The first port that is handed out.
const FIRST_PORT: u16 = 2222;
/// Where machines listen.
pub(crate) const SSH: u16 = 22;
/// How often rules that cannot be deleted are tried before the machine goes without.
const TRIES: u32 = 3;

/// Observed rules of SSH forwarding.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SshRules {
    /// Rules on the address.
    pub rules: AddressRules,
    /// Machines that come before this one, by name, on the same address: those without a rule get one too.
    pub before: Vec<String>,
}

/// The address that ports of the machine's network are forwarded from: its id, and what people see.
fn address(seen: &Seen) -> Option<(&str, &str)> {
    let network = seen.network.as_ref()?;
    let id = Some(network.status.public_ip_id.as_str()).filter(|id| !id.is_empty())?;
    Some((id, network.spec.control_plane_endpoint.host.as_str()))
}

fn is_wanted(seen: &Seen) -> bool {
    let cluster = seen.infrastructure.as_ref();
    cluster
        .and_then(|cluster| cluster.metadata.annotations.get(annotation::SSH_FORWARDING))
        .is_some_and(|value| value == "true")
}

/// Sources that may connect.
fn sources(seen: &Seen) -> Vec<String> {
    seen.infrastructure.as_ref().map_or_else(|| vec![EVERYBODY.to_owned()], |cluster| allowed(cluster))
}

/// The condition says that the machine's SSH port is forwarded.
pub(super) fn is_forwarded(object: &CloudStackMachine) -> bool {
    object.status.conditions.condition(FORWARDED).is_some_and(Condition::is_true)
}

/// The machine's SSH port is forwarded, or may be: a call for it may have ended when the condition could no longer be
/// written.
fn may_be_forwarded(object: &CloudStackMachine, seen: &Seen) -> bool {
    is_forwarded(object) || object.metadata.is_deleting() && is_wanted(seen)
}

/// What has to be known of the rules, if a decision depends on them.
pub(super) fn question(object: &CloudStackMachine, seen: &Seen, vm: &VirtualMachine) -> Option<Question> {
    let (address, _) = address(seen)?;
    let going = matches!(vm.state, Some(MachineState::Destroyed | MachineState::Expunging));
    let ends =
        may_be_forwarded(object, seen) && (object.metadata.is_deleting() || !is_wanted(seen)) && !going;
    let begins = !is_forwarded(object)
        && !object.metadata.is_deleting()
        && is_wanted(seen)
        && vm.state == Some(MachineState::Running);
    let reported = object.status.conditions.condition(FORWARDED);
    let failed = reported.is_some_and(|reported| reported.reason == FORWARD_FAILED);
    (ends || begins).then(|| Question {
        address: address.to_owned(),
        // A load balancer on the port is rare enough to be looked for only after a refusal.
        balanced: begins && failed,
        openings: ends || sources(seen) != [EVERYBODY],
    })
}

fn report(look: &Look<CloudStackMachines>, decision: &mut Decision, verdict: ConditionState) {
    set_state(look, &mut decision.object.status.conditions, FORWARDED, verdict, None);
}

/// Has a machine that runs reached by SSH, or no longer, as its cluster's annotation says.
pub(super) fn keep(look: &Look<CloudStackMachines>, vm: &VirtualMachine, decision: &mut Decision) {
    let forwarded = is_forwarded(&look.object);
    match (is_wanted(&look.seen), forwarded) {
        (true, true) | (false, false) => {}
        (false, true) => match ending(look, vm) {
            Ending::Calls(calls) => {
                for call in calls {
                    decision.call(call);
                }
            }
            Ending::Wait(_) => {
                decision.again_in(PATIENCE);
            }
            Ending::Nothing => report(look, decision, ConditionState::new(False, "NotWanted", "")),
        },
        (true, false) => begin(look, vm, decision),
    }
}

fn begin(look: &Look<CloudStackMachines>, vm: &VirtualMachine, decision: &mut Decision) {
    let Some((address, host)) = address(&look.seen) else {
        let message = format!(
            "{} is set on the CloudStackCluster, but the machine's network has no public address of its own: only \
             isolated networks forward ports",
            annotation::SSH_FORWARDING
        );
        return report(look, decision, ConditionState::new(False, "NoAddress", message));
    };
    let ssh = match &look.seen.ssh {
        Some(Ok(ssh)) => ssh,
        Some(Err(cause)) => {
            decision.again_in(PATIENCE);
            return report(look, decision, ConditionState::new(False, FORWARD_FAILED, cause.text()));
        }
        None => return,
    };
    let cidrs = sources(&look.seen);
    let open = cidrs == [EVERYBODY];
    let call = match ssh.rules.of(vm.id.as_str()).find_map(|rule| rule.publicport) {
        None => {
            let Some(port) = port(ssh) else {
                let message = format!("no port from {FIRST_PORT} up is free on {host}: delete rules there");
                return report(look, decision, ConditionState::new(False, FORWARD_FAILED, message));
            };
            let (address, id) = (address.to_owned(), vm.id.to_string());
            MachineCall::Forward { address, id, port: Some(port), open }
        }
        Some(port) if !open && ssh.rules.openings_of(port).next().is_none() => {
            MachineCall::OpenFirewall { address: address.to_owned(), port, cidrs }
        }
        Some(port) => {
            return report(look, decision, ConditionState::new(True, "Forwarded", format!("{host}:{port}")));
        }
    };
    let verdict = match failure_of(look, &call) {
        Some(failure) => ConditionState::new(False, FORWARD_FAILED, failure.error.to_string()),
        None => ConditionState::new(False, "Forwarding", ""),
    };
    report(look, decision, verdict);
    decision.call(call);
}

/// The port of a machine: the first that is free, after those of the machines before it that have none yet. So machines
/// that come up together rarely want the same one; CloudStack refuses it to all but one of those that do.
fn port(ssh: &SshRules) -> Option<u16> {
    let ahead = ssh.before.iter().filter(|machine| ssh.rules.of(machine).next().is_none()).count();
    (FIRST_PORT..=u16::MAX).filter(|port| !ssh.rules.takes(*port)).nth(ahead)
}

/// What is left to do before a machine is not forwarded any more.
pub(super) enum Ending<'a> {
    /// Nothing, or nothing that can be done.
    Nothing,
    /// These calls.
    Calls(Vec<MachineCall>),
    /// The cloud cannot be asked now.
    Wait(&'a CloudError),
}

/// How the forwarding of a machine ends.
pub(super) fn ending<'a>(look: &'a Look<CloudStackMachines>, vm: &VirtualMachine) -> Ending<'a> {
    let Some((address, _)) = address(&look.seen).filter(|_| may_be_forwarded(&look.object, &look.seen))
    else {
        return Ending::Nothing;
    };
    let rules = match &look.seen.ssh {
        Some(Ok(ssh)) => &ssh.rules,
        Some(Err(cause)) if cause.code == code::UNREACHABLE => return Ending::Wait(cause),
        // Rules that nobody may list are the operator's.
        _ => return Ending::Nothing,
    };
    let mut calls = Vec::new();
    for rule in rules.of(vm.id.as_str()) {
        // The firewall first: without the rule nobody knows its port any more.
        for opening in rules.openings_of(rule.publicport.unwrap_or_default()) {
            let (address, rule) = (address.to_owned(), opening.id.to_string());
            calls.push(MachineCall::CloseFirewall { address, rule });
        }
        let (address, id) = (address.to_owned(), vm.id.to_string());
        calls.push(MachineCall::Unforward { address, id, rule: Some(rule.id.to_string()) });
    }
    let given_up = calls.iter().filter_map(|call| failure_of(look, call)).any(|it| it.attempts >= TRIES);
    if calls.is_empty() || given_up { Ending::Nothing } else { Ending::Calls(calls) }
}
