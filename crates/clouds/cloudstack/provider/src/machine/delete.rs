//! The end of a CloudStackMachine.

use std::time::Duration;

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_types::core::reason;
use capstan_cloudstack_client::VolumeId;
use capstan_cloudstack_client::model::{MachineState, VirtualMachine};
use capstan_cloudstack_types::names::finalizer::{CKS_MACHINE, MACHINE as FINALIZER};
use capstan_controller::{Effect, Look, Note, ObjectRef};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Conditions, ObjectMeta};

use super::decide::{Decision, SOON, destroy_call, not_ours, ready, set_instance_state, taken, waiting};
use super::failures::{failure_of, refused_order};
use super::refused::{self, Step};
use super::ssh::Ending;
use super::ssh_record::SshRecord;
use super::{ATTACHED, CloudStackMachines, Instance, MachineCall, Namesake, balancer_rule, naming, ssh};
use crate::balancers::{self, Balancer};
use crate::code;
use crate::error::CloudError;
use crate::leaving;

/// The longest pause between looks at a machine that is being expunged.
const LONGEST: Duration = Duration::from_secs(3600);

pub(super) fn delete(look: &Look<CloudStackMachines>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    if look.object.spec.instance_id.is_none() {
        // An order whose end nobody had heard of turned out to have been taken.
        let ordered = taken(look).and_then(|result| result["id"].as_str());
        return match ordered {
            Some(id) => found(look, id, decision),
            None => unrecorded(look, decision),
        };
    }
    match &look.seen.instance {
        Instance::None => {
            let what = "the failure domain of the machine, which has the keys to delete it with";
            waiting(look, decision, reason::DELETING, what);
        }
        Instance::Unknown(cause) => {
            cause.wait(decision);
            ready(look, decision, False, cause.reason, cause.text());
        }
        Instance::Gone => gone(look, decision),
        Instance::There { machine, .. } => remove(look, machine, decision),
        Instance::Deploying(_) | Instance::Failed(_) => {
            decision.again_in(SOON);
        }
    }
}

/// The virtual machine of an order turned up.
fn found(look: &Look<CloudStackMachines>, id: &str, decision: &mut Decision) {
    decision.object.spec.instance_id = Some(id.to_owned());
    decision.again_in(SOON);
    ready(look, decision, False, reason::DELETING, "");
}

/// No virtual machine is on record. One may be there all the same: CloudStack can leave one behind where it refuses an
/// order, and objects of CAPC and old backups lack the record. Until that is known the finalizer stays.
fn unrecorded(look: &Look<CloudStackMachines>, decision: &mut Decision) {
    match &look.seen.namesake {
        Some(Ok(Namesake::Ours { id, .. })) => found(look, id.as_str(), decision),
        Some(Ok(Namesake::Another { id, certain })) if !(*certain && had_none(&look.object.metadata)) => {
            let cause = not_ours(&naming::current(&look.object.metadata), id);
            cause.wait(decision);
            ready(look, decision, False, cause.reason, cause.text());
        }
        Some(Err(cause)) => {
            cause.wait(decision);
            ready(look, decision, False, cause.reason, cause.text());
        }
        None if naming::may_have_one(&look.object.metadata, look.seen.machine.as_deref())
            && look.seen.domain.is_some() =>
        {
            decision.again_in(SOON);
        }
        Some(Ok(Namesake::Nobody | Namesake::Another { .. })) | None => {
            decision.remove_finalizer(CKS_MACHINE);
            decision.remove_finalizer(FINALIZER);
        }
    }
}

/// No order came to anything: none was sent, or the last was refused. A machine of the name whose data proves that it is
/// another's does not hold the object then.
fn had_none(meta: &ObjectMeta) -> bool {
    !naming::was_ordered(meta) || refused_order(meta).is_some()
}

/// Nothing more can be done about the machine by this account.
fn gone(look: &Look<CloudStackMachines>, decision: &mut Decision) {
    match &look.seen.teardown {
        Some(Ok(teardown)) if !teardown.left.is_empty() => {
            let delete = |disk: &VolumeId| MachineCall::DeleteDisk { disk: disk.clone() };
            let calls: Vec<MachineCall> = teardown.left.iter().map(delete).collect();
            let before = match refused::step(look, &calls, reason::DELETING, decision) {
                Step::Pause(message) => return ready(look, decision, False, reason::DELETING, message),
                Step::Send(before) => before,
            };
            let message =
                before.unwrap_or_else(|| "the data disk that the virtual machine left is deleted".to_owned());
            ready(look, decision, False, reason::DELETING, message);
            for call in calls {
                decision.best_effort(Effect::Call(call));
            }
            return;
        }
        Some(Err(cause)) => {
            cause.wait(decision);
            return ready(look, decision, False, reason::DELETING, cause.text());
        }
        _ => {}
    }
    SshRecord::known(look).put(&mut decision.object.metadata);
    let left = ssh::left(look);
    if !left.is_empty() {
        ready(look, decision, False, reason::DELETING, "what lets packets in to its port for SSH is closed");
        for call in left {
            decision.best_effort(Effect::Call(call));
        }
        return;
    }
    match leaving(look) {
        Some(note) => {
            ready(
                look,
                decision,
                False,
                reason::DELETING,
                "its network has to wait for CloudStack to expunge it",
            );
            decision.then(note);
        }
        None => {
            decision.remove_finalizer(CKS_MACHINE);
            decision.remove_finalizer(FINALIZER);
        }
    }
}

