//! Removing what no record knows: only what carries the mark goes.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_cloudstack_client::commands::{
    AssociateIpAddress, CreateAffinityGroup, CreateLoadBalancerRule, CreateNetwork, CreateTags,
    DeleteNetwork, DeployVirtualMachine, ListAffinityGroups, ListNetworks, ListPublicIpAddresses,
    ListVirtualMachines, ListVpcs, Owner, TagPair,
};
use capstan_cloudstack_client::model::{ResourceType, VirtualMachine};
use capstan_cloudstack_client::{Client, NetworkId, UserData};
use capstan_cloudstack_provider::{Clouds, LeftoverKind, Removal, Thing};
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomain, CloudStackFailureDomainSpec};
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_provider_kit::Secret;

use crate::cloud::Cloud;
use crate::manifests::{KEYS, NAMESPACE};
use crate::sites;
use crate::story::Act::Create;
use crate::story::CheckResult;
use crate::story::{Script, failed};

/// What nodes boot with, as far as anybody looks.
const OF_A_NODE: &[u8] =
    b"#cloud-config\nruncmd:\n- echo success > /run/cluster-api/bootstrap-success.complete\n";
const OF_SOMEBODY: &[u8] = b"#cloud-config\npackages: [nginx]\n";

fn expect(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("removal", what)) }
}

fn domain(world: &World<'_>) -> Result<CloudStackFailureDomainSpec, Violation> {
    let found = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
    let spec = found.first().map(|domain| domain["spec"].clone()).unwrap_or_default();
    serde_json::from_value(spec).map_err(failed)
}

/// A machine beside another, made by hand.
async fn deploy(
    client: &Client,
    like: &VirtualMachine,
    name: &str,
    network: NetworkId,
    data: &[u8],
) -> Result<(), Violation> {
    let parts = (like.zoneid.clone(), like.serviceofferingid.clone(), like.templateid.clone());
    let (Some(zone), Some(offering), Some(template)) = parts else {
        return Err(Violation::new("removal", "a machine without a zone, an offering or a template"));
    };
    let request = DeployVirtualMachine {
        name: Some(name.to_owned()),
        networkids: vec![network],
        userdata: Some(UserData::gzip(data).map_err(failed)?),
        startvm: Some(false),
        ..DeployVirtualMachine::new(zone, offering, template)
    };
    client.run(&request).await.map(drop).map_err(failed)
}

