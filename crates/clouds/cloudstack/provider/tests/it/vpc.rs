//! Clusters on tiers of VPCs.

use std::time::Duration;

use capstan_cloudstack_client::AclId;
use capstan_cloudstack_client::commands::{
    DeployVirtualMachine, ListLoadBalancerRules, ListNetworkAclLists, ListNetworkAcls, ListNetworks,
    ListPublicIpAddresses, ListVirtualMachines, ListVpcs,
};
use capstan_cloudstack_client::model::Vpc;
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomain, CloudStackMachine};
use capstan_controller::KindName;
use capstan_harness::{Fault, Violation, World, run};
use capstan_sim_cloudstack::Fault as CloudFault;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{self, NAME, NAMESPACE, Shape};
use crate::sites::{Range, VPC, a_tier_is_there, in_a_vpc, network};
use crate::stories::first;
use crate::story::Act::{Check, Create, Delete, During, ScaleWorkers};
use crate::story::CheckResult;
use crate::story::{self, Script, failed};
use crate::takeover::command;

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("VPC", what)
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

async fn vpcs(cloud: &Cloud) -> Result<Vec<Vpc>, Violation> {
    cloud.client("capstan").list(&ListVpcs::default()).await.map_err(failed)
}

/// The tier is in the VPC, lets everything in and out, and a rule on an address of the VPC leads to it.
fn the_tier_serves<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let tenant = cloud.client("capstan");
        let vpcs = vpcs(cloud).await?;
        let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
        let ([vpc], [tier]) = (vpcs.as_slice(), networks.as_slice()) else {
            return Err(wrong(format!("VPCs {vpcs:?}, networks {networks:?}")));
        };
        if tier.vpcid.as_ref() != Some(&vpc.id) || tier.aclname.as_deref() != Some("default_allow") {
            return Err(wrong(format!("the tier is {tier:?}")));
        }
        let rules = tenant.list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
        let addresses = tenant.list(&ListPublicIpAddresses::default()).await.map_err(failed)?;
        let of_vpc = |id| {
            addresses.iter().any(|ip| ip.id == id && ip.vpcid.as_ref() == Some(&vpc.id) && !ip.issourcenat)
        };
        let served = rules.iter().all(|rule| rule.networkid.as_ref() == Some(&tier.id))
            && rules.iter().filter_map(|rule| rule.publicipid.clone()).all(of_vpc);
        if rules.len() != 1 || !served {
            return Err(wrong(format!("rules {rules:?} on {addresses:?}")));
        }
        let domains = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
        if domains[0]["spec"]["zone"]["network"]["vpc"]["id"] != vpc.id.as_str() {
            return Err(wrong(format!("the failure domain says {}", domains[0]["spec"])));
        }
        let calls = cloud.calls();
        match calls.contains_key("createFirewallRule") || calls.contains_key("createEgressFirewallRule") {
            true => Err(wrong("a tier has no firewall")),
            false => Ok(()),
        }
    })
}

#[test]
fn a_cluster_gets_a_vpc_a_tier_and_an_address_and_leaves_none_of_them() {
    let acts = [Create, Check(the_tier_serves), ScaleWorkers(2), Delete];
    goes_well(&Script { bare: true, change: Some(in_a_vpc), ..Script::of(&acts) }.expunging_soon());
}

/// The cluster took an address of its own and left the spare one alone.
fn the_spare_address_is_spare<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let addresses =
            cloud.client("capstan").list(&ListPublicIpAddresses::default()).await.map_err(failed)?;
        let spare = addresses.iter().filter(|ip| ip.associatednetworkid.is_none() && !ip.issourcenat).count();
        match (addresses.len(), spare) {
            (3, 1) => Ok(()),
            _ => Err(wrong(format!("addresses {addresses:?}"))),
        }
    })
}

#[test]
fn a_tier_that_exists_is_used_and_left_as_it_was() {
    let acts = [Check(a_tier_is_there), Create, Check(the_spare_address_is_spare), Delete];
    goes_well(&Script { bare: true, ..Script::of(&acts) }.expunging_soon());
}

/// Machines name a VPC that has no addresses to be made with.
#[test]
fn a_vpc_that_cannot_be_made_is_reported_with_the_field_to_correct() {
    fn without_cidr(body: &mut Value) {
        in_a_vpc(body);
        if body["kind"] == "CloudStackCluster" {
            body["spec"]["failureDomains"][0]["zone"]["network"]["vpc"] = json!({"name": VPC});
        }
    }
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let story = Script { bare: true, change: Some(without_cidr), ..Script::of(&[]) };
            crate::story::create(world, cloud, Shape::EXAMPLE, &story).await?;
            world.run_until_idle().await?;
            let domains = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
            crate::failures::says(&domains[0], &["cidr in network.vpc of failure domain fd-1"])?;
            let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
            match machines.iter().all(|machine| machine["spec"]["instanceID"].is_null())
                && vpcs(cloud).await?.is_empty()
            {
                true => Ok(()),
                false => Err(wrong("something was made")),
            }
        })
    }
    goes_well(&Script { mishap_at_end: Some(play), ..Script::of(&[]) });
}

