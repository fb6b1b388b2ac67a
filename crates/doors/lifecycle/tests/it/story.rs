//! The lifecycle of a cluster of the lifecycle API.

use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::Config;
use capstan_capi_kubeadm::certificates::SeededKeys;
use capstan_capi_plane as plane;
use capstan_cloudstack_provider::Clouds;
use capstan_cloudstack_types::{admission, conversion, definitions};
use capstan_controller::{Client, Deletion, Env, KindName, Options, Patch, Runtime, Workloads};
use capstan_guest::vm::Phase;
use capstan_harness::{Checker, Scenario, Violation, World};
use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::types::Cluster;
use capstan_object::{Key, Object};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{self, NAME, NAMESPACE};
use crate::properties;

pub type Played<'a> = futures::future::LocalBoxFuture<'a, Result<(), Violation>>;
pub type Play = for<'a> fn(&'a mut World<'_>, &'a Cloud) -> Played<'a>;

/// What happens to the cluster.
#[derive(Clone, Copy)]
pub struct Script {
    pub play: Play,
    /// How many machines a role may have, in the middle of a rollout too.
    pub most: usize,
    pub settings: fn() -> Settings,
}

pub fn failed(error: impl std::fmt::Display) -> Violation {
    Violation::new("story", error.to_string())
}

fn plane_settings() -> plane::Settings {
    plane::Settings { keys: Arc::new(SeededKeys::new(7)), ..plane::Settings::default() }
}

/// Applies the keys and the example, each document changed.
pub async fn create(world: &World<'_>, cloud: &Cloud, change: fn(&mut Value)) -> Result<(), Violation> {
    let user = world.user()?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": manifests::SYSTEM}});
    user.create(&manifests::namespaces(), "", &namespace).await.map_err(failed)?;
    cloud.share_network("shared").await;
    let keys = cloud.simulator.credentials("capstan").map_err(failed)?;
    user.create(&manifests::secrets(), manifests::SYSTEM, &manifests::keys(&keys)).await.map_err(failed)?;
    for mut body in manifests::example() {
        change(&mut body);
        user.create(&manifests::kind(&body), NAMESPACE, &body).await.map_err(failed)?;
    }
    Ok(())
}

pub async fn patch<T: Object>(world: &World<'_>, name: &str, change: Value) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, name);
    let patched = world.user()?.patch(&KindName::of::<T>(), &key, None, &Patch::Merge(change)).await;
    patched.map(drop).map_err(failed)
}

/// The cluster as it is now.
pub fn cluster(world: &World<'_>) -> Result<Value, Violation> {
    let key = Key::new(NAMESPACE, NAME);
    Ok(world.objects()?.get(&KindName::of::<Cluster>(), &key).unwrap_or_default())
}

/// Asks for the deletion of an object of the example.
pub async fn ask_to_delete<T: Object>(world: &World<'_>, name: &str) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, name);
    let deleted = world.user()?.delete(&KindName::of::<T>(), &key, &Deletion::default()).await;
    deleted.map(drop).map_err(failed)
}

/// Deletes the cluster and waits until it is gone.
pub async fn delete(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    ask_to_delete::<Cluster>(world, NAME).await?;
    wait_until_gone(world, cloud).await
}

/// Waits until a cluster that is being deleted is gone.
pub async fn wait_until_gone(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
    world.run_until_idle().await?;
    // CloudStack keeps destroyed machines for up to two days.
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

/// Ready, about this generation.
pub fn is_ready(cluster: &Value) -> bool {
    let conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
    ready && cluster["status"]["observedGeneration"] == cluster["metadata"]["generation"]
}

impl Scenario for Script {
    type Outside = Cloud;

    fn outside(&self, env: &Env) -> Cloud {
        // Stories here are about the objects that users write. By the defaults each deletion would wait for two days, which
        // the provider's own stories do, and take ten times as long.
        let minute = Duration::from_secs(60);
        let settings = capstan_sim_cloudstack::Settings {
            expunge_delay: minute,
            expunge_interval: minute,
            ..capstan_sim_cloudstack::Settings::default()
        };
        Cloud::new(env, settings)
    }

    fn controllers(&self, cloud: &Cloud, runtime: &mut Runtime) {
        plane::add_controllers(runtime, &plane_settings());
        let clouds = Clouds::new(Arc::new(cloud.clone()));
        capstan_cloudstack_provider::add_controllers(runtime, &clouds);
        capstan_lifecycle::add_controllers(runtime, &clouds, cloud.dial(), &(self.settings)());
    }

    fn checkers(&self, cloud: &Cloud) -> Vec<Box<dyn Checker>> {
        properties::all(cloud, self.most)
    }

    fn workloads(&self, cloud: &Cloud, management: Client, env: Env) -> Option<Arc<dyn Workloads>> {
        Some(plane::workloads(management, cloud.site.dial(), env))
    }

    fn configure(&self, config: Config) -> Config {
        let versions = capstan_provider_kit::ProviderVersions {
            kinds: conversion::kinds(),
            convert: conversion::convert,
        };
        let rules =
            plane::Rules::default().with(admission::all()).with(capstan_lifecycle::admission::rules());
        config.with_kinds(Arc::new(plane::ClusterApi::new(rules).converting([versions])))
    }

    fn options(&self) -> Options {
        plane::options(&plane_settings())
    }

    async fn prepare(&self, world: &World<'_>) -> Result<(), Violation> {
        let mut all = plane::definitions();
        all.extend(definitions::definitions());
        all.extend(capstan_lifecycle::definitions::definitions());
        plane::install(&world.user()?, &all).await.map_err(failed)
    }

    async fn run(&self, world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
        world.enable_faults();
        (self.play)(world, cloud).await
    }
}
