//! The scenarios of CAPC's own e2e suite, and the bugs that its users met, played on the simulator.
//!
//! | scenario of CAPC's suite | here |
//! |---|---|
//! | deploy an application, resource cleanup | `stories::the_example_becomes_a_cluster_and_goes_without_a_trace` |
//! | horizontal scale, rollout, upgrade, remediation | `lifecycles::whole`, which `cargo xtask cloudstack-faults` runs, `stories::a_worker_that_somebody_destroyed_is_replaced_…` |
//! | node drain timeout | controllers of Cluster API: `capstan-capi-core`, `machine::tests` and `machine::drain` |
//! | affinity, disk offering, custom disk offering | `features::machines_are_kept_together_and_apart_have_disks_and_are_reached_by_ssh` |
//! | two clusters | `features::a_cluster_that_goes_leaves_the_one_beside_it_alone` |
//! | network with a custom offering | [`a_network_has_the_offering_that_the_manifest_names`] |
//! | shared network with kube-vip | [`three_control_planes_share_an_address_of_kube_vip_on_a_shared_network`] |
//! | subdomain | `features::an_operators_keys_make_everything_in_the_account_that_the_manifest_names` |
//! | project | [`everything_is_made_in_the_project_that_the_manifest_names`] |
//! | invalid account, domain, zone, template, offering, disk, address, … | `wrong::everything_that_is_wrong_with_a_manifest_is_reported_…` |
//! | upgrade to an offering that is too large | [`an_upgrade_to_machines_that_are_too_large_is_reported_and_taken_back`] |
//! | slow network, interrupted network | [`a_slow_cloud_is_only_slower`], `failures::requests_and_replies_that_get_lost_on_the_wire_double_nothing` |
//! | VPC | `vpc::a_cluster_gets_a_vpc_a_tier_and_an_address_and_leaves_none_of_them` |
//! | CKS cluster | `domains::a_cluster_is_shown_in_cloudstacks_own_list_with_its_machines` |
//! | several networks | `nics::machines_have_a_nic_in_each_network_that_they_name_and_the_second_network_stays` |
//!
//! | bug | here |
//! |---|---|
//! | CAPC #190: Machine deleted while its order was pending, VM left | [`a_machine_deleted_while_its_order_hangs_leaves_no_virtual_machine`] |
//! | CAPC #312: order failed, and the VM was there | [`a_machine_that_no_host_starts_is_reported_removed_and_ordered_again`] |
//! | CAPC #58, #123: VM in Error is waited for for ever | the same |
//! | CloudStack's cloud controller: load balancers outlive their cluster (OCCM #3145) | `features::what_the_cloud_controller_made_on_a_network_…` |
//! | orders doubled by stale reads | the checkers S1 and `FollowsOwnWrites` of every story |

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Machine, MachineDeployment, label};
use capstan_cloudstack_client::VolumeId;
use capstan_cloudstack_client::commands::{
    CreateProject, CreateTags, DestroyVirtualMachine, DetachVolume, ListNetworks, ListVirtualMachines,
    ListVolumes, TagPair,
};
use capstan_cloudstack_client::model::ResourceType;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachine};
use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_sim_cloudstack::{Fault, HostCommand};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::failures::says;
use crate::manifests::{self, NAME, NAMESPACE, Shape, WORKERS};
use crate::sites::{SHARED_ADDRESS, shared_network, with_kube_vip};
use crate::story::Act::{self, Check, Create, Delete, During, ScaleWorkers};
use crate::story::CheckResult;
use crate::story::{self, Script, failed};

