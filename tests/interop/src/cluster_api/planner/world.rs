//! A minimal model around the planner: sets, machines, and just enough of their controllers for a rollout to proceed,
//! as in the recorded sequences. It logs every action.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use capstan_capi_core::machine_deployment::rollout::{
    MachineState, Plan, Rollout, SetPlan, SetState, Strategy, max_surge, max_unavailable, plan,
};

use super::go_rand::GoRand;

const REVISION: &str = "machinedeployment.clusters.x-k8s.io/revision";
const MOVE_TO: &str = "in-place-updates.internal.cluster.x-k8s.io/move-machines-to-machineset";
const RECEIVE_FROM: &str = "in-place-updates.internal.cluster.x-k8s.io/receive-machines-from-machinesets";
const ACKNOWLEDGED: &str = "in-place-updates.internal.cluster.x-k8s.io/acknowledged-move";
const DISABLE_CREATE: &str = "cluster.x-k8s.io/disable-machine-create";

/// A machine. Its number is its name without the `m`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub number: u32,
    /// The template it was created from.
    pub version: u32,
    pub pending_acknowledge: bool,
    pub updating: bool,
    pub deleting: bool,
}

impl Machine {
    pub fn new(number: u32, version: u32) -> Self {
        Self { number, version, pending_acknowledge: false, updating: false, deleting: false }
    }

    fn name(&self) -> String {
        format!("m{}", self.number)
    }
}

/// A MachineSet; `ms2` has number 2.
#[derive(Debug, Clone)]
pub struct Set {
    pub number: u32,
    pub version: u32,
    pub wanted: i32,
    pub replicas: i32,
    pub available: i32,
    pub up_to_date: i32,
    pub annotations: BTreeMap<&'static str, String>,
    pub machines: Vec<Machine>,
}

impl Set {
    pub fn name(&self) -> String {
        format!("ms{}", self.number)
    }

    fn annotation(&self, key: &str) -> BTreeSet<String> {
        self.annotations
            .get(key)
            .map(|names| names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect())
            .unwrap_or_default()
    }
}

/// The MachineDeployment.
#[derive(Debug, Clone)]
pub struct Deployment {
    pub version: u32,
    pub desired: i32,
    pub replicas: i32,
    pub available: i32,
    pub up_to_date: i32,
    pub strategy: Strategy,
    /// Old sets may be updated in place.
    pub in_place: bool,
    /// Limits that may be exceeded, if the deployment was scaled during a rollout.
    pub tolerate: Option<Toleration>,
    /// How many machines a user may delete by hand at a time.
    pub user_unavailable: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toleration {
    Unavailable,
    Surge,
}

/// The real planner, or a broken one that the suite must notice.
pub type Planner = fn(&Rollout) -> Plan;

pub struct World {
    pub deployment: Deployment,
    pub sets: Vec<Set>,
    pub next_machine: u32,
    pub planner: Planner,
    /// Machines are deleted by hand once the current set exists.
    pub may_delete: bool,
    pub log: Vec<String>,
}

impl World {
    pub fn real_planner() -> Planner {
        plan
    }

    fn line(&mut self, text: impl Into<String>) {
        self.log.push(text.into());
    }

    fn set_index(&self, name: &str) -> Option<usize> {
        self.sets.iter().position(|set| set.name() == name)
    }

    /// Runs one task of the schedule by its name.
    pub fn run(&mut self, task: &str, iteration: u32, random: Option<&mut GoRand>) -> Result<()> {
        if task == "md" {
            self.line(format!("[MD controller] Iteration {iteration}, Reconcile md"));
            return self.reconcile_deployment();
        }
        if task == "delete-machine" {
            self.delete_by_hand(iteration, random);
        }
        if let Some(at) = self.set_index(task) {
            let summary = self.set_summary(&self.sets[at]);
            self.line(format!("[MS controller] Iteration {iteration}, Reconcile {summary}"));
            self.reconcile_set(at)?;
        }
        if matches!(self.deployment.strategy, Strategy::OnDelete) {
            let found = self.sets.iter().enumerate().find_map(|(at, set)| {
                set.machines.iter().position(|machine| machine.name() == task).map(|index| (at, index))
            });
            if let Some((at, index)) = found {
                self.line(format!("[M controller] Iteration {iteration}, Reconcile {task}"));
                if self.sets[at].machines[index].deleting {
                    self.line(format!("[M controller] - {task} finalizer removed"));
                    self.sets[at].machines.remove(index);
                }
            }
        }
        Ok(())
    }

