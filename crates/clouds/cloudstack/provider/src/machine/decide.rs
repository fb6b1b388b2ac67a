//! What is done about a CloudStackMachine.

use std::time::Duration;

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, Machine, condition, label};
use capstan_cloudstack_client::VirtualMachineId;
use capstan_cloudstack_client::model::{MachineState, VirtualMachine};
use capstan_cloudstack_types::names::finalizer::MACHINE as FINALIZER;
use capstan_cloudstack_types::names::{self, FAILURE_DOMAIN_LABEL};
use capstan_cloudstack_types::v1beta3::{Address, CloudStackMachine};
use capstan_controller::{Code, Effect, Look, Note, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Condition, ConditionStatus, Conditions, ObjectMeta, Time};
use capstan_provider_kit::retry::{FailedTry as Refusal, ORDERS as PAUSES};
use capstan_provider_kit::{decisions, problem};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::failures::{failed_deployment, failure_of, refused_order};
use super::reason::{ATTACH_FAILED, ORDER_FAILED};
use super::refused::{self, Step};
use super::{
    ATTACHED, CLOUD_REACHABLE, CloudStackMachines, Instance, MachineCall, Namesake, Order, balancer_rule,
    delete, naming, placement, prerequisites, ssh, teardown,
};
use crate::account_cache::SETTLED;
use crate::annotation;
use crate::code;
use crate::error::CloudError;

pub(super) type Decision = capstan_controller::Decision<CloudStackMachines>;

/// How soon something under way is looked at again.
pub(super) const SOON: Duration = Duration::from_secs(3);

/// A virtual machine that was ordered and that nobody saw run has to be missing for so long before another is ordered: one
/// look that does not show it proves little, and it may have run before its object was moved.
const MISSING_FOR: SignedDuration = SignedDuration::from_mins(5);

/// The code of a failed deployment, and the message with it. A job that finds no host ends with 533, or with 530 and one of
/// these texts.
pub(super) fn deployment_error(object: &CloudStackMachine, message: &str) -> (Code, String) {
    const NO_CAPACITY: [&str; 4] = [
        "insufficient capacity",
        "insufficientservercapacity",
        "unable to create a deployment",
        "no destination found for a deployment",
    ];
    let message = with_ids_only(message);
    let text = message.to_lowercase();
    if !NO_CAPACITY.iter().any(|part| text.contains(part)) {
        return (code::DEPLOY, format!("{}: {message}", code::DEPLOY));
    }
    let apart = match object.spec.affinity.as_str() {
        "anti" => "; with affinity anti each machine needs a host of its own",
        _ => "",
    };
    let mend = format!(
        "delete or stop virtual machines in failure domain {}, have the operator add hosts, or use a \
         CloudStackMachineTemplate with a smaller offering{apart}",
        object.spec.failure_domain_name
    );
    (code::CAPACITY, format!("{}: {message}; {mend}", code::CAPACITY))
}

/// CloudStack writes what its errors are about as JSON objects, such as `VM instance {"uuid":"…"}`: their ids say enough.
fn with_ids_only(message: &str) -> String {
    let id = |object: &str| -> Option<String> {
        let object: Value = serde_json::from_str(object).ok()?;
        Some(object["uuid"].as_str()?.to_owned())
    };
    let mut text = String::new();
    let mut rest = message;
    while let Some(begin) = rest.find('{') {
        text.push_str(&rest[..begin]);
        let end = rest[begin..].find('}').map_or(rest.len(), |length| begin + length + 1);
        text.push_str(&id(&rest[begin..end]).unwrap_or_else(|| rest[begin..end].to_owned()));
        rest = &rest[end..];
    }
    text + rest
}