fn goes_well_though_the_cloud_fails(acts: &[Act]) {
    let story = Script { bare: true, ..Script::of(acts) }.expunging_soon().in_a_cloud_that_fails();
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn goes_well(acts: &[Act]) {
    let report = run(&Script { bare: true, ..Script::of(acts) }.expunging_soon(), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("scenario", what)
}

fn machines(world: &World<'_>) -> Result<Vec<Value>, Violation> {
    Ok(world.objects()?.list(&KindName::of::<CloudStackMachine>()))
}

/// Makes a cluster that differs from the example, and waits until it rests with all its machines.
async fn made(
    world: &mut World<'_>,
    cloud: &Cloud,
    shape: Shape,
    change: fn(&mut Value),
) -> Result<(), Violation> {
    let story = Script { bare: true, change: Some(change), ..Script::of(&[]) };
    story::create(world, cloud, shape, &story).await?;
    world.run_until_idle().await?;
    let all = machines(world)?;
    let ready = all.iter().filter(|machine| machine["status"]["ready"] == true).count();
    match ready == shape.control_plane + shape.workers {
        true => Ok(()),
        false => {
            let reported: Vec<_> =
                all.iter().map(|machine| machine["status"]["conditions"].to_string()).collect();
            Err(wrong(format!("{ready} machines are ready: {reported:?}")))
        }
    }
}

/// Deletes the cluster and waits until it is gone.
async fn deleted(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    story::delete_cluster(world, cloud, NAME).await
}

fn nothing_is_left(cloud: &Cloud) -> Result<(), Violation> {
    let leaks = cloud.simulator.leaks(None);
    match leaks.is_empty() {
        true => Ok(()),
        false => Err(Violation::new("L3", format!("left in the cloud: {leaks:?}"))),
    }
}

const OFFERING: &str = "DefaultNetworkOfferingforKubernetesService";

#[test]
fn a_network_has_the_offering_that_the_manifest_names() {
    fn change(body: &mut Value) {
        if body["kind"] == "CloudStackCluster" {
            body["spec"]["failureDomains"][0]["zone"]["network"]["offering"] = OFFERING.into();
        }
    }
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            made(world, cloud, Shape::EXAMPLE, change).await?;
            let found = cloud.client("capstan").list(&ListNetworks::default()).await.map_err(failed)?;
            let offerings: Vec<_> = found.iter().map(|it| it.networkofferingname.as_deref()).collect();
            if offerings != [Some(OFFERING)] {
                return Err(wrong(format!("networks of {offerings:?}")));
            }
            // Everything may go out of such a network as it is.
            if cloud.calls().contains_key("createEgressFirewallRule") {
                return Err(wrong("a rule for what goes out was made"));
            }
            deleted(world, cloud).await?;
            nothing_is_left(cloud)
        })
    }
    goes_well(&[Check(play)]);
}

#[test]
fn everything_is_made_in_the_project_that_the_manifest_names() {
    fn change(body: &mut Value) {
        if body["kind"] == "CloudStackCluster" {
            body["spec"]["failureDomains"][0]["project"] = "blue".into();
        }
    }
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let request = CreateProject { name: "blue".to_owned(), displaytext: None };
            cloud.client("capstan").run(&request).await.map_err(failed)?;
            made(world, cloud, Shape::EXAMPLE, change).await?;
            let all = cloud.simulator.leaks(None);
            if let Some(other) = all.iter().find(|it| !it.account.starts_with("PrjAcct-blue")) {
                return Err(wrong(format!("{other:?} is outside of the project")));
            }
            if all.iter().filter(|it| it.kind == "virtualmachine").count() != 2 {
                return Err(wrong(format!("in the project are {all:?}")));
            }
            deleted(world, cloud).await?;
            nothing_is_left(cloud)
        })
    }
    goes_well(&[Check(play)]);
}

#[test]
fn three_control_planes_share_an_address_of_kube_vip_on_a_shared_network() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            shared_network(cloud).await?;
            made(world, cloud, Shape { control_plane: 3, ..Shape::EXAMPLE }, with_kube_vip).await?;
            let key = Key::new(NAMESPACE, NAME);
            let plane =
                world.objects()?.get(&KindName::of::<KubeadmControlPlane>(), &key).unwrap_or_default();
            if plane["status"]["initialization"]["controlPlaneInitialized"] != true {
                return Err(wrong(format!("nobody answers on {SHARED_ADDRESS}: {}", plane["status"])));
            }
            // Nothing is made on such a network but machines and their disks.
            let all = cloud.simulator.leaks(None);
            if let Some(other) = all.iter().find(|it| !matches!(it.kind, "virtualmachine" | "volume")) {
                return Err(wrong(format!("{other:?} was made")));
            }
            deleted(world, cloud).await?;
            nothing_is_left(cloud)
        })
    }
    goes_well(&[Check(play)]);
}

