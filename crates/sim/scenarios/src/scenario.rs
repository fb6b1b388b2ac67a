//! A scenario: the actions of a user on one cluster.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::Config;
use capstan_capi_kubeadm::certificates::SeededKeys;
use capstan_capi_plane as plane;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachinePool, label};
use capstan_controller::operation::Intention;
use capstan_controller::{Client, Deletion, Env, KindName, Options, Patch, Runtime, Workloads};
use capstan_guest::vm::{Image, VmSpec};
use capstan_guest::{Site, SiteOptions, Timings};
use capstan_harness::{Checker, Objects, Scenario, Violation, World};
use capstan_object::{Key, Object};
use capstan_sim_provider::{MACHINE_TAG, SimClusters, SimMachinePools, SimMachineTemplates, SimMachines};
use serde_json::{Value, json};

use crate::expect::{self, Shape};
use crate::manifests::{self, NAME, NAMESPACE, WORKERS};
use crate::{check, class, kinds};

/// An action of a user or a failure. After each the cluster must become idle and have its expected state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Create,
    ScaleWorkers(usize),
    ScaleControlPlane(usize),
    /// Changes the version of the control plane, then of the workers.
    Upgrade(&'static str),
    /// Changes a variable of a cluster of a class: every machine is replaced.
    ChangeMemory(i32),
    /// Has the class use other templates: every machine is replaced.
    EditClass(i32),
    /// Moves the cluster to another class, and deletes the one before: every machine is replaced.
    Rebase(i32),
    KillWorker,
    KillControlPlane,
    /// All finalizers and owner references are removed.
    Strip,
    /// The cluster is paused, scaled and later resumed.
    ScaleWhilePaused(usize),
    /// For ten minutes nothing happens and nothing is written.
    Idle,
    Delete,
}

impl Act {
    /// The intention of the operation that it causes.
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
            Self::ChangeMemory(_) | Self::EditClass(_) | Self::Rebase(_) => None,
        }
    }
}

/// AddsMachine controllers for a test.
pub type Extra = fn(&Site, &mut Runtime);

/// The lifecycle of one cluster.
#[derive(Clone)]
pub struct ClusterScenario {
    pub name: &'static str,
    /// Initial control plane replicas.
    pub control_plane: usize,
    /// Initial worker replicas.
    pub workers: usize,
    /// Initial version.
    pub version: &'static str,
    pub acts: Vec<Act>,
    /// Number of acts that only prepare: faults are injected in those that follow.
    pub prologue: usize,
    /// Continue after a fault to the last act. Otherwise the run ends with the act in which the fault was injected.
    pub run_to_end: bool,
    /// The cluster has a CNI and health checks. Without, nodes never become ready.
    pub network: bool,
    /// The cluster is made of a ClusterClass.
    pub class: bool,
    /// The workers are a MachinePool instead of a MachineDeployment.
    pub pool: bool,
    /// Nodes send heartbeats. Otherwise only missing ones are noticed, which costs less CPU time.
    pub heartbeats: bool,
    /// Durations in the machines.
    pub timings: Timings,
    /// Additional controllers: defects, in tests of the checkers.
    pub extra: Option<Extra>,
}

/// What survives a crash.
#[derive(Clone)]
pub struct Outside {
    pub site: Site,
}

/// Duration of [`Act::Idle`].
const IDLE: Duration = Duration::from_secs(600);

/// Lifetime of bootstrap tokens if a cluster has a pool.
const POOL_TOKENS: Duration = Duration::from_secs(90 * 24 * 3600);

/// Id of a foreign machine.
pub(crate) const FOREIGN: &str = "foreign";

pub(crate) fn failed(error: impl std::fmt::Display) -> Violation {
    Violation::new("scenario", error.to_string())
}

pub(crate) async fn patch<T: Object>(world: &World<'_>, name: &str, change: Value) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, name);
    let patched = world.user()?.patch(&KindName::of::<T>(), &key, None, &Patch::Merge(change)).await;
    patched.map(drop).map_err(failed)
}

