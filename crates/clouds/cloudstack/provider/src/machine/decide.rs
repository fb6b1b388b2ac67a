//! What is done about a CloudStackMachine.

use std::time::Duration;

use capstan_capi_core::conditions::{Verdict, state};
use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, Machine, condition, label, reason};
use capstan_cloudstack_client::model::{MachineState, VirtualMachine};
use capstan_cloudstack_types::names::finalizer::MACHINE as FINALIZER;
use capstan_cloudstack_types::names::{self, FAILURE_DOMAIN_LABEL};
use capstan_cloudstack_types::v1beta3::{Address, CloudStackFailureDomain};
use capstan_controller::{Effect, Look, Note, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Condition, ConditionStatus, Conditions, Time};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{ATTACHED, CloudStackMachines, Instance, MachineCall, delete, placement, ssh};
use crate::annotation;
use crate::code;
use crate::sight::SETTLED;

pub(super) type Decision = capstan_controller::Decision<CloudStackMachines>;

/// How soon something under way is looked at again.
pub(super) const SOON: Duration = Duration::from_secs(3);

/// The pause after the first deployment that failed; later ones double.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// The longest pause.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(600);

/// A deployment that failed, as the object remembers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FailedDeployment {
    /// How many failed so far.
    pub attempts: u32,
    /// When the last one did.
    pub at: Time,
    /// What CloudStack said.
    pub message: String,
}

impl FailedDeployment {
    pub(super) fn of(look: &Look<CloudStackMachines>) -> Option<Self> {
        let text = look.object.metadata.annotations.get(annotation::DEPLOY_FAILED)?;
        serde_json::from_str(text).ok()
    }

    /// When it is tried again.
    fn next(&self) -> Timestamp {
        let doubled = FIRST_PAUSE.checked_mul(1 << self.attempts.saturating_sub(1).min(8));
        let pause = doubled.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
        self.at.timestamp().checked_add(pause).unwrap_or(self.at.timestamp())
    }
}

/// The call that orders the machine of an object.
pub(super) fn deploy_call(look: &Look<CloudStackMachines>) -> MachineCall {
    let attempt = FailedDeployment::of(look).map_or(0, |failed| failed.attempts);
    MachineCall::Deploy { name: look.object.metadata.name.clone(), attempt }
}

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<CloudStackMachines>) -> Decision {
    let mut decision = Decision::rest(look);
    if look.paused.is_none() {
        if look.object.metadata.is_deleting() {
            delete::delete(look, &mut decision);
        } else if let (Some(machine), Some(cluster)) = (&look.seen.machine, &look.seen.cluster) {
            keep(look, machine, cluster, &mut decision);
        } else {
            decision.wait(Wait::on("WaitingForOwner", "the Machine that this is the infrastructure of"));
            return decision;
        }
    }
    let verdict = paused::verdict(look.paused.as_deref());
    state(look, &mut decision.object.status.conditions, condition::PAUSED, verdict, None);
    decision
}