    fn reconcile_deployment(&mut self) -> Result<()> {
        let before = self.sets.clone();
        let created = !self.sets.iter().any(|set| set.version == self.deployment.version);
        if created {
            let number = self.sets.len() as u32 + 1;
            self.sets.push(Set {
                number,
                version: self.deployment.version,
                wanted: 0,
                replicas: 0,
                available: 0,
                up_to_date: 0,
                annotations: BTreeMap::new(),
                machines: Vec::new(),
            });
        }
        let current = self.current_set()?;
        let planned = (self.planner)(&self.rollout(current));
        self.apply(current, &planned)?;
        self.may_delete = true;

        self.deployment.replicas = self.sets.iter().map(|set| set.replicas).sum();
        self.deployment.available = self.sets.iter().map(|set| set.available).sum();
        if matches!(self.deployment.strategy, Strategy::RollingUpdate { .. }) {
            self.deployment.up_to_date = self.sets.iter().map(|set| set.up_to_date).sum();
        }
        self.report_plan(&before, current);
        self.check_bounds()
    }

    fn current_set(&self) -> Result<usize> {
        // If several match, the largest is the current one, then the first by name.
        (0..self.sets.len())
            .filter(|at| self.sets[*at].version == self.deployment.version)
            .min_by_key(|at| (-self.sets[*at].wanted, self.sets[*at].number))
            .context("no current set")
    }

    fn rollout(&self, current: usize) -> Rollout {
        let facts = |at: usize| {
            let set = &self.sets[at];
            SetState {
                name: set.name(),
                created: None,
                wanted: set.wanted,
                replicas: set.replicas,
                available: set.available,
                up_to_date: set.up_to_date,
                in_place: self.deployment.in_place && set.version != self.deployment.version,
                acknowledged: set.annotation(ACKNOWLEDGED),
            }
        };
        let mut old: Vec<_> = (0..self.sets.len()).filter(|at| *at != current).collect();
        old.sort_by_key(|at| (-self.sets[*at].wanted, self.sets[*at].number));
        Rollout {
            desired: self.deployment.desired,
            strategy: self.deployment.strategy.clone(),
            current: facts(current),
            old: old.into_iter().map(facts).collect(),
            machines: self
                .sets
                .iter()
                .flat_map(|set| {
                    set.machines.iter().map(|machine| MachineState {
                        name: machine.name(),
                        set: set.name(),
                        pending_acknowledge: machine.pending_acknowledge,
                        updating: machine.updating,
                    })
                })
                .collect(),
        }
    }

    /// Writes the plan to the sets. Keeps annotations that the plan no longer has, as the recorded model did.
    fn apply(&mut self, current: usize, planned: &Plan) -> Result<()> {
        let revision_of = |set: &Set| set.annotations.get(REVISION).and_then(|text| text.parse::<u32>().ok());
        let newest_old = (0..self.sets.len())
            .filter(|at| *at != current)
            .filter_map(|at| revision_of(&self.sets[at]))
            .max();
        let revision = (newest_old.unwrap_or(0) + 1).max(revision_of(&self.sets[current]).unwrap_or(0));
        let on_delete = matches!(self.deployment.strategy, Strategy::OnDelete);
        for (at, set) in self.sets.iter_mut().enumerate() {
            let name = set.name();
            let SetPlan { replicas, move_to, receive_from, acknowledged, .. } =
                planned.set(&name).with_context(|| format!("{name} is missing in the plan"))?;
            set.wanted = *replicas;
            if at == current {
                set.annotations.insert(REVISION, revision.to_string());
            }
            set.annotations.insert(DISABLE_CREATE, (at != current && on_delete).to_string());
            if let Some(target) = move_to {
                set.annotations.insert(MOVE_TO, target.clone());
            }
            if !receive_from.is_empty() {
                set.annotations.insert(RECEIVE_FROM, joined(receive_from));
            }
            if !acknowledged.is_empty() {
                set.annotations.insert(ACKNOWLEDGED, joined(acknowledged));
            }
        }
        Ok(())
    }

    fn report_plan(&mut self, before: &[Set], current: usize) {
        let mut lines = vec![
            "[MD controller] - Result of rollout planner".to_owned(),
            format!("    md: {}", self.deployment_summary()),
        ];
        for (at, set) in self.sets.iter().enumerate() {
            let name = set.name();
            let was = before.iter().find(|was| was.number == set.number);
            let wanted_before = was.map_or(set.wanted, |was| was.wanted);
            let sizes = if wanted_before == set.wanted {
                format!("{}/{}", set.replicas, set.wanted)
            } else {
                format!("from {}/{wanted_before} to {}/{}", set.replicas, set.replicas, set.wanted)
            };
            let machines = machines_summary(set);
            lines.push(format!(
                "    {name}: {sizes} replicas, {} available, {} upToDate ({machines})",
                set.available, set.up_to_date
            ));
            let Some(was) = was else {
                lines.push(format!("      - MachineSet {name} created, it is now the current MachineSet"));
                if set.wanted > 0 {
                    let wanted = set.wanted;
                    lines.push(format!(
                        "      - Scaled up current MachineSet {name} from 0 to {wanted} replicas (+{wanted})"
                    ));
                }
                continue;
            };
            let role = if at == current { "current" } else { "old" };
            let difference = set.wanted - was.wanted;
            let changes = changes(was, set);
            if difference != 0 {
                let direction = if difference < 0 { "down" } else { "up" };
                lines.push(format!(
                    "      - Scaled {direction} {role} MachineSet {name} from {} to {} replicas ({difference:+})",
                    was.wanted, set.wanted
                ));
            } else if !changes.is_empty() {
                lines.push(format!("      - Updated {role} MachineSet {name}"));
            }
            if !changes.is_empty() {
                lines.push(format!("        - Diff: {changes}"));
            }
        }
        self.log.extend(lines);
    }