/// Has workers made from another template.
async fn workers_of(world: &World<'_>, template: &str) -> Result<(), Violation> {
    let machines = json!({"spec": {"infrastructureRef": {"name": template}}});
    story::patch::<MachineDeployment>(world, WORKERS, json!({"spec": {"template": machines}})).await
}

/// Has the control plane made from another template.
async fn control_plane_of(world: &World<'_>, template: &str) -> Result<(), Violation> {
    let machines = json!({"spec": {"infrastructureRef": {"name": template}}});
    story::patch::<KubeadmControlPlane>(world, NAME, json!({"spec": {"machineTemplate": machines}})).await
}

#[test]
fn an_upgrade_to_machines_that_are_too_large_is_reported_and_taken_back() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let (kind, body) = manifests::machine_template("huge", "Huge Instance", Shape::EXAMPLE.version);
            world.user()?.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
            workers_of(world, "huge").await?;
            control_plane_of(world, "huge").await?;
            world.pass(Duration::from_secs(60)).await?;
            let all = machines(world)?;
            let (new, old): (Vec<_>, Vec<_>) =
                all.iter().partition(|machine| machine["spec"]["offering"]["name"] == "Huge Instance");
            if new.len() != 2
                || old.len() != 2
                || old.iter().any(|machine| machine["status"]["ready"] != true)
            {
                return Err(wrong(format!("{} new machines, {} old ones: {all:?}", new.len(), old.len())));
            }
            for machine in new {
                says(machine, &["False", "E-CS-QUOTA", "processors needed: 64", "nothing was ordered"])?;
            }
            if cloud.calls()["deployVirtualMachine"] != 2 {
                return Err(wrong("orders beyond the limit were sent"));
            }
            workers_of(world, "cloudy-workers").await?;
            control_plane_of(world, "cloudy-control-plane").await
        })
    }
    // The act after it waits for rest, and everything is as it was. Machines are taken away only from those that are
    // available, so the cluster needs a network inside.
    let story = Script::of(&[Create, Check(play), ScaleWorkers(1), Delete]).expunging_soon();
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn a_slow_cloud_is_only_slower() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let slow = Fault::Slow { command: "*".to_owned(), milliseconds: 9_000, times: None };
            cloud.simulator.inject(slow).map_err(failed)?;
            // Longer than anybody waits for an answer.
            for command in ["createNetwork", "deployVirtualMachine"] {
                let (command, times) = (command.to_owned(), Some(1));
                let slow = Fault::Slow { command, milliseconds: 120_000, times };
                cloud.simulator.inject(slow).map_err(failed)?;
            }
            world.pass(Duration::from_secs(900)).await?;
            cloud.simulator.heal();
            Ok(())
        })
    }
    goes_well_though_the_cloud_fails(&[During(mishap), Create, Delete]);
}

#[test]
fn a_machine_deleted_while_its_order_hangs_leaves_no_virtual_machine() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let before: Vec<Value> = machines(world)?;
            let stuck = Fault::StuckJob { command: "deployVirtualMachine".to_owned(), times: Some(1) };
            cloud.simulator.inject(stuck).map_err(failed)?;
            story::patch::<MachineDeployment>(world, WORKERS, json!({"spec": {"replicas": 2}})).await?;
            world.pass(Duration::from_secs(30)).await?;
            let names = |all: &[Value]| -> Vec<String> {
                all.iter().filter_map(|it| it["metadata"]["name"].as_str().map(str::to_owned)).collect()
            };
            let known = names(&before);
            let now = machines(world)?;
            let hangs =
                now.iter().find(|it| !known.iter().any(|name| it["metadata"]["name"] == name.as_str()));
            let hangs = hangs.ok_or_else(|| wrong("no machine was ordered"))?;
            says(hangs, &["False", "Deploying"])?;
            let owner = hangs["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default();
            let key = Key::new(NAMESPACE, owner);
            world
                .user()?
                .delete(&KindName::of::<Machine>(), &key, &Deletion::default())
                .await
                .map_err(failed)?;
            world.run_until_idle().await?;
            let vm = hangs["metadata"]["name"].as_str().unwrap_or_default();
            // What is destroyed is kept for a while, but nobody sees it.
            let all = cloud.client("capstan").list(&ListVirtualMachines::default()).await.map_err(failed)?;
            match all.iter().any(|machine| machine.name.as_deref() == Some(vm)) {
                true => Err(Violation::new("S4", format!("virtual machine {vm} is left"))),
                false => Ok(()),
            }
        })
    }
    goes_well_though_the_cloud_fails(&[Create, Check(play), ScaleWorkers(2), Delete]);
}

