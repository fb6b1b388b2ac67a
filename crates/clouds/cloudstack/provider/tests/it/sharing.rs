//! Clusters that share a network: each has an address and a rule of its own, and what they share goes with the last.

use std::collections::BTreeSet;

use capstan_capi_types::core::{Cluster, label};
use capstan_cloudstack_client::LoadBalancerRuleId;
use capstan_cloudstack_client::commands::{
    AssignToLoadBalancerRule, AssociateIpAddress, CreateLoadBalancerRule, ListEgressFirewallRules,
    ListLoadBalancerRuleInstances, ListLoadBalancerRules, ListNetworks, ListVirtualMachines,
};
use capstan_cloudstack_client::model::LoadBalancerRule;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackIsolatedNetwork, CloudStackMachine};
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use serde_json::Value;

use crate::cloud::Cloud;
use crate::failures::says;
use crate::features::a_network_is_there;
use crate::manifests::{self, NAME, NAMESPACE, Shape};
use crate::story::Act::{Check, Create};
use crate::story::CheckResult;
use crate::story::{self, Script, failed};

const SECOND: &str = "second";

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("S3", what)
}

/// Applies a second cluster on the network of the first.
async fn second(world: &mut World<'_>, host: Option<&str>) -> Result<(), Violation> {
    for (kind, mut body) in manifests::renamed(Shape::EXAMPLE, SECOND) {
        if body["kind"] == "CloudStackCluster" {
            body["spec"]["failureDomains"][0]["zone"]["network"]["name"] = NAME.into();
            if let Some(host) = host {
                body["spec"]["controlPlaneEndpoint"]["host"] = host.into();
            }
        }
        world.user()?.create(&kind, NAMESPACE, &body).await.map_err(failed)?;
    }
    world.run_until_idle().await
}