#[test]
fn only_what_carries_the_mark_is_removed_whoever_asks() {
    fn clear<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let clouds = Clouds::new(Arc::new(cloud.clone()));
            let keys = world.user()?.get::<Secret>(&Key::new(NAMESPACE, KEYS)).await.map_err(failed)?;
            let (keys, domain) = (keys.unwrap_or_default(), domain(world)?);
            let recorded = clouds.survey(&domain, &keys).await.map_err(|it| failed(it.message))?;
            expect(recorded.machines.len() == 2 && recorded.networks.len() == 1, format!("{recorded:?}"))?;

            let hand = cloud.client("capstan");
            let details = vec!["all".to_owned()];
            let question = ListVirtualMachines { details, ..ListVirtualMachines::default() };
            let all = hand.list(&question).await.map_err(failed)?;
            let like = all.first().cloned().ok_or_else(|| failed("no machine"))?;
            let ours: NetworkId = recorded.networks[0].id.as_str().into();
            let theirs = network_like(&hand, &ours, "theirs").await?;
            deploy(&hand, &like, "lost", ours.clone(), OF_A_NODE).await?;
            deploy(&hand, &like, "guest", ours, OF_SOMEBODY).await?;
            deploy(&hand, &like, "stranger", theirs, OF_A_NODE).await?;

            let now = clouds.survey(&domain, &keys).await.map_err(|it| failed(it.message))?;
            let unrecorded =
                now.machines.into_iter().filter(|it| !recorded.machines.contains(it)).collect::<Vec<_>>();
            let names: BTreeSet<&str> = unrecorded.iter().map(|it| it.name.as_str()).collect();
            expect(names == BTreeSet::from(["guest", "lost"]), format!("{names:?}"))?;
            // Somebody asks for more than there should be asked for.
            let stranger = cloud.simulator.leaks(Some("capstan")).into_iter();
            let stranger = stranger.filter(|it| it.name == "stranger" || it.name == "theirs");
            let mut wanted = Removal { machines: unrecorded, ..Removal::default() };
            for leak in stranger {
                let thing = Thing { id: leak.id, name: leak.name };
                if leak.kind == "network" {
                    wanted.networks.push(thing);
                } else if leak.kind == "virtualmachine" {
                    wanted.machines.push(thing);
                }
            }
            let removed = clouds.remove(&domain, &keys, &wanted).await.map_err(|it| failed(it.message))?;
            expect((removed.machines, removed.networks) == (1, 0), format!("{removed:?}"))?;
            let kept: BTreeSet<&str> = removed.kept.iter().map(|(thing, _)| thing.name.as_str()).collect();
            expect(kept == BTreeSet::from(["guest", "stranger", "theirs"]), format!("{kept:?}"))?;
            let left = clouds.survey(&domain, &keys).await.map_err(|it| failed(it.message))?;
            expect(
                recorded.machines.iter().all(|it| left.machines.contains(it))
                    && left.networks == recorded.networks,
                format!("what is recorded is touched: {left:?}"),
            )
        })
    }
    let report = run(&Script { mishap_at_end: Some(clear), bare: true, ..Script::of(&[Create]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn addresses_and_affinity_groups_that_carry_the_mark_are_found_and_removed() {
    fn clear<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let clouds = Clouds::new(Arc::new(cloud.clone()));
            let keys = world.user()?.get::<Secret>(&Key::new(NAMESPACE, KEYS)).await.map_err(failed)?;
            let (keys, domain) = (keys.unwrap_or_default(), domain(world)?);
            let before = clouds.survey(&domain, &keys).await.map_err(|it| failed(it.message))?;
            expect(before.others.is_empty(), format!("{before:?}"))?;

            let hand = cloud.client("capstan");
            let ours: NetworkId = before.networks[0].id.as_str().into();
            let theirs = network_like(&hand, &ours, "theirs").await?;
            // The first address of a network cannot be released.
            for _ in 0..3 {
                let request = AssociateIpAddress { networkid: Some(theirs.clone()), ..Default::default() };
                hand.run(&request).await.map_err(failed)?;
            }
            let question = ListPublicIpAddresses { associatednetworkid: Some(theirs), ..Default::default() };
            let addresses = hand.list(&question).await.map_err(failed)?;
            let left = addresses.iter().find(|address| !address.issourcenat);
            let left = left.ok_or_else(|| failed("no address"))?;
            let request = CreateTags {
                resourceids: vec![left.id.to_string()],
                resourcetype: ResourceType::PublicIpAddress,
                tags: vec![TagPair::new("created_by_CAPC", "1")],
            };
            hand.run(&request).await.map_err(failed)?;
            let group = "c-128d3c0b-f837-42c7-94d5-9075f6539948-AntiAffinity-KubeadmControlPlane-fd-1";
            for name in [group, "mine"] {
                let request = CreateAffinityGroup {
                    name: name.to_owned(),
                    r#type: "host anti-affinity".to_owned(),
                    description: None,
                    owner: Owner::default(),
                };
                hand.run(&request).await.map_err(failed)?;
            }

            let found = clouds.survey(&domain, &keys).await.map_err(|it| failed(it.message))?.others;
            let names: BTreeSet<&str> = found.iter().map(|it| it.thing.name.as_str()).collect();
            let host = left.ipaddress.to_string();
            expect(names == BTreeSet::from([host.as_str(), group]), format!("{found:?}"))?;
            let wanted = Removal { others: found, ..Removal::default() };
            let removed = clouds.remove(&domain, &keys, &wanted).await.map_err(|it| failed(it.message))?;
            expect(removed.others.len() == 2 && removed.kept.is_empty(), format!("{removed:?}"))?;
            let after = clouds.survey(&domain, &keys).await.map_err(|it| failed(it.message))?;
            expect(after == before, format!("{after:?}"))?;
            let groups = hand.list(&ListAffinityGroups::default()).await.map_err(failed)?;
            expect(groups.iter().any(|it| it.name == "mine"), format!("{groups:?}"))
        })
    }
    let report = run(&Script { mishap_at_end: Some(clear), bare: true, ..Script::of(&[Create]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn a_vpc_with_the_mark_goes_after_its_tiers_and_a_rule_for_an_api_server_without_a_mark_is_only_listed() {
    fn clear<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            sites::a_tier_is_there(world, cloud).await?;
            let clouds = Clouds::new(Arc::new(cloud.clone()));
            let keys = world.user()?.get::<Secret>(&Key::new(NAMESPACE, KEYS)).await.map_err(failed)?;
            let (keys, domain) = (keys.unwrap_or_default(), domain(world)?);
            let before = clouds.survey(&domain, &keys).await.map_err(|it| failed(it.message))?;
            expect(before.others.is_empty(), format!("a VPC without the mark is somebody's: {before:?}"))?;

            let hand = cloud.client("capstan");
            let vpcs = hand.list(&ListVpcs::default()).await.map_err(failed)?;
            let tiers = hand.list(&ListNetworks::default()).await.map_err(failed)?;
            let tier = tiers.into_iter().find(|network| network.vpcid.is_some());
            let (Some(vpc), Some(tier)) = (vpcs.first(), tier) else { return Err(failed("no tier")) };
            let request = CreateTags {
                resourceids: vec![vpc.id.to_string()],
                resourcetype: ResourceType::Vpc,
                tags: vec![TagPair::new("created_by_CAPC", "1")],
            };
            hand.run(&request).await.map_err(failed)?;
            let question = ListPublicIpAddresses { vpcid: Some(vpc.id.clone()), ..Default::default() };
            let addresses = hand.list(&question).await.map_err(failed)?;
            let request = CreateLoadBalancerRule {
                algorithm: "roundrobin".to_owned(),
                name: "Kubernetes_API_Server".to_owned(),
                description: None,
                publicport: 6443,
                privateport: 6443,
                publicipid: addresses.iter().find(|address| !address.issourcenat).map(|it| it.id.clone()),
                networkid: Some(tier.id.clone()),
                protocol: Some("tcp".to_owned()),
                cidrlist: Vec::new(),
                openfirewall: None,
            };
            hand.run(&request).await.map_err(failed)?;

            let found = clouds.survey(&domain, &keys).await.map_err(|it| failed(it.message))?.others;
            let kinds: BTreeSet<LeftoverKind> = found.iter().map(|it| it.kind).collect();
            expect(
                kinds == BTreeSet::from([LeftoverKind::ApiRule, LeftoverKind::Vpc]),
                format!("{found:?}"),
            )?;
            let wanted = Removal { others: found, ..Removal::default() };
            let removed = clouds.remove(&domain, &keys, &wanted).await.map_err(|it| failed(it.message))?;
            expect(removed.others.is_empty() && removed.kept.len() == 2, format!("{removed:?}"))?;
            hand.run(&DeleteNetwork { id: tier.id, forced: None }).await.map_err(failed)?;
            let removed = clouds.remove(&domain, &keys, &wanted).await.map_err(|it| failed(it.message))?;
            expect(removed.others == [LeftoverKind::Vpc], format!("{removed:?}"))
        })
    }
    let report = run(&Script { mishap_at_end: Some(clear), bare: true, ..Script::of(&[Create]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// A network where another is, and of its kind, without the mark.
async fn network_like(hand: &Client, network: &NetworkId, name: &str) -> Result<NetworkId, Violation> {
    let question = ListNetworks { id: Some(network.clone()), ..ListNetworks::default() };
    let found = hand.list(&question).await.map_err(failed)?;
    let like = found.first().cloned().ok_or_else(|| failed("no network"))?;
    let (Some(zoneid), Some(networkofferingid)) = (like.zoneid, like.networkofferingid) else {
        return Err(failed("a network without a zone or an offering"));
    };
    let request = CreateNetwork {
        name: name.to_owned(),
        displaytext: None,
        networkofferingid,
        zoneid,
        gateway: None,
        netmask: None,
        cidrsize: None,
        vpcid: None,
        aclid: None,
        owner: Owner::default(),
    };
    Ok(hand.call(&request).await.map_err(failed)?.id)
}
