//! The lifecycle of a cluster on CloudStack, act by act.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::Config;
use capstan_capi_kubeadm::certificates::SeededKeys;
use capstan_capi_plane as plane;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, label};
use capstan_cloudstack_client::commands::DestroyVirtualMachine;
use capstan_cloudstack_provider::Clouds;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackIsolatedNetwork, CloudStackMachine};
use capstan_cloudstack_types::{admission, conversion, definitions};
use capstan_controller::{Client, Deletion, Env, KindName, Options, Patch, Runtime, Workloads};
use capstan_guest::vm::Phase;
use capstan_harness::{Checker, Scenario, Violation, World};
use capstan_object::{Key, Object};
use capstan_provider_kit::testing::health_checks;
use capstan_sim_cloudstack::Settings;
use serde_json::{Value, json};

use crate::check;
use crate::cloud::Cloud;
use crate::manifests::{self, NAME, NAMESPACE, Shape, WORKERS};

/// Every cluster is made by then.
const GIVEN_UP_BY: Duration = Duration::from_secs(1800);

pub type CheckResult<'a> = futures::future::LocalBoxFuture<'a, Result<(), Violation>>;
/// A failure is injected, reported and cleared.
pub type Mishap = for<'a> fn(&'a mut World<'_>, &'a Cloud) -> CheckResult<'a>;

/// What a user does, or what befalls the cluster. Each act is followed by rest, and then all must be well.
#[derive(Clone, Copy)]
pub enum Act {
    /// Before the next act is over something goes wrong.
    During(Mishap),
    /// While all is at rest somebody looks or does something.
    Check(Mishap),
    /// The example is applied.
    Create,
    /// The example is applied, and deleted at the first fault, before the controllers of a process that died are back.
    CreateOrGiveUp,
    /// The number of workers changes.
    ScaleWorkers(usize),
    /// The number of control plane machines changes.
    ScaleControlPlane(usize),
    /// The control plane gets another version, and the workers: by other templates, as images have one version.
    Upgrade(&'static str),
    /// Somebody destroys a machine in CloudStack: of the control plane, or a worker.
    Destroy { control_plane: bool },
    /// The cluster is deleted.
    Delete,
}

/// The lifecycle of a cluster.
#[derive(Clone)]
pub struct Script {
    pub acts: Vec<Act>,
    /// How big the cluster is at first.
    pub shape: Shape,
    pub settings: Settings,
    /// Without a network inside: nodes are never ready, and the story is short.
    pub bare: bool,
    /// What is different from the example.
    pub change: Option<fn(&mut Value)>,
    /// Whose keys are used.
    pub account: &'static str,
    /// The cluster is deleted after the last act, and something may be left.
    pub delete_at_end: bool,
    /// Goes wrong when all acts are over.
    pub mishap_at_end: Option<Mishap>,
    /// Jobs that may fail before an administrator complains. Nothing is counted without it, nor where the process died or
    /// a reply was lost.
    pub failed_jobs: Option<u64>,
    /// Entries that others write to the event log.
    pub events_of_others: u64,
}

impl Script {
    pub fn of(acts: &[Act]) -> Self {
        // An ordinary account, whose destroyed machines are expunged by the server after a day or two, as in production.
        Self {
            acts: acts.to_vec(),
            shape: Shape::EXAMPLE,
            settings: Settings::default(),
            bare: false,
            change: None,
            account: "capstan",
            delete_at_end: false,
            mishap_at_end: None,
            failed_jobs: Some(0),
            events_of_others: 0,
        }
    }

    /// The cloud fails in this story, and jobs with it: its administrator does not complain.
    pub fn in_a_cloud_that_fails(mut self) -> Self {
        self.failed_jobs = None;
        self
    }

    /// The server expunges destroyed machines within two minutes: for stories about something else, which take a tenth of
    /// the time so.
    pub fn expunging_soon(mut self) -> Self {
        let minute = Duration::from_secs(60);
        (self.settings.expunge_delay, self.settings.expunge_interval) = (minute, minute);
        self
    }

    fn plane() -> plane::Settings {
        plane::Settings { keys: Arc::new(SeededKeys::new(7)), ..plane::Settings::default() }
    }
}

pub fn failed(error: impl std::fmt::Display) -> Violation {
    Violation::new("story", error.to_string())
}

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("L1", what)
}

