//! The machines' lifecycle events in order, recorded from the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_apiserver::Digest;
use capstan_capi_types::core::{Machine, condition, label, machine};
use capstan_harness::Clock;
use capstan_object::{ConditionStatus, Conditions as _, Key, Object as _};
use capstan_provider_kit::Size;
use capstan_store::{Event, Store};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::task::AbortHandle;

/// Bucket of Machines in the store.
pub(crate) const MACHINES: &str = "cluster.x-k8s.io/machines";

/// A lifecycle event of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MachineEventKind {
    Created,
    /// It became ready for the first time.
    Ready,
    /// Its deletion has started.
    Deleting,
    Deleted,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineInfo {
    pub namespace: String,
    /// The name in the copy. A machine that does not exist yet may get another name in the original.
    pub name: String,
    pub cluster: String,
    /// `Kind/name` of its owner, such as its MachineDeployment; empty if it has none.
    pub of: String,
    pub version: String,
    /// Empty if the provider chooses.
    pub failure_domain: String,
    /// It existed before the edit.
    pub existed: bool,
    /// Its infrastructure object, as first observed.
    #[serde(skip)]
    pub infrastructure: Option<Arc<Value>>,
}

/// A lifecycle event and its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineEvent {
    /// Simulated seconds since the edit.
    pub seconds: u64,
    pub what: MachineEventKind,
    pub machine: MachineInfo,
    /// Why an existing machine is replaced: how it differs from what its owner wants.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Machines at one time and the capacity they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    pub machines: u64,
    /// Total of the machines whose size is known.
    #[serde(flatten)]
    pub size: Size,
    pub unsized_machines: u64,
}

impl Load {
    fn add(&mut self, size: Option<Size>) {
        self.machines += 1;
        match size {
            Some(size) => {
                self.size.cpus += size.cpus;
                self.size.memory_mib += size.memory_mib;
            }
            None => self.unsized_machines += 1,
        }
    }

    /// The maximum of each value.
    fn or_more(self, other: Self) -> Self {
        Self {
            machines: self.machines.max(other.machines),
            size: Size {
                cpus: self.size.cpus.max(other.size.cpus),
                memory_mib: self.size.memory_mib.max(other.size.memory_mib),
            },
            unsized_machines: self.unsized_machines.max(other.unsized_machines),
        }
    }
}

/// The result of a rehearsal.
#[derive(Debug, Clone, Default)]
pub struct Preview {
    /// Events before the edit, until the copy was idle.
    pub before: Vec<MachineEvent>,
    /// The machines that exist at the time of the edit.
    pub present: Vec<MachineInfo>,
    /// Events after the edit.
    pub steps: Vec<MachineEvent>,
    /// The copy became idle. Otherwise it was still retrying after hours without an event, or kept replacing machines
    /// it had created.
    pub idle: bool,
    /// All objects except Secrets, at the time of the edit; none if no cluster has a class.
    pub objects_before: Vec<Value>,
    /// All objects except Secrets, at the end.
    pub objects: Vec<Value>,
    /// Clusters whose nodes are ready only because the model assumes a CNI.
    pub without_network: Vec<Key>,
}

impl Preview {
    /// The load at the time of the edit, and the peak load after it.
    pub fn loads(
        &self,
        counts: impl Fn(&MachineInfo) -> bool,
        size: impl Fn(&MachineInfo) -> Option<Size>,
    ) -> (Load, Load) {
        let mut there: BTreeMap<(&str, &str), Option<Size>> = BTreeMap::new();
        for machine in self.present.iter().filter(|machine| counts(machine)) {
            there.insert((&machine.namespace, &machine.name), size(machine));
        }
        let before = load(&there);
        let mut peak = before;
        for MachineEvent { what, machine, .. } in self.steps.iter().filter(|step| counts(&step.machine)) {
            match what {
                MachineEventKind::Created => {
                    there.insert((&machine.namespace, &machine.name), size(machine));
                }
                MachineEventKind::Deleted => {
                    there.remove(&(machine.namespace.as_str(), machine.name.as_str()));
                }
                MachineEventKind::Ready | MachineEventKind::Deleting => continue,
            }
            peak = peak.or_more(load(&there));
        }
        (before, peak)
    }

    /// The sum of what machines take of something, at the time of the edit and at its peak after it.
    pub fn amounts(&self, of: impl Fn(&MachineInfo) -> u64) -> (u64, u64) {
        // Any number that is added up will do.
        let taken = |machine: &MachineInfo| Some(Size { cpus: of(machine), memory_mib: 0 });
        let (now, peak) = self.loads(|_| true, taken);
        (now.size.cpus, peak.size.cpus)
    }
}

fn load(there: &BTreeMap<(&str, &str), Option<Size>>) -> Load {
    let mut load = Load::default();
    there.values().for_each(|size| load.add(*size));
    load
}

/// Records the lifecycle events of machines until it is dropped.
pub struct Recorder {
    record: Arc<Mutex<Record>>,
    task: AbortHandle,
}

/// Finds the infrastructure object of a machine.
pub(crate) type FindInfrastructure = Box<dyn Fn(&Machine) -> Option<Value> + Send>;

#[derive(Default)]
struct Record {
    steps: Vec<MachineEvent>,
    known: BTreeMap<String, Known>,
    begun: f64,
    infrastructure: Option<FindInfrastructure>,
}

