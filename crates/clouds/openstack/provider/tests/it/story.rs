//! The lifecycle of a cluster on OpenStack, act by act.

use std::sync::Arc;

use capstan_apiserver::Config;
use capstan_capi_kubeadm::certificates::SeededKeys;
use capstan_capi_plane as plane;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, label};
use capstan_controller::{Client, Deletion, Env, KindName, Options, Patch, Runtime, Workloads};
use capstan_guest::vm::Phase;
use capstan_harness::{Checker, Scenario, Violation, World};
use capstan_object::{Key, Object};
use capstan_openstack_client::compute::Server;
use capstan_openstack_provider::Clouds;
use capstan_openstack_types::v1beta2::OpenStackMachine;
use capstan_openstack_types::{admission, conversion, definitions};
use capstan_provider_kit::testing::health_checks;
use capstan_sim_openstack::Settings;
use serde_json::{Value, json};

use crate::check;
use crate::cloud::{Cloud, TENANT};
use crate::errors::Errors;
use crate::manifests::{self, NAME, NAMESPACE, Shape, WORKERS};

pub type CheckResult<'a> = futures::future::LocalBoxFuture<'a, Result<(), Violation>>;
/// Somebody looks or does something, or a failure is injected, reported and cleared.
pub type Mishap = for<'a> fn(&'a mut World<'_>, &'a Cloud) -> CheckResult<'a>;

/// What a user applies in place of the example.
pub type Template = fn() -> Vec<(KindName, Value)>;

