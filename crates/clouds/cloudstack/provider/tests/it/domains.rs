//! Failure domains that a cluster no longer names, and clusters in CloudStack's own list.

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_capi_types::core::{Machine, label};
use capstan_cloudstack_client::commands::{ListEgressFirewallRules, ListKubernetesClusters, ListNetworks};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackMachine,
};
use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::failures::says;
use crate::manifests::{NAME, NAMESPACE, Shape};
use crate::sites;
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

fn cluster(world: &World<'_>) -> Result<Value, Violation> {
    let key = Key::new(NAMESPACE, NAME);
    Ok(world.objects()?.get(&KindName::of::<CloudStackCluster>(), &key).unwrap_or_default())
}

/// Has the manifest name these failure domains and no others.
async fn names(world: &World<'_>, domains: &[&Value]) -> Result<(), Violation> {
    patch::<CloudStackCluster>(world, NAME, json!({"spec": {"failureDomains": domains}})).await
}

/// Machines in a failure domain, control planes alone or all.
fn machines_in(world: &World<'_>, domain: &str, control_planes: bool) -> Result<Vec<Value>, Violation> {
    let mut machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
    machines.retain(|it| {
        let counts = !control_planes || it["metadata"]["labels"].get(label::CONTROL_PLANE).is_some();
        it["spec"]["failureDomainName"] == domain && counts
    });
    Ok(machines)
}

/// The second failure domain is taken out of the manifest.
async fn second_is_removed(world: &mut World<'_>) -> Result<(), Violation> {
    let first = cluster(world)?["spec"]["failureDomains"][0].clone();
    if machines_in(world, "fd-2", false)?.is_empty() {
        return Err(wrong("no machine is in the second failure domain"));
    }
    names(world, &[&first]).await?;
    world.run_until_idle().await?;
    let left = machines_in(world, "fd-2", false)?;
    if !left.is_empty() {
        let domains = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
        return Err(wrong(format!("left are {left:?} in {domains:?}")));
    }
    let machines = world.objects()?.list(&KindName::of::<Machine>());
    match machines.iter().filter(|machine| machine["status"]["phase"] == "Running").count() {
        5 => Ok(()),
        running => Err(wrong(format!("{running} of {} Machines run", machines.len()))),
    }
}

fn workers_leave<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(second_is_removed(world))
}

#[test]
fn machines_leave_a_failure_domain_that_the_manifest_names_no_longer() {
    let shape = Shape { control_plane: 1, workers: 4, domains: 2, ..Shape::EXAMPLE };
    let acts = [Create, Check(workers_leave)];
    let story = Script { shape, bare: true, delete_at_end: true, ..Script::of(&acts) };
    goes_well(&story.expunging_soon());
}

/// Two failure domains on one shared network: kube-vip has the endpoint, so control planes live in both.
fn on_a_shared_network(body: &mut Value) {
    sites::with_kube_vip(body);
    if body["kind"] == "CloudStackCluster" {
        let first = body["spec"]["failureDomains"][0]["zone"].clone();
        body["spec"]["failureDomains"][1]["zone"] = first;
    }
}

fn control_planes_leave<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        for domain in ["fd-1", "fd-2"] {
            if machines_in(world, domain, true)?.is_empty() {
                return Err(wrong(format!("no control plane machine is in {domain}")));
            }
        }
        second_is_removed(world).await
    })
}

#[test]
fn a_control_plane_of_three_leaves_a_failure_domain_too() {
    let shape = Shape { control_plane: 3, workers: 2, domains: 2, ..Shape::EXAMPLE };
    let acts = [Check(sites::a_shared_network_is_there), Create, Check(control_planes_leave)];
    let change = Some(on_a_shared_network as fn(&mut Value));
    let story = Script { shape, bare: true, change, delete_at_end: true, ..Script::of(&acts) };
    goes_well(&story.expunging_soon());
}

