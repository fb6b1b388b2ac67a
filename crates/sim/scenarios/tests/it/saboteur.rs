//! A controller that does one wrong thing, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_controller::{
    Call, Client, Controller, Decision, Effect, KindName, Look, ObjectRef, ObserveError, Outcome, Patch,
    View, Watches,
};
use capstan_guest::Site;
use capstan_guest::vm::{Image, Vm, VmSpec};
use capstan_object::{Conditions, Key, Object, ObjectMeta, Scope};
use capstan_scenarios::in_guest;
use capstan_sim_provider::MACHINE_TAG;
use capstan_sim_provider::types::{SimCluster, SimMachine};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The wrong thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flaw {
    /// Creates a second VM for a Machine.
    DuplicatesVm,
    /// Creates a Machine beyond the replicas.
    AddsMachine,
    /// Stops a foreign machine.
    TouchesOthers,
    /// Removes a finalizer while the machine exists.
    DropsFinalizer,
    /// Creates a machine without recording an intent.
    SkipsIntent,
    /// Stops a machine that etcd needs for its quorum.
    CostsQuorum,
    /// Initializes the cluster a second time.
    InitializesAgain,
    /// Gives a worker a newer version than the control plane.
    UpgradesWorkersFirst,
    /// Destroys a machine with pods on its node.
    SkipsDrain,
    /// Acts on a paused cluster.
    IgnoresPause,
    /// Creates a machine for a cluster that is being deleted.
    CreatesWhileDeleting,
    /// Writes a token to a status.
    LeaksToken,
    /// Gives a machine the address of another.
    SharesAddress,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SabotageCall {
    flaw: Flaw,
    on: String,
}

impl Call for SabotageCall {
    fn idempotency_key(&self) -> String {
        self.on.clone()
    }

    fn journalled(&self) -> bool {
        self.flaw != Flaw::SkipsIntent
    }

    fn summary(&self) -> String {
        let verb = match self.flaw {
            Flaw::SkipsDrain => "destroy-vm",
            Flaw::DuplicatesVm | Flaw::SkipsIntent | Flaw::InitializesAgain => "create-vm",
            _ => "sabotage",
        };
        format!("{verb} {}", self.on)
    }
}

pub struct Saboteur {
    site: Site,
    flaw: Flaw,
    done: AtomicBool,
}

impl Saboteur {
    pub fn new(site: &Site, flaw: Flaw) -> Self {
        Self { site: site.clone(), flaw, done: AtomicBool::new(false) }
    }

    /// The machine to sabotage.
    fn victim(&self) -> Option<Vm> {
        let ours: Vec<Vm> =
            self.site.vms().into_iter().filter(|vm| vm.tags.contains_key(MACHINE_TAG)).collect();
        let guest = ours.iter().find_map(|vm| self.site.cluster_of(&vm.id))?;
        let has_vote =
            |vm: &Vm| guest.etcd_members().iter().any(|member| Some(&member.name) == vm.node.as_ref());
        ours.into_iter().find(|vm| match self.flaw {
            Flaw::CostsQuorum | Flaw::InitializesAgain => has_vote(vm),
            _ => !has_vote(vm),
        })
    }
}

pub struct Seen {
    done: bool,
    available: bool,
    paused: bool,
    going: bool,
    victim: Option<Vm>,
    machines: Vec<Arc<SimMachine>>,
    owners: Vec<Arc<Machine>>,
}

impl Controller for Saboteur {
    const NAME: &'static str = "saboteur";
    type Kind = SimCluster;
    type Seen = Seen;
    type Call = SabotageCall;

    fn watches(&self, watches: &mut Watches<SimCluster>) {
        watches.read::<Machine>();
        watches.related::<SimMachine>(|_, _| vec![Key::new("default", "c")]);
        watches.related::<Cluster>(|change, _| {
            change
                .latest()
                .map(|cluster| Key::new("default", cluster.metadata.name.as_str()))
                .into_iter()
                .collect()
        });
    }

    async fn observe(&self, object: &Arc<SimCluster>, view: &View) -> Result<Seen, ObserveError> {
        let cluster = view.get::<Cluster>(&Key::new("default", object.metadata.name.as_str()))?;
        let machines = view.list::<SimMachine>("default")?;
        let ready = |machine: &Arc<SimMachine>| machine.status.conditions.is_condition_true("Ready");
        let victim = self.victim();
        if self.flaw == Flaw::SkipsDrain
            && let Some(victim) = &victim
        {
            self.place_pod(victim).await;
        }
        let is = |holds: fn(&Cluster) -> bool| cluster.as_deref().is_some_and(holds);
        Ok(Seen {
            done: self.done.load(Ordering::Relaxed),
            available: machines.len() == 2 && machines.iter().all(ready),
            paused: is(|cluster| cluster.spec.paused == Some(true)),
            going: is(|cluster| cluster.metadata.is_deleting()),
            victim,
            machines,
            owners: view.list("default")?,
        })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        let seen = &look.seen;
        let now = match self.flaw {
            Flaw::IgnoresPause => seen.paused,
            Flaw::CreatesWhileDeleting => seen.going,
            _ => seen.available,
        };
        if seen.done || !now {
            return decision;
        }
        let late = self.flaw == Flaw::IgnoresPause;
        if late && look.now.as_second() % 10 != 9 {
            // Not in the same second: an earlier decision may still be carried out then.
            decision.again_in(Duration::from_secs(1));
            return decision;
        }
        let Some(effect) = self.effect(seen) else {
            decision.again_in(Duration::from_secs(1));
            return decision;
        };
        decision.then(effect);
        self.done.store(true, Ordering::Relaxed);
        decision
    }

    async fn call(&self, call: &SabotageCall, _: &Arc<SimCluster>, view: &View) -> Outcome {
        let made = match call.flaw {
            Flaw::TouchesOthers => self.site.stop("foreign"),
            Flaw::CostsQuorum => self.site.crash(&call.on),
            Flaw::SkipsDrain => self.site.destroy(&call.on),
            Flaw::DuplicatesVm | Flaw::SkipsIntent => {
                let name = self.site.vm(&call.on).map(|vm| vm.name).unwrap_or_default();
                self.site.create(vm("default/x/1", &name, b"#cloud-config\n{}\n".to_vec())).map(drop)
            }
            Flaw::InitializesAgain => {
                self.site.create(vm("default/x/1", "x", first_data(view).await)).map(drop)
            }
            Flaw::UpgradesWorkersFirst => {
                self.upgrade_node(&call.on).await;
                Ok(())
            }
            _ => Ok(()),
        };
        made.expect("sabotage succeeds");
        Outcome::done()
    }
}

impl Saboteur {
    fn effect(&self, seen: &Seen) -> Option<Effect<SabotageCall>> {
        let target = || Some(ObjectRef::to(&**seen.machines.first()?));
        let status = |status: Value| {
            Some(Effect::Patch {
                target: target()?,
                subresource: Some("status"),
                patch: Patch::Merge(json!({ "status": status })),
            })
        };
        Some(match self.flaw {
            Flaw::DropsFinalizer => Effect::merge(target()?, json!({"metadata": {"finalizers": null}})),
            Flaw::LeaksToken => status(json!({"failureDomain": "abcdef.0123456789abcdef"}))?,
            Flaw::SharesAddress => {
                let other = seen.machines.get(1)?;
                status(json!({ "addresses": other.status.addresses }))?
            }
            Flaw::AddsMachine | Flaw::CreatesWhileDeleting => {
                let model =
                    seen.owners.iter().find(|machine| machine.metadata.labels.contains_key(label::SET_NAME));
                let labels = model.map(|model| model.metadata.labels.clone()).unwrap_or_default();
                let metadata = ObjectMeta { labels, ..ObjectMeta::named("default", "extra") };
                let mut machine = Machine { metadata, ..Machine::default() };
                machine.spec.cluster_name = "c".to_owned();
                machine.spec.bootstrap.data_secret_name = Some("extra".to_owned());
                machine.spec.infrastructure_ref.api_group = SimMachine::KIND.group.to_owned();
                machine.spec.infrastructure_ref.kind = SimMachine::KIND.kind.to_owned();
                machine.spec.infrastructure_ref.name = "extra".to_owned();
                Effect::create(&machine)
            }
            flaw => {
                let on = seen.victim.as_ref().map(|vm| vm.id.clone());
                let on = if matches!(flaw, Flaw::TouchesOthers | Flaw::IgnoresPause) {
                    Some("x".to_owned())
                } else {
                    on
                };
                Effect::Call(SabotageCall { flaw, on: on? })
            }
        })
    }

    /// Creates a pod that a drain would evict.
    async fn place_pod(&self, vm: &Vm) {
        let Some(node) = &vm.node else { return };
        let guest = self.site.cluster_of(&vm.id).expect("a cluster");
        let client = Client::in_process(guest.server().clone(), "saboteur");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        });
        // An existing one will do.
        let _ = client.create(&in_guest("Pod", "pods", Scope::Namespaced), "default", &pod).await;
    }

    async fn upgrade_node(&self, id: &str) {
        let vm = self.site.vm(id).expect("a machine");
        let guest = self.site.cluster_of(id).expect("a cluster");
        let client = Client::in_process(guest.server().clone(), "saboteur");
        let nodes = in_guest("Node", "nodes", Scope::Cluster);
        let node = Key::new("", vm.node.expect("a node"));
        let newer = Patch::Merge(json!({"status": {"nodeInfo": {"kubeletVersion": "v1.99.0"}}}));
        client.patch(&nodes, &node, Some("status"), &newer).await.expect("a patch");
    }
}

