//! What happens to machines, in order: recorded from the store that holds them, whoever changes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_apiserver::Digest;
use capstan_capi_types::core::{Machine, condition, label};
use capstan_harness::Clock;
use capstan_object::{Conditions as _, Key, Object as _};
use capstan_provider_kit::Size;
use capstan_store::{Event, Store};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::task::AbortHandle;

/// Where Machines are in a store.
pub(crate) const MACHINES: &str = "cluster.x-k8s.io/machines";

/// What happens to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// It is asked for.
    Created,
    /// It is ready for the first time.
    Ready,
    /// It begins to go.
    Deleting,
    /// It is gone.
    Deleted,
}

/// Which machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineOf {
    /// Namespace.
    pub namespace: String,
    /// Name. That of a machine which does not exist yet is the copy's: the original may call it otherwise.
    pub name: String,
    /// Cluster.
    pub cluster: String,
    /// `Kind/name` of what it is a replica of; empty if it is of nothing.
    pub of: String,
    /// Kubernetes version.
    pub version: String,
    /// Failure domain; empty if the provider chooses.
    pub failure_domain: String,
    /// It was there before.
    pub existed: bool,
    /// The object that stands for it at its provider, as it was when the machine was first seen.
    #[serde(skip)]
    pub infrastructure: Option<Arc<Value>>,
}

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Seconds since the edit, by the model.
    pub seconds: u64,
    /// What.
    pub what: What,
    /// To which machine.
    pub machine: MachineOf,
}

/// Machines at one time and what they occupy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// Machines.
    pub machines: u64,
    /// Cores and memory of those whose size is known.
    #[serde(flatten)]
    pub size: Size,
    /// Machines whose size is not known.
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

    /// The larger of two, in each respect.
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

/// What happened on the copy.
#[derive(Debug, Clone, Default)]
pub struct Course {
    /// What was under way before the edit and came to its end.
    pub before: Vec<Step>,
    /// The machines that are there when the edit is made.
    pub present: Vec<MachineOf>,
    /// What the edit led to.
    pub steps: Vec<Step>,
    /// The plane came to rest; otherwise it still tried something when nothing had changed for hours, or
    /// replaced again and again what it had made.
    pub rested: bool,
    /// All objects but Secrets, as they are at the end.
    pub objects: Vec<Value>,
    /// Clusters whose nodes have a network only because the model gives them one.
    pub without_network: Vec<Key>,
}

impl Course {
    /// What machines occupy when the edit is made, and the most that they do at one time after it.
    pub fn loads(
        &self,
        counts: impl Fn(&MachineOf) -> bool,
        size: impl Fn(&MachineOf) -> Option<Size>,
    ) -> (Load, Load) {
        let mut there: BTreeMap<(&str, &str), Option<Size>> = BTreeMap::new();
        for machine in self.present.iter().filter(|machine| counts(machine)) {
            there.insert((&machine.namespace, &machine.name), size(machine));
        }
        let before = load(&there);
        let mut peak = before;
        for Step { what, machine, .. } in self.steps.iter().filter(|step| counts(&step.machine)) {
            match what {
                What::Created => drop(there.insert((&machine.namespace, &machine.name), size(machine))),
                What::Deleted => drop(there.remove(&(machine.namespace.as_str(), machine.name.as_str()))),
                What::Ready | What::Deleting => continue,
            }
            peak = peak.or_more(load(&there));
        }
        (before, peak)
    }
}

fn load(there: &BTreeMap<(&str, &str), Option<Size>>) -> Load {
    let mut load = Load::default();
    there.values().for_each(|size| load.add(*size));
    load
}

/// Records what happens to machines while it lives.
pub struct Recorder {
    record: Arc<Mutex<Record>>,
    task: AbortHandle,
}

/// Finds the object that stands for a machine at its provider.
pub(crate) type FindInfrastructure = Box<dyn Fn(&Machine) -> Option<Value> + Send>;

#[derive(Default)]
struct Record {
    steps: Vec<Step>,
    known: BTreeMap<String, Known>,
    begun: f64,
    infrastructure: Option<FindInfrastructure>,
}

struct Known {
    of: MachineOf,
    deleting: bool,
    ready: bool,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Recorder {
    /// Follows the Machines of a store from here on.
    pub fn follow(store: &Store<Digest>, clock: Clock) -> Self {
        Self::finding(store, clock, None)
    }

    /// The same, with what stands for machines at their providers.
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
            // A history that is gone, or a store that is closed: nothing more can be recorded.
            let Ok(mut watch) = store.watch(MACHINES, "", revision) else { return };
            while let Ok(batch) = watch.next().await {
                let mut record = writer.lock();
                for event in &batch.events {
                    record.heard(event, clock.seconds());
                }
            }
        });
        Self { record, task: task.abort_handle() }
    }

    /// What has happened so far.
    pub fn steps(&self) -> Vec<Step> {
        self.record.lock().steps.clone()
    }

    /// Takes what has happened so far for past: what follows is counted from now. Answers it, and the machines there are.
    pub(crate) fn begin(&self, clock: Clock) -> (Vec<Step>, Vec<MachineOf>) {
        let mut record = self.record.lock();
        record.begun = clock.seconds();
        for known in record.known.values_mut() {
            known.of.existed = true;
        }
        let present = record.known.values().map(|known| known.of.clone()).collect();
        (std::mem::take(&mut record.steps), present)
    }

    /// How many machines were made since the edit and are deleted again.
    pub(crate) fn given_up(&self) -> usize {
        let given_up = |step: &&Step| step.what == What::Deleting && !step.machine.existed;
        self.record.lock().steps.iter().filter(given_up).count()
    }

    /// When something happened last, in seconds of the clock.
    pub(crate) fn last(&self) -> f64 {
        let record = self.record.lock();
        record.begun + record.steps.last().map_or(0, |step| step.seconds) as f64
    }
}

impl Record {
    fn heard(&mut self, event: &Event<Digest>, now: f64) {
        let current = event.current.as_ref().and_then(|entry| serde_json::from_slice(&entry.value).ok());
        match current {
            Some(machine) => self.seen(event.key(), &machine, false, now),
            None => {
                if let Some(known) = self.known.remove(event.key()) {
                    if !known.deleting {
                        self.step(What::Deleting, known.of.clone(), now);
                    }
                    self.step(What::Deleted, known.of, now);
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
        for (happened, what) in [
            (new, What::Created),
            (ready && !was_ready, What::Ready),
            (deleting && !was_deleting, What::Deleting),
        ] {
            if happened {
                self.step(what, of.clone(), now);
            }
        }
        self.known.insert(key.to_owned(), Known { of, deleting, ready: ready || was_ready });
    }

    fn step(&mut self, what: What, machine: MachineOf, now: f64) {
        let seconds = (now - self.begun).max(0.0).round() as u64;
        self.steps.push(Step { seconds, what, machine });
    }
}

fn described(machine: &Machine) -> MachineOf {
    let meta = machine.metadata();
    let labelled = |label: &str| meta.labels.get(label).filter(|name| !name.is_empty());
    let owner = meta.owner_references.iter().find(|owner| owner.controller == Some(true));
    let of = match labelled(label::DEPLOYMENT_NAME) {
        Some(name) => format!("MachineDeployment/{name}"),
        None => owner.map(|owner| format!("{}/{}", owner.kind, owner.name)).unwrap_or_default(),
    };
    MachineOf {
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