pub async fn patch<T: Object>(world: &World<'_>, name: &str, change: Value) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, name);
    let patched = world.user()?.patch(&KindName::of::<T>(), &key, None, &Patch::Merge(change)).await;
    patched.map(drop).map_err(failed)
}

/// Applies the keys and the example.
pub async fn create(world: &World<'_>, cloud: &Cloud, shape: Shape, story: &Script) -> Result<(), Violation> {
    let keys = cloud.simulator.credentials(story.account).map_err(failed)?;
    let user = world.user()?;
    user.create(&manifests::secrets(), NAMESPACE, &manifests::keys(&keys)).await.map_err(failed)?;
    let mut all = manifests::example(shape);
    if story.bare {
        all.retain(|(_, body)| !matches!(body["kind"].as_str(), Some("ClusterResourceSet" | "ConfigMap")));
    } else {
        all.extend(health_checks(NAMESPACE, NAME, WORKERS));
    }
    for (kind, mut body) in all {
        if let Some(change) = story.change {
            change(&mut body);
        }
        if let Some(address) = cloud.endpoint().filter(|_| body["kind"] == "CloudStackCluster") {
            body["spec"]["controlPlaneEndpoint"]["host"] = address.to_string().into();
        }
        user.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
    }
    Ok(())
}

/// New templates with the image of a version, and the version where it is asked for.
async fn upgrade(world: &World<'_>, version: &str) -> Result<(), Violation> {
    let (control_plane, workers) = (format!("control-plane-{version}"), format!("workers-{version}"));
    for (name, offering) in [(&control_plane, "Small Instance"), (&workers, "Medium Instance")] {
        let (kind, body) = manifests::machine_template(name, offering, version);
        world.user()?.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
    }
    let machines = json!({"spec": {"infrastructureRef": {"name": control_plane}}});
    patch::<KubeadmControlPlane>(
        world,
        NAME,
        json!({"spec": {"version": version, "machineTemplate": machines}}),
    )
    .await?;
    let machines = json!({"spec": {"version": version, "infrastructureRef": {"name": workers}}});
    patch::<MachineDeployment>(world, WORKERS, json!({"spec": {"template": machines}})).await
}

fn is_control_plane(machine: &Value) -> bool {
    machine["metadata"]["labels"].get(label::CONTROL_PLANE).is_some()
}

async fn delete(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    delete_cluster(world, cloud, NAME).await
}

/// Deletes a cluster and waits until it is gone.
pub async fn delete_cluster(world: &mut World<'_>, cloud: &Cloud, name: &str) -> Result<(), Violation> {
    let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, name));
    world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
    wait_until_gone(world, cloud, name).await
}

async fn wait_until_gone(world: &mut World<'_>, cloud: &Cloud, name: &str) -> Result<(), Violation> {
    let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, name));
    world.run_until_idle().await?;
    // CloudStack keeps destroyed machines, and so their network, for up to two days.
    for _ in 0..3 {
        let running = cloud.site.vms().into_iter().filter(|vm| vm.phase != Phase::Off).count();
        let leaks = cloud.simulator.leaks(None);
        let kept = leaks.iter().filter(|leak| leak.kind == "virtualmachine").count() > running;
        if !kept && world.objects()?.get(&kind, &key).is_none() {
            break;
        }
        world.pass(Duration::from_secs(86_400)).await?;
        world.run_until_idle().await?;
    }
    match world.objects()?.get(&kind, &key) {
        Some(left) => Err(Violation::new("L3", format!("the cluster is still there: {left}"))),
        None => Ok(()),
    }
}

/// Deletes a cluster that was just begun, ahead of the controllers.
async fn give_up(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
    world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
    world.resume();
    wait_until_gone(world, cloud, NAME).await?;
    nothing_is_left(cloud)
}

fn nothing_is_left(cloud: &Cloud) -> Result<(), Violation> {
    let leaks = cloud.simulator.leaks(Some("capstan"));
    match leaks.is_empty() {
        true => Ok(()),
        false => Err(Violation::new("L3", format!("left in the cloud: {leaks:?}"))),
    }
}

