//! Start, stop, reboot.

use std::time::Duration;

use serde_json::json;

use super::own;
use crate::call::{Answer, Call};
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Job, Next, Submission};
use crate::model::compute::{Vm, VmState};
use crate::model::place::Host;
use crate::model::table::Key;
use crate::render::VmView;

/// How often a job looks whether another is done with a machine.
const TURN: Duration = Duration::from_millis(250);

pub(super) fn start(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let uuid = cloud.vms[vm].uuid.clone();
    let on_a_host = call.text("hostid").is_some() && !call.caller.is_root();
    let view = VmView::full(call.caller);
    let submission = Submission::new(cloud.settings.timings.submit, move |cloud, job| {
        let row = &cloud.vms[vm];
        let refused = match row.state {
            _ if on_a_host => {
                let text = "Parameter hostid can only be specified by a Root Admin, permission denied";
                Some(ApiError { code: 530, ..ApiError::denied(text) })
            }
            // Also while another job is about to stop it: this one does not wait.
            VmState::Running | VmState::Starting | VmState::Stopping => Some(ApiError::invalid(format!(
                "The virtual machine {} ({}) is already running",
                row.uuid, row.name
            ))),
            VmState::Error => Some(ApiError::runtime(format!(
                "Unable to create deployment, no usable volumes found for the VM: {}",
                row.uuid
            ))),
            VmState::Destroyed | VmState::Expunging => Some(cloud.no_start(vm)),
            VmState::Stopped => None,
        };
        match refused {
            Some(refused) => Next::Done(Err(refused)),
            None => cloud.begin_start(job, vm, view, false),
        }
    });
    Ok(Answer::Job(submission.about_the("VirtualMachine", &uuid)))
}

pub(super) fn stop(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let uuid = cloud.vms[vm].uuid.clone();
    let view = VmView::full(call.caller);
    let submission = Submission::new(cloud.settings.timings.submit, move |cloud, job| {
        cloud.begin_stop(job, vm, move |cloud, _| {
            Next::Done(Ok(json!({"virtualmachine": cloud.show_vm(vm, view).done()})))
        })
    });
    Ok(Answer::Job(submission.about_the("VirtualMachine", &uuid)))
}

pub(super) fn reboot(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let uuid = cloud.vms[vm].uuid.clone();
    let view = VmView::full(call.caller);
    let power = cloud.settings.timings.power;
    let submission = Submission::new(cloud.settings.timings.submit, move |cloud, _| {
        let row = &cloud.vms[vm];
        if row.state != VmState::Running {
            return Next::Done(Err(ApiError::invalid(format!(
                "The Instance {} ({}) is not running, unable to reboot it",
                row.uuid, row.name
            ))));
        }
        Next::After(
            power,
            Box::new(move |cloud, _| {
                if cloud.vms[vm].state == VmState::Running {
                    cloud.reboot_guest(vm);
                }
                Next::Done(Ok(json!({"virtualmachine": cloud.show_vm(vm, view).done()})))
            }),
        )
    });
    Ok(Answer::Job(submission.about_the("VirtualMachine", &uuid)))
}

impl Cloud {
    fn no_start(&self, vm: Key<Vm>) -> ApiError {
        ApiError::runtime(format!(
            "Unable to orchestrate the start of VM instance {{\"instanceName\":\"{}\",\"uuid\":\"{}\"}}.",
            self.instance_name(vm),
            self.vms[vm].uuid
        ))
    }

    fn no_capacity_to_start(&self, vm: Key<Vm>) -> ApiError {
        ApiError::runtime(format!(
            "Unable to start a VM [{}] due to insufficient capacity.",
            self.vms[vm].uuid
        ))
    }