fn host(world: &World<'_>, cluster: &str) -> Result<String, Violation> {
    let key = Key::new(NAMESPACE, cluster);
    let found = world.objects()?.get(&KindName::of::<CloudStackCluster>(), &key).unwrap_or_default();
    Ok(found["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap_or_default().to_owned())
}

/// The rules of API servers in the cloud.
async fn rules(cloud: &Cloud) -> Result<Vec<LoadBalancerRule>, Violation> {
    let mut all = cloud.client("capstan").list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
    all.retain(|rule| rule.name.as_deref() == Some("Kubernetes_API_Server"));
    Ok(all)
}

async fn exits(cloud: &Cloud) -> Result<usize, Violation> {
    let tenant = cloud.client("capstan");
    let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
    let mut exits = 0;
    for network in networks {
        let question = ListEgressFirewallRules { networkid: Some(network.id), ..Default::default() };
        exits += tenant.list(&question).await.map_err(failed)?.len();
    }
    Ok(exits)
}

/// A cluster has a rule of its own on its endpoint, which leads to its machine of the control plane and no other.
async fn is_served(world: &World<'_>, cloud: &Cloud, cluster: &str) -> Result<(), Violation> {
    let host = host(world, cluster)?;
    let rules = rules(cloud).await?;
    let rule = rules.iter().find(|rule| rule.publicip.is_some_and(|ip| ip.to_string() == host));
    let rule = rule.ok_or_else(|| wrong(format!("no rule leads to {cluster} on {host:?}: {rules:?}")))?;
    let question = ListLoadBalancerRuleInstances { id: rule.id.clone(), applied: None };
    let members = cloud.client("capstan").list(&question).await.map_err(failed)?;
    let members: BTreeSet<String> = members.iter().map(|member| member.id.to_string()).collect();
    let machines = world.objects()?.list(&KindName::of::<CloudStackMachine>());
    let own = machines.iter().filter(|machine| {
        let labels = &machine["metadata"]["labels"];
        labels[label::CLUSTER_NAME] == cluster && labels.get(label::CONTROL_PLANE).is_some()
    });
    let own: BTreeSet<String> =
        own.filter_map(|machine| machine["spec"]["instanceID"].as_str().map(str::to_owned)).collect();
    match members == own && !own.is_empty() {
        true => Ok(()),
        false => Err(wrong(format!("{cluster} on {host} is led to {members:?} and not to {own:?}"))),
    }
}

/// The second cluster comes to the first one's network, and outlives it.
async fn one_by_one(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    second(world, None).await?;
    for cluster in [NAME, SECOND] {
        is_served(world, cloud, cluster).await?;
    }
    if host(world, NAME)? == host(world, SECOND)? {
        return Err(wrong("both clusters have one endpoint"));
    }
    if exits(cloud).await? != 1 {
        return Err(wrong("packets are not let out once"));
    }
    story::delete_cluster(world, cloud, NAME).await?;
    is_served(world, cloud, SECOND).await?;
    if exits(cloud).await? != 1 {
        return Err(wrong("the rule that lets packets out went with the first cluster"));
    }
    if rules(cloud).await?.len() != 1 {
        return Err(wrong("a rule of the first cluster is left"));
    }
    story::delete_cluster(world, cloud, SECOND).await
}

#[test]
fn two_clusters_on_a_network_of_the_first_have_an_endpoint_each_and_the_last_takes_the_network_along() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            one_by_one(world, cloud).await?;
            match cloud.simulator.leaks(Some("capstan")) {
                left if left.is_empty() => Ok(()),
                left => Err(Violation::new("L3", format!("left: {left:?}"))),
            }
        })
    }
    let report = run(&Script { bare: true, ..Script::of(&[Create, Check(play)]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn two_clusters_on_a_network_that_was_there_share_what_lets_packets_out_until_the_last_goes() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            one_by_one(world, cloud).await?;
            match cloud.simulator.leaks(Some("capstan")) {
                left if left.is_empty() => Ok(()),
                left => Err(Violation::new("L3", format!("left: {left:?}"))),
            }
        })
    }
    let acts = [Check(a_network_is_there), Create, Check(play)];
    let report = run(&Script { bare: true, ..Script::of(&acts) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// A cluster of CAPC elsewhere has an address of the network: a rule of the name that all have leads to its machine, and
/// nothing is tagged.
async fn a_neighbour_of_capcs(cloud: &Cloud) -> Result<(String, LoadBalancerRuleId), Violation> {
    let tenant = cloud.client("capstan");
    let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
    let networkid = networks.first().map(|network| network.id.clone());
    let request = AssociateIpAddress { networkid: networkid.clone(), ..AssociateIpAddress::default() };
    let address = tenant.run(&request).await.map_err(failed)?;
    let request = CreateLoadBalancerRule {
        algorithm: "roundrobin".to_owned(),
        name: "Kubernetes_API_Server".to_owned(),
        description: None,
        publicport: 6443,
        privateport: 6443,
        publicipid: Some(address.id),
        networkid,
        protocol: Some("tcp".to_owned()),
        cidrlist: Vec::new(),
        openfirewall: Some(true),
    };
    let rule = tenant.run(&request).await.map_err(failed)?.id;
    let machines = tenant.list(&ListVirtualMachines::default()).await.map_err(failed)?;
    let virtualmachineids = machines.into_iter().take(1).map(|machine| machine.id).collect();
    let request = AssignToLoadBalancerRule { id: rule.clone(), virtualmachineids };
    tenant.run(&request).await.map_err(failed)?;
    Ok((address.ipaddress.to_string(), rule))
}

#[test]
fn a_live_rule_of_the_name_that_capc_gives_is_not_shared_though_nothing_is_tagged() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let (taken, rule) = a_neighbour_of_capcs(cloud).await?;
            second(world, Some(&taken)).await?;
            let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
            let of_second = |it: &&Value| it["metadata"]["labels"][label::CLUSTER_NAME] == SECOND;
            let told = networks.iter().find(of_second).cloned().unwrap_or_default();
            says(&told, &["False", "NotOurs", "E-CS-NOT-OURS", &taken, "leads to machines"])?;
            story::delete_cluster(world, cloud, SECOND).await?;
            let question = ListLoadBalancerRuleInstances { id: rule, applied: None };
            let members = cloud.client("capstan").list(&question).await.map_err(failed)?;
            match members.len() {
                1 => Ok(()),
                other => Err(wrong(format!("the rule of the neighbour leads to {other} machines"))),
            }
        })
    }
    let story = Script { bare: true, delete_at_end: true, ..Script::of(&[Create, Check(play)]) };
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn a_cluster_that_asks_for_the_address_of_another_is_refused_with_a_code_and_the_other_goes_on() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let taken = host(world, NAME)?;
            second(world, Some(&taken)).await?;
            is_served(world, cloud, NAME).await?;
            let networks = world.objects()?.list(&KindName::of::<CloudStackIsolatedNetwork>());
            let of_second = |it: &&Value| it["metadata"]["labels"][label::CLUSTER_NAME] == SECOND;
            let reported = networks.iter().find(of_second).cloned().unwrap_or_default();
            says(&reported, &["False", "NotOurs", "E-CS-NOT-OURS", &taken, "leave it empty"])?;
            story::delete_cluster(world, cloud, SECOND).await?;
            is_served(world, cloud, NAME).await?;
            if world.objects()?.get(&KindName::of::<Cluster>(), &Key::new(NAMESPACE, NAME)).is_none() {
                return Err(wrong("the first cluster went along"));
            }
            Ok(())
        })
    }
    let story = Script { bare: true, delete_at_end: true, ..Script::of(&[Create, Check(play)]) };
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