    fn check_bounds(&mut self) -> Result<()> {
        let Deployment { desired, available, .. } = self.deployment;
        if matches!(self.deployment.strategy, Strategy::OnDelete) {
            return Ok(());
        }
        if available < desired - max_unavailable(&self.deployment.strategy, desired) {
            if self.deployment.tolerate != Some(Toleration::Unavailable) {
                bail!("only {available} of {desired} machines are available");
            }
            self.line("[Toleration] tolerate maxUnavailable breach");
        }
        let total: i32 = self.sets.iter().map(|set| set.wanted.max(set.replicas)).sum();
        if total > desired + max_surge(&self.deployment.strategy, desired) {
            if self.deployment.tolerate != Some(Toleration::Surge) {
                bail!("{total} machines instead of {desired}");
            }
            self.line("[Toleration] tolerate maxSurge breach");
        }
        Ok(())
    }

    /// A user deletes an outdated machine while enough others are there.
    fn delete_by_hand(&mut self, iteration: u32, random: Option<&mut GoRand>) {
        let version = self.deployment.version;
        let machines = || self.sets.iter().flat_map(|set| &set.machines);
        let alive = machines().filter(|machine| !machine.deleting).count() as i32;
        let minimum = (self.deployment.desired - self.deployment.user_unavailable).max(0);
        let outdated: Vec<_> =
            machines().filter(|machine| machine.version != version).map(|machine| machine.number).collect();
        if alive <= minimum || !self.may_delete || outdated.is_empty() {
            return;
        }
        let number = outdated[random.map_or(0, |random| random.below(outdated.len()))];
        let found =
            self.sets.iter_mut().flat_map(|set| &mut set.machines).find(|machine| machine.number == number);
        if let Some(machine) = found.filter(|machine| !machine.deleting) {
            machine.deleting = true;
            self.line(format!("[User] Iteration {iteration}, Deleting machine m{number}"));
        }
    }

    fn reconcile_set(&mut self, at: usize) -> Result<()> {
        let updated: BTreeSet<String> = self.sets[at]
            .machines
            .iter_mut()
            .filter(|machine| machine.updating && !machine.pending_acknowledge)
            .map(|machine| {
                machine.updating = false;
                machine.name()
            })
            .collect();
        if !updated.is_empty() {
            self.line(format!("[MS controller] - Replicas {} completed in-place update", joined(&updated)));
        }
        let set = &mut self.sets[at];
        let receives = !set.annotation(RECEIVE_FROM).is_empty();
        let acknowledged = set.annotation(ACKNOWLEDGED);
        for machine in &mut set.machines {
            if !receives || acknowledged.contains(&machine.name()) {
                machine.pending_acknowledge = false;
            }
        }
        self.scale_set(at, receives)?;

        let set = &mut self.sets[at];
        let settled = set.machines.iter().filter(|machine| !machine.updating).count() as i32;
        set.replicas = set.machines.len() as i32;
        set.available = settled;
        set.up_to_date = if set.version == self.deployment.version { settled } else { 0 };
        Ok(())
    }

    fn scale_set(&mut self, at: usize, receives: bool) -> Result<()> {
        let set = &self.sets[at];
        let (name, wanted) = (set.name(), set.wanted);
        let surplus = set.machines.len() as i32 - wanted;
        if surplus < 0 && set.annotations.get(DISABLE_CREATE).is_none_or(|value| value != "true") {
            let version = set.version;
            let mut created = Vec::new();
            for _ in surplus..0 {
                self.next_machine += 1;
                let machine = Machine::new(self.next_machine, version);
                created.push(machine.name());
                self.sets[at].machines.push(machine);
            }
            self.sets[at].machines.sort_by_key(|machine| machine.number);
            let created = created.join(",");
            self.line(format!(
                "[MS controller] - {name} scale up to {wanted}/{wanted} replicas ({created} created)"
            ));
        }
        if surplus <= 0 {
            return Ok(());
        }
        let pending: BTreeSet<String> = self.sets[at]
            .machines
            .iter()
            .filter(|machine| receives && machine.pending_acknowledge)
            .map(Machine::name)
            .collect();
        if !pending.is_empty() {
            self.line(format!(
                "[MS controller] - Replicas {} moved from an old MachineSet still pending acknowledge from machine deployment md",
                joined(&pending)
            ));
        }
        let surplus = surplus - pending.len() as i32;
        if surplus == 0 {
            return Ok(());
        }
        match self.sets[at].annotations.get(MOVE_TO).filter(|target| !target.is_empty()).cloned() {
            Some(target) => self.move_machines(at, &target, surplus),
            None => {
                self.delete_machines(at, surplus);
                Ok(())
            }
        }
    }

