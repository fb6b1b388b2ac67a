//! Widgets: a kind whose objects own one machine in a cloud per replica.

use std::sync::Arc;
use std::time::Duration;

use capstan_controller::{
    Call, Controller, Decision, Effect, Intent, Look, Note, ObserveError, Outcome, Resolution, View, Wait,
    Watches,
};
use capstan_object::{
    Condition, ConditionStatus, Conditions, Object, ObjectMeta, OwnerReference, Time, object,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cloud::{Answer, LAG, SimCloud, Vm};

pub const FINALIZER: &str = "sim.test/machines";
pub const PAUSED: &str = "sim.test/paused";
const NEXT: &str = "sim.test/next";

capstan_controller::codes! {
    QUOTA = "E-SIM-QUOTA", Cloud, "the cloud refuses another machine", "wait, or raise the quota";
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Widget {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Spec,
    #[serde(default)]
    pub status: Status,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    #[serde(default)]
    pub replicas: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    pub ready: usize,
    pub conditions: Vec<Condition>,
    pub machines: Vec<Machine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Time>,
}

/// A machine recorded in the widget's status until lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub name: String,
    pub id: String,
    pub at: Time,
    pub deleting: bool,
}

object!(Widget, "sim.test" / "v1", "Widget", "widgets", Namespaced);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigMap {
    pub metadata: ObjectMeta,
}

object!(ConfigMap, "" / "v1", "ConfigMap", "configmaps", Namespaced);

pub fn definition() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.sim.test"},
        "spec": {
            "group": "sim.test", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    })
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum CloudCall {
    Create {
        name: String,
    },
    Delete {
        name: String,
        id: String,
    },
    /// A create call that is not journaled.
    SkipsIntent {
        name: String,
    },
}

impl Call for CloudCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Create { name } | Self::Delete { name, .. } | Self::SkipsIntent { name } => name.clone(),
        }
    }

    fn journalled(&self) -> bool {
        !matches!(self, Self::SkipsIntent { .. })
    }

    fn summary(&self) -> String {
        match self {
            Self::Create { name } | Self::SkipsIntent { name } => format!("create machine {name}"),
            Self::Delete { name, .. } => format!("delete machine {name}"),
        }
    }
}

/// A defect of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// Takes a lost response for a failure and creates another name.
    Assumes,
    /// Takes a lost response for a failure and repeats the call.
    Repeats,
    /// Makes calls without recording intents.
    SkipsIntent,
    /// Removes the finalizer before the machines are gone.
    DropsFinalizer,
    /// Destroys machines without our mark.
    TouchesOthers,
    /// Acts on paused objects.
    IgnoresPause,
    /// Creates children of an object that is being deleted.
    CreatesWhileDeleting,
    /// Writes the time into every status update.
    WritesWhenIdle,
}

pub struct Widgets {
    pub cloud: SimCloud,
    pub flaw: Flaw,
}

pub struct Seen {
    all: Vec<Vm>,
}

impl Seen {
    fn ours<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Vm> {
        self.all.iter().filter(move |vm| vm.owner == uid)
    }
}

/// The machines of a widget: recorded in its status, listed, and created by calls since.
fn machines(look: &Look<Widgets>) -> Vec<Machine> {
    let now = Time::new(look.now);
    let mut machines = look.object.status.machines.clone();
    for concluded in &look.concluded {
        match (&concluded.call, &concluded.result) {
            (CloudCall::Create { name } | CloudCall::SkipsIntent { name }, Some(result)) => {
                let id = result["id"].as_str().unwrap_or_default().to_owned();
                if !machines.iter().any(|machine| machine.id == id) {
                    machines.push(Machine { name: name.clone(), id, at: now, deleting: false });
                }
            }
            (CloudCall::Delete { id, .. }, Some(_)) => {
                for machine in machines.iter_mut().filter(|machine| machine.id == *id) {
                    (machine.deleting, machine.at) = (true, now);
                }
            }
            _ => {}
        }
    }
    let uid = &look.object.metadata.uid;
    for vm in look.seen.ours(uid) {
        match machines.iter_mut().find(|machine| machine.id == vm.id) {
            Some(machine) => machine.deleting = vm.expunging,
            None => machines.push(Machine {
                name: vm.name.clone(),
                id: vm.id.clone(),
                at: now,
                deleting: vm.expunging,
            }),
        }
    }
    let lag = jiff::SignedDuration::try_from(LAG).expect("a short time");
    machines.retain(|machine| {
        let young = look.now.duration_since(machine.at.timestamp()) <= lag;
        young || look.seen.ours(uid).any(|vm| vm.id == machine.id)
    });
    machines
}

impl Controller for Widgets {
    const NAME: &'static str = "widgets";
    type Kind = Widget;
    type Seen = Seen;
    type Call = CloudCall;

    fn watches(&self, watches: &mut Watches<Widget>) {
        watches.owned::<ConfigMap>();
    }

    fn conditions(&self) -> &[&'static str] {
        &["Ready"]
    }