/// Somebody destroys a machine of a role by hand.
async fn destroy(world: &World<'_>, cloud: &Cloud, control_plane: bool) -> Result<(), Violation> {
    let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
    let of_role = machines.iter().find(|machine| is_control_plane(machine) == control_plane);
    let id = of_role.and_then(|machine| machine["spec"]["instanceID"].as_str());
    let id = id.ok_or_else(|| failed("there is nothing to destroy"))?;
    let request = DestroyVirtualMachine { id: id.into(), expunge: Some(true), volumeids: Vec::new() };
    cloud.client("admin").run(&request).await.map(drop).map_err(failed)
}

/// The cluster is as it should be, here, in the cloud and inside.
pub fn all_is_well(shape: Shape, bare: bool, world: &World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    let objects = world.objects()?;
    let machines = objects.list(&KindName::of::<Machine>());
    let control_plane = machines.iter().filter(|machine| is_control_plane(machine)).count();
    let conditions = |object: &Value| object["status"]["conditions"].to_string();
    let cluster = objects.get(&KindName::of::<Cluster>(), &Key::new(NAMESPACE, NAME)).unwrap_or_default();
    let details = || {
        let infrastructure = objects.list(&KindName::of::<CloudStackMachine>());
        let all = machines.iter().chain(&infrastructure).map(conditions);
        format!("cluster {}; machines {}", conditions(&cluster), all.collect::<Vec<_>>().join("; "))
    };
    if (control_plane, machines.len() - control_plane) != (shape.control_plane, shape.workers) {
        return Err(wrong(format!("{control_plane} of {} machines: {}", machines.len(), details())));
    }
    let holds = |object: &Value, kind: &str| {
        let all = object["status"]["conditions"].as_array().into_iter().flatten();
        all.into_iter().any(|one| one["type"] == kind && one["status"] == "True")
    };
    if !bare && !holds(&cluster, "Available") {
        return Err(wrong(format!("the cluster is not available: {}", details())));
    }
    let running = cloud.site.vms().into_iter().filter(|vm| vm.phase == Phase::Booted).count();
    if running != machines.len() {
        return Err(wrong(format!("{running} machines run: {}", details())));
    }
    for machine in objects.list(&KindName::of::<CloudStackMachine>()) {
        let provider = machine["spec"]["providerID"].as_str().unwrap_or_default();
        let instance = machine["spec"]["instanceID"].as_str().unwrap_or_default();
        if instance.is_empty() || provider != format!("cloudstack:///{instance}") {
            return Err(wrong(format!("{provider:?} is not a provider id of {instance:?}")));
        }
    }
    if let Some(other) = machines.iter().find(|machine| machine["spec"]["version"] != shape.version) {
        return Err(wrong(format!("a machine has version {}", other["spec"]["version"])));
    }
    let rules = cloud.names("loadbalancerrule");
    // Machines on a shared or routed network have an endpoint of their own making.
    let networks = objects.list(&KindName::of::<CloudStackIsolatedNetwork>());
    let balanced = networks.iter().any(|network| network["status"]["publicIPID"].is_string());
    // Failure domains of one zone may share a network.
    let clusters = objects.list(&KindName::of::<CloudStackCluster>());
    // That of a class has a name with a suffix.
    let of_cluster = |it: &&Value| it["metadata"]["labels"][label::CLUSTER_NAME] == NAME;
    let manifest = clusters.iter().find(of_cluster).ok_or_else(|| wrong("no CloudStackCluster"))?;
    let domains = manifest["spec"]["failureDomains"].as_array().into_iter().flatten();
    let places = domains.map(|domain| {
        let zone = &domain["zone"];
        format!("{} {}", zone["name"], zone["network"]["name"])
    });
    let places = places.collect::<BTreeSet<_>>().len();
    let expected = if balanced { places } else { 0 };
    match rules.len() == expected && rules.iter().all(|rule| rule == "Kubernetes_API_Server") {
        true => Ok(()),
        false => Err(wrong(format!("rules {rules:?}"))),
    }
}

/// Entries of the event log that a story may have beside those of its machines: each job writes three.
const EVENTS: u64 = 90;
/// Those of a machine, from its order until it is expunged.
const EVENTS_OF_MACHINE: u64 = 30;

