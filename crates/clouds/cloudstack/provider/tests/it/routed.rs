//! Clusters on routed networks: no public address, no load balancer, and a firewall that lets nobody in by itself.

use std::time::Duration;

use capstan_cloudstack_client::commands::{
    DeleteRoutingFirewallRule, ListNetworks, ListPublicIpAddresses, ListRoutingFirewallRules,
};
use capstan_cloudstack_client::model::FirewallRule;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackFailureDomain};
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::failures::says;
use crate::manifests::NAME;
use crate::routed_sites::{self as sites, ADDRESS, RANGE};
use crate::story::Act::{Check, Create, Delete, During, ScaleWorkers};
use crate::story::{CheckResult, Script, failed, patch};

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("routed", what)
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// Rules of the tenant in words, sorted.
async fn rules(cloud: &Cloud) -> Result<Vec<(String, FirewallRule)>, Violation> {
    let found = cloud.client("capstan").list(&ListRoutingFirewallRules::default()).await.map_err(failed)?;
    let words = |rule: &FirewallRule| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let ports = rule.startport.map(|port| format!(" {port}")).unwrap_or_default();
        let (kind, from, to) = (text(&rule.traffictype), text(&rule.cidrlist), text(&rule.destcidrlist));
        format!("{kind} {}{ports} {from} to {to}", text(&rule.protocol))
    };
    let mut all: Vec<_> = found.into_iter().map(|rule| (words(&rule), rule)).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(all)
}

async fn rules_are(cloud: &Cloud, expected: &[&str]) -> Result<(), Violation> {
    let found: Vec<String> = rules(cloud).await?.into_iter().map(|(words, _)| words).collect();
    match found == expected {
        true => Ok(()),
        false => Err(wrong(format!("rules {found:?}"))),
    }
}

const OUT: &str = "Egress all 0.0.0.0/0 to 0.0.0.0/0";
const IN: &str = "Ingress tcp 6443 0.0.0.0/0 to 10.200.0.250/32";

/// The API server alone is open, everything may go out, and no address was taken but the router's.
fn the_endpoint_is_open<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        rules_are(cloud, &[OUT, IN]).await?;
        let addresses =
            cloud.client("capstan").list(&ListPublicIpAddresses::default()).await.map_err(failed)?;
        if addresses.len() != 1 || !addresses[0].issourcenat {
            return Err(wrong(format!("addresses {addresses:?}")));
        }
        let domains = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
        match domains[0]["spec"]["zone"]["network"]["routingMode"] == "Static" {
            true => Ok(()),
            false => Err(wrong(format!("the failure domain says {}", domains[0]["spec"]))),
        }
    })
}

#[test]
fn a_cluster_on_a_routed_network_opens_its_endpoint_and_leaves_nothing() {
    let acts = [Check(sites::are_offered), Create, Check(the_endpoint_is_open), ScaleWorkers(2), Delete];
    let story = Script { change: Some(sites::asked_for), ..Script::of(&acts) };
    goes_well(&story.expunging_soon());
}

fn only_the_rule_for_ssh_is_left<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move { rules_are(cloud, &["Ingress tcp 22 192.0.2.0/24 to 0.0.0.0/0"]).await })
}

#[test]
fn a_routed_network_that_exists_is_used_and_left_as_it_was() {
    let acts = [Check(sites::one_is_there), Create, Delete, Check(only_the_rule_for_ssh_is_left)];
    let story = Script { bare: true, change: Some(sites::asked_for), ..Script::of(&acts) };
    goes_well(&story.expunging_soon());
}

/// Those who may reach the API server are named, later other ones, and in the end somebody deletes a rule.
fn access_is_narrowed_and_kept<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let name = "capstan.dev/api-server-cidrs";
        let change = json!({"metadata": {"annotations": {name: "198.51.100.0/24,203.0.113.0/24"}}});
        patch::<CloudStackCluster>(world, NAME, change).await?;
        world.run_until_idle().await?;
        let narrowed = [
            OUT,
            "Ingress tcp 6443 198.51.100.0/24 to 10.200.0.250/32",
            "Ingress tcp 6443 203.0.113.0/24 to 10.200.0.250/32",
        ];
        rules_are(cloud, &narrowed).await?;
        for (_, rule) in rules(cloud).await? {
            let request = DeleteRoutingFirewallRule { id: rule.id };
            cloud.client("admin").run(&request).await.map_err(failed)?;
        }
        world.pass(Duration::from_secs(90)).await?;
        rules_are(cloud, &narrowed).await
    })
}

#[test]
fn rules_of_a_routed_network_follow_the_manifest_and_come_back() {
    let acts = [Check(sites::are_offered), Create, Check(access_is_narrowed_and_kept), Delete];
    let story = Script { bare: true, change: Some(sites::asked_for), ..Script::of(&acts) };
    goes_well(&story.expunging_soon());
}

/// The network is made, its range is reported, and with an address of it the cluster goes on.
fn the_range_is_reported<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        world.pass(Duration::from_secs(60)).await?;
        let domains = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
        says(&domains[0], &["E-CS-ENDPOINT", RANGE, "spec.controlPlaneEndpoint.host", "kube-vip"])?;
        let gateway = json!({"spec": {"controlPlaneEndpoint": {"host": "10.200.0.1"}}});
        patch::<CloudStackCluster>(world, NAME, gateway).await?;
        world.pass(Duration::from_secs(60)).await?;
        let domains = world.objects()?.list(&KindName::of::<CloudStackFailureDomain>());
        says(&domains[0], &["E-CS-ENDPOINT", "10.200.0.1, which is the gateway"])?;
        patch::<CloudStackCluster>(world, NAME, json!({"spec": {"controlPlaneEndpoint": {"host": ADDRESS}}}))
            .await
    })
}

#[test]
fn a_routed_network_reports_its_range_when_no_endpoint_is_named() {
    let acts = [Check(sites::are_offered), During(the_range_is_reported), Create, Delete];
    let change: fn(&mut Value) = sites::asked_for_without_endpoint;
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&acts) }.expunging_soon());
}

fn the_tier_is_routed<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let networks = cloud.client("capstan").list(&ListNetworks::default()).await.map_err(failed)?;
        let routed = |network: &capstan_cloudstack_client::model::Network| {
            network.vpcid.is_some()
                && network.cidr.as_deref() == Some(RANGE)
                && network.ip4routing.as_deref() == Some("Static")
                && network.aclname.as_deref() == Some("default_allow")
        };
        match networks.as_slice() {
            [tier] if routed(tier) => rules_are(cloud, &[]).await,
            other => Err(wrong(format!("networks {other:?}"))),
        }
    })
}

#[test]
fn a_cluster_gets_a_tier_of_a_routed_vpc_and_leaves_neither() {
    let acts = [Check(sites::are_offered), Create, Check(the_tier_is_routed), Delete];
    let story = Script { bare: true, change: Some(sites::asked_for_in_a_vpc), ..Script::of(&acts) };
    goes_well(&story.expunging_soon());
}