struct Known {
    of: MachineInfo,
    deleting: bool,
    ready: bool,
    /// The last message of its `UpToDate` condition while that was false.
    outdated: String,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Recorder {
    /// Follows the Machines of a store from now on.
    pub fn follow(store: &Store<Digest>, clock: Clock) -> Self {
        Self::finding(store, clock, None)
    }

    /// Like [`Self::follow`], and records infrastructure objects.
    pub(crate) fn finding(
        store: &Store<Digest>,
        clock: Clock,
        infrastructure: Option<FindInfrastructure>,
    ) -> Self {
        let begun = clock.seconds();
        let record = Arc::new(Mutex::new(Record { begun, infrastructure, ..Record::default() }));
        let revision = store.revision();
        {
            let mut record = record.lock();
            for entry in store.snapshot(MACHINES).range("", None) {
                if let Ok(machine) = serde_json::from_slice::<Machine>(&entry.value) {
                    record.seen(&entry.key, &machine, true, clock.seconds());
                }
            }
            record.steps.clear();
        }
        let (store, writer) = (store.clone(), record.clone());
        let task = tokio::spawn(async move {
            // The history is compacted or the store is closed: nothing more can be recorded.
            let Ok(mut watch) = store.watch(MACHINES, "", revision) else { return };
            while let Ok(batch) = watch.next().await {
                let mut record = writer.lock();
                for event in &batch.events {
                    record.event(event, clock.seconds());
                }
            }
        });
        Self { record, task: task.abort_handle() }
    }

    pub fn steps(&self) -> Vec<MachineEvent> {
        self.record.lock().steps.clone()
    }

    /// Starts counting from now. Returns the events so far and the existing machines.
    pub(crate) fn begin(&self, clock: Clock) -> (Vec<MachineEvent>, Vec<MachineInfo>) {
        let mut record = self.record.lock();
        record.begun = clock.seconds();
        for known in record.known.values_mut() {
            known.of.existed = true;
        }
        let present = record.known.values().map(|known| known.of.clone()).collect();
        (std::mem::take(&mut record.steps), present)
    }

    /// Number of machines that were created since the edit and deleted again.
    pub(crate) fn given_up(&self) -> usize {
        let given_up =
            |step: &&MachineEvent| step.what == MachineEventKind::Deleting && !step.machine.existed;
        self.record.lock().steps.iter().filter(given_up).count()
    }

    /// Time of the last event, in seconds of the clock.
    pub(crate) fn last(&self) -> f64 {
        let record = self.record.lock();
        record.begun + record.steps.last().map_or(0, |step| step.seconds) as f64
    }
}

impl Record {
    fn event(&mut self, event: &Event<Digest>, now: f64) {
        let current = event.current.as_ref().and_then(|entry| serde_json::from_slice(&entry.value).ok());
        match current {
            Some(machine) => self.seen(event.key(), &machine, false, now),
            None => {
                if let Some(known) = self.known.remove(event.key()) {
                    if !known.deleting {
                        self.step(MachineEventKind::Deleting, known.of.clone(), known.outdated, now);
                    }
                    self.step(MachineEventKind::Deleted, known.of, String::new(), now);
                }
            }
        }
    }

    fn seen(&mut self, key: &str, machine: &Machine, existed: bool, now: f64) {
        let deleting = machine.metadata.is_deleting();
        let ready = machine.status.conditions.is_condition_true(condition::READY);
        let known = self.known.get(key);
        let (new, was_deleting, was_ready) =
            known.map_or((true, false, false), |known| (false, known.deleting, known.ready));
        let mut of = described(machine);
        of.existed = known.map_or(existed, |known| known.of.existed);
        of.infrastructure = match known.and_then(|known| known.of.infrastructure.clone()) {
            Some(found) => Some(found),
            None => self.infrastructure.as_ref().and_then(|find| find(machine)).map(Arc::new),
        };
        let up_to_date = machine.status.conditions.condition(machine::condition::UP_TO_DATE);
        let outdated = match up_to_date.filter(|it| it.status == ConditionStatus::False) {
            Some(condition) => condition.message.clone(),
            None => known.map(|known| known.outdated.clone()).unwrap_or_default(),
        };
        for (happened, what, why) in [
            (new, MachineEventKind::Created, ""),
            (ready && !was_ready, MachineEventKind::Ready, ""),
            (deleting && !was_deleting, MachineEventKind::Deleting, outdated.as_str()),
        ] {
            if happened {
                self.step(what, of.clone(), why.to_owned(), now);
            }
        }
        self.known.insert(key.to_owned(), Known { of, deleting, ready: ready || was_ready, outdated });
    }

    fn step(&mut self, what: MachineEventKind, machine: MachineInfo, why: String, now: f64) {
        let seconds = (now - self.begun).max(0.0).round() as u64;
        self.steps.push(MachineEvent { seconds, what, machine, why });
    }
}

fn described(machine: &Machine) -> MachineInfo {
    let meta = machine.metadata();
    let labelled = |label: &str| meta.labels.get(label).filter(|name| !name.is_empty());
    let owner = meta.owner_references.iter().find(|owner| owner.controller == Some(true));
    let of = match labelled(label::DEPLOYMENT_NAME) {
        Some(name) => format!("MachineDeployment/{name}"),
        None => owner.map(|owner| format!("{}/{}", owner.kind, owner.name)).unwrap_or_default(),
    };
    MachineInfo {
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        cluster: machine.spec.cluster_name.clone(),
        of,
        version: machine.spec.version.clone(),
        failure_domain: machine.spec.failure_domain.clone(),
        existed: false,
        infrastructure: None,
    }
}
