//! Machines: created once, powered on and off, destroyed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Weak};

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::kubeadm::Kubeadm;
use super::{Inner, SiteError};
use crate::cluster::{GuestCluster, Size};
use crate::console::Console;
use crate::machine::{self, Boot};
use crate::vm::{GuestFault, Phase, Vm, VmSpec};

/// All machines, and all ids ever used.
#[derive(Default)]
pub(super) struct Machines {
    held: BTreeMap<String, Machine>,
    by_address: BTreeMap<Ipv4Addr, String>,
    used: BTreeSet<String>,
}

pub(super) struct Machine {
    spec: Arc<VmSpec>,
    pub(super) address: Ipv4Addr,
    phase: Phase,
    /// Result of its user data, which is executed once, not at every power-on.
    executed: Option<Phase>,
    pub(super) console: Console,
    node: Option<(Arc<GuestCluster>, String)>,
    /// The task since the last power-on, and the number of power-ons.
    task: Option<AbortHandle>,
    boots: u64,
}

impl Machine {
    pub(super) fn vm(&self) -> Vm {
        Vm {
            id: self.spec.id.clone(),
            name: self.spec.name.clone(),
            address: self.address,
            phase: self.phase.clone(),
            node: self.node.as_ref().map(|(_, node)| node.clone()),
            tags: self.spec.tags.clone(),
        }
    }

    pub(super) fn cluster(&self) -> Option<&Arc<GuestCluster>> {
        self.node.as_ref().map(|(cluster, _)| cluster)
    }

    pub(super) fn id(&self) -> &str {
        &self.spec.id
    }

