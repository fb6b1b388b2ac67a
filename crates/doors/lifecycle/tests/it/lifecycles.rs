//! Lifecycles of clusters into which `cargo xtask lifecycle-faults` injects faults, and what is true in the end.

use std::time::Duration;

use capstan_capi_types::addons::{ClusterResourceSet, ClusterResourceSetBinding};
use capstan_capi_types::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{self, Machine, MachineDeployment, MachineHealthCheck, MachineSet, label};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackMachine, CloudStackMachineTemplate,
};
use capstan_controller::KindName;
use capstan_guest::vm::Phase;
use capstan_harness::{Objects, Violation, World};
use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::names::annotation;
use capstan_lifecycle::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::chart;
use crate::cloud::Cloud;
use crate::manifests::{NAME, SYSTEM};
use crate::story::{self, Play, Played, Script, cluster, is_ready};

/// Every cluster is made by then.
const GIVEN_UP_BY: Duration = Duration::from_secs(1800);
const CONFIGS: [&str; 2] = ["anywhere-cp", "anywhere-md"];
/// The version that the example has, and the one that it gets.
const OLD: &str = "v1.35.0";
const NEW: &str = "v1.36.0";

/// Every lifecycle, by its name. One machine of each role has a successor at most.
pub fn all() -> Vec<(&'static str, Script)> {
    let script = |play: Play| Script { play, most: 2, settings: Settings::default };
    vec![
        ("whole", script(whole)),
        ("hasty", script(hasty)),
        ("network", Script { settings: chart::settings, ..script(network) }),
        ("group", script(group)),
    ]
}

/// The example is applied, becomes ready, and is deleted.
pub fn brief<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
    Box::pin(async move {
        created(world, cloud).await?;
        ends(world, cloud).await
    })
}

/// The example is applied, upgraded by a minor version, and deleted, and then its configs.
fn whole<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
    Box::pin(async move {
        created(world, cloud).await?;
        world.note("UPGRADE");
        story::patch::<Cluster>(world, NAME, json!({"spec": {"kubernetesVersion": "1.36"}})).await?;
        for config in CONFIGS {
            let template = json!({"spec": {"template": {"name": format!("ubuntu-2404-kube-{NEW}")}}});
            story::patch::<CloudStackMachineConfig>(world, config, template).await?;
        }
        world.run_until_idle().await?;
        ready_with(world, 1, 1)?;
        all_is_well(world, cloud, NEW, &["anywhere-control-plane-2", "anywhere-md-0-2"])?;
        ends(world, cloud).await
    })
}

/// The example is applied, and deleted at the first fault, before the controllers of a process that died are back.
fn hasty<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
    Box::pin(async move {
        story::create(world, cloud, |_| ()).await?;
        if world.pass_until_fault(GIVEN_UP_BY).await? {
            world.note("GIVEN UP");
            story::ask_to_delete::<Cluster>(world, NAME).await?;
            world.resume();
            story::wait_until_gone(world, cloud).await?;
            return configs_go(world, cloud).await;
        }
        world.run_until_idle().await?;
        ready_with(world, 1, 1)?;
        ends(world, cloud).await
    })
}

/// The CNI gets another version, which is checked on every node first.
pub fn network<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
    Box::pin(async move {
        created(world, cloud).await?;
        world.note("CNI");
        let values = json!({"image": {"tag": "v1.17.4"}});
        let cilium = json!({"spec": {"clusterNetwork": {"cniConfig": {"cilium": {"helmValues": values}}}}});
        story::patch::<Cluster>(world, NAME, cilium).await?;
        world.run_until_idle().await?;
        ready_with(world, 1, 1)?;
        all_is_well(world, cloud, OLD, &["anywhere-control-plane-1", "anywhere-md-0-1"])?;
        let maps = KindName::namespaced("", "v1", "ConfigMap", "configmaps");
        let first = world.objects()?.get(&maps, &Key::new(SYSTEM, format!("{NAME}-cni"))).unwrap_or_default();
        let is_marked = first["metadata"]["annotations"].get(annotation::CNI_PREFLIGHT).is_some();
        if is_marked || !first["data"].to_string().contains("v1.17.4") {
            return Err(Violation::new("L1", format!("the CNI is not upgraded: {}", first["metadata"])));
        }
        ends(world, cloud).await
    })
}

/// Another worker group comes and goes.
pub fn group<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
    Box::pin(async move {
        created(world, cloud).await?;
        let before = machines(world)?;
        let own = cluster(world)?["spec"]["workerNodeGroupConfigurations"][0].clone();
        let mut second = own.clone();
        second["name"] = "md-1".into();
        for (groups, workers) in [(json!([own, second]), 2), (json!([own]), 1)] {
            world.note("GROUPS");
            let change = json!({"spec": {"workerNodeGroupConfigurations": groups}});
            story::patch::<Cluster>(world, NAME, change).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, workers)?;
        }
        all_is_well(world, cloud, OLD, &["anywhere-control-plane-1", "anywhere-md-0-1"])?;
        match machines(world)? == before {
            true => ends(world, cloud).await,
            false => Err(Violation::new("L1", format!("{before:?} became {:?}", machines(world)?))),
        }
    })
}

async fn created(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    story::create(world, cloud, |_| ()).await?;
    world.run_until_idle().await?;
    ready_with(world, 1, 1)?;
    all_is_well(world, cloud, OLD, &["anywhere-control-plane-1", "anywhere-md-0-1"])
}

async fn ends(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    world.note("DELETE");
    story::delete(world, cloud).await?;
    configs_go(world, cloud).await
}

