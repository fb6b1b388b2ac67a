//! Clusters that come from CAPC by `clusterctl move`: objects as CAPC leaves them, without status and without Capstan's
//! records, and the cloud as CAPC leaves it, with rules that somebody made by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use capstan_capi_types::core::Cluster;
use capstan_cloudstack_client::commands::{
    CreateFirewallRule, CreateRoutingFirewallRule, CreateTags, DeleteFirewallRule, DeleteRoutingFirewallRule,
    ListFirewallRules, ListLoadBalancerRules, ListNetworks, ListPublicIpAddresses, ListRoutingFirewallRules,
    ListVpcs, TagPair,
};
use capstan_cloudstack_client::model::{GuestType, ResourceType};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackMachine,
};
use capstan_controller::{KindName, Patch};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_sim_cloudstack::{encode, sign};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::features::a_network_is_there;
use crate::manifests::{NAME, NAMESPACE};
use crate::story::Act::{self, Check, Create, Delete, ScaleWorkers};
use crate::story::CheckResult;
use crate::story::{Script, failed, patch};
use crate::{routed_sites, sites};

/// Whom the operator lets in, in place of everybody.
const OFFICE: &str = "10.9.0.0/16";

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("takeover", what)
}

/// A command that the client does not have.
pub async fn command(cloud: &Cloud, parameters: &[(&str, &str)]) -> Result<(), Violation> {
    let keys = cloud.simulator.credentials("capstan").map_err(failed)?;
    let mut all: Vec<(String, String)> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    all.push(("response".to_owned(), "json".to_owned()));
    all.push(("apiKey".to_owned(), keys.api_key));
    let signature = sign(&all, &keys.secret_key);
    all.push(("signature".to_owned(), signature));
    let pairs: Vec<_> =
        all.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    let uri = format!("/client/api?{}", pairs.join("&"));
    let request = http::Request::builder().uri(uri).body(Bytes::new()).map_err(failed)?;
    let response = cloud.simulator.call(request).await.map_err(failed)?;
    match response.status().is_success() {
        true => Ok(()),
        false => Err(wrong(String::from_utf8_lossy(response.body()).into_owned())),
    }
}

async fn tag(
    cloud: &Cloud,
    kind: ResourceType,
    id: &str,
    held: &[&str],
    keys: &[&str],
) -> Result<(), Violation> {
    let missing = keys.iter().filter(|key| !held.contains(key));
    let tags: Vec<_> = missing.map(|key| TagPair::new(*key, "1")).collect();
    if tags.is_empty() {
        return Ok(());
    }
    let request = CreateTags { resourceids: vec![id.to_owned()], resourcetype: kind, tags };
    cloud.client("capstan").run(&request).await.map(drop).map_err(failed)
}

/// Takes status and records off the objects.
async fn strip(world: &World<'_>) -> Result<(), Violation> {
    for kind in [
        KindName::of::<CloudStackCluster>(),
        KindName::of::<CloudStackFailureDomain>(),
        KindName::of::<CloudStackIsolatedNetwork>(),
        KindName::of::<CloudStackMachine>(),
    ] {
        for object in world.objects()?.list(&kind) {
            let key = Key::new(NAMESPACE, object["metadata"]["name"].as_str().unwrap_or_default());
            let annotations = object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
            let ours: serde_json::Map<String, Value> = annotations
                .into_iter()
                .filter(|(name, _)| name.starts_with("capstan.dev/"))
                .map(|(name, _)| (name, Value::Null))
                .collect();
            let user = world.user()?;
            let patch = Patch::Merge(json!({"metadata": {"annotations": ours}}));
            user.patch(&kind, &key, None, &patch).await.map_err(failed)?;
            let patch = Patch::Merge(json!({"status": null}));
            user.patch(&kind, &key, Some("status"), &patch).await.map_err(failed)?;
        }
    }
    Ok(())
}