/// The cloud's side of the story: no order is refused again and again, few jobs fail, and the event log does not grow
/// without machines.
fn nobody_complains(cloud: &Cloud, failed_jobs: u64, of_others: u64) -> Result<(), Violation> {
    let complaints = cloud.simulator.complaints();
    let failed: u64 = complaints.failed_jobs.values().sum();
    let ordered = cloud.calls().get("deployVirtualMachine").copied().unwrap_or_default();
    let most = of_others + EVENTS + EVENTS_OF_MACHINE * ordered;
    match complaints.refused.is_empty() && failed <= failed_jobs && complaints.events <= most {
        true => Ok(()),
        false => {
            let what = format!("an administrator complains of more than {most} events, or: {complaints:?}");
            Err(Violation::new("L7", what))
        }
    }
}

impl Scenario for Script {
    type Outside = Cloud;

    fn outside(&self, env: &Env) -> Cloud {
        Cloud::new(env, self.settings.clone())
    }

    fn controllers(&self, cloud: &Cloud, runtime: &mut Runtime) {
        plane::add_controllers(runtime, &Self::plane());
        let clouds = Clouds::new(Arc::new(cloud.clone()));
        capstan_cloudstack_provider::add_controllers(runtime, &clouds);
    }

    fn checkers(&self, cloud: &Cloud) -> Vec<Box<dyn Checker>> {
        check::all(cloud)
    }

    fn workloads(&self, cloud: &Cloud, management: Client, env: Env) -> Option<Arc<dyn Workloads>> {
        Some(plane::workloads(management, cloud.site.dial(), env))
    }

    fn configure(&self, config: Config) -> Config {
        let versions = capstan_provider_kit::ProviderVersions {
            kinds: conversion::kinds(),
            convert: conversion::convert,
        };
        let rules = plane::Rules::default().with(admission::all());
        config.with_kinds(Arc::new(plane::ClusterApi::new(rules).converting([versions])))
    }

    fn options(&self) -> Options {
        plane::options(&Self::plane())
    }

    async fn prepare(&self, world: &World<'_>) -> Result<(), Violation> {
        let mut all = plane::definitions();
        all.extend(definitions::definitions());
        plane::install(&world.user()?, &all).await.map_err(failed)
    }

    async fn run(&self, world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
        let mut shape = self.shape;
        let mut mishap = None;
        world.enable_faults();
        for (number, act) in self.acts.iter().enumerate() {
            world.note(&format!("ACT {number}"));
            match act {
                Act::During(next) => {
                    mishap = Some(next);
                    continue;
                }
                Act::Create => create(world, cloud, shape, self).await?,
                Act::CreateOrGiveUp => {
                    create(world, cloud, shape, self).await?;
                    if world.pass_until_fault(GIVEN_UP_BY).await? {
                        return give_up(world, cloud).await;
                    }
                }
                Act::ScaleWorkers(workers) => {
                    shape.workers = *workers;
                    let change = json!({"spec": {"replicas": workers}});
                    patch::<MachineDeployment>(world, WORKERS, change).await?;
                }
                Act::ScaleControlPlane(replicas) => {
                    shape.control_plane = *replicas;
                    patch::<KubeadmControlPlane>(world, NAME, json!({"spec": {"replicas": replicas}}))
                        .await?;
                }
                Act::Upgrade(version) => {
                    shape.version = version;
                    upgrade(world, version).await?;
                }
                Act::Destroy { control_plane } => destroy(world, cloud, *control_plane).await?,
                Act::Check(check) => {
                    check(world, cloud).await?;
                    continue;
                }
                Act::Delete => {
                    delete(world, cloud).await?;
                    nothing_is_left(cloud)?;
                    continue;
                }
            }
            if let Some(mishap) = mishap.take() {
                mishap(world, cloud).await?;
            }
            world.run_until_idle().await?;
            all_is_well(shape, self.bare, world, cloud)?;
        }
        if self.delete_at_end {
            delete(world, cloud).await?;
        }
        if let Some(most) = self.failed_jobs.filter(|_| !world.fault_injected()) {
            nobody_complains(cloud, most, self.events_of_others)?;
        }
        match self.mishap_at_end {
            Some(mishap) => mishap(world, cloud).await,
            None => Ok(()),
        }
    }
}