/// The access list of somebody's tier.
pub const LIST: &str = "strict";

pub async fn list(cloud: &Cloud) -> Result<AclId, Violation> {
    let question = ListNetworkAclLists { name: Some(LIST.to_owned()), ..Default::default() };
    let found = cloud.client("capstan").list(&question).await.map_err(failed)?;
    found.into_iter().next().map(|list| list.id).ok_or_else(|| wrong("no access list"))
}

/// Its owner lets something out.
pub async fn let_out(cloud: &Cloud, protocol: &str, port: &str) -> Result<(), Violation> {
    let id = list(cloud).await?;
    let what = [("command", "createNetworkACL"), ("aclid", id.as_str()), ("traffictype", "egress")];
    let ports = [("protocol", protocol), ("startport", port), ("endport", port)];
    command(cloud, &[what, ports].concat()).await
}

/// Somebody's tier with a list that lets out nothing but web traffic.
pub fn a_tier_with_a_list_is_there<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        a_tier_is_there(world, cloud).await?;
        let networks = cloud.client("capstan").list(&ListNetworks::default()).await.map_err(failed)?;
        let (Some(vpc), Some(tier)) = (vpcs(cloud).await?.pop(), networks.first().cloned()) else {
            return Err(wrong("no tier"));
        };
        let made = [("command", "createNetworkACLList"), ("name", LIST), ("vpcid", vpc.id.as_str())];
        command(cloud, &made).await?;
        let_out(cloud, "tcp", "443").await?;
        let id = list(cloud).await?;
        let replaced =
            [("command", "replaceNetworkACLList"), ("aclid", id.as_str()), ("networkid", tier.id.as_str())];
        command(cloud, &replaced).await?;
        world.pass(Duration::from_secs(1)).await?;
        cloud.simulator.forgive();
        Ok(())
    })
}

/// It is said what the list lacks, nothing is ordered, and with that the cluster goes on.
fn the_missing_rule_is_named<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        world.pass(Duration::from_secs(60)).await?;
        let domains = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
        crate::failures::says(&domains[0], &["E-CS-ACL", "access list strict", "blocks udp 53 out"])?;
        match cloud.calls().contains_key("deployVirtualMachine") {
            true => Err(wrong("a machine was ordered")),
            false => let_out(cloud, "udp", "53").await,
        }
    })
}

fn the_list_is_its_owners<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let question = ListNetworkAcls { aclid: Some(list(cloud).await?), ..Default::default() };
        let rules = cloud.client("capstan").list(&question).await.map_err(failed)?;
        match rules.len() {
            2 => Ok(()),
            _ => Err(wrong(format!("rules {rules:?}"))),
        }
    })
}

#[test]
fn an_access_list_of_somebody_is_never_changed_and_what_it_lacks_is_named() {
    let acts = [
        Check(a_tier_with_a_list_is_there),
        During(the_missing_rule_is_named),
        Create,
        Delete,
        Check(the_list_is_its_owners),
    ];
    goes_well(&Script { bare: true, ..Script::of(&acts) }.expunging_soon());
}

/// Both failure domains are in one zone, each with a tier of one VPC that does not exist yet.
fn two_tiers(body: &mut Value) {
    if body["kind"] == "CloudStackCluster" {
        for domain in body["spec"]["failureDomains"].as_array_mut().into_iter().flatten() {
            domain["zone"]["name"] = "zone-1".into();
            domain["zone"]["network"]["vpc"] = json!({"name": VPC, "cidr": "10.20.0.0/16"});
        }
    }
}

/// What a list of VPCs shows is old when it arrives: tiers that look at the same time see no VPC.
fn lists_are_slow<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let slow = CloudFault::Slow { command: "listVPCs".to_owned(), milliseconds: 3000, times: None };
        cloud.simulator.inject(slow).map_err(failed)
    })
}

/// There is one VPC, which was ordered once, with as many tiers, which were ordered once each.
async fn one_vpc_has(cloud: &Cloud, tiers: usize) -> Result<(), Violation> {
    let vpcs = vpcs(cloud).await?;
    let networks = cloud.client("capstan").list(&ListNetworks::default()).await.map_err(failed)?;
    let calls = cloud.calls();
    let ordered = |command: &str| calls.get(command).copied().unwrap_or_default();
    let orders = (ordered("createVPC"), usize::try_from(ordered("createNetwork")).unwrap_or_default());
    let [vpc] = vpcs.as_slice() else { return Err(wrong(format!("{orders:?} orders made VPCs {vpcs:?}"))) };
    let inside = networks.iter().filter(|network| network.vpcid.as_ref() == Some(&vpc.id)).count();
    match (inside, orders) == (tiers, (1, tiers)) {
        true => Ok(()),
        false => Err(wrong(format!("{orders:?} orders made {networks:?}"))),
    }
}

fn one_vpc_has_both<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(one_vpc_has(cloud, 2))
}

