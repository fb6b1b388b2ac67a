//! What CloudStack refuses to delete: it stays, with the reason, and few jobs fail.

use std::time::Duration;

use capstan_capi_types::core::Cluster;
use capstan_cloudstack_client::commands::{ListVirtualMachines, ListVolumes, Scope};
use capstan_cloudstack_types::v1beta3::{CloudStackIsolatedNetwork, CloudStackMachine};
use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_sim_cloudstack::Fault as CloudFault;
use serde_json::Value;

use crate::cloud::Cloud;
use crate::failures::says;
use crate::manifests::{NAME, NAMESPACE};
use crate::sites::in_a_vpc;
use crate::story::Act::{Check, Create, Delete};
use crate::story::CheckResult;
use crate::story::{Script, failed};

/// Orders to destroy one machine in ten minutes: after 30 s, 60 s, 120 s and 240 s.
const ORDERS: u64 = 5;

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// The virtual machine of a worker.
async fn worker(cloud: &Cloud) -> Result<String, Violation> {
    let question = ListVirtualMachines { scope: Scope::all(), ..ListVirtualMachines::default() };
    let vms = cloud.client("admin").list(&question).await.map_err(failed)?;
    let worker = vms.iter().find(|vm| vm.name.as_deref().is_some_and(|name| name.contains("workers")));
    worker.map(|vm| vm.id.to_string()).ok_or_else(|| failed("no worker"))
}

/// Somebody sets delete protection of a virtual machine or a volume.
async fn protect(cloud: &Cloud, command: &str, id: &str, on: bool) -> Result<(), Violation> {
    let form = format!("command={command}&response=json&id={id}&deleteprotection={on}");
    cloud.operate(&form).await.map_err(failed)
}

/// The cluster is deleted, and one machine stays with the reason; when it is protected no longer, it goes.
async fn deleted_in_spite_of(
    (command, id, name): (&str, &str, &str),
    world: &mut World<'_>,
    cloud: &Cloud,
) -> Result<(), Violation> {
    protect(cloud, command, id, true).await?;
    // Of a volume it takes a job.
    world.pass(Duration::from_secs(1)).await?;
    let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
    world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
    world.pass(Duration::from_secs(600)).await?;
    let left: Vec<Value> = world
        .objects()?
        .list(&KindName::of::<CloudStackMachine>())
        .into_iter()
        .filter(|machine| machine["metadata"]["name"].as_str().is_some_and(|name| name.contains("workers")))
        .collect();
    let [left] = left.as_slice() else { return Err(failed(format!("left are {left:?}"))) };
    says(
        left,
        &[
            "E-CS-DELETE: destroyVirtualMachine",
            &format!("{id}, name = {name}"),
            "has delete protection enabled and cannot be deleted",
            "turn deleteprotection off in CloudStack, or detach a volume that is to be kept",
            "next try at",
        ],
    )?;
    let jobs = cloud.simulator.complaints().failed_jobs;
    let refused = jobs.get("destroyVirtualMachine").copied().unwrap_or_default();
    if !(1..=ORDERS).contains(&refused) || worker(cloud).await.is_err() {
        return Err(failed(format!("{refused} orders were refused")));
    }
    protect(cloud, command, id, false).await
}

fn a_machine_is_protected<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let vm = worker(cloud).await?;
        deleted_in_spite_of(("updateVirtualMachine", &vm, "cloudy-workers"), world, cloud).await
    })
}

#[test]
fn a_protected_machine_holds_its_cluster_with_the_reason_and_few_orders() {
    let acts = [Create, Check(a_machine_is_protected), Delete];
    goes_well(&Script { bare: true, failed_jobs: Some(ORDERS), ..Script::of(&acts) }.expunging_soon());
}

fn with_a_disk(body: &mut Value) {
    if body["kind"] == "CloudStackMachineTemplate" {
        body["spec"]["template"]["spec"]["diskOffering"] = serde_json::json!({
            "name": "Small", "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data",
        });
    }
}

fn its_disk_is_protected<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let vm = worker(cloud).await?;
        let question = ListVolumes {
            virtualmachineid: Some(vm.as_str().into()),
            r#type: Some("DATADISK".to_owned()),
            ..ListVolumes::default()
        };
        let disks = cloud.client("capstan").list(&question).await.map_err(failed)?;
        let disk = disks.first().ok_or_else(|| failed("no data disk"))?;
        deleted_in_spite_of(("updateVolume", disk.id.as_str(), "DATA-"), world, cloud).await
    })
}

#[test]
fn a_protected_data_disk_holds_its_machine_with_the_reason_and_few_orders() {
    let acts = [Create, Check(its_disk_is_protected), Delete];
    let story =
        Script { bare: true, failed_jobs: Some(ORDERS), change: Some(with_a_disk), ..Script::of(&acts) };
    goes_well(&story.expunging_soon());
}

/// A VPC that gained a tier a moment ago is refused in these words.
fn the_vpc_is_used<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let fault = CloudFault::Error {
            command: "deleteVPC".to_owned(),
            code: 431,
            text: "Can't delete VPC v as its used by 1 networks".to_owned(),
            times: None,
        };
        cloud.simulator.inject(fault).map_err(failed)?;
        let (kind, key) = (KindName::of::<Cluster>(), Key::new(NAMESPACE, NAME));
        world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
        world.pass(Duration::from_secs(900)).await?;
        let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
        let parts =
            ["E-CS-DELETE: deleteVPC", "as its used by 1 networks; remove in CloudStack what holds it"];
        says(networks.first().unwrap_or(&Value::Null), &parts)?;
        let orders = cloud.calls().get("deleteVPC").copied().unwrap_or_default();
        cloud.simulator.heal();
        match (1..=ORDERS).contains(&orders) {
            true => Ok(()),
            false => Err(failed(format!("{orders} orders were refused"))),
        }
    })
}

#[test]
fn a_vpc_that_cannot_be_deleted_yet_holds_its_cluster_with_the_reason_and_few_orders() {
    let acts = [Create, Check(the_vpc_is_used), Delete];
    goes_well(&Script { bare: true, change: Some(in_a_vpc), ..Script::of(&acts) }.expunging_soon());
}