/// What a user does, or what befalls the cluster. After each the cluster must become as it is wanted.
#[derive(Clone, Copy)]
pub enum Act {
    /// The example is applied.
    Create,
    /// The example is applied, and nobody waits until it is a cluster.
    Apply,
    ScaleWorkers(usize),
    ScaleControlPlane(usize),
    /// New templates with the image of a version, for the control plane and the workers.
    Upgrade(&'static str),
    /// Somebody deletes a server in Nova: of the control plane, or a worker.
    Destroy {
        control_plane: bool,
    },
    /// Something happens before anything is applied.
    Before(Mishap),
    /// Something happens while the next act is under way.
    During(Mishap),
    /// Something happens while nothing changes.
    Check(Mishap),
    Delete,
}

/// The lifecycle of a cluster.
#[derive(Clone)]
pub struct Script {
    pub acts: Vec<Act>,
    /// Size at first.
    pub shape: Shape,
    pub settings: Settings,
    /// Without a CNI: nodes are never ready, and the story is short.
    pub bare: bool,
    /// What is different from the example.
    pub change: Option<fn(&mut Value)>,
    /// What is applied in place of the example.
    pub template: Option<Template>,
    /// The cloud has a third availability zone.
    pub third_zone: bool,
    /// The load balancer has the control plane as members.
    pub members: bool,
    /// Servers that are no machines.
    pub guests: usize,
    /// Requests to the cloud that fail, while the cluster is created and while it is deleted.
    pub errors: Option<Errors>,
}

impl Script {
    pub fn of(acts: &[Act]) -> Self {
        Self {
            acts: acts.to_vec(),
            shape: Shape::EXAMPLE,
            settings: Settings::default(),
            bare: false,
            change: None,
            template: None,
            third_zone: false,
            members: true,
            guests: 0,
            errors: None,
        }
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

/// Applies the credentials and the example.
async fn create(world: &World<'_>, story: &Script) -> Result<(), Violation> {
    let user = world.user()?;
    let secret = manifests::credentials(NAMESPACE);
    user.create(&manifests::secrets(), NAMESPACE, &secret).await.map_err(failed)?;
    let mut all = match story.template {
        Some(template) => template(),
        None => manifests::example(story.shape),
    };
    if story.bare {
        all.retain(|(_, body)| !matches!(body["kind"].as_str(), Some("ClusterResourceSet" | "ConfigMap")));
    } else {
        all.extend(health_checks(NAMESPACE, NAME, WORKERS));
    }
    for (kind, mut body) in all {
        if let Some(change) = story.change {
            change(&mut body);
        }
        user.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
    }
    Ok(())
}

async fn upgrade(world: &World<'_>, version: &str) -> Result<(), Violation> {
    let (control_plane, workers) = (format!("control-plane-{version}"), format!("workers-{version}"));
    for (name, flavor) in [(&control_plane, "m1.medium"), (&workers, "m1.medium")] {
        let (kind, body) = manifests::machine_template(name, flavor, version);
        world.user()?.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
    }
    let machines = json!({"spec": {"infrastructureRef": {"name": control_plane}}});
    let change = json!({"spec": {"version": version, "machineTemplate": machines}});
    patch::<KubeadmControlPlane>(world, NAME, change).await?;
    let machines = json!({"spec": {"version": version, "infrastructureRef": {"name": workers}}});
    patch::<MachineDeployment>(world, WORKERS, json!({"spec": {"template": machines}})).await
}

fn is_control_plane(machine: &Value) -> bool {
    machine["metadata"]["labels"].get(label::CONTROL_PLANE).is_some()
}

pub async fn delete(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
    world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
    world.run_until_idle().await?;
    if let Some(left) = world.objects()?.get(&kind, &key) {
        return Err(Violation::new("L3", format!("the cluster is still there: {left}")));
    }
    let leaks = cloud.simulator.leaks(Some(TENANT));
    match leaks.is_empty() {
        true => Ok(()),
        false => Err(Violation::new("L3", format!("left in the cloud: {leaks:?}"))),
    }
}

/// Somebody deletes a server of a role by hand.
async fn destroy(world: &World<'_>, cloud: &Cloud, control_plane: bool) -> Result<(), Violation> {
    let machines = world.objects()?.list(&KindName::of::<OpenStackMachine>());
    let of_role = machines.iter().find(|machine| is_control_plane(machine) == control_plane);
    let id = of_role.and_then(|machine| machine["status"]["instanceID"].as_str());
    let id = id.ok_or_else(|| failed("there is nothing to delete"))?;
    cloud.client().delete::<Server>(&id.into()).await.map(drop).map_err(failed)
}

/// The cluster is as it should be, here, in the cloud and inside.
pub fn all_is_well(shape: Shape, story: &Script, world: &World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    let objects = world.objects()?;
    let machines = objects.list(&KindName::of::<Machine>());
    let control_plane = machines.iter().filter(|machine| is_control_plane(machine)).count();
    let conditions = |object: &Value| object["status"]["conditions"].to_string();
    let cluster = objects.get(&KindName::of::<Cluster>(), &Key::new(NAMESPACE, NAME)).unwrap_or_default();
    let infrastructure = objects.list(&KindName::of::<OpenStackMachine>());
    let details = || {
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
    if !story.bare && !holds(&cluster, "Available") {
        return Err(wrong(format!("the cluster is not available: {}", details())));
    }
    let running = cloud.site.vms().into_iter().filter(|vm| vm.phase == Phase::Booted).count();
    if running != machines.len() + story.guests {
        return Err(wrong(format!("{running} servers run: {}", details())));
    }
    for machine in &infrastructure {
        let provider = machine["spec"]["providerID"].as_str().unwrap_or_default();
        let instance = machine["status"]["instanceID"].as_str().unwrap_or_default();
        if instance.is_empty() || provider != format!("openstack:///{instance}") {
            return Err(wrong(format!("{provider:?} is not a provider id of {instance:?}")));
        }
    }
    if let Some(other) = machines.iter().find(|machine| machine["spec"]["version"] != shape.version) {
        return Err(wrong(format!("a machine has version {}", other["spec"]["version"])));
    }
    let members = cloud.names("members");
    match !story.members || members.len() == shape.control_plane {
        true => Ok(()),
        false => Err(wrong(format!("members of the load balancer are {members:?}"))),
    }
}

impl Scenario for Script {
    type Outside = Cloud;

    fn outside(&self, env: &Env) -> Cloud {
        Cloud::new(env, self.settings.clone(), self.third_zone)
    }

    fn controllers(&self, cloud: &Cloud, runtime: &mut Runtime) {
        plane::add_controllers(runtime, &Self::plane());
        capstan_openstack_provider::add_controllers(runtime, &Clouds::new(Arc::new(cloud.clone())));
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
                Act::Create => {
                    if let Some(errors) = self.errors {
                        errors.inject(&cloud.simulator);
                    }
                    create(world, self).await?;
                    if self.errors.is_some() {
                        // A cluster that is polled while requests fail is never idle.
                        world.pass(std::time::Duration::from_secs(900)).await?;
                        cloud.simulator.heal();
                    }
                }
                Act::Apply => {
                    create(world, self).await?;
                    continue;
                }
                Act::ScaleWorkers(workers) => {
                    shape.workers = *workers;
                    patch::<MachineDeployment>(world, WORKERS, json!({"spec": {"replicas": workers}}))
                        .await?;
                }
                Act::ScaleControlPlane(replicas) => {
                    shape.control_plane = *replicas;
                    let change = json!({"spec": {"replicas": replicas}});
                    patch::<KubeadmControlPlane>(world, NAME, change).await?;
                }
                Act::Upgrade(version) => {
                    shape.version = version;
                    upgrade(world, version).await?;
                }
                Act::Destroy { control_plane } => destroy(world, cloud, *control_plane).await?,
                Act::Before(check) | Act::Check(check) => {
                    check(world, cloud).await?;
                    continue;
                }
                Act::Delete => {
                    if let Some(errors) = self.errors {
                        errors.inject(&cloud.simulator);
                    }
                    delete(world, cloud).await?;
                    continue;
                }
            }
            if let Some(mishap) = mishap.take() {
                mishap(world, cloud).await?;
            }
            world.run_until_idle().await?;
            all_is_well(shape, self, world, cloud)?;
        }
        Ok(())
    }
}