#[test]
fn a_machine_that_no_host_starts_is_reported_removed_and_ordered_again() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            // Every host is tried before CloudStack gives up.
            let fail = Fault::HostsFail { command: HostCommand::Start, times: None };
            cloud.simulator.inject(fail).map_err(failed)?;
            world.pass(Duration::from_secs(40)).await?;
            let all = machines(world)?;
            let reported =
                all.iter().any(|machine| says(machine, &["False", "DeployFailed", "E-CS-CAPACITY"]).is_ok());
            cloud.simulator.heal();
            match reported {
                true => Ok(()),
                false => Err(wrong(format!("{all:?}"))),
            }
        })
    }
    goes_well_though_the_cloud_fails(&[During(mishap), Create, Delete]);
}

#[test]
fn two_zones_with_a_network_of_one_name_each_are_two_failure_domains() {
    fn change(body: &mut Value) {
        if body["kind"] == "CloudStackCluster" {
            for domain in body["spec"]["failureDomains"].as_array_mut().into_iter().flatten() {
                domain["zone"]["network"]["name"] = "nodes".into();
            }
        }
    }
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            made(world, cloud, Shape { workers: 2, domains: 2, ..Shape::EXAMPLE }, change).await?;
            let networks = cloud.client("capstan").list(&ListNetworks::default()).await.map_err(failed)?;
            let zones: BTreeSet<_> = networks.iter().map(|it| it.zoneid.clone()).collect();
            if networks.len() != 2 || zones.len() != 2 {
                return Err(wrong(format!("networks {networks:?}")));
            }
            let domains: BTreeSet<_> =
                machines(world)?.iter().map(|it| it["spec"]["failureDomainName"].to_string()).collect();
            if domains.len() != 2 {
                return Err(wrong(format!("machines are in {domains:?}")));
            }
            deleted(world, cloud).await?;
            nothing_is_left(cloud)
        })
    }
    goes_well(&[Check(play)]);
}

#[test]
fn an_offering_that_cannot_serve_a_cluster_is_refused_before_a_network_is_made() {
    fn change(body: &mut Value) {
        if body["kind"] == "CloudStackCluster" {
            let offering = "DefaultL2NetworkOffering";
            body["spec"]["failureDomains"][0]["zone"]["network"]["offering"] = offering.into();
        }
    }
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let story = Script { bare: true, change: Some(change), ..Script::of(&[]) };
            story::create(world, cloud, Shape::EXAMPLE, &story).await?;
            world.pass(Duration::from_secs(20)).await?;
            let key = Key::new(NAMESPACE, NAME);
            let reported =
                world.objects()?.get(&KindName::of::<CloudStackCluster>(), &key).unwrap_or_default();
            says(&reported, &["False", "E-CS-UNSUPPORTED", "is for L2 networks", "failure domain fd-1"])?;
            if cloud.calls().contains_key("createNetwork") {
                return Err(wrong("a network was made"));
            }
            deleted(world, cloud).await?;
            nothing_is_left(cloud)
        })
    }
    goes_well(&[Check(play)]);
}

#[test]
fn user_data_over_the_limit_of_the_server_is_reported_before_it_is_sent() {
    fn change(body: &mut Value) {
        if body["kind"] == "KubeadmControlPlane" {
            // Text that does not become shorter by compression.
            let mut state = 1_u64;
            let noise = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap_or(0))
            });
            let noise: Vec<char> = noise.take(40_000).collect();
            let file = |(number, content): (usize, &[char])| {
                let content: String = content.iter().collect();
                let path = format!("/etc/noise-{number}");
                json!({"path": path, "owner": "root:root", "permissions": "0644", "content": content})
            };
            body["spec"]["kubeadmConfigSpec"]["files"] = noise.chunks(10_000).enumerate().map(file).collect();
        }
    }
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let story = Script { bare: true, change: Some(change), ..Script::of(&[]) };
            story::create(world, cloud, Shape::EXAMPLE, &story).await?;
            world.pass(Duration::from_secs(60)).await?;
            let all = machines(world)?;
            let is_first = |it: &&Value| it["metadata"]["labels"].get(label::CONTROL_PLANE).is_some();
            let machine = all.iter().find(is_first).ok_or_else(|| wrong(format!("{all:?}")))?;
            says(machine, &["False", "E-CS-BOOT-DATA", "32768", "capstan.dev/user-data-limit"])?;
            if cloud.calls().contains_key("deployVirtualMachine") {
                return Err(wrong("it was sent"));
            }
            deleted(world, cloud).await?;
            nothing_is_left(cloud)
        })
    }
    goes_well(&[Check(play)]);
}

