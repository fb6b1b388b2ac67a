//! A story: what a user does with one cluster, act by act.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::Config;
use capstan_capi_kubeadm::certificates::SeededKeys;
use capstan_capi_plane as plane;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, label};
use capstan_controller::operation::Intention;
use capstan_controller::{Client, Deletion, Env, KindName, Options, Patch, Runtime, Workloads};
use capstan_guest::vm::{Image, VmSpec};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_harness::{Checker, Objects, Scenario, Violation, World};
use capstan_object::{Key, Object};
use capstan_sim_provider::{MACHINE_TAG, SimClusters, SimMachines};
use serde_json::{Value, json};

use crate::expect::{self, Shape};
use crate::manifests::{self, NAME, NAMESPACE, WORKERS};
use crate::{check, kinds};

/// What a user does, or what befalls the cluster. Each act is followed by rest, and then all must be well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// The cluster is created.
    Create,
    /// The number of workers changes.
    ScaleWorkers(usize),
    /// The number of control plane machines changes.
    ScaleControlPlane(usize),
    /// The control plane gets another version, and then the workers.
    Upgrade(&'static str),
    /// A worker dies.
    KillWorker,
    /// A machine of the control plane dies.
    KillControlPlane,
    /// Somebody takes all finalizers and owner references away.
    Strip,
    /// The cluster is paused, scaled, and resumed after a while.
    ScaleWhilePaused(usize),
    /// Nothing happens for ten minutes, and nothing is written.
    Idle,
    /// The cluster is deleted.
    Delete,
}

impl Act {
    /// What the plane calls what it does about it.
    fn intention(self) -> Option<Intention> {
        match self {
            Self::Create => Some(Intention::Create),
            Self::ScaleWorkers(_) | Self::ScaleControlPlane(_) | Self::ScaleWhilePaused(_) => {
                Some(Intention::Scale)
            }
            Self::Upgrade(_) => Some(Intention::Upgrade),
            Self::KillWorker | Self::KillControlPlane => Some(Intention::Heal),
            Self::Delete => Some(Intention::Delete),
            Self::Strip | Self::Idle => None,
        }
    }
}

/// Adds controllers of a test's own.
pub type Extra = fn(&Site, &mut Runtime);

/// The life of a cluster.
#[derive(Clone)]
pub struct Story {
    /// What it is called.
    pub name: &'static str,
    /// Control plane machines at the beginning.
    pub control_plane: usize,
    /// Workers at the beginning.
    pub workers: usize,
    /// Version at the beginning.
    pub version: &'static str,
    /// What happens.
    pub acts: Vec<Act>,
    /// How many acts only prepare: misfortunes are looked for in those that follow.
    pub prologue: usize,
    /// It goes on after a misfortune until its end. Otherwise it ends with the act in which one struck: what follows is
    /// another story.
    pub to_the_end: bool,
    /// It has a network, and its machines are replaced when they fall silent. Without, nodes never get ready.
    pub network: bool,
    /// Its nodes tell now and then that they live. Otherwise only what is silent is noticed, which costs less time.
    pub heartbeats: bool,
    /// How long things take in the machines.
    pub timings: Timings,
    /// Controllers beside those of the product: what breaks it, in tests of the checkers.
    pub extra: Option<Extra>,
}

/// What lives on when the process dies.
#[derive(Clone)]
pub struct Outside {
    /// The machines.
    pub site: Site,
}

/// How long nothing is written while nothing happens.
const IDLE: Duration = Duration::from_secs(600);

/// A machine of somebody else.
pub(crate) const FOREIGN: &str = "somebody-elses";

fn failed(error: impl std::fmt::Display) -> Violation {
    Violation::new("story", error.to_string())
}

async fn patch<T: Object>(world: &World<'_>, name: &str, change: Value) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, name);
    let patched = world.user()?.patch(&KindName::of::<T>(), &key, None, &Patch::Merge(change)).await;
    patched.map(drop).map_err(failed)
}

impl Story {
    fn settings() -> plane::Settings {
        plane::Settings { keys: Arc::new(SeededKeys::new(7)), ..plane::Settings::default() }
    }