/// What CloudStack said when it took the order that is under way. The order itself may look different by now: what it
/// was chosen from has changed, or another release wrote it.
pub(super) fn taken(look: &Look<CloudStackMachines>) -> Option<&Value> {
    let (meta, now) = (&look.object.metadata, naming::attempt(&look.object.metadata));
    look.concluded.iter().rev().find_map(|known| match &known.call {
        MachineCall::Deploy { name, attempt, .. } if *attempt == now && naming::is_of(meta, name) => {
            known.result.as_ref()
        }
        _ => None,
    })
}

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<CloudStackMachines>) -> Decision {
    let mut decision = Decision::rest(look);
    if look.paused.is_none() {
        if look.object.metadata.is_deleting() {
            delete::delete(look, &mut decision);
        } else if let (Some(machine), Some(cluster)) = (&look.seen.machine, &look.seen.cluster) {
            keep(look, machine, cluster, &mut decision);
            let event = problem(&look.object.status.conditions, &decision.object.status.conditions);
            decision.notes.extend(event);
        } else {
            decision.wait(Wait::on("WaitingForOwner", "the Machine that this is the infrastructure of"));
            return decision;
        }
    }
    let verdict = paused::condition(look.paused.as_deref());
    set_state(look, &mut decision.object.status.conditions, condition::PAUSED, verdict, None);
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
    let verdict = ConditionState::new(status, reason, message);
    set_state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

pub(super) fn waiting(look: &Look<CloudStackMachines>, decision: &mut Decision, reason: &str, what: &str) {
    decision.wait(Wait::on(reason, what));
    ready(look, decision, False, reason, format!("Waiting for {what}"));
}

/// Names the job, which is what an administrator of the cloud looks for when it takes long.
fn deploying(look: &Look<CloudStackMachines>, decision: &mut Decision) {
    let job = decision.object.metadata.annotations.get(annotation::DEPLOY_JOB);
    let job = job.map(|job| format!(" (job {job})")).unwrap_or_default();
    waiting(look, decision, "Deploying", &format!("CloudStack to start the virtual machine{job}"));
}

fn keep(look: &Look<CloudStackMachines>, machine: &Machine, cluster: &Cluster, decision: &mut Decision) {
    decision.add_finalizer(FINALIZER);
    let ran = naming::ran(&look.object, Some(machine));
    if !matches!(look.seen.instance, Instance::Unknown(_) | Instance::None) {
        decision.object.status.conditions.retain(|one| one.kind != CLOUD_REACHABLE);
    }
    if let Some(result) = taken(look).filter(|_| look.object.spec.instance_id.is_none()) {
        return ordered(look, result, decision);
    }
    match &look.seen.instance {
        Instance::None => order(look, machine, cluster, decision),
        Instance::Deploying(next) => {
            decision.again_in(*next);
            deploying(look, decision);
        }
        Instance::Unknown(cause) => unreachable(look, cause, ran, decision),
        Instance::Failed(why) => remove_failed(look, why, decision),
        Instance::There { machine: vm, .. } if !ran && vm.state == Some(MachineState::Error) => {
            remove_failed(look, "it ended in state Error", decision);
        }
        // Those who see it see it for days; it never comes back.
        Instance::There { machine: vm, .. }
            if !ran && matches!(vm.state, Some(MachineState::Destroyed | MachineState::Expunging)) =>
        {
            retry_later(look, decision);
        }
        Instance::There { machine: vm, age } => report(look, vm, (*age, ran), decision),
        Instance::Gone if ran => {
            set_instance_state(look, decision, "Gone");
            let message =
                "the virtual machine was there and is gone; it is not created again: delete the Machine";
            ready(look, decision, False, "Gone", message);
        }
        Instance::Gone if is_removed(&look.object.metadata) => retry_later(look, decision),
        Instance::Gone => missing(look, decision),
    }
}

/// The virtual machine did not come up and was removed here: its job goes from the object when its failure is counted.
fn is_removed(meta: &ObjectMeta) -> bool {
    failed_deployment(meta).is_some() && !meta.annotations.contains_key(annotation::DEPLOY_JOB)
}

/// The virtual machine is not there, and nobody knows why. It is looked for once more before another is ordered.
fn missing(look: &Look<CloudStackMachines>, decision: &mut Decision) {
    let known = look.object.metadata.annotations.get(annotation::MISSING);
    let since = known.and_then(|text| text.parse().ok()).unwrap_or(look.now);
    let due = since.checked_add(MISSING_FOR).unwrap_or(since);
    if look.now >= due {
        return retry_later(look, decision);
    }
    let annotations = &mut decision.object.metadata.annotations;
    annotations.insert(annotation::MISSING.to_owned(), Time::new(since).to_string());
    decision.again_at(look.now, due);
    let message = format!(
        "virtual machine {} is not in the account: another one is created if it is still missing at {due:.0}",
        look.object.spec.instance_id.as_deref().unwrap_or_default()
    );
    decision.wait(Wait::on("Missing", message.as_str()));
    ready(look, decision, False, "Missing", message);
}

/// The cloud does not answer. That is no news of the machine: one that ran stays as it was last seen.
fn unreachable(look: &Look<CloudStackMachines>, cause: &CloudError, ran: bool, decision: &mut Decision) {
    cause.wait(decision);
    let conditions = &mut decision.object.status.conditions;
    if !ran {
        let verdict = ConditionState::new(ConditionStatus::Unknown, cause.reason, cause.text());
        return set_state(look, conditions, condition::READY, verdict, None);
    }
    decisions::cloud_is_silent(look, conditions, cause.reason, &cause.text());
}

/// The order was taken: what it is known by goes on the object before anything else.
fn ordered(look: &Look<CloudStackMachines>, result: &serde_json::Value, decision: &mut Decision) {
    decision.object.spec.instance_id = result["id"].as_str().map(str::to_owned);
    decision.object.metadata.annotations.remove(annotation::ORDER_REFUSED);
    if let Some(job) = result["job"].as_str() {
        decision.object.metadata.annotations.insert(annotation::DEPLOY_JOB.to_owned(), job.to_owned());
    }
    decision.again_in(SOON);
    deploying(look, decision);
}

/// Nothing was ordered: what must be there before, then the order.
fn order(look: &Look<CloudStackMachines>, machine: &Machine, cluster: &Cluster, decision: &mut Decision) {
    let (object, seen) = (&*look.object, &look.seen);
    let place = match prerequisites::place(object, seen, machine, cluster) {
        Ok(place) => place,
        Err(missing) => return waiting(look, decision, missing.reason, &missing.what),
    };
    let spec = &mut decision.object.spec;
    place.clone_into(&mut spec.failure_domain_name);
    let labels = &mut decision.object.metadata.labels;
    let domain = names::failure_domain_object(place, &cluster.metadata.name);
    labels.insert(FAILURE_DOMAIN_LABEL.to_owned(), domain);
    labels.entry(label::CLUSTER_NAME.to_owned()).or_insert_with(|| cluster.metadata.name.clone());
    if let Some(missing) = prerequisites::missing(object, seen, machine, cluster, place) {
        if let Some(group) = &missing.group {
            decision.then(Effect::create(&**group));
        }
        return waiting(look, decision, missing.reason, &missing.what);
    }
    if let Some(group) = &seen.group {
        decision.object.spec.cloudstack_affinity_ref = Some(placement::reference(group));
    }
    let refused_before = refused_order(&look.object.metadata);
    if let Some(refused) = refused_before.as_ref().filter(|refused| look.now < refused.next(PAUSES)) {
        return pause(look, refused, ORDER_FAILED, &refused.message, None, decision);
    }
    if let Some(refused) = refused_before {
        // Why stays visible, and what it was is looked at before the next order.
        ready(look, decision, False, ORDER_FAILED, refused.message);
    } else if let Some(failed) = failed_deployment(&look.object.metadata) {
        let (code, why) = deployment_error(object, &failed.message);
        if look.now < failed.next(PAUSES) {
            return pause(look, &failed, "DeployFailed", &why, Some(code), decision);
        }
        ready(
            look,
            decision,
            False,
            "DeployFailed",
            format!("{why}; next try at {:.0}", failed.next(PAUSES)),
        );
    } else {
        ready(look, decision, False, "Ordering", "");
    }
    let order = match Order::of(object, seen) {
        Some(Ok(order)) => Box::new(order),
        Some(Err(cause)) => {
            cause.wait(decision);
            return ready(look, decision, False, ORDER_FAILED, cause.text());
        }
        // What it is chosen from is observed at the next look.
        None => {
            decision.again_in(SOON);
            return;
        }
    };
    let mut attempt = naming::attempt(&object.metadata);
    match &seen.namesake {
        Some(Ok(Namesake::Ours { id, job })) => {
            return ordered(look, &json!({"id": id, "job": job}), decision);
        }
        Some(Ok(Namesake::Another { id, .. })) => {
            let cause = not_ours(&naming::current(&object.metadata), id);
            cause.wait(decision);
            return ready(look, decision, False, ORDER_FAILED, cause.text());
        }
        // One that was destroyed has the name, and keeps it for days.
        Some(Ok(Namesake::Nobody)) => attempt = attempt.saturating_add(1),
        Some(Err(cause)) => {
            cause.wait(decision);
            return ready(look, decision, False, cause.reason, cause.text());
        }
        None => {}
    }
    let short = seen.headroom.as_ref().and_then(|left| left.refuses(&order.amounts()));
    let name = naming::name(&object.metadata.name, attempt);
    let note = Note::normal("Ordered", "Create", format!("virtual machine {name} is ordered"));
    let call = MachineCall::Deploy { name, attempt, order: Some(order) };
    if let Some(failure) = failure_of(look, &call) {
        return refused(look, &failure.error.to_string(), decision);
    }
    if let Some(cause) = short {
        cause.wait(decision);
        return ready(look, decision, False, cause.reason, cause.text());
    }
    // Before the order is sent: whatever becomes of it, its machine is looked for, and no other gets its name.
    decision.object.metadata.annotations.insert(annotation::ORDERS.to_owned(), attempt.to_string());
    decision.then_noting(Effect::Call(call), note);
}

/// A virtual machine of the name that an order needs is somebody else's.
pub(super) fn not_ours(name: &str, id: &VirtualMachineId) -> CloudError {
    let message = format!(
        "virtual machine {id} is called {name} and does not boot with the data of this Machine: it is left alone; rename or \
         delete it in CloudStack"
    );
    CloudError::new(code::NOT_OURS, "NotOurs", message)
}

/// CloudStack refused the order: the next one is sent after a pause, each longer than the one before.
fn refused(look: &Look<CloudStackMachines>, why: &str, decision: &mut Decision) {
    let before = refused_order(&look.object.metadata);
    let refused = Refusal::after(before.as_ref(), look.now, why);
    refused.put(&mut decision.object.metadata, annotation::ORDER_REFUSED);
    pause(look, &refused, ORDER_FAILED, why, None, decision);
}

/// Waits until the next try.
fn pause(
    look: &Look<CloudStackMachines>,
    failed: &Refusal,
    reason: &str,
    why: &str,
    code: Option<Code>,
    decision: &mut Decision,
) {
    let next = failed.next(PAUSES);
    decision.again_at(look.now, next);
    let mut wait = Wait::on(reason, failed.message.as_str());
    if let Some(code) = code {
        wait = wait.code(code);
    }
    wait.next = Some(next);
    decision.wait(wait);
    ready(look, decision, False, reason, format!("{why}; next try at {next:.0}"));
}

/// The machine never came up: it goes, and another is ordered later.
fn remove_failed(look: &Look<CloudStackMachines>, why: &str, decision: &mut Decision) {
    let Some(id) = look.object.spec.instance_id.clone() else { return };
    let before = failed_deployment(&look.object.metadata);
    let annotations = &mut decision.object.metadata.annotations;
    // The job goes from the object when its failure is written down: it is counted once.
    let counted = annotations.remove(annotation::DEPLOY_JOB).is_none() && before.is_some();
    let failed = match &before {
        Some(before) if counted => before.clone(),
        _ => Refusal::after(before.as_ref(), look.now, why),
    };
    failed.put(&mut decision.object.metadata, annotation::DEPLOY_FAILED);
    let (_, text) = deployment_error(&look.object, &failed.message);
    let Some(call) = destroy_call(look, id, decision) else {
        return ready(look, decision, False, "DeployFailed", text);
    };
    let message = match refused::step(look, std::slice::from_ref(&call), "DeployFailed", decision) {
        Step::Pause(message) => return ready(look, decision, False, "DeployFailed", message),
        Step::Send(before) => before.unwrap_or(text),
    };
    ready(look, decision, False, "DeployFailed", message.clone());
    decision.then_noting(Effect::Call(call), Note::warning("DeployFailed", "Create", message));
}

/// The call that destroys a machine, unless the cloud cannot say how.
pub(super) fn destroy_call(
    look: &Look<CloudStackMachines>,
    id: String,
    decision: &mut Decision,
) -> Option<MachineCall> {
    match &look.seen.teardown {
        Some(Ok(found)) => {
            let disks = found.disks.clone();
            // What is not attached any more when the machine is destroyed was detached by its user, who keeps it.
            if teardown::recorded(&look.object).is_some() {
                teardown::record(&mut decision.object, &disks);
            }
            Some(MachineCall::Destroy { id, expunge: found.expunge, disks })
        }
        Some(Err(cause)) => {
            cause.wait(decision);
            None
        }
        None => {
            decision.again_in(SOON);
            None
        }
    }
}

/// The machine that never came up is gone.
fn retry_later(look: &Look<CloudStackMachines>, decision: &mut Decision) {
    if let Some(note) = delete::leaving(look) {
        decision.then(note);
        return;
    }
    let failed = failed_deployment(&look.object.metadata)
        .unwrap_or_else(|| Refusal::after(None, look.now, "the virtual machine vanished before it ran"));
    let object = &mut decision.object;
    object.spec.instance_id = None;
    object.metadata.annotations.remove(annotation::DEPLOY_JOB);
    object.metadata.annotations.remove(annotation::MISSING);
    object.metadata.annotations.remove(annotation::DELETE_REFUSED);
    let ordered = u32::from(naming::was_ordered(&look.object.metadata));
    let next = naming::attempt(&look.object.metadata).saturating_add(ordered);
    // Orders of releases that did not number them were all for one name.
    object.metadata.annotations.insert(annotation::ORDERS.to_owned(), next.max(1).to_string());
    failed.put(&mut object.metadata, annotation::DEPLOY_FAILED);
    decision.again_in(SOON);
    let (_, text) = deployment_error(&look.object, &failed.message);
    ready(look, decision, False, "DeployFailed", text);
}

pub(super) fn set_instance_state(look: &Look<CloudStackMachines>, decision: &mut Decision, now: &str) {
    let status = &mut decision.object.status;
    if status.instance_state != now {
        status.instance_state = now.to_owned();
        status.instance_state_last_updated = Some(look.now.into());
    }
}

/// The machine is there: what it is like.
fn report(
    look: &Look<CloudStackMachines>,
    vm: &VirtualMachine,
    (age, ran): (Duration, bool),
    decision: &mut Decision,
) {
    let known = vm.state.as_ref().map_or("Unknown", MachineState::as_str);
    set_instance_state(look, decision, known);
    decision.object.metadata.annotations.remove(annotation::MISSING);
    if vm.state == Some(MachineState::Running) {
        let object = &mut decision.object;
        object.metadata.annotations.remove(annotation::DEPLOY_JOB);
        object.metadata.annotations.remove(annotation::DEPLOY_FAILED);
        object.spec.provider_id = Some(names::provider_id(vm.id.as_str()));
        if let Some(disks) = &look.seen.disks {
            teardown::record(object, disks);
        }
        // The kubelet takes the first: that of the network which leads out. CloudStack promises no order.
        let mut nics: Vec<_> = vm.nic.iter().collect();
        nics.sort_by_key(|nic| (!nic.isdefault, nic.deviceid));
        let addresses = nics.into_iter().filter_map(|nic| nic.ipaddress);
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
    } else if ran {
        decision.again_in(SETTLED.saturating_sub(age));
        let mend = "start it in CloudStack, or delete the Machine to have it replaced";
        ready(look, decision, False, known, format!("the virtual machine is {known} in CloudStack; {mend}"));
    } else {
        decision.again_in(SOON);
        waiting(look, decision, "Deploying", &format!("the virtual machine, which is {known}, to run"));
    }
}

/// Has API servers reached through the load balancer.
fn attach(look: &Look<CloudStackMachines>, vm: &VirtualMachine, decision: &mut Decision) {
    let Some(rule) = balancer_rule::of(&look.object, &look.seen) else { return };
    let is_attached = |condition: &Condition| condition.is_true() && condition.message == rule;
    let attached = look.object.status.conditions.condition(ATTACHED).is_some_and(is_attached);
    if let Some(next) = look.seen.next_poll {
        decision.again_in(next);
    }
    if attached && look.seen.is_member != Some(false) {
        return;
    }
    let call = MachineCall::Attach { rule: rule.to_owned(), id: vm.id.to_string() };
    let is_member = look.result_of(&call).is_some() || look.seen.is_member == Some(true);
    let verdict = match (is_member, failure_of(look, &call)) {
        (true, _) => ConditionState::new(True, "Attached", rule),
        (false, Some(failure)) => ConditionState::new(False, ATTACH_FAILED, failure.error.to_string()),
        (false, None) => ConditionState::new(False, "Attaching", ""),
    };
    let attached = verdict.status == True;
    set_state(look, &mut decision.object.status.conditions, ATTACHED, verdict, None);
    if !attached {
        decision.call(call);
    }
}
