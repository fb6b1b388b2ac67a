//! Failure domains that a cluster no longer names, and clusters in CloudStack's own list.

use capstan_capi_types::core::{Machine, label};
use capstan_cloudstack_client::commands::ListKubernetesClusters;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackFailureDomain, CloudStackMachine};
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{NAME, NAMESPACE, Shape};
use crate::story::Act::{Check, Create, Delete, ScaleWorkers};
use crate::story::CheckResult;
use crate::story::{Script, failed, patch};

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("domains", what)
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// The second failure domain is taken out of the manifest.
fn one_domain_is_removed<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let (kind, key) = (KindName::of::<CloudStackCluster>(), Key::new(NAMESPACE, NAME));
        let cluster = world.objects()?.get(&kind, &key).unwrap_or_default();
        let first = cluster["spec"]["failureDomains"][0].clone();
        let there = |world: &World<'_>| -> Result<Vec<Value>, Violation> {
            let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
            let second = machines.into_iter().filter(|it| it["spec"]["failureDomainName"] == "fd-2");
            Ok(second.collect())
        };
        if there(world)?.is_empty() {
            return Err(wrong("no machine is in the second failure domain"));
        }
        patch::<CloudStackCluster>(world, NAME, json!({"spec": {"failureDomains": [first]}})).await?;
        world.run_until_idle().await?;
        let left = there(world)?;
        if !left.is_empty() {
            let domains = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
            return Err(wrong(format!("left are {left:?} in {domains:?}")));
        }
        let machines = world.objects()?.list(&KindName::of::<Machine>());
        match machines.iter().filter(|machine| machine["status"]["phase"] == "Running").count() {
            5 => Ok(()),
            running => Err(wrong(format!("{running} of {} Machines run", machines.len()))),
        }
    })
}

#[test]
fn machines_leave_a_failure_domain_that_the_manifest_names_no_longer() {
    let shape = Shape { control_plane: 1, workers: 4, domains: 2, ..Shape::EXAMPLE };
    let story = Script {
        shape,
        bare: true,
        delete_at_end: true,
        ..Script::of(&[Create, Check(one_domain_is_removed)])
    };
    goes_well(&story.expunging_soon());
}

#[test]
fn a_control_plane_of_three_leaves_a_failure_domain_too() {
    let shape = Shape { control_plane: 3, workers: 2, domains: 2, ..Shape::EXAMPLE };
    let acts = [Create, Check(one_domain_is_removed)];
    let story = Script { shape, bare: true, delete_at_end: true, ..Script::of(&acts) };
    goes_well(&story.expunging_soon());
}

/// No two workers are in one failure domain.
fn workers_are_apart<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
        let of_worker = |it: &&Value| it["metadata"]["labels"].get(label::CONTROL_PLANE).is_none();
        let mut places: Vec<_> =
            machines.iter().filter(of_worker).map(|it| it["spec"]["failureDomainName"].to_string()).collect();
        places.sort();
        match places == ["\"fd-1\"", "\"fd-2\""] {
            true => Ok(()),
            false => Err(wrong(format!("workers are in {places:?}"))),
        }
    })
}

#[test]
fn workers_that_come_in_the_same_instant_are_placed_apart_whatever_the_order_of_events() {
    let shape = Shape { control_plane: 1, workers: 2, domains: 2, ..Shape::EXAMPLE };
    let story = Script { shape, bare: true, ..Script::of(&[Create, Check(workers_are_apart)]) };
    for seed in 1..=6 {
        let report = run(&story, seed, &[]);
        assert!(report.violation.is_none(), "seed {seed}: {}", report.transcript());
    }
}

fn mirrored(body: &mut Value) {
    if body["kind"] == "CloudStackCluster" {
        body["spec"]["syncWithACS"] = true.into();
    }
}

/// The entry has these machines and no other.
async fn has_members(world: &World<'_>, cloud: &Cloud, number: usize) -> Result<(), Violation> {
    let found = cloud.client("capstan").list(&ListKubernetesClusters::default()).await.map_err(failed)?;
    let [entry] = found.as_slice() else { return Err(wrong(format!("entries {found:?}"))) };
    let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
    let mut own: Vec<_> = machines.iter().filter_map(|it| it["spec"]["instanceID"].as_str()).collect();
    let mut held: Vec<_> = entry.virtualmachines.iter().map(|it| it.id.as_str()).collect();
    own.sort_unstable();
    held.sort_unstable();
    let cluster = world.objects()?.get(&KindName::of::<CloudStackCluster>(), &Key::new(NAMESPACE, NAME));
    let cluster = cluster.unwrap_or_default();
    let known = cluster["status"]["cloudStackClusterId"] == entry.id.as_str();
    match held == own && held.len() == number && known {
        true => Ok(()),
        false => Err(wrong(format!("{held:?} and not {own:?}: {}", cluster["status"]))),
    }
}

fn it_has_two<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(has_members(world, cloud, 2))
}

fn it_has_three<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(has_members(world, cloud, 3))
}

/// The status is lost, as in a move: the entry is found again and none is made beside it.
fn its_status_is_lost<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let annotation = json!({"metadata": {"annotations": {"capstan.dev/cloudstack-mirror": null}}});
        patch::<CloudStackCluster>(world, NAME, annotation).await?;
        world.run_until_idle().await?;
        has_members(world, cloud, 2).await
    })
}

#[test]
fn a_cluster_is_shown_in_cloudstacks_own_list_with_its_machines() {
    let acts = [
        Create,
        Check(it_has_two),
        Check(its_status_is_lost),
        ScaleWorkers(2),
        Check(it_has_three),
        ScaleWorkers(1),
        Check(it_has_two),
        Delete,
    ];
    goes_well(&Script { bare: true, change: Some(mirrored), ..Script::of(&acts) }.expunging_soon());
}