/// The failure domain with the endpoint is taken out of the manifest: nothing happens but that it is said. A control plane
/// machine that goes is replaced there. Then the manifest is put right.
fn the_endpoint_stays<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let spec = cluster(world)?["spec"].clone();
        let host = spec["controlPlaneEndpoint"]["host"].as_str().unwrap_or_default();
        let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
        let serving = networks.iter().find(|it| it["spec"]["controlPlaneEndpoint"]["host"] == host);
        let serving = serving.map(|it| it["spec"]["failureDomainName"].clone()).unwrap_or_default();
        let all: Vec<Value> = spec["failureDomains"].as_array().cloned().unwrap_or_default();
        let others: Vec<&Value> = all.iter().filter(|domain| domain["name"] != serving).collect();
        let machines = |world: &World<'_>| -> Result<BTreeSet<String>, Violation> {
            let all = world.objects()?.list(&KindName::of::<CloudStackMachine>());
            Ok(all.iter().map(|it| it["spec"]["instanceID"].to_string()).collect())
        };
        let before = machines(world)?;
        names(world, &others).await?;
        world.run_until_idle().await?;
        world.pass(Duration::from_secs(1800)).await?;
        let name = serving.as_str().unwrap_or_default();
        says(
            &cluster(world)?,
            &["False", "EndpointInUse", "E-CS-ENDPOINT-IN-USE", name, host, "spec.failureDomains"],
        )?;
        if machines(world)? != before || cloud.names("loadbalancerrule").len() != 2 {
            return Err(wrong("something was removed"));
        }
        let first = machines_in(world, name, true)?.into_iter().next().unwrap_or_default();
        let machine = Key::new(NAMESPACE, first["metadata"]["name"].as_str().unwrap_or_default());
        let user = world.user()?;
        user.delete(&KindName::of::<Machine>(), &machine, &Deletion::default()).await.map_err(failed)?;
        world.run_until_idle().await?;
        let there = machines_in(world, name, true)?;
        if there.len() != 3 || there.iter().any(|it| it["status"]["ready"] != true) {
            return Err(wrong(format!("control planes in {name} are {there:?}")));
        }
        names(world, &all.iter().collect::<Vec<_>>()).await?;
        world.run_until_idle().await?;
        says(&cluster(world)?, &["True", "Provisioned"])
    })
}

#[test]
fn a_failure_domain_whose_network_has_the_endpoint_is_not_removed() {
    let shape = Shape { control_plane: 3, workers: 2, domains: 2, ..Shape::EXAMPLE };
    let acts = [Create, Check(the_endpoint_stays), ScaleWorkers(3), Delete];
    goes_well(&Script { shape, bare: true, ..Script::of(&acts) }.expunging_soon());
}

/// The second and the third failure domain are in one zone and on one network, which is not that of the endpoint.
fn two_on_a_network(body: &mut Value) {
    if body["kind"] == "CloudStackCluster" {
        let second = body["spec"]["failureDomains"][1]["zone"].clone();
        body["spec"]["failureDomains"][2]["zone"] = second;
    }
}

/// Rules, egress rules and networks of the tenant, and machines with their networks.
async fn shared_things(cloud: &Cloud) -> Result<[usize; 3], Violation> {
    let tenant = cloud.client("capstan");
    let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
    let mut exits = 0;
    for network in &networks {
        let question = ListEgressFirewallRules { networkid: Some(network.id.clone()), ..Default::default() };
        exits += tenant.list(&question).await.map_err(failed)?.len();
    }
    Ok([networks.len(), exits, cloud.names("loadbalancerrule").len()])
}