    async fn act(
        &self,
        act: Act,
        world: &mut World<'_>,
        site: &Site,
        shape: &mut Shape,
    ) -> Result<(), Violation> {
        match act {
            Act::Create => {
                for (kind, body) in manifests::cluster(shape) {
                    world.user()?.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
                }
            }
            Act::ScaleWorkers(workers) => {
                shape.workers = workers;
                patch::<MachineDeployment>(world, WORKERS, json!({"spec": {"replicas": workers}})).await?;
            }
            Act::ScaleControlPlane(replicas) => {
                shape.control_plane = replicas;
                patch::<KubeadmControlPlane>(world, NAME, json!({"spec": {"replicas": replicas}})).await?;
            }
            Act::Upgrade(version) => {
                shape.version = version.to_owned();
                patch::<KubeadmControlPlane>(world, NAME, json!({"spec": {"version": version}})).await?;
                // At once: the order is the plane's business.
                let change = json!({"spec": {"template": {"spec": {"version": version}}}});
                patch::<MachineDeployment>(world, WORKERS, change).await?;
            }
            Act::KillWorker => kill(world, site, false)?,
            Act::KillControlPlane => kill(world, site, true)?,
            Act::Strip => return self.strip(world).await,
            Act::Idle => return idle(world, site).await,
            Act::ScaleWhilePaused(workers) => {
                patch::<Cluster>(world, NAME, json!({"spec": {"paused": true}})).await?;
                world.pass(Duration::from_secs(5)).await?;
                patch::<MachineDeployment>(world, WORKERS, json!({"spec": {"replicas": workers}})).await?;
                world.rest().await?;
                expect::machines(shape, world, site)?;
                shape.workers = workers;
                patch::<Cluster>(world, NAME, json!({"spec": {"paused": false}})).await?;
            }
            Act::Delete => {
                let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
                world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
                world.rest().await?;
                return expect::nothing(world, site);
            }
        }
        world.rest().await?;
        expect::all_is_well(shape, world, site)?;
        match act.intention().filter(|_| self.network) {
            Some(intention) => expect::operation(intention, world),
            None => Ok(()),
        }
    }

    /// Takes finalizers and owners away from everything, and sees them come back.
    async fn strip(&self, world: &mut World<'_>) -> Result<(), Violation> {
        let metadata = |object: &Value| {
            let meta = &object["metadata"];
            let mut owners = meta["ownerReferences"].as_array().cloned().unwrap_or_default();
            owners.sort_by_key(Value::to_string);
            json!({"finalizers": meta["finalizers"], "ownerReferences": owners})
        };
        let mut before: BTreeMap<(KindName, String), Value> = BTreeMap::new();
        for kind in kinds::owned() {
            for object in world.objects()?.list(&kind) {
                before.insert((kind.clone(), kinds::name(&object).to_owned()), metadata(&object));
            }
        }
        let stripped = Patch::Merge(json!({"metadata": {"finalizers": null, "ownerReferences": null}}));
        for (kind, name) in before.keys() {
            let key = Key::new(NAMESPACE, name.as_str());
            world.user()?.patch(kind, &key, None, &stripped).await.map_err(failed)?;
        }
        world.rest().await?;
        for ((kind, name), wanted) in &before {
            let stored = world.objects()?.get(kind, &Key::new(NAMESPACE, name.as_str())).unwrap_or_default();
            let found = metadata(&stored);
            if found != *wanted {
                return Err(Violation::new("L1", format!("{kind} {name} had {wanted} and now has {found}")));
            }
        }
        Ok(())
    }
}

/// The versions of everything on a server, but of what `aside` names.
fn versions(objects: &Objects, aside: &[&str]) -> BTreeMap<(String, String), u64> {
    let store = objects.store();
    let buckets = store.buckets().into_iter().filter(|bucket| !aside.contains(&bucket.as_ref()));
    let versions = buckets.flat_map(|bucket| {
        let snapshot = store.snapshot(&bucket);
        let entries = snapshot.range("", None).map(|entry| (entry.key.to_string(), entry.revision));
        entries.map(|(key, revision)| ((bucket.to_string(), key), revision)).collect::<Vec<_>>()
    });
    versions.collect()
}