#[test]
fn the_data_disk_of_a_machine_that_somebody_destroyed_goes_with_the_machine() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            made(world, cloud, Shape::EXAMPLE, with_disks).await?;
            for machine in machines(world)? {
                let id = machine["spec"]["instanceID"].as_str().unwrap_or_default().into();
                let request = DestroyVirtualMachine { id, expunge: Some(true), volumeids: Vec::new() };
                cloud.client("admin").run(&request).await.map_err(failed)?;
            }
            let volumes = cloud.names("volume");
            if volumes.len() != 2 {
                return Err(wrong(format!("left by the machines are {volumes:?}")));
            }
            deleted(world, cloud).await?;
            nothing_is_left(cloud)
        })
    }
    goes_well(&[Check(play)]);
}

/// Machines with a data disk each.
fn with_disks(body: &mut Value) {
    if body["kind"] == "CloudStackMachineTemplate" {
        body["spec"]["template"]["spec"]["diskOffering"] = json!({
            "name": "Custom", "customSizeInGB": 7,
            "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data",
        });
    }
}

/// The owner detaches the data disks of all machines.
async fn detached(cloud: &Cloud) -> Result<Vec<VolumeId>, Violation> {
    let owner = cloud.client("capstan");
    let question = ListVolumes { r#type: Some("DATADISK".to_owned()), ..ListVolumes::default() };
    let volumes = owner.list(&question).await.map_err(failed)?;
    for volume in &volumes {
        owner.run(&DetachVolume { id: volume.id.clone() }).await.map_err(failed)?;
    }
    Ok(volumes.into_iter().map(|volume| volume.id).collect())
}

fn two_disks_are_left(cloud: &Cloud) -> Result<(), Violation> {
    let left = cloud.simulator.leaks(None);
    match left.len() == 2 && left.iter().all(|leak| leak.kind == "volume") {
        true => Ok(()),
        false => Err(Violation::new("S3", format!("left in the cloud: {left:?}"))),
    }
}

#[test]
fn a_data_disk_that_its_owner_detached_outlives_the_cluster() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            made(world, cloud, Shape::EXAMPLE, with_disks).await?;
            detached(cloud).await?;
            deleted(world, cloud).await?;
            two_disks_are_left(cloud)
        })
    }
    goes_well(&[Check(play)]);
}

#[test]
fn a_detached_disk_with_a_tag_outlives_a_machine_that_somebody_destroyed() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            made(world, cloud, Shape::EXAMPLE, with_disks).await?;
            let disks = detached(cloud).await?;
            let request = CreateTags {
                resourceids: disks.iter().map(ToString::to_string).collect(),
                resourcetype: ResourceType::Volume,
                tags: vec![TagPair::new("backup", "yes")],
            };
            cloud.client("capstan").run(&request).await.map_err(failed)?;
            cloud.simulator.forgive();
            for machine in machines(world)? {
                let id = machine["spec"]["instanceID"].as_str().unwrap_or_default().into();
                let request = DestroyVirtualMachine { id, expunge: Some(true), volumeids: Vec::new() };
                cloud.client("admin").run(&request).await.map_err(failed)?;
            }
            deleted(world, cloud).await?;
            let question = ListVolumes { r#type: Some("DATADISK".to_owned()), ..ListVolumes::default() };
            let left = cloud.client("capstan").list(&question).await.map_err(failed)?;
            match left.len() {
                2 => Ok(()),
                _ => Err(Violation::new("S3", format!("left are {left:?}"))),
            }
        })
    }
    goes_well(&[Check(play)]);
}