/// Makes the cloud what CAPC would have made, and a rule what an operator would have made of it.
async fn as_capc(world: &World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    let cluster = world.objects()?.get(&KindName::of::<CloudStackCluster>(), &Key::new(NAMESPACE, NAME));
    let cluster = cluster.unwrap_or_default();
    let uid = format!("CAPC_cluster_{}", cluster["metadata"]["uid"].as_str().unwrap_or_default());
    let host = cluster["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap_or_default();
    let created = "created_by_CAPC";
    let keys = |tags: &[capstan_cloudstack_client::model::Tag]| -> Vec<String> {
        tags.iter().map(|tag| tag.key.clone()).collect()
    };
    for network in tenant.list(&ListNetworks::default()).await.map_err(failed)? {
        // CAPC tags none that is everybody's.
        if network.r#type == Some(GuestType::Shared) {
            continue;
        }
        let held = keys(&network.tags);
        let held: Vec<&str> = held.iter().map(String::as_str).collect();
        let made = network.displaytext.as_deref().is_some_and(|text| text.starts_with("Kubernetes cluster "));
        let wanted: &[&str] = if made { &[created, &uid] } else { &[&uid] };
        tag(cloud, ResourceType::Network, network.id.as_str(), &held, wanted).await?;
        if made {
            let name = network.name.as_deref().unwrap_or_default();
            let id = network.id.as_str();
            command(cloud, &[("command", "updateNetwork"), ("id", id), ("displaytext", name)]).await?;
        }
    }
    for vpc in tenant.list(&ListVpcs::default()).await.map_err(failed)? {
        let (id, name) = (vpc.id.as_str(), vpc.name.as_deref().unwrap_or_default());
        tag(cloud, ResourceType::Vpc, id, &[], &[created, &uid]).await?;
        command(cloud, &[("command", "updateVPC"), ("id", id), ("displaytext", name)]).await?;
    }
    for address in tenant.list(&ListPublicIpAddresses::default()).await.map_err(failed)? {
        if address.ipaddress.to_string() != host {
            continue;
        }
        let held = keys(&address.tags);
        let held: Vec<&str> = held.iter().map(String::as_str).collect();
        tag(cloud, ResourceType::PublicIpAddress, address.id.as_str(), &held, &[created, &uid]).await?;
        if address.vpcid.is_some() {
            continue;
        }
        // The operator narrows who may come in.
        for rule in tenant.list(&ListFirewallRules::default()).await.map_err(failed)? {
            if rule.ipaddressid.as_ref() == Some(&address.id) && rule.startport == Some(6443) {
                tenant.run(&DeleteFirewallRule { id: rule.id }).await.map_err(failed)?;
            }
        }
        let request = CreateFirewallRule {
            ipaddressid: address.id.clone(),
            protocol: "tcp".to_owned(),
            startport: Some(6443),
            endport: Some(6443),
            cidrlist: vec![OFFICE.to_owned()],
            icmptype: None,
            icmpcode: None,
        };
        tenant.run(&request).await.map_err(failed)?;
    }
    Ok(())
}

/// The operator narrows who may come in to routed networks.
async fn narrow_routed(cloud: &Cloud) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    for rule in tenant.list(&ListRoutingFirewallRules::default()).await.map_err(failed)? {
        let (Some(networkid), Some(6443)) = (rule.networkid, rule.startport) else { continue };
        // Rules of other networks are listed too.
        if rule.ipaddressid.is_some() {
            continue;
        }
        tenant.run(&DeleteRoutingFirewallRule { id: rule.id }).await.map_err(failed)?;
        let request = CreateRoutingFirewallRule {
            networkid,
            protocol: "tcp".to_owned(),
            startport: Some(6443),
            endport: Some(6443),
            cidrlist: vec![OFFICE.to_owned()],
            destcidrlist: Vec::new(),
            icmptype: None,
            icmpcode: None,
            traffictype: None,
        };
        tenant.run(&request).await.map_err(failed)?;
    }
    Ok(())
}

