//! A cloud that lists new machines late, destroys them slowly, loses responses and refuses some calls.

use std::sync::Arc;
use std::time::Duration;

use capstan_controller::Env;
use capstan_harness::{Cloud, Mutation, Resource};
use jiff::Timestamp;
use parking_lot::Mutex;

/// A machine is listed only after this time.
pub const LAG: Duration = Duration::from_secs(10);
/// A destroyed machine exists for this long after the call.
const EXPUNGE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq)]
pub struct Vm {
    pub id: String,
    pub name: String,
    /// Uid of the widget whose mark it carries; empty for a foreign machine.
    pub owner: String,
    pub expunging: bool,
    created: Timestamp,
    deleted: Option<Timestamp>,
}

#[derive(Clone)]
pub struct SimCloud {
    env: Env,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    vms: Vec<Vm>,
    creates: usize,
    mutations: Vec<Mutation>,
    /// The response to every third create is lost and every fourth is refused.
    flaky: bool,
}

pub enum Answer {
    Id(String),
    Refused,
    Nothing,
}

fn after(moment: Timestamp, time: Duration) -> Timestamp {
    moment + jiff::SignedDuration::try_from(time).expect("a short time")
}

impl SimCloud {
    pub fn new(env: &Env, flaky: bool) -> Self {
        let cloud = Self { env: env.clone(), state: Arc::default() };
        cloud.state.lock().flaky = flaky;
        cloud.add("foreign", "");
        cloud
    }

    fn add(&self, name: &str, owner: &str) -> String {
        let id = self.env.uuid();
        self.state.lock().vms.push(Vm {
            id: id.clone(),
            name: name.to_owned(),
            owner: owner.to_owned(),
            expunging: false,
            created: self.env.now(),
            deleted: None,
        });
        id
    }

    /// Names are not unique, as in real clouds.
    pub fn create(&self, name: &str, owner: &str) -> Answer {
        let (count, flaky) = {
            let mut state = self.state.lock();
            state.creates += 1;
            (state.creates, state.flaky)
        };
        if flaky && count.is_multiple_of(4) {
            return Answer::Refused;
        }
        let id = self.add(name, owner);
        if flaky && count.is_multiple_of(3) { Answer::Nothing } else { Answer::Id(id) }
    }

    pub fn delete(&self, id: &str) {
        self.settle();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if let Some(vm) = state.vms.iter_mut().find(|vm| vm.id == id) {
            state.mutations.push(Mutation { verb: "delete".to_owned(), resource: resource(vm) });
            vm.expunging = true;
            vm.deleted.get_or_insert(self.env.now());
        }
    }

    fn settle(&self) {
        let now = self.env.now();
        self.state.lock().vms.retain(|vm| vm.deleted.is_none_or(|at| now < after(at, EXPUNGE)));
    }

    /// What a list returns now.
    pub fn list(&self) -> Vec<Vm> {
        self.settle();
        let now = self.env.now();
        let shown = |vm: &&Vm| vm.owner.is_empty() || now >= after(vm.created, LAG);
        self.state.lock().vms.iter().filter(shown).cloned().collect()
    }

    /// All machines of an owner, listed or not.
    pub fn owned(&self, owner: &str) -> Vec<Vm> {
        self.settle();
        self.state.lock().vms.iter().filter(|vm| vm.owner == owner).cloned().collect()
    }

    pub fn count_ours(&self) -> usize {
        self.settle();
        self.state.lock().vms.iter().filter(|vm| !vm.owner.is_empty()).count()
    }
}

fn resource(vm: &Vm) -> Resource {
    Resource { id: vm.id.clone(), owner: Some(vm.owner.clone()).filter(|owner| !owner.is_empty()) }
}

/// Machines by the uid of their widget.
pub struct ByOwner(pub SimCloud);

/// Machines by name, which must be unique.
pub struct ByName(pub SimCloud);

impl Cloud for ByOwner {
    fn resources(&self) -> Vec<Resource> {
        self.0.settle();
        self.0.state.lock().vms.iter().map(resource).collect()
    }

    fn mutations(&mut self) -> Vec<Mutation> {
        std::mem::take(&mut self.0.state.lock().mutations)
    }
}

impl Cloud for ByName {
    fn resources(&self) -> Vec<Resource> {
        self.0.settle();
        let state = self.0.state.lock();
        let ours = state.vms.iter().filter(|vm| !vm.owner.is_empty());
        ours.map(|vm| Resource { id: vm.id.clone(), owner: Some(vm.name.clone()) }).collect()
    }

    fn mutations(&mut self) -> Vec<Mutation> {
        Vec::new()
    }
}