    /// Packets reach it.
    pub(super) fn is_connected(&self) -> bool {
        self.phase != Phase::Off && !self.spec.faults.contains(&GuestFault::NoNetwork)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Machines {
    pub(super) fn get(&self, id: &str) -> Option<&Machine> {
        self.held.get(id)
    }

    pub(super) fn at(&self, address: Ipv4Addr) -> Option<&Machine> {
        self.by_address.get(&address).and_then(|id| self.held.get(id))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Machine> {
        self.held.values()
    }

    fn find(&mut self, id: &str) -> Result<&mut Machine, SiteError> {
        self.held.get_mut(id).ok_or_else(|| SiteError::NoSuchVm(id.to_owned()))
    }
}

impl Inner {
    pub(super) fn create(self: &Arc<Self>, spec: VmSpec) -> Result<Vm, SiteError> {
        let mut machines = self.machines.lock();
        if machines.used.contains(&spec.id) {
            return Err(SiteError::Exists(spec.id));
        }
        let assigned = self.network.lock().assign(spec.address);
        let taken = || SiteError::AddressTaken(spec.address.unwrap_or(Ipv4Addr::UNSPECIFIED));
        let address = assigned.ok_or_else(taken)?;
        let id = spec.id.clone();
        let mut machine = Machine {
            spec: Arc::new(spec),
            address,
            phase: Phase::Off,
            executed: None,
            console: Console::default(),
            node: None,
            task: None,
            boots: 0,
        };
        self.switch_on(&mut machine);
        let vm = machine.vm();
        machines.used.insert(id.clone());
        machines.by_address.insert(address, id.clone());
        machines.held.insert(id, machine);
        drop(machines);
        self.notify(&vm.id);
        Ok(vm)
    }

    /// Adds a machine that has booted elsewhere and is already a node.
    pub(super) fn adopt(&self, spec: VmSpec, address: Ipv4Addr, cluster: &Arc<GuestCluster>, node: &str) {
        let id = spec.id.clone();
        let machine = Machine {
            spec: Arc::new(spec),
            address,
            phase: Phase::Booted,
            executed: Some(Phase::Booted),
            console: Console::default(),
            node: Some((cluster.clone(), node.to_owned())),
            task: None,
            boots: 1,
        };
        let mut machines = self.machines.lock();
        machines.used.insert(id.clone());
        machines.by_address.insert(address, id.clone());
        machines.held.insert(id.clone(), machine);
        drop(machines);
        self.notify(&id);
        self.reachable.notify_waiters();
    }

    /// Whether an id was never used.
    pub(super) fn is_new(&self, id: &str) -> bool {
        !self.machines.lock().used.contains(id)
    }

    pub(super) fn power_on(self: &Arc<Self>, id: &str) -> Result<(), SiteError> {
        let mut machines = self.machines.lock();
        let machine = machines.find(id)?;
        if machine.phase == Phase::Off {
            self.switch_on(machine);
            drop(machines);
            self.notify(id);
        }
        Ok(())
    }

    pub(super) fn power_off(&self, id: &str, last_line: &str) -> Result<(), SiteError> {
        let mut machines = self.machines.lock();
        let machine = machines.find(id)?;
        if machine.phase == Phase::Off {
            return Ok(());
        }
        if let Some(task) = machine.task.take() {
            task.abort();
        }
        machine.console.line(last_line);
        machine.phase = Phase::Off;
        let cluster = machine.cluster().cloned();
        drop(machines);
        if let Some(cluster) = cluster {
            cluster.machine_stopped(id);
        }
        self.notify(id);
        Ok(())
    }

    pub(super) fn destroy(&self, id: &str) -> Result<(), SiteError> {
        let mut machines = self.machines.lock();
        let machine = machines.held.remove(id).ok_or_else(|| SiteError::NoSuchVm(id.to_owned()))?;
        machines.by_address.remove(&machine.address);
        drop(machines);
        if machine.spec.address.is_some() {
            self.network.lock().unassign(machine.address);
        }
        if let Some(cluster) = machine.cluster() {
            cluster.machine_destroyed(id);
        }
        drop(machine);
        self.notify(id);
        Ok(())
    }

    fn switch_on(self: &Arc<Self>, machine: &mut Machine) {
        machine.phase = Phase::Booting;
        machine.boots += 1;
        let power = Power {
            site: Arc::downgrade(self),
            spec: machine.spec.clone(),
            address: machine.address,
            console: machine.console.clone(),
            boot: machine.boots,
        };
        // A machine that was powered off after kubeadm finished is a node, even if the rest did not run.
        let joined = machine.node.is_some().then_some(Phase::Booted);
        let executed = machine.executed.clone().or(joined);
        machine.task = Some(tokio::spawn(power.run(executed)).abort_handle());
    }

    pub(super) fn size(&self, id: &str) -> Size {
        let machines = self.machines.lock();
        let spec = machines.get(id).map(|machine| &machine.spec);
        spec.map_or(Size { cpus: 2, memory_mib: 4096 }, |spec| Size {
            cpus: spec.cpus,
            memory_mib: spec.memory_mib,
        })
    }

    /// The provider id that the cloud gave a machine.
    pub(super) fn provider_id(&self, id: &str) -> Option<String> {
        self.machines.lock().get(id)?.spec.provider_id.clone()
    }

    /// Records that a machine has become a node.
    pub(super) fn joined(&self, id: &str, cluster: &Arc<GuestCluster>, node: &str) {
        if let Some(machine) = self.machines.lock().held.get_mut(id) {
            machine.node = Some((cluster.clone(), node.to_owned()));
        }
        self.notify(id);
        self.reachable.notify_waiters();
    }

    /// Notifies listeners that a machine has changed.
    fn notify(&self, id: &str) {
        // There may be no listener.
        let _ = self.changes.send(id.to_owned());
    }
}

/// A machine from power-on to power-off.
struct Power {
    site: Weak<Inner>,
    spec: Arc<VmSpec>,
    address: Ipv4Addr,
    console: Console,
    boot: u64,
}

impl Power {
    async fn run(self, executed: Option<Phase>) {
        if self.spec.faults.contains(&GuestFault::NeverBoots) {
            return;
        }
        let powered = Instant::now();
        let Some(mut delay) = self.site.upgrade().map(|site| site.options.timings.boot) else { return };
        for fault in &self.spec.faults {
            if let GuestFault::SlowBoot(longer) = fault {
                delay += *longer;
            }
        }
        tokio::time::sleep(delay).await;
        let phase = match executed {
            Some(phase) => phase,
            None => self.execute(powered).await,
        };
        let joined = self.enter(phase);
        let Some(cluster) = joined else { return };
        cluster.machine_started(&self.spec.id);
        for fault in &self.spec.faults {
            if let GuestFault::KubeletDies(after) = fault {
                let cluster = Arc::downgrade(&cluster);
                tokio::time::sleep(*after).await;
                if let Some(cluster) = cluster.upgrade() {
                    cluster.kubelet_stopped(&self.spec.id);
                }
            }
        }
    }

    async fn execute(&self, powered: Instant) -> Phase {
        let Some(env) = self.site.upgrade().map(|site| site.env.clone()) else { return Phase::Off };
        let control = Kubeadm::new(self.site.clone(), &self.spec.id);
        let boot = Boot {
            vm: &self.spec,
            address: self.address,
            console: &self.console,
            env: &env,
            control: &control,
            powered,
        };
        match machine::boot(boot).await {
            Ok(_) => Phase::Booted,
            Err(why) => Phase::Failed(why),
        }
    }

    /// Records the phase of the machine, unless it was powered off meanwhile; returns its cluster if it is a node.
    fn enter(&self, phase: Phase) -> Option<Arc<GuestCluster>> {
        let site = self.site.upgrade()?;
        let mut machines = site.machines.lock();
        let machine = machines.held.get_mut(&self.spec.id).filter(|machine| machine.boots == self.boot)?;
        if machine.phase != Phase::Booting {
            return None;
        }
        machine.executed = Some(phase.clone());
        machine.phase = phase;
        let cluster = machine.cluster().cloned();
        drop(machines);
        site.notify(&self.spec.id);
        site.reachable.notify_waiters();
        cluster
    }
}