/// The failure domain that owns the network goes, the other stays, and with it everything on the network.
fn the_owner_of_the_network_leaves<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let before = shared_things(cloud).await?;
        if before != [2, 2, 2] {
            return Err(wrong(format!("networks, egress rules and rules are {before:?}")));
        }
        let shared = |world: &World<'_>| -> Result<Value, Violation> {
            let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
            let mut others = networks.into_iter().filter(|it| it["spec"]["failureDomainName"] != "fd-1");
            others.next().ok_or_else(|| wrong("the network is gone"))
        };
        let owner = shared(world)?["spec"]["failureDomainName"].clone();
        let all: Vec<Value> =
            cluster(world)?["spec"]["failureDomains"].as_array().cloned().unwrap_or_default();
        let left: Vec<&Value> = all.iter().filter(|domain| domain["name"] != owner).collect();
        names(world, &left).await?;
        world.run_until_idle().await?;
        world.pass(Duration::from_secs(3600)).await?;
        let network = shared(world)?;
        let after = shared_things(cloud).await?;
        if after != before || network["spec"]["failureDomainName"] == owner {
            return Err(wrong(format!("{before:?} became {after:?}, and the network is {network}")));
        }
        let machines = world.objects()?.list(&KindName::of::<Machine>());
        match machines.iter().filter(|machine| machine["status"]["phase"] == "Running").count() {
            5 => Ok(()),
            running => Err(wrong(format!("{running} of {} Machines run", machines.len()))),
        }
    })
}

#[test]
fn a_network_of_two_failure_domains_goes_with_the_last_of_them() {
    let shape = Shape { control_plane: 1, workers: 4, domains: 3, ..Shape::EXAMPLE };
    let acts = [Create, Check(the_owner_of_the_network_leaves), Delete];
    let change = Some(two_on_a_network as fn(&mut Value));
    goes_well(&Script { shape, bare: true, change, ..Script::of(&acts) }.expunging_soon());
}

fn the_endpoint_is_unnamed<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let second = cluster(world)?["spec"]["failureDomains"][1].clone();
        names(world, &[&second]).await?;
        world.run_until_idle().await
    })
}

#[test]
fn a_cluster_goes_whole_though_its_manifest_does_not_name_the_failure_domain_with_the_endpoint() {
    let shape = Shape { domains: 2, ..Shape::EXAMPLE };
    let acts = [Create, Check(the_endpoint_is_unnamed), Delete];
    goes_well(&Script { shape, bare: true, ..Script::of(&acts) }.expunging_soon());
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

/// What the condition about the entry says.
fn mirror_says(world: &World<'_>, parts: &[&str]) -> Result<(), Violation> {
    let cluster = cluster(world)?;
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let said = conditions.iter().find(|one| one["type"] == "MirroredInCloudStack").map(Value::to_string);
    let said = said.unwrap_or_default();
    match parts.iter().find(|part| !said.contains(**part)) {
        Some(part) => Err(wrong(format!("{part:?} is not in {said}"))),
        None => Ok(()),
    }
}

fn the_plug_in_is_off<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        mirror_says(world, &["E-CS-CKS", "cloud.kubernetes.service.enabled", "syncWithACS"])?;
        says(&cluster(world)?, &["True"])
    })
}

#[test]
fn a_cluster_comes_and_goes_though_the_kubernetes_service_of_cloudstack_is_off() {
    let acts = [Create, Check(the_plug_in_is_off), Delete];
    let story = Script { bare: true, change: Some(mirrored), ..Script::of(&acts) };
    let mut story = story.expunging_soon();
    story.settings.kubernetes_service_enabled = false;
    goes_well(&story);
}

fn the_role_has_no_entries<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let text = include_str!("../../../../../../docs/cloudstack.md");
        let words = text.split(|character: char| !character.is_ascii_alphanumeric());
        let role = words.filter(|command| !command.contains("Kubernetes"));
        cloud.simulator.set_role("capstan", role).map_err(failed)
    })
}

fn the_permission_is_named<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move { mirror_says(world, &["E-CS-PERMISSION", "listKubernetesClusters"]) })
}

#[test]
fn a_cluster_comes_and_goes_though_its_role_may_not_see_the_list() {
    let acts = [Check(the_role_has_no_entries), Create, Check(the_permission_is_named), Delete];
    goes_well(&Script { bare: true, change: Some(mirrored), ..Script::of(&acts) }.expunging_soon());
}