/// Ten minutes pass. Nothing is written, here or in the cluster, but what kubelets tell of themselves.
async fn idle(world: &mut World<'_>, site: &Site) -> Result<(), Violation> {
    let all = |world: &World<'_>| -> Result<_, Violation> {
        let guests = site.vms().into_iter().find_map(|vm| site.cluster_of(&vm.id));
        let guest = guests.ok_or_else(|| failed("no cluster was formed"))?;
        let of_kubelets = ["/nodes", "coordination.k8s.io/leases"];
        Ok((versions(&world.objects()?, &[]), versions(&Objects::of(guest.server()), &of_kubelets)))
    };
    let before = all(world)?;
    world.pass(IDLE).await?;
    let after = all(world)?;
    for (place, before, after) in [("here", &before.0, &after.0), ("in the cluster", &before.1, &after.1)] {
        let changed = after.iter().find(|(key, version)| before.get(key) != Some(version));
        let gone = before.keys().find(|key| !after.contains_key(key));
        if let Some((bucket, key)) = changed.map(|(key, _)| key).or(gone) {
            let what = format!("{bucket} {key} was written {place} in {IDLE:?} without a reason");
            return Err(Violation::new("L2", what));
        }
    }
    Ok(())
}

/// A machine of a role dies where it stands.
fn kill(world: &World<'_>, site: &Site, control_plane: bool) -> Result<(), Violation> {
    let machines = world.objects()?.list(&KindName::of::<Machine>());
    let of_role =
        machines.iter().find(|machine| kinds::has_label(machine, label::CONTROL_PLANE) == control_plane);
    let id = of_role.and_then(|machine| machine["spec"]["providerID"].as_str()?.strip_prefix("sim://"));
    let id = id.ok_or_else(|| failed("there is nobody to kill"))?;
    site.crash(id).map_err(failed)
}

impl Scenario for Story {
    type Outside = Outside;

    fn outside(&self, env: &Env) -> Outside {
        let mut options = SiteOptions { timings: self.timings, ..SiteOptions::default() };
        if !self.heartbeats {
            options.heartbeat = None;
        }
        let site = Site::new(env.clone(), options);
        let foreign = VmSpec {
            id: FOREIGN.to_owned(),
            name: FOREIGN.to_owned(),
            user_data: b"#cloud-config\n{}\n".to_vec(),
            image: Image { kubernetes: None },
            address: Some(Ipv4Addr::new(10, 9, 8, 7)),
            provider_id: None,
            cpus: 1,
            memory_mib: 512,
            tags: BTreeMap::from([("owner".to_owned(), "somebody".to_owned())]),
            faults: Vec::new(),
        };
        // Cannot be refused: the site is empty.
        let _ = site.create(foreign);
        Outside { site }
    }

    fn controllers(&self, outside: &Outside, runtime: &mut Runtime) {
        plane::add_controllers(runtime, &Self::settings());
        runtime.add(SimClusters::new(outside.site.clone()));
        runtime.add(SimMachines::new(outside.site.clone()));
        if let Some(extra) = self.extra {
            extra(&outside.site, runtime);
        }
    }

    fn checkers(&self, outside: &Outside) -> Vec<Box<dyn Checker>> {
        check::all(&outside.site)
    }

    fn workloads(&self, outside: &Outside, management: Client, env: Env) -> Option<Arc<dyn Workloads>> {
        Some(plane::workloads(management, outside.site.dial(), env))
    }

    fn configure(&self, config: Config) -> Config {
        plane::configure(config)
    }

    fn options(&self) -> Options {
        plane::options(&Self::settings())
    }

    async fn prepare(&self, world: &World<'_>) -> Result<(), Violation> {
        let mut definitions = plane::definitions();
        definitions.extend(capstan_sim_provider::definitions());
        plane::install(&world.user()?, &definitions).await.map_err(failed)
    }

    async fn play(&self, world: &mut World<'_>, outside: &Outside) -> Result<(), Violation> {
        let mut shape = Shape {
            control_plane: self.control_plane,
            workers: self.workers,
            version: self.version.to_owned(),
            network: self.network,
        };
        for (at, act) in self.acts.iter().enumerate() {
            if at == self.prologue {
                world.expose();
            }
            world.note(&format!("ACT {act:?}"));
            let played = self.act(*act, world, &outside.site, &mut shape).await;
            played.map_err(|violation| {
                Violation::new(&violation.property, format!("{act:?}: {}", violation.what))
            })?;
            if world.is_struck() && !self.to_the_end {
                break;
            }
        }
        Ok(())
    }
}

/// The machine carries the mark of the provider.
pub(crate) fn is_ours(vm: &capstan_guest::vm::Vm) -> bool {
    vm.tags.contains_key(MACHINE_TAG)
}