    /// Finds a host, gives the networks their routers and starts a machine.
    pub(super) fn begin_start(&mut self, job: Key<Job>, vm: Key<Vm>, view: VmView, deploy: bool) -> Next {
        // Destroyed before its turn came.
        if !self.vms[vm].state.counts() {
            return Next::Done(Err(self.no_start(vm)));
        }
        let Some(host) = self.place(vm, &[]) else {
            let uuid = self.vms[vm].uuid.clone();
            if deploy {
                self.fail(vm);
            }
            return Next::Done(Err(ApiError::new(
                533,
                4330,
                format!("No destination found for a deployment for VM instance {{\"uuid\":\"{uuid}\"}}"),
            )));
        };
        let networks: Vec<_> = self.vms[vm].nics.iter().map(|nic| nic.network).collect();
        let mut wait = self.settings.timings.power;
        for network in networks {
            match self.implement(network) {
                Ok(true) => wait += self.settings.timings.router,
                Ok(false) => {}
                Err(error) => {
                    if deploy {
                        self.fail(vm);
                    }
                    let refused =
                        if error.code == 533 { self.no_capacity_to_start(vm) } else { self.no_start(vm) };
                    return Next::Done(Err(refused));
                }
            }
        }
        let row = &mut self.vms[vm];
        row.busy = Some(job);
        row.host = Some(host);
        row.on_storage = true;
        for nic in &mut row.nics {
            nic.reserved = true;
        }
        self.set_state(vm, VmState::Starting);
        let tried = vec![host];
        Next::After(wait, Box::new(move |cloud, _| cloud.finish_start(vm, view, deploy, tried)))
    }

    fn finish_start(&mut self, vm: Key<Vm>, view: VmView, deploy: bool, mut tried: Vec<Key<Host>>) -> Next {
        if self.host_fails("StartCommand") {
            // Another host, as long as there is one.
            let Some(host) = self.place(vm, &tried) else {
                let row = &mut self.vms[vm];
                row.capacity_freed = true;
                for nic in &mut row.nics {
                    nic.reserved = false;
                }
                if deploy {
                    self.fail(vm);
                } else {
                    self.vms[vm].host = None;
                    self.set_state(vm, VmState::Stopped);
                }
                return Next::Done(Err(self.no_capacity_to_start(vm)));
            };
            tried.push(host);
            self.vms[vm].capacity_freed = true;
            self.vms[vm].host = Some(host);
            let wait = self.settings.timings.power;
            return Next::After(wait, Box::new(move |cloud, _| cloud.finish_start(vm, view, deploy, tried)));
        }
        let row = &mut self.vms[vm];
        row.details.remove("deployvm");
        self.set_state(vm, VmState::Running);
        for volume in self.volumes.iter_mut().filter(|volume| volume.vm == Some(vm)) {
            volume.ready = true;
        }
        self.start_guest(vm);
        Next::Done(Ok(json!({"virtualmachine": self.show_vm(vm, view).done()})))
    }

    /// Stops a machine when nobody else is at it, then goes on.
    pub(super) fn begin_stop(
        &mut self,
        job: Key<Job>,
        vm: Key<Vm>,
        then: impl FnOnce(&mut Self, Key<Job>) -> Next + Send + 'static,
    ) -> Next {
        if self.vms[vm].busy.is_some_and(|other| other != job) {
            return Next::After(TURN, Box::new(move |cloud, job| cloud.begin_stop(job, vm, then)));
        }
        if self.vms[vm].state != VmState::Running {
            return then(self, job);
        }
        self.vms[vm].busy = Some(job);
        self.set_state(vm, VmState::Stopping);
        let wait = self.settings.timings.power;
        Next::After(
            wait,
            Box::new(move |cloud, job| {
                if cloud.host_fails("StopCommand") {
                    let uuid = cloud.vms[vm].uuid.clone();
                    cloud.vms[vm].state = VmState::Running;
                    return Next::Done(Err(ApiError::runtime(format!(
                        "Unable to stop VM instance {{\"uuid\":\"{uuid}\"}}"
                    ))));
                }
                cloud.power_off(vm);
                then(cloud, job)
            }),
        )
    }

    /// A machine is off: its host is free, its guest stands still.
    pub(crate) fn power_off(&mut self, vm: Key<Vm>) {
        if !self.vms[vm].state.occupies() {
            return;
        }
        let row = &mut self.vms[vm];
        row.host = None;
        row.capacity_freed = true;
        for nic in &mut row.nics {
            nic.reserved = false;
        }
        self.set_state(vm, VmState::Stopped);
        self.stop_guest(vm);
        self.collect_networks_later(vm);
    }

    /// Whether a fault makes hosts fail this command, once or always.
    fn host_fails(&mut self, command: &str) -> bool {
        let Some(left) = self.host_failures.get_mut(command) else { return false };
        if *left == 0 {
            return false;
        }
        if *left != u32::MAX {
            *left -= 1;
        }
        true
    }
}