fn vm(id: &str, name: &str, user_data: Vec<u8>) -> VmSpec {
    let tags = [(MACHINE_TAG, id), (label::CLUSTER_NAME, "c")];
    VmSpec {
        id: id.to_owned(),
        name: name.to_owned(),
        user_data,
        image: Image { kubernetes: Some("v1.35.2".to_owned()) },
        address: None,
        provider_id: Some(format!("sim://{id}")),
        cpus: 2,
        memory_mib: 4096,
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        faults: Vec::new(),
    }
}

/// The boot data of the first control plane machine, which initializes a cluster.
async fn first_data(view: &View) -> Vec<u8> {
    use base64::Engine;
    let machines = view.list::<Machine>("default").expect("machines");
    let mut control_plane =
        machines.iter().filter(|machine| machine.metadata.labels.contains_key(label::CONTROL_PLANE));
    let secret = control_plane.next().and_then(|machine| machine.spec.bootstrap.data_secret_name.clone());
    let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
    let key = Key::new("default", secret.expect("boot data"));
    let reply = view.client().get_raw(&secrets, &key).await.expect("an answer").expect("a secret");
    let secret: Value = reply.parse().expect("a secret");
    let text = secret["data"]["value"].as_str().expect("boot data");
    base64::engine::general_purpose::STANDARD.decode(text).expect("boot data")
}