#[test]
fn two_failure_domains_on_tiers_of_one_new_vpc_order_it_once_whatever_the_order_of_events() {
    let shape = Shape { domains: 2, ..Shape::EXAMPLE };
    let acts = [Check(lists_are_slow), Create, Check(one_vpc_has_both), Delete];
    let story = Script { shape, bare: true, change: Some(two_tiers), ..Script::of(&acts) }.expunging_soon();
    for seed in 1..=2 {
        let report = run(&story, seed, &[]);
        assert!(report.violation.is_none(), "seed {seed}: {}", report.transcript());
    }
}

#[test]
fn two_clusters_on_tiers_of_one_new_vpc_order_it_once_and_the_last_takes_it_along() {
    const SECOND: &str = "second";
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let story = Script { bare: true, change: Some(in_a_vpc), ..Script::of(&[]) };
            lists_are_slow(world, cloud).await?;
            crate::story::create(world, cloud, Shape::EXAMPLE, &story).await?;
            for (kind, mut body) in manifests::renamed(Shape::EXAMPLE, SECOND) {
                in_a_vpc(&mut body);
                world.user()?.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
            }
            world.run_until_idle().await?;
            one_vpc_has(cloud, 2).await?;
            story::delete_cluster(world, cloud, NAME).await?;
            if vpcs(cloud).await?.len() != 1 {
                return Err(wrong("the VPC went with the first cluster"));
            }
            story::delete_cluster(world, cloud, SECOND).await?;
            match cloud.simulator.leaks(Some("capstan")) {
                left if left.is_empty() => Ok(()),
                left => Err(Violation::new("L3", format!("left: {left:?}"))),
            }
        })
    }
    goes_well(&Script { mishap_at_end: Some(play), ..Script::of(&[]) }.expunging_soon());
}

/// The process dies, or an answer is lost, around the order of the VPC.
#[test]
fn the_vpc_of_two_tiers_is_ordered_once_though_the_process_dies() {
    let shape = Shape { domains: 2, ..Shape::EXAMPLE };
    let acts = [Check(lists_are_slow), Create, Check(one_vpc_is_left), Delete];
    let story = Script { shape, bare: true, change: Some(two_tiers), ..Script::of(&acts) }.expunging_soon();
    let reference = run(&story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let order = first(&reference.trace.text(), "create-vpc");
    for fault in [Fault::CrashAfter(order), Fault::LoseReply(order)] {
        let report = run(&story, 1, &[fault]);
        assert!(report.violation.is_none(), "{}", report.transcript());
    }
}

fn one_vpc_is_left<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        match vpcs(cloud).await?.as_slice() {
            [vpc] if vpc.network.len() == 2 => Ok(()),
            other => Err(wrong(format!("VPCs {other:?}"))),
        }
    })
}

/// Somebody's machine in another tier of the VPC takes the name of a worker before that is ordered.
fn its_name_is_taken_in_another_tier<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let fault = CloudFault::Error {
            command: "deployVirtualMachine".to_owned(),
            code: 431,
            text: "no".to_owned(),
            times: Some(1),
        };
        cloud.simulator.inject(fault).map_err(failed)?;
        world.pass(Duration::from_secs(20)).await?;
        let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
        let refused = machines.iter().find(|machine| machine["spec"]["instanceID"].is_null());
        let name = refused.and_then(|machine| machine["metadata"]["name"].as_str());
        let name = name.ok_or_else(|| wrong(format!("no machine waits: {machines:?}")))?;
        let vpcs = vpcs(cloud).await?;
        let range = Range { gateway: Some("10.30.8.1"), tier_of: vpcs.first() };
        let tier =
            network(cloud, "capstan", ("beside", "DefaultIsolatedNetworkOfferingForVpcNetworks"), range);
        let tier = tier.await?;
        let tenant = cloud.client("capstan");
        let vms = tenant.list(&ListVirtualMachines::default()).await.map_err(failed)?;
        let like = vms.first().ok_or_else(|| wrong("no machine"))?;
        let parts = (like.zoneid.clone(), like.serviceofferingid.clone(), like.templateid.clone());
        let (Some(zone), Some(offering), Some(template)) = parts else { return Err(wrong("half a machine")) };
        let mut request = DeployVirtualMachine::new(zone, offering, template);
        (request.name, request.networkids, request.startvm) =
            (Some(name.to_owned()), vec![tier], Some(false));
        request.displayname = Some("somebody's".to_owned());
        tenant.run(&request).await.map(drop).map_err(failed)
    })
}

/// The worker has another name than its object.
fn it_got_another_name<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let vms = cloud.client("capstan").list(&ListVirtualMachines::default()).await.map_err(failed)?;
        let names: Vec<_> = vms.iter().filter_map(|vm| vm.name.as_deref()).collect();
        match names.iter().any(|name| name.ends_with("-r1")) {
            true => Ok(()),
            false => Err(wrong(format!("machines {names:?}"))),
        }
    })
}

#[test]
fn a_name_that_is_taken_in_another_tier_of_the_vpc_is_passed_over() {
    let acts = [
        Check(a_tier_is_there),
        Create,
        During(its_name_is_taken_in_another_tier),
        ScaleWorkers(2),
        Check(it_got_another_name),
    ];
    goes_well(&Script { bare: true, ..Script::of(&acts) }.expunging_soon());
}