    async fn observe(&self, _: &Arc<Widget>, _: &View) -> Result<Seen, ObserveError> {
        Ok(Seen { all: self.cloud.list() })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        let machines = machines(look);
        let live: Vec<&Machine> = machines.iter().filter(|machine| !machine.deleting).collect();
        decision.object.status.machines = machines.clone();
        decision.object.status.ready = live.len();
        if self.flaw == Flaw::WritesWhenIdle {
            decision.object.status.seen = Some(Time::new(look.now));
            decision.again_in(Duration::from_secs(60));
        }
        if live.len() < machines.len()
            || look.now.duration_since(young(&machines)) < jiff::SignedDuration::from_secs(11)
        {
            decision.again_in(Duration::from_secs(3));
        }
        let delete =
            |machine: &Machine| CloudCall::Delete { name: machine.name.clone(), id: machine.id.clone() };
        if look.object.metadata.is_deleting() {
            if self.flaw == Flaw::CreatesWhileDeleting {
                let mut child = ConfigMap {
                    metadata: ObjectMeta::named("default", format!("late-{}", look.now.as_second())),
                };
                child.metadata.owner_references = vec![OwnerReference::controlled_by(&*look.object)];
                if live.is_empty() && !machines.is_empty() && look.now.as_second() % 2 == 0 {
                    decision.then(Effect::create(&child));
                }
            }
            for machine in &live {
                decision.call(delete(machine));
            }
            if machines.is_empty() || self.flaw == Flaw::DropsFinalizer {
                decision.effects.clear();
                decision.remove_finalizer(FINALIZER);
            } else {
                decision.wait(Wait::on("DeletingMachines", format!("{} machines left", machines.len())));
            }
            return decision;
        }
        decision.add_finalizer(FINALIZER);
        let wanted = look.object.spec.replicas;
        let mut next: usize =
            look.object.metadata.annotations.get(NEXT).and_then(|text| text.parse().ok()).unwrap_or(0);
        if self.flaw == Flaw::Repeats {
            next = live.len();
        }
        for _ in live.len()..wanted {
            let name = format!("{}-{next}", look.object.metadata.name);
            next += 1;
            let call = if self.flaw == Flaw::SkipsIntent {
                CloudCall::SkipsIntent { name }
            } else {
                CloudCall::Create { name }
            };
            let note = Note::normal("Created", "Create", call.summary());
            decision.then_noting(Effect::Call(call), note);
        }
        if live.len() < wanted {
            decision.object.metadata_mut().annotations.insert(NEXT.to_owned(), next.to_string());
            decision.wait(Wait::on("CreatingMachines", format!("{} of {wanted} machines", live.len())));
        }
        for machine in live.iter().skip(wanted) {
            decision.call(delete(machine));
        }
        if self.flaw == Flaw::TouchesOthers {
            for vm in look.seen.all.iter().filter(|vm| vm.owner.is_empty() && !vm.expunging) {
                decision.call(CloudCall::Delete { name: vm.name.clone(), id: vm.id.clone() });
            }
        }
        let (status, reason) = if live.len() == wanted {
            (ConditionStatus::True, "AllThere")
        } else {
            (ConditionStatus::False, "Scaling")
        };
        decision.object.status.conditions.set_condition(look.condition("Ready", status, reason, ""));
        decision
    }

    async fn call(&self, call: &CloudCall, object: &Arc<Widget>, _: &View) -> Outcome {
        match call {
            CloudCall::Create { name } | CloudCall::SkipsIntent { name } => {
                match self.cloud.create(name, &object.metadata.uid) {
                    Answer::Id(id) => Outcome::Done(json!({ "id": id })),
                    Answer::Refused => Outcome::failed(QUOTA, "no room"),
                    Answer::Nothing => Outcome::unknown("no answer"),
                }
            }
            CloudCall::Delete { id, .. } => {
                self.cloud.delete(id);
                Outcome::done()
            }
        }
    }

    async fn resolve(
        &self,
        intent: &Intent<CloudCall>,
        _: &Arc<Widget>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        if matches!(self.flaw, Flaw::Assumes | Flaw::Repeats) {
            return Ok(Resolution::DidNotHappen);
        }
        let list = self.cloud.list();
        Ok(match &intent.call {
            CloudCall::Create { name } | CloudCall::SkipsIntent { name } => {
                let lag = jiff::SignedDuration::try_from(LAG + Duration::from_secs(2)).expect("a short time");
                match list.iter().find(|vm| vm.name == *name) {
                    Some(vm) => Resolution::Happened(json!({"id": vm.id})),
                    None if view.now().duration_since(intent.at.timestamp()) < lag => {
                        Resolution::NotYetKnown { reason: "it may not be listed yet".to_owned() }
                    }
                    None => Resolution::DidNotHappen,
                }
            }
            CloudCall::Delete { id, .. } => match list.iter().find(|vm| vm.id == *id) {
                Some(vm) if !vm.expunging => Resolution::DidNotHappen,
                _ => Resolution::happened(),
            },
        })
    }
}

/// Creation time of the youngest machine.
fn young(machines: &[Machine]) -> jiff::Timestamp {
    machines.iter().map(|machine| machine.at.timestamp()).max().unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
