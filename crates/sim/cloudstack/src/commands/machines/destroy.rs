//! The end of machines.

use serde_json::{Value, json};

use super::own;
use crate::call::{Answer, Call, Caller};
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Job, Next, Submission, success};
use crate::model::compute::{Vm, VmState, Volume, VolumeKind};
use crate::model::table::Key;
use crate::render::VmView;

pub(super) fn destroy(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let uuid = cloud.vms[vm].uuid.clone();
    let expunge = call.is("expunge");
    let volumes = call.keys(&cloud.volumes, "volumeids");
    let view = VmView::full(call.caller);
    let may_expunge = cloud.expunges(call.caller);
    let submission = Submission::new(cloud.settings.timings.submit, move |cloud, job| {
        if expunge && !may_expunge {
            return Next::Done(Err(ApiError {
                code: 530,
                ..ApiError::denied("Account does not have permission for expunging.")
            }));
        }
        let is_gone = matches!(cloud.vms[vm].state, VmState::Destroyed | VmState::Expunging);
        if (!is_gone || expunge)
            && let Err(refused) = cloud.is_unprotected(vm, &volumes)
        {
            return Next::Done(Err(refused));
        }
        let other = cloud.vms[vm].busy.filter(|other| *other != job);
        if other.is_some_and(|other| cloud.jobs[other].command.name == "destroyVirtualMachine") {
            return Next::Done(Err(ApiError::runtime("Failed to destroy vm with specified vmId")));
        }
        cloud.begin_stop(job, vm, move |cloud, job| cloud.finish_destroy(job, vm, &volumes, expunge, view))
    });
    Ok(Answer::Job(submission.about_the("VirtualMachine", &uuid)))
}

/// A machine without anything: what is shown of one that is gone.
fn nothing() -> Value {
    json!({"virtualmachine": {
        "securitygroup": [], "nic": [], "affinitygroup": [], "deleteprotection": false, "tags": [],
    }})
}

impl Cloud {
    /// Whether somebody may expunge machines: the setting and the role both say so.
    fn expunges(&self, caller: Caller) -> bool {
        (caller.is_admin() || self.may_expunge(caller.account))
            && self.has_permission(caller, "expungeVirtualMachine")
    }

    /// Refuses to destroy a machine that is protected, or that takes a protected disk along.
    fn is_unprotected(&self, vm: Key<Vm>, volumes: &[Key<Volume>]) -> Result<()> {
        let row = &self.vms[vm];
        if row.protected {
            return Err(ApiError::invalid(format!(
                "Instance [id = {}, name = {}] has delete protection enabled and cannot be deleted.",
                row.uuid, row.name
            )));
        }
        volumes.iter().try_for_each(|volume| self.volume_is_unprotected(*volume))
    }

    fn finish_destroy(
        &mut self,
        job: Key<Job>,
        vm: Key<Vm>,
        volumes: &[Key<Volume>],
        expunge: bool,
        view: VmView,
    ) -> Next {
        // What never ran is not kept for recovery, but holds its name and network until the background task runs.
        let failed = self.vms[vm].state == VmState::Error;
        self.leave_balancers(vm);
        for volume in self.volumes.iter_mut().filter(|volume| volume.vm == Some(vm)) {
            if !matches!(volume.kind, VolumeKind::Data(_)) {
                continue;
            }
            // Data disks outlive their machine unless they are named.
            volume.destroyed |= volumes.contains(&volume.key);
            volume.vm = None;
            volume.attached = None;
        }
        for volume in volumes {
            if self.volumes[*volume].destroyed {
                self.clean_up_later(*volume);
            }
        }
        self.vms[vm].data_disk = None;
        if self.vms[vm].state == VmState::Stopped {
            self.set_state(vm, VmState::Destroyed);
            self.sweep_later(vm);
        }
        if failed && !expunge {
            self.set_state(vm, VmState::Expunging);
            self.sweep_later(vm);
        }
        if !expunge {
            return Next::Done(Ok(json!({"virtualmachine": self.show_vm(vm, view).done()})));
        }
        self.vms[vm].busy = Some(job);
        self.set_state(vm, VmState::Expunging);
        let shown = nothing();
        let wait = self.settings.timings.expunge;
        Next::After(
            wait,
            Box::new(move |cloud, _| {
                cloud.expunge(vm);
                Next::Done(Ok(shown))
            }),
        )
    }

    /// Removes a machine with its root disk, its addresses and its rules.
    pub(crate) fn expunge(&mut self, vm: Key<Vm>) {
        self.leave_balancers(vm);
        let rules: Vec<_> =
            self.forwardings.iter().filter(|rule| rule.vm == vm).map(|rule| rule.key).collect();
        for rule in rules {
            self.remove_forwarding(rule);
        }
        for ip in self.ips.iter_mut() {
            if let Some(held) = &mut ip.held {
                held.static_nat = held.static_nat.filter(|other| *other != vm);
            }
        }
        let mut roots = Vec::new();
        for volume in self.volumes.iter_mut().filter(|volume| volume.vm == Some(vm)) {
            match volume.kind {
                VolumeKind::Root(..) => roots.push(volume.key),
                VolumeKind::Data(_) => (volume.vm, volume.attached) = (None, None),
            }
        }
        for root in roots {
            let uuid = self.volumes[root].uuid.clone();
            self.untag(&uuid);
            self.volumes.remove(root);
        }
        let uuid = self.vms[vm].uuid.clone();
        self.untag(&uuid);
        self.vms.remove(vm);
        self.destroy_guest(vm);
    }
}

pub(super) fn expunge(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let uuid = cloud.vms[vm].uuid.clone();
    let allowed = cloud.expunges(call.caller);
    let wait = cloud.settings.timings.expunge;
    let submission = Submission::new(cloud.settings.timings.submit, move |cloud, job| {
        if !matches!(cloud.vms[vm].state, VmState::Destroyed | VmState::Expunging) {
            return Next::Done(Err(ApiError::runtime(
                "Please destroy vm with specified vmId before expunge",
            )));
        }
        if !allowed {
            return Next::Done(Err(ApiError {
                code: 530,
                ..ApiError::denied(
                    "Expunging a vm can only be done by an Admin. Or when the allow.user.expunge.recover.vm key is set.",
                )
            }));
        }
        cloud.vms[vm].busy = Some(job);
        cloud.set_state(vm, VmState::Expunging);
        Next::After(
            wait,
            Box::new(move |cloud, _| {
                cloud.expunge(vm);
                Next::Done(Ok(success()))
            }),
        )
    });
    Ok(Answer::Job(submission.about_the("VirtualMachine", &uuid)))
}

pub(super) fn recover(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    if !call.caller.is_admin() && !cloud.may_expunge(call.caller.account) {
        return Err(ApiError::denied(
            "Recovering a vm can only be done by an Admin. Or when the allow.user.expunge.recover.vm key is set.",
        ));
    }
    if cloud.vms[vm].state != VmState::Destroyed {
        return Err(ApiError::invalid(format!(
            "Unable to recover VM: it is in state {}",
            cloud.vms[vm].state.name()
        )));
    }
    cloud.set_state(vm, VmState::Stopped);
    cloud.vms[vm].swept_from = None;
    let mut fields = cloud.show_vm(vm, VmView::full(call.caller));
    fields.put("instancename", cloud.instance_name(vm)).put("arch", "x86_64");
    Ok(Answer::Object("virtualmachine", fields.done()))
}