    fn move_machines(&mut self, at: usize, target: &str, surplus: i32) -> Result<()> {
        let target_at = self.set_index(target).with_context(|| format!("{target} does not exist"))?;
        let name = self.sets[at].name();
        if !self.sets[target_at].annotation(RECEIVE_FROM).contains(&name) {
            bail!("{target} takes no machines from {name}");
        }
        let mut moved = Vec::new();
        let (mut stay, mut go) = (Vec::new(), Vec::new());
        for mut machine in std::mem::take(&mut self.sets[at].machines) {
            if machine.deleting || machine.updating || moved.len() as i32 >= surplus {
                stay.push(machine);
            } else {
                moved.push(machine.name());
                machine.pending_acknowledge = true;
                machine.updating = true;
                go.push(machine);
            }
        }
        self.sets[at].machines = stay;
        self.sets[target_at].machines.extend(go);
        self.sets[target_at].machines.sort_by_key(|machine| machine.number);
        let (left, wanted) = (self.sets[at].machines.len(), self.sets[at].wanted);
        self.line(format!(
            "[MS controller] - {name} scale down to {left}/{wanted} replicas ({} moved to {target})",
            moved.join(",")
        ));
        Ok(())
    }

    fn delete_machines(&mut self, at: usize, surplus: i32) {
        let set = &mut self.sets[at];
        // Those still being updated go first, most recently started first.
        set.machines.sort_by_key(|machine| {
            let number = i64::from(machine.number);
            if machine.updating { (0, -number) } else { (1, number) }
        });
        let gone: Vec<_> = set.machines.drain(..(surplus.max(0) as usize).min(set.machines.len())).collect();
        set.machines.sort_by_key(|machine| machine.number);
        let (name, wanted) = (set.name(), set.wanted);
        let gone = gone.iter().map(Machine::name).collect::<Vec<_>>().join(",");
        self.line(format!(
            "[MS controller] - {name} scale down to {wanted}/{wanted} replicas ({gone} deleted)"
        ));
    }

    /// The state in the format of the sequences' start and end.
    pub fn summary(&self) -> Vec<String> {
        std::iter::once(format!("    {}", self.deployment_summary()))
            .chain(self.sets.iter().map(|set| format!("    {}", self.set_summary(set))))
            .collect()
    }

    fn deployment_summary(&self) -> String {
        let Deployment { desired, replicas, available, up_to_date, .. } = self.deployment;
        format!("md: {replicas}/{desired} replicas, {available} available, {up_to_date} upToDate")
    }

    fn set_summary(&self, set: &Set) -> String {
        format!(
            "{}: {}/{} replicas, {} available, {} upToDate ({})",
            set.name(),
            set.replicas,
            set.wanted,
            set.available,
            set.up_to_date,
            machines_summary(set)
        )
    }
}

fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

fn machines_summary(set: &Set) -> String {
    let acknowledged = set.annotation(ACKNOWLEDGED);
    let names: Vec<_> = set
        .machines
        .iter()
        .map(|machine| {
            let mut name = machine.name();
            if machine.pending_acknowledge && !acknowledged.contains(&name) {
                name.push('🟠');
            }
            if machine.updating {
                name.push('🟡');
            }
            name
        })
        .collect();
    names.join(",")
}

/// Changes of a set's replicas and annotations, in the order of the sequences.
fn changes(was: &Set, is: &Set) -> String {
    let mut text = String::new();
    if was.wanted != is.wanted {
        let _ = write!(text, "replicas {}", is.wanted);
    }
    for key in [REVISION, MOVE_TO, RECEIVE_FROM, ACKNOWLEDGED, DISABLE_CREATE] {
        if was.annotations.get(key) != is.annotations.get(key) {
            let separator = if text.is_empty() { "" } else { "," };
            let value = is.annotations.get(key).map_or(" removed".to_owned(), |value| format!(": {value}"));
            let _ = write!(text, "{separator}{key}{value}");
        }
    }
    text
}