/// Has the network know of a machine that is destroyed and that CloudStack keeps for a while, unless it does.
pub(super) fn leaving(look: &Look<CloudStackMachines>) -> Option<Effect<MachineCall>> {
    let id = look.object.spec.instance_id.as_deref()?;
    let kept = matches!(&look.seen.teardown, Some(Ok(teardown)) if !teardown.expunge);
    let network =
        look.seen.network.as_ref().filter(|network| kept && !leaving::is_noted(&network.metadata, id))?;
    Some(Effect::merge(ObjectRef::to(&**network), leaving::noted(id, look.now)))
}

fn remove(look: &Look<CloudStackMachines>, vm: &VirtualMachine, decision: &mut Decision) {
    set_instance_state(look, decision, vm.state.as_ref().map_or("Unknown", MachineState::as_str));
    if !naming::is_of(&look.object.metadata, vm.name.as_deref().unwrap_or_default()) {
        let message = format!(
            "{}: spec.instanceID is virtual machine {}, which is called {:?}: it is left alone; give it the name of this object to have it destroyed, or take the finalizer off",
            code::NOT_OURS,
            vm.id,
            vm.name.as_deref().unwrap_or_default()
        );
        return ready(look, decision, False, "NotOurs", message);
    }
    match &vm.state {
        // Nothing more can be done about it by this account.
        Some(MachineState::Destroyed | MachineState::Expunging) if matches!(&look.seen.teardown, Some(Ok(teardown)) if !teardown.expunge) =>
        {
            return gone(look, decision);
        }
        Some(MachineState::Expunging) => {
            // Seconds as a rule; where it takes longer, nobody gains by asking every few of them.
            let since = look
                .object
                .status
                .instance_state_last_updated
                .filter(|_| look.object.status.instance_state == MachineState::Expunging.as_str());
            let since = since.map_or(look.now, |since| since.timestamp());
            let waited = Duration::try_from(look.now.duration_since(since)).unwrap_or_default();
            decision.again_in((waited / 4).clamp(SOON, LONGEST));
            return waiting(look, decision, reason::DELETING, "CloudStack to expunge the virtual machine");
        }
        _ => {}
    }
    if let Some(network) = &look.seen.network {
        let unknown = |one: &&Balancer| !one.is_known(&network.metadata);
        let mut unknown = look.seen.balancers.iter().filter(unknown).peekable();
        if unknown.peek().is_some() {
            let change = balancers::remembered(unknown);
            ready(look, decision, False, reason::DELETING, "load balancers that route to it are recorded");
            decision.then(Effect::merge(ObjectRef::to(&**network), change));
            return;
        }
    }
    let attached = look.object.status.conditions.condition(ATTACHED).is_some_and(|it| it.status == True);
    if let Some(rule) = balancer_rule::of(&look.object, &look.seen).filter(|_| attached) {
        let call = MachineCall::Detach { rule: rule.to_owned(), id: vm.id.to_string() };
        if look.result_of(&call).is_none()
            && failure_of(look, &call).is_none_or(|failure| failure.attempts < 3)
        {
            ready(look, decision, False, reason::DELETING, "it is removed from the load balancer");
            decision.call(call);
            return;
        }
        set_state(
            look,
            &mut decision.object.status.conditions,
            ATTACHED,
            ConditionState::new(False, "Detached", ""),
            None,
        );
    }
    // The rule outlives a machine that is only destroyed, until the server expunges it.
    SshRecord::known(look).put(&mut decision.object.metadata);
    match ssh::ending(look, vm) {
        Ending::Nothing => {}
        Ending::Calls(calls) => {
            ready(look, decision, False, reason::DELETING, "its port for SSH is released");
            for call in calls {
                decision.best_effort(Effect::Call(call));
            }
            return;
        }
        Ending::Wait(cause) => {
            cause.wait(decision);
            return ready(look, decision, False, reason::DELETING, cause.text());
        }
    }
    let Some(call) = destroy_call(look, vm.id.to_string(), decision) else {
        let cause = look.seen.teardown.as_ref().and_then(|teardown| teardown.as_ref().err());
        let message = cause.map(CloudError::text).unwrap_or_default();
        return ready(look, decision, False, reason::DELETING, message);
    };
    let message = match refused::step(look, std::slice::from_ref(&call), reason::DELETING, decision) {
        Step::Pause(message) => return ready(look, decision, False, reason::DELETING, message),
        Step::Send(before) => before.unwrap_or_default(),
    };
    ready(look, decision, False, reason::DELETING, message);
    let note = Note::normal("Destroyed", "Delete", format!("virtual machine {} is destroyed", vm.id));
    decision.then_noting(Effect::Call(call), note);
}