/// Everything that the account has, and who may come in.
async fn inventory(cloud: &Cloud) -> Result<BTreeSet<String>, Violation> {
    let tenant = cloud.client("capstan");
    let leaks = cloud.simulator.leaks(Some("capstan"));
    let mut all: BTreeSet<String> = leaks.iter().map(|leak| format!("{leak:?}")).collect();
    let openings = tenant.list(&ListFirewallRules::default()).await.map_err(failed)?;
    all.extend(openings.iter().map(|rule| format!("{} lets in {:?}", rule.id, rule.cidrlist)));
    let rules = tenant.list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
    all.extend(rules.iter().map(|rule| format!("{} on {:?}", rule.id, rule.publicip)));
    Ok(all)
}

/// Orders of the plane so far.
fn orders(cloud: &Cloud) -> BTreeMap<String, u64> {
    let reads = |command: &str| ["list", "get", "query"].iter().any(|verb| command.starts_with(verb));
    cloud.calls().into_iter().filter(|(command, _)| !reads(command)).collect()
}

/// The cluster is moved here from CAPC, and nothing changes in the cloud.
fn it_is_taken_over<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        patch::<Cluster>(world, NAME, json!({"spec": {"paused": true}})).await?;
        world.run_until_idle().await?;
        as_capc(world, cloud).await?;
        narrow_routed(cloud).await?;
        strip(world).await?;
        let (before, ordered) = (inventory(cloud).await?, orders(cloud));
        patch::<Cluster>(world, NAME, json!({"spec": {"paused": false}})).await?;
        world.run_until_idle().await?;
        world.pass(Duration::from_secs(1800)).await?;
        world.run_until_idle().await?;
        let after = inventory(cloud).await?;
        if after != before {
            let lost: Vec<_> = before.difference(&after).collect();
            let new: Vec<_> = after.difference(&before).collect();
            return Err(wrong(format!("gone: {lost:?}; new: {new:?}")));
        }
        let since = orders(cloud);
        match since == ordered {
            true => Ok(()),
            false => Err(wrong(format!("orders {since:?} after {ordered:?}"))),
        }
    })
}

fn goes_well(acts: &[Act], change: Option<fn(&mut Value)>) {
    let story = Script { bare: true, change, ..Script::of(acts) }.expunging_soon();
    let report = run(&story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn a_cluster_on_its_own_network_comes_from_capc_unchanged_and_goes_whole() {
    goes_well(&[Create, Check(it_is_taken_over), ScaleWorkers(2), Delete], None);
}

#[test]
fn a_cluster_on_a_network_of_somebody_comes_from_capc_unchanged_and_leaves_it_as_it_was() {
    goes_well(&[Check(a_network_is_there), Create, Check(it_is_taken_over), Delete], None);
}

#[test]
fn a_cluster_in_a_vpc_comes_from_capc_unchanged_and_goes_whole() {
    fn in_a_vpc(body: &mut Value) {
        if body["kind"] == "CloudStackCluster" {
            let network = &mut body["spec"]["failureDomains"][0]["zone"]["network"];
            network["vpc"] = json!({"name": "clouds", "cidr": "10.20.0.0/16"});
        }
    }
    goes_well(&[Create, Check(it_is_taken_over), ScaleWorkers(2), Delete], Some(in_a_vpc));
}

#[test]
fn a_cluster_with_kube_vip_on_a_shared_network_comes_from_capc_unchanged_and_goes_whole() {
    let acts =
        [Check(sites::a_shared_network_is_there), Create, Check(it_is_taken_over), ScaleWorkers(2), Delete];
    goes_well(&acts, Some(sites::with_kube_vip));
}

#[test]
fn a_cluster_on_a_routed_network_comes_from_capc_unchanged_and_goes_whole() {
    let acts = [Check(routed_sites::are_offered), Create, Check(it_is_taken_over), ScaleWorkers(2), Delete];
    goes_well(&acts, Some(routed_sites::asked_for));
}