/// The configs outlive their cluster, and go when they are asked to.
async fn configs_go(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    nothing_is_left(world, cloud)?;
    for config in CONFIGS {
        story::ask_to_delete::<CloudStackMachineConfig>(world, config).await?;
    }
    story::ask_to_delete::<CloudStackDatacenterConfig>(world, NAME).await?;
    world.run_until_idle().await?;
    let objects = world.objects()?;
    let kinds = [KindName::of::<CloudStackMachineConfig>(), KindName::of::<CloudStackDatacenterConfig>()];
    let left: Vec<String> = kinds.iter().flat_map(|kind| names(&objects, kind)).collect();
    match left.is_empty() {
        true => nothing_is_left(world, cloud),
        false => Err(Violation::new("L3", format!("configs are left: {left:?}"))),
    }
}

fn names(objects: &Objects, kind: &KindName) -> Vec<String> {
    let all = objects.list(kind);
    all.iter().filter_map(|it| it["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

pub fn machines(world: &World<'_>) -> Result<Vec<String>, Violation> {
    Ok(names(&world.objects()?, &KindName::of::<Machine>()))
}

/// The cluster is ready with these machines.
pub fn ready_with(world: &World<'_>, control_plane: usize, workers: usize) -> Result<(), Violation> {
    let cluster = cluster(world)?;
    let machines = world.objects()?.list(&KindName::of::<Machine>());
    let planes = machines.iter().filter(|it| it["metadata"]["labels"].get(label::CONTROL_PLANE).is_some());
    let count = planes.count();
    if !is_ready(&cluster) || (count, machines.len() - count) != (control_plane, workers) {
        let conditions: Vec<String> = machines
            .iter()
            .map(|machine| format!("{} {}", machine["metadata"]["name"], machine["status"]["conditions"]))
            .collect();
        return Err(Violation::new(
            "L1",
            format!(
                "{count} of {} machines: {}\n{}",
                machines.len(),
                cluster["status"],
                conditions.join("\n")
            ),
        ));
    }
    Ok(())
}

/// Machines have the version, run in the cloud and use these templates, and the status is about this generation.
fn all_is_well(world: &World<'_>, cloud: &Cloud, version: &str, templates: &[&str]) -> Result<(), Violation> {
    let wrong = |what: String| Err(Violation::new("L1", what));
    let objects = world.objects()?;
    let machines = objects.list(&KindName::of::<Machine>());
    if let Some(other) = machines.iter().find(|machine| machine["spec"]["version"] != version) {
        return wrong(format!("a machine has version {}", other["spec"]["version"]));
    }
    let running = cloud.site.vms().into_iter().filter(|vm| vm.phase == Phase::Booted).count();
    if running != machines.len() {
        return wrong(format!("{running} machines run for {}", machines.len()));
    }
    // A fault must not number another template.
    let used = |object: &Value, path: &str| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let planes = objects.list(&KindName::of::<KubeadmControlPlane>());
    let plane = "/spec/machineTemplate/spec/infrastructureRef/name";
    let deployments = objects.list(&KindName::of::<MachineDeployment>());
    let deployment = "/spec/template/spec/infrastructureRef/name";
    let found: Vec<String> = planes
        .iter()
        .filter_map(|it| used(it, plane))
        .chain(deployments.iter().filter_map(|it| used(it, deployment)))
        .collect();
    if found != templates {
        return wrong(format!("templates {found:?} are used"));
    }
    let cluster = cluster(world)?;
    let (status, generation) = (&cluster["status"], &cluster["metadata"]["generation"]);
    let failed = status.get("failureMessage").or_else(|| status.get("failureReason"));
    match failed.is_none() && status["reconciledGeneration"] == *generation {
        true => Ok(()),
        false => wrong(format!("generation {generation} is not reconciled: {status}")),
    }
}

/// Neither the cloud nor the server has anything of the cluster.
pub fn nothing_is_left(world: &World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    let leaks = cloud.simulator.leaks(Some("capstan"));
    let objects = world.objects()?;
    let kinds = [
        KindName::of::<Cluster>(),
        KindName::of::<core::Cluster>(),
        KindName::of::<CloudStackCluster>(),
        KindName::of::<CloudStackFailureDomain>(),
        KindName::of::<CloudStackMachine>(),
        KindName::of::<CloudStackMachineTemplate>(),
        KindName::of::<ClusterResourceSet>(),
        KindName::of::<ClusterResourceSetBinding>(),
        KindName::of::<KubeadmConfig>(),
        KindName::of::<KubeadmConfigTemplate>(),
        KindName::of::<KubeadmControlPlane>(),
        KindName::of::<Machine>(),
        KindName::of::<MachineDeployment>(),
        KindName::of::<MachineHealthCheck>(),
        KindName::of::<MachineSet>(),
    ];
    let mut left: Vec<String> = Vec::new();
    for kind in &kinds {
        left.extend(names(&objects, kind).into_iter().map(|name| format!("{}/{name}", kind.kind)));
    }
    // The keys stay, and what the server has in every namespace.
    for (kind, ours) in [("Secret", "secrets"), ("ConfigMap", "configmaps")] {
        let own = names(&objects, &KindName::namespaced("", "v1", kind, ours));
        let own = own.into_iter().filter(|name| name.starts_with(&format!("{NAME}-")));
        left.extend(own.map(|name| format!("{kind}/{name}")));
    }
    match leaks.is_empty() && left.is_empty() {
        true => Ok(()),
        false => Err(Violation::new("L3", format!("left in the cloud: {leaks:?}; here: {left:?}"))),
    }
}
