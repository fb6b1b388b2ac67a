//! A way in for people: a port of the network's public address that leads to port 22 of a machine.

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_cloudstack_client::model::{FirewallRule, MachineState, PortForwardingRule, VirtualMachine};
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::{Decision, Effect, Look};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Condition, Conditions};

use super::failures::failure_of;
use super::forwarding::{AddressRules, Question, admits, admitted};
use super::ssh_record::SshRecord;
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

/// The machine's network, if it is a tier of a VPC. Tiers have access lists in place of firewalls, and their forwarding
/// rules say who may connect.
fn tier(seen: &Seen) -> Option<&str> {
    let network = seen.network.as_ref()?;
    let vpc = network.spec.vpc.as_ref()?;
    let is_tier = !vpc.id.is_empty() || !vpc.name.is_empty();
    is_tier.then_some(network.spec.id.as_str())
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
/// written, and a move drops conditions.
fn may_be_forwarded(object: &CloudStackMachine, seen: &Seen) -> bool {
    is_forwarded(object)
        || SshRecord::of(&object.metadata) != SshRecord::default()
        || object.metadata.is_deleting() && is_wanted(seen)
}

/// The port is forwarded for those who may connect now.
fn is_settled(object: &CloudStackMachine, seen: &Seen) -> bool {
    is_forwarded(object) && SshRecord::of(&object.metadata).sources == sources(seen)
}

/// What has to be known of the rules, if a decision depends on them.
pub(super) fn question(object: &CloudStackMachine, seen: &Seen, vm: &VirtualMachine) -> Option<Question> {
    let (address, _) = address(seen)?;
    let going = matches!(vm.state, Some(MachineState::Destroyed | MachineState::Expunging));
    let deleting = object.metadata.is_deleting();
    let ends = may_be_forwarded(object, seen) && (deleting || !is_wanted(seen)) && !going;
    let runs = vm.state == Some(MachineState::Running) && !deleting;
    let begins = runs && is_wanted(seen) && !is_settled(object, seen);
    let reported = object.status.conditions.condition(FORWARDED);
    let failed = reported.is_some_and(|reported| reported.reason == FORWARD_FAILED);
    let record = SshRecord::of(&object.metadata);
    let narrowed = sources(seen) != [EVERYBODY] || record.port.is_some() && !record.open;
    (ends || begins).then(|| Question {
        address: address.to_owned(),
        // A load balancer on the port is rare enough to be looked for only after a refusal.
        balanced: begins && failed,
        openings: begins && narrowed && tier(seen).is_none(),
    })
}

fn report(
    look: &Look<CloudStackMachines>,
    decision: &mut Decision<CloudStackMachines>,
    verdict: ConditionState,
) {
    set_state(look, &mut decision.object.status.conditions, FORWARDED, verdict, None);
}

/// Has a machine that runs reached by SSH, or no longer, as its cluster's annotation says.
pub(super) fn keep(
    look: &Look<CloudStackMachines>,
    vm: &VirtualMachine,
    decision: &mut Decision<CloudStackMachines>,
) {
    let record = SshRecord::known(look);
    record.put(&mut decision.object.metadata);
    if is_wanted(&look.seen) {
        if !is_settled(&look.object, &look.seen) {
            begin(look, vm, record, decision);
        }
    } else if may_be_forwarded(&look.object, &look.seen) {
        match ending(look, vm) {
            Ending::Calls(calls) => {
                for call in calls {
                    decision.best_effort(Effect::Call(call));
                }
            }
            Ending::Wait(_) => {
                decision.again_in(PATIENCE);
            }
            Ending::Nothing => {
                SshRecord::default().put(&mut decision.object.metadata);
                report(look, decision, ConditionState::new(False, "NotWanted", ""));
            }
        }
    }
}

fn begin(
    look: &Look<CloudStackMachines>,
    vm: &VirtualMachine,
    mut record: SshRecord,
    decision: &mut Decision<CloudStackMachines>,
) {
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
    let (sources, tier) = (sources(&look.seen), tier(&look.seen));
    let everybody = sources == [EVERYBODY];
    let next = match ssh.rules.of(vm.id.as_str()).find_map(|rule| Some((rule, rule.publicport?))) {
        None => {
            let kept = record.port.filter(|port| !ssh.rules.takes(*port));
            let Some(port) = kept.or_else(|| port(ssh)) else {
                let message = format!("no port from {FIRST_PORT} up is free on {host}: delete rules there");
                return report(look, decision, ConditionState::new(False, FORWARD_FAILED, message));
            };
            record.port = Some(port);
            record.open = everybody && tier.is_none();
            let cidrs = if tier.is_some() && !everybody { sources.clone() } else { Vec::new() };
            vec![MachineCall::Forward {
                address: address.to_owned(),
                id: vm.id.to_string(),
                port: Some(port),
                open: record.open,
                tier: tier.map(str::to_owned),
                cidrs,
            }]
        }
        Some((rule, port)) if tier.is_some() => {
            (record.port, record.open) = (Some(port), false);
            match admits(rule, &sources) {
                true => Vec::new(),
                false => unforward(rule, address).into_iter().collect(),
            }
        }
        Some((rule, port)) => {
            // Of a rule that nobody recorded it is not known what came with it.
            record.open |= record.port.is_none();
            record.port = Some(port);
            narrowed(&record, rule, &sources, address)
                .unwrap_or_else(|| opened(ssh, &mut record, port, &sources, address))
        }
    };
    if next.is_empty() {
        record.sources.clone_from(&sources);
        let message = format!("{host}:{}", record.port.unwrap_or_default());
        let beside = ssh.rules.admits_others(&record, &sources);
        let message = [Some(message), beside].into_iter().flatten().collect::<Vec<_>>().join("; ");
        report(look, decision, ConditionState::new(True, "Forwarded", message));
    } else {
        let verdict = match next.iter().find_map(|call| failure_of(look, call)) {
            Some(failure) => ConditionState::new(False, FORWARD_FAILED, failure.error.to_string()),
            None => ConditionState::new(False, "Forwarding", ""),
        };
        report(look, decision, verdict);
    }
    // Before a call is sent: what may come with it is on record, whatever becomes of the reply.
    record.put(&mut decision.object.metadata);
    for call in next {
        decision.best_effort(Effect::Call(call));
    }
}

/// Not everybody may connect any more, and the forwarding rule may have come with a firewall rule for everybody: it is
/// deleted, which closes what came with it and nothing else, and made again without.
fn narrowed(
    record: &SshRecord,
    rule: &PortForwardingRule,
    sources: &[String],
    address: &str,
) -> Option<Vec<MachineCall>> {
    if !record.open || sources == [EVERYBODY] {
        return None;
    }
    Some(vec![unforward(rule, address)?])
}

fn unforward(rule: &PortForwardingRule, address: &str) -> Option<MachineCall> {
    let (rule, id) = (rule.id.to_string(), rule.virtualmachineid.as_ref()?.to_string());
    Some(MachineCall::Unforward { address: address.to_owned(), id, rule: Some(rule) })
}

/// Opens what is missing and closes what was opened here and is not wanted any more. Where everybody may connect and
/// somebody else decided who does, nothing is opened.
fn opened(
    ssh: &SshRules,
    record: &mut SshRecord,
    port: u16,
    sources: &[String],
    address: &str,
) -> Vec<MachineCall> {
    let there: Vec<&FirewallRule> = ssh.rules.openings_of(port).collect();
    if ssh.rules.openings.is_some() {
        record.openings.retain(|id| there.iter().any(|rule| rule.id.as_str() == id));
    }
    let is_ours = |rule: &FirewallRule| record.openings.contains(rule.id.as_str());
    let asked = |who: &str| sources.iter().any(|source| source == who);
    let surplus = there.iter().filter(|rule| is_ours(rule) && !admitted(rule).all(asked));
    let close = |rule: &&FirewallRule| MachineCall::CloseFirewall {
        address: address.to_owned(),
        rule: rule.id.to_string(),
    };
    let surplus: Vec<MachineCall> = surplus.map(close).collect();
    // First, as CloudStack takes no source twice.
    if !surplus.is_empty() {
        return surplus;
    }
    let everybody = sources == [EVERYBODY];
    if everybody && (record.open || there.iter().any(|rule| !is_ours(rule))) {
        return Vec::new();
    }
    let is_open = |source: &String| there.iter().any(|rule| admitted(rule).any(|who| who == source));
    let cidrs: Vec<String> = sources.iter().filter(|source| !is_open(source)).cloned().collect();
    match cidrs.is_empty() {
        true => Vec::new(),
        false => vec![MachineCall::OpenFirewall { address: address.to_owned(), port, cidrs }],
    }
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
    let mut calls = closing(look, address);
    for rule in rules.of(vm.id.as_str()) {
        let (address, id) = (address.to_owned(), vm.id.to_string());
        calls.push(MachineCall::Unforward { address, id, rule: Some(rule.id.to_string()) });
    }
    let given_up = calls.iter().filter_map(|call| failure_of(look, call)).any(|it| it.attempts >= TRIES);
    if calls.is_empty() || given_up { Ending::Nothing } else { Ending::Calls(calls) }
}

/// Closes what was opened for a machine, by the record alone.
fn closing(look: &Look<CloudStackMachines>, address: &str) -> Vec<MachineCall> {
    let close = |rule: String| MachineCall::CloseFirewall { address: address.to_owned(), rule };
    SshRecord::known(look).openings.into_iter().map(close).collect()
}

/// What is left to close for a machine that is gone: its forwarding rule went with it, firewall rules did not.
pub(super) fn left(look: &Look<CloudStackMachines>) -> Vec<MachineCall> {
    let Some((address, _)) = address(&look.seen) else { return Vec::new() };
    let mut calls = closing(look, address);
    calls.retain(|call| failure_of(look, call).is_none_or(|failure| failure.attempts < TRIES));
    calls
}