impl ClusterScenario {
    fn settings(&self) -> plane::Settings {
        let mut settings =
            plane::Settings { keys: Arc::new(SeededKeys::new(7)), ..plane::Settings::default() };
        if self.pool {
            // Replacing tokens is never over, and a run ends when nothing is left to do.
            settings.token_ttl = POOL_TOKENS;
        }
        settings
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
            Act::ScaleWorkers(_) | Act::ScaleControlPlane(_) | Act::Upgrade(_) | Act::ChangeMemory(_)
                if shape.class =>
            {
                match act {
                    Act::ScaleWorkers(workers) => shape.workers = workers,
                    Act::ScaleControlPlane(replicas) => shape.control_plane = replicas,
                    Act::Upgrade(version) => shape.version = version.to_owned(),
                    Act::ChangeMemory(memory) => {
                        (shape.variable, shape.memory) = (Some(memory), Some(memory));
                    }
                    _ => {}
                }
                patch::<Cluster>(world, NAME, json!({"spec": {"topology": class::topology(shape)}})).await?;
            }
            Act::EditClass(memory) if shape.class => class::edit(world, shape, memory).await?,
            Act::Rebase(memory) if shape.class => class::rebase(world, shape, memory).await?,
            Act::ChangeMemory(_) | Act::EditClass(_) | Act::Rebase(_) => {
                return Err(failed("the cluster has no class"));
            }
            Act::ScaleWorkers(workers) if shape.pool => {
                shape.workers = workers;
                patch::<MachinePool>(world, WORKERS, json!({"spec": {"replicas": workers}})).await?;
            }
            Act::ScaleWorkers(workers) => {
                shape.workers = workers;
                patch::<MachineDeployment>(world, WORKERS, json!({"spec": {"replicas": workers}})).await?;
            }
            Act::ScaleControlPlane(replicas) => {
                shape.control_plane = replicas;
                patch::<KubeadmControlPlane>(world, NAME, json!({"spec": {"replicas": replicas}})).await?;
            }
            Act::Upgrade(version) if shape.pool => {
                shape.version = version.to_owned();
                patch::<KubeadmControlPlane>(world, NAME, json!({"spec": {"version": version}})).await?;
                // A pool follows its version at once, as upstream: users upgrade the control plane first.
                world.run_until_idle().await?;
                let change = json!({"spec": {"template": {"spec": {"version": version}}}});
                patch::<MachinePool>(world, WORKERS, change).await?;
            }
            Act::Upgrade(version) => {
                shape.version = version.to_owned();
                patch::<KubeadmControlPlane>(world, NAME, json!({"spec": {"version": version}})).await?;
                // At once: the controllers choose the order.
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
                world.run_until_idle().await?;
                expect::machines(shape, world, site)?;
                shape.workers = workers;
                patch::<Cluster>(world, NAME, json!({"spec": {"paused": false}})).await?;
            }
            Act::Delete => {
                let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
                world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
                world.run_until_idle().await?;
                if shape.class {
                    class::delete(world, shape.of_class).await?;
                    world.run_until_idle().await?;
                }
                return expect::nothing(world, site);
            }
        }
        world.run_until_idle().await?;
        expect::healthy(shape, world, site)?;
        match act.intention().filter(|_| self.network) {
            Some(intention) => expect::operation(intention, world),
            None => Ok(()),
        }
    }

    /// Removes all finalizers and owner references, and checks that they are restored.
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
        world.run_until_idle().await?;
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

/// The versions of all objects on a server, except in the buckets of `aside`.
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

/// Lets ten minutes pass. Nothing may be written, in the management cluster or in the workload cluster, except
/// heartbeats of kubelets.
async fn idle(world: &mut World<'_>, site: &Site) -> Result<(), Violation> {
    let all = |world: &World<'_>| -> Result<_, Violation> {
        let guests = site.vms().into_iter().find_map(|vm| site.cluster_of(&vm.id));
        let guest = guests.ok_or_else(|| failed("no cluster was initialized"))?;
        let of_kubelets = ["/nodes", "coordination.k8s.io/leases"];
        Ok((versions(&world.objects()?, &[]), versions(&Objects::of(guest.server()), &of_kubelets)))
    };
    let before = all(world)?;
    world.pass(IDLE).await?;
    let after = all(world)?;
    for (location, before, after) in
        [("in the management cluster", &before.0, &after.0), ("in the workload cluster", &before.1, &after.1)]
    {
        let changed = after.iter().find(|(key, version)| before.get(key) != Some(version));
        let gone = before.keys().find(|key| !after.contains_key(key));
        if let Some((bucket, key)) = changed.map(|(key, _)| key).or(gone) {
            let what = format!("{bucket} {key} was written {location} within {IDLE:?} of idle time");
            return Err(Violation::new("L2", what));
        }
    }
    Ok(())
}

/// Kills a machine of a role.
fn kill(world: &World<'_>, site: &Site, control_plane: bool) -> Result<(), Violation> {
    let machines = world.objects()?.list(&KindName::of::<Machine>());
    let of_role =
        machines.iter().find(|machine| kinds::has_label(machine, label::CONTROL_PLANE) == control_plane);
    let id = of_role.and_then(|machine| machine["spec"]["providerID"].as_str()?.strip_prefix("sim://"));
    let id = id.ok_or_else(|| failed("no machine to kill"))?;
    site.crash(id).map_err(failed)
}

impl Scenario for ClusterScenario {
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
            tags: BTreeMap::from([("owner".to_owned(), "another-team".to_owned())]),
            faults: Vec::new(),
        };
        // Cannot fail: the site is empty.
        let _ = site.create(foreign);
        Outside { site }
    }

    fn controllers(&self, outside: &Outside, runtime: &mut Runtime) {
        plane::add_controllers(runtime, &self.settings());
        runtime.add(SimClusters::new(outside.site.clone()));
        runtime.add(SimMachines::new(outside.site.clone()));
        runtime.add(SimMachinePools);
        runtime.add(SimMachineTemplates);
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
        plane::options(&self.settings())
    }

    async fn prepare(&self, world: &World<'_>) -> Result<(), Violation> {
        let mut definitions = plane::definitions();
        definitions.extend(capstan_sim_provider::definitions());
        plane::install(&world.user()?, &definitions).await.map_err(failed)
    }

    async fn run(&self, world: &mut World<'_>, outside: &Outside) -> Result<(), Violation> {
        let mut shape = Shape {
            control_plane: self.control_plane,
            workers: self.workers,
            version: self.version.to_owned(),
            network: self.network,
            class: self.class,
            pool: self.pool,
            of_class: class::CLASS,
            variable: None,
            memory: None,
        };
        for (at, act) in self.acts.iter().enumerate() {
            if at == self.prologue {
                world.enable_faults();
            }
            world.note(&format!("ACT {act:?}"));
            let played = self.act(*act, world, &outside.site, &mut shape).await;
            played.map_err(|violation| {
                Violation::new(&violation.property, format!("{act:?}: {}", violation.what))
            })?;
            if world.fault_injected() && !self.run_to_end {
                break;
            }
        }
        Ok(())
    }
}

/// The machine has the mark of the provider.
pub(crate) fn is_ours(vm: &capstan_guest::vm::Vm) -> bool {
    vm.tags.contains_key(MACHINE_TAG)
}