pub(super) fn ready(
    look: &Look<CloudStackMachines>,
    decision: &mut Decision,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    decision.object.status.ready = status == True;
    let verdict = Verdict::new(status, reason, message);
    state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

pub(super) fn waiting(look: &Look<CloudStackMachines>, decision: &mut Decision, reason: &str, what: &str) {
    decision.wait(Wait::on(reason, what));
    ready(look, decision, False, reason, format!("Waiting for {what}"));
}

fn keep(look: &Look<CloudStackMachines>, machine: &Machine, cluster: &Cluster, decision: &mut Decision) {
    decision.add_finalizer(FINALIZER);
    let provisioned = look.object.status.initialization.provisioned == Some(true);
    if let Some(result) = look.result_of(&deploy_call(look))
        && look.object.spec.instance_id.is_none()
    {
        return ordered(look, result, decision);
    }
    match &look.seen.instance {
        Instance::None => order(look, machine, cluster, decision),
        Instance::Deploying(next) => {
            decision.again_in(*next);
            waiting(look, decision, "Deploying", "CloudStack to start the virtual machine");
        }
        Instance::Unknown(trouble) => {
            trouble.wait(decision);
            let status = ConditionStatus::Unknown;
            let verdict = Verdict::new(status, trouble.reason, trouble.text());
            state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
        }
        Instance::Failed(why) => remove_failed(look, why, decision),
        Instance::There { machine: vm, .. } if !provisioned && vm.state == Some(MachineState::Error) => {
            remove_failed(look, "it ended in state Error", decision);
        }
        Instance::There { machine: vm, age } => tell(look, vm, *age, decision),
        Instance::Gone if provisioned => {
            told_state(look, decision, "Gone");
            let message =
                "the virtual machine was there and is gone; it is not made again: delete the Machine";
            ready(look, decision, False, "Gone", message);
        }
        Instance::Gone => retry_later(look, decision),
    }
}

/// The order was taken: what it is known by goes on the object before anything else.
fn ordered(look: &Look<CloudStackMachines>, result: &serde_json::Value, decision: &mut Decision) {
    decision.object.spec.instance_id = result["id"].as_str().map(str::to_owned);
    if let Some(job) = result["job"].as_str() {
        decision.object.metadata.annotations.insert(annotation::DEPLOY_JOB.to_owned(), job.to_owned());
    }
    decision.again_in(SOON);
    waiting(look, decision, "Deploying", "CloudStack to start the virtual machine");
}

/// Nothing was ordered: what must be there before.
fn order(look: &Look<CloudStackMachines>, machine: &Machine, cluster: &Cluster, decision: &mut Decision) {
    let done = &cluster.status.initialization;
    if done.infrastructure_provisioned != Some(true) {
        let why = reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY;
        return waiting(look, decision, why, "the infrastructure of the cluster");
    }
    let Some(infrastructure) = &look.seen.infrastructure else {
        return waiting(look, decision, "WaitingForCloudStackCluster", "the CloudStackCluster");
    };
    let place = placement::failure_domain(&look.object, machine, infrastructure, &look.seen.placed);
    let Some(place) = place.map(str::to_owned) else {
        return waiting(look, decision, "NoFailureDomain", "a failure domain in the CloudStackCluster");
    };
    if !infrastructure.spec.failure_domains.iter().any(|domain| domain.name == place) {
        let what = format!("failure domain {place}, which the CloudStackCluster does not have");
        return waiting(look, decision, "NoFailureDomain", &what);
    }
    let object = &mut decision.object;
    object.spec.failure_domain_name.clone_from(&place);
    let label = names::failure_domain_object(&place, &cluster.metadata.name);
    object.metadata.labels.insert(FAILURE_DOMAIN_LABEL.to_owned(), label);
    object
        .metadata
        .labels
        .entry(label::CLUSTER_NAME.to_owned())
        .or_insert_with(|| cluster.metadata.name.clone());
    let Some(domain) = look.seen.domain.as_ref().filter(|domain| domain.status.ready) else {
        return waiting(look, decision, "WaitingForFailureDomain", &format!("failure domain {place}"));
    };
    let named = machine.spec.bootstrap.data_secret_name.as_ref().is_some_and(|name| !name.is_empty());
    if !named {
        let worker = !machine.metadata.labels.contains_key(label::CONTROL_PLANE);
        if worker && done.control_plane_initialized != Some(true) {
            let why = reason::WAITING_FOR_CONTROL_PLANE_INITIALIZED;
            return waiting(look, decision, why, "the first machine of the control plane");
        }
        return waiting(look, decision, reason::WAITING_FOR_BOOTSTRAP_DATA, "the boot data of the machine");
    }
    if let Some(wanted) = placement::group(&look.object, machine, cluster, domain) {
        match &look.seen.group {
            None => {
                decision.then(Effect::create(&wanted));
                return waiting(look, decision, "WaitingForAffinityGroup", "the affinity group");
            }
            // Its id may be written a moment later than that it is ready.
            Some(group) if !group.status.ready || group.spec.id.is_empty() => {
                return waiting(look, decision, "WaitingForAffinityGroup", "the affinity group");
            }
            Some(group) => decision.object.spec.cloudstack_affinity_ref = Some(placement::reference(group)),
        }
    }
    let call = deploy_call(look);
    if let Some(failed) = FailedDeployment::of(look) {
        let next = failed.next();
        let message = format!("{}: {}; next try at {next:.0}", code::DEPLOY, failed.message);
        ready(look, decision, False, "DeployFailed", message);
        if look.now < next {
            decision.again_at(look.now, next);
            let mut wait = Wait::on("DeployFailed", failed.message).code(code::DEPLOY);
            wait.next = Some(next);
            decision.wait(wait);
            return;
        }
    } else {
        ready(look, decision, False, "Ordering", "");
    }
    if let Some(failure) = look.failure_of(&call) {
        ready(look, decision, False, "OrderFailed", failure.error.to_string());
    }
    let note = Note::normal(
        "Ordered",
        "Create",
        format!("virtual machine {} is ordered", look.object.metadata.name),
    );
    decision.then_noting(Effect::Call(call), note);
}

/// The machine never came up: it goes, and another is ordered later.
fn remove_failed(look: &Look<CloudStackMachines>, why: &str, decision: &mut Decision) {
    let Some(id) = look.object.spec.instance_id.clone() else { return };
    let before = FailedDeployment::of(look);
    let annotations = &mut decision.object.metadata.annotations;
    // The job goes from the object when its failure is written down: it is counted once.
    let counted = annotations.remove(annotation::DEPLOY_JOB).is_none() && before.is_some();
    let attempts = before.as_ref().map_or(0, |before| before.attempts);
    let failed = match before.filter(|_| counted) {
        Some(before) => before,
        None => FailedDeployment { attempts: attempts + 1, at: look.now.into(), message: why.to_owned() },
    };
    if let Ok(text) = serde_json::to_string(&failed) {
        annotations.insert(annotation::DEPLOY_FAILED.to_owned(), text);
    }
    let call = MachineCall::Destroy { id };
    let message = match look.failure_of(&call) {
        Some(failure) => failure.error.to_string(),
        None => format!("{}: {}", code::DEPLOY, failed.message),
    };
    ready(look, decision, False, "DeployFailed", message.clone());
    decision.then_noting(Effect::Call(call), Note::warning("DeployFailed", "Create", message));
}

/// The machine that never came up is gone.
fn retry_later(look: &Look<CloudStackMachines>, decision: &mut Decision) {
    let failed = FailedDeployment::of(look).unwrap_or_else(|| FailedDeployment {
        attempts: 1,
        at: look.now.into(),
        message: "the virtual machine vanished before it ran".to_owned(),
    });
    let object = &mut decision.object;
    object.spec.instance_id = None;
    object.metadata.annotations.remove(annotation::DEPLOY_JOB);
    if let Ok(text) = serde_json::to_string(&failed) {
        object.metadata.annotations.insert(annotation::DEPLOY_FAILED.to_owned(), text);
    }
    decision.again_in(SOON);
    ready(look, decision, False, "DeployFailed", format!("{}: {}", code::DEPLOY, failed.message));
}

pub(super) fn told_state(look: &Look<CloudStackMachines>, decision: &mut Decision, now: &str) {
    let status = &mut decision.object.status;
    if status.instance_state != now {
        status.instance_state = now.to_owned();
        status.instance_state_last_updated = Some(look.now.into());
    }
}

/// The machine is there: what it is like.
fn tell(look: &Look<CloudStackMachines>, vm: &VirtualMachine, age: Duration, decision: &mut Decision) {
    let known = vm.state.as_ref().map_or("Unknown", MachineState::as_str);
    told_state(look, decision, known);
    let provisioned = look.object.status.initialization.provisioned == Some(true);
    if vm.state == Some(MachineState::Running) {
        let object = &mut decision.object;
        object.metadata.annotations.remove(annotation::DEPLOY_JOB);
        object.metadata.annotations.remove(annotation::DEPLOY_FAILED);
        object.spec.provider_id = Some(names::provider_id(vm.id.as_str()));
        let addresses = vm.nic.iter().filter_map(|nic| nic.ipaddress);
        let internal = |address: std::net::IpAddr| Address {
            kind: "InternalIP".to_owned(),
            address: address.to_string(),
        };
        object.status.addresses = addresses.map(internal).collect();
        object.status.failure_domain.clone_from(&object.spec.failure_domain_name);
        object.status.initialization.provisioned = Some(true);
        decision.again_in(SETTLED.saturating_sub(age));
        ready(look, decision, True, "Running", "");
        attach(look, vm, decision);
        ssh::keep(look, vm, decision);
    } else if provisioned {
        decision.again_in(SETTLED.saturating_sub(age));
        let mend = "start it in CloudStack, or delete the Machine to have it replaced";
        ready(look, decision, False, known, format!("the virtual machine is {known} in CloudStack; {mend}"));
    } else {
        decision.again_in(SOON);
        waiting(look, decision, "Deploying", &format!("the virtual machine, which is {known}, to run"));
    }
}

/// The rule of the load balancer that a machine of the control plane belongs to.
pub(super) fn rule(look: &Look<CloudStackMachines>) -> Option<&str> {
    let own = look.object.metadata.labels.contains_key(label::CONTROL_PLANE);
    let machine = look.seen.machine.as_ref();
    let control_plane =
        own || machine.is_some_and(|it| it.metadata.labels.contains_key(label::CONTROL_PLANE));
    let network = look.seen.network.as_ref().filter(|_| control_plane)?;
    Some(network.status.load_balancer_rule_id.as_str()).filter(|rule| !rule.is_empty())
}

/// Has API servers reached through the load balancer.
fn attach(look: &Look<CloudStackMachines>, vm: &VirtualMachine, decision: &mut Decision) {
    let Some(rule) = rule(look) else { return };
    let is_attached = |condition: &Condition| condition.is_true() && condition.message == rule;
    if look.object.status.conditions.condition(ATTACHED).is_some_and(is_attached) {
        return;
    }
    let call = MachineCall::Attach { rule: rule.to_owned(), id: vm.id.to_string() };
    let verdict = match (look.result_of(&call), look.failure_of(&call)) {
        (Some(_), _) => Verdict::new(True, "Attached", rule),
        (None, Some(failure)) => Verdict::new(False, "AttachFailed", failure.error.to_string()),
        (None, None) => Verdict::new(False, "Attaching", ""),
    };
    let attached = verdict.status == True;
    state(look, &mut decision.object.status.conditions, ATTACHED, verdict, None);
    if !attached {
        decision.call(call);
    }
}

/// The failure domain's name, for messages.
pub(super) fn domain_name(domain: Option<&CloudStackFailureDomain>) -> &str {
    domain.map_or("(unknown)", |domain| domain.spec.name.as_str())
}
