//! Clusters that come from CAPC by `clusterctl move`: objects as CAPC leaves them, without status and without Capstan's
//! records, and the cloud as CAPC leaves it, with rules that somebody made by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachineSet};
use capstan_cloudstack_client::NetworkId;
use capstan_cloudstack_client::commands::{
    CreateEgressFirewallRule, CreateFirewallRule, CreateRoutingFirewallRule, CreateTags,
    DeleteEgressFirewallRule, DeleteFirewallRule, DeleteRoutingFirewallRule, DeleteTags,
    ListEgressFirewallRules, ListFirewallRules, ListLoadBalancerRules, ListNetworkAclLists, ListNetworkAcls,
    ListNetworks, ListPublicIpAddresses, ListRoutingFirewallRules, ListVpcs, TagPair,
};
use capstan_cloudstack_client::model::{GuestType, Network, ResourceType, Tag};
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

/// The uid that the CloudStackCluster had before the move.
const FORMER: &str = "5f0d7a52-6a3e-4b0c-9b7e-2c1f0a9d8e47";

/// Whom the operator lets in, in place of everybody.
const OFFICE: &str = "10.9.0.0/16";

fn wrong(what: impl Into<String>) -> Violation {
    Violation::new("takeover", what)
}

/// A command that the client does not have.
pub async fn command(cloud: &Cloud, parameters: &[(&str, &str)]) -> Result<(), Violation> {
    command_of(cloud, "capstan", parameters).await
}

/// The same, by somebody.
pub async fn command_of(cloud: &Cloud, account: &str, parameters: &[(&str, &str)]) -> Result<(), Violation> {
    let keys = cloud.simulator.credentials(account).map_err(failed)?;
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

/// Gives something the tags that CAPC would have given, and no others.
async fn tag(
    cloud: &Cloud,
    kind: ResourceType,
    id: &str,
    held: &[Tag],
    keys: &[&str],
) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    let resourceids = || vec![id.to_owned()];
    let is_held = |key: &str| held.iter().any(|tag| tag.key == key);
    let missing: Vec<_> =
        keys.iter().filter(|key| !is_held(key)).map(|key| TagPair::new(*key, "1")).collect();
    if !missing.is_empty() {
        let request = CreateTags { resourceids: resourceids(), resourcetype: kind.clone(), tags: missing };
        tenant.run(&request).await.map_err(failed)?;
    }
    let others = held.iter().filter(|tag| !keys.contains(&tag.key.as_str()));
    let others: Vec<_> = others.map(|tag| TagPair::new(tag.key.as_str(), tag.value.as_str())).collect();
    if !others.is_empty() {
        let request = DeleteTags { resourceids: resourceids(), resourcetype: kind, tags: others };
        tenant.run(&request).await.map_err(failed)?;
    }
    Ok(())
}

/// A status has nothing but what the server says of an object that nobody has looked at, and its controller of one that is
/// paused.
fn is_unknown(status: &Value) -> bool {
    let is_of_move = |one: &Value| one["type"] == "Paused" || one["reason"] == "Pending";
    let mut fields = status.as_object().into_iter().flatten();
    fields.all(|(name, value)| {
        value == false
            || name == "conditions" && value.as_array().is_some_and(|all| all.iter().all(is_of_move))
    })
}

/// Takes status and records off the objects, those of Cluster API too.
async fn strip(world: &World<'_>) -> Result<(), Violation> {
    for kind in [
        KindName::of::<Cluster>(),
        KindName::of::<KubeadmControlPlane>(),
        KindName::of::<MachineDeployment>(),
        KindName::of::<MachineSet>(),
        KindName::of::<Machine>(),
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
        for object in world.objects()?.list(&kind) {
            let annotations = object["metadata"]["annotations"].to_string();
            if !is_unknown(&object["status"]) || annotations.contains("capstan.dev/cloudstack") {
                return Err(wrong(format!("{kind} has {annotations} and status {}", object["status"])));
            }
        }
    }
    Ok(())
}

/// Makes the cloud what CAPC would have made, and a rule what an operator would have made of it.
async fn as_capc(world: &World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    let cluster = world.objects()?.get(&KindName::of::<CloudStackCluster>(), &Key::new(NAMESPACE, NAME));
    let cluster = cluster.unwrap_or_default();
    // The cluster had another uid where it comes from.
    let uid = format!("CAPC_cluster_{FORMER}");
    let host = cluster["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap_or_default();
    let created = "created_by_CAPC";
    for network in tenant.list(&ListNetworks::default()).await.map_err(failed)? {
        // CAPC tags none that is everybody's.
        if network.r#type == Some(GuestType::Shared) {
            continue;
        }
        let made = network.displaytext.as_deref().is_some_and(|text| text.starts_with("Kubernetes cluster "));
        // What was there before is not tagged.
        let wanted: &[&str] = if made { &[created, &uid] } else { &[] };
        tag(cloud, ResourceType::Network, network.id.as_str(), &network.tags, wanted).await?;
        let narrowed = network.name.as_deref() == Some(NAME) && network.vpcid.is_none();
        if narrowed && network.ip4routing.is_none() {
            narrow_egress(cloud, &network.id).await?;
        }
        if network.vpcid.is_some() {
            with_acl(cloud, &network).await?;
        }
        if made {
            let name = network.name.as_deref().unwrap_or_default();
            let id = network.id.as_str();
            command(cloud, &[("command", "updateNetwork"), ("id", id), ("displaytext", name)]).await?;
        }
    }
    for vpc in tenant.list(&ListVpcs::default()).await.map_err(failed)? {
        let (id, name) = (vpc.id.as_str(), vpc.name.as_deref().unwrap_or_default());
        tag(cloud, ResourceType::Vpc, id, &vpc.tags, &[created, &uid]).await?;
        command(cloud, &[("command", "updateVPC"), ("id", id), ("displaytext", name)]).await?;
    }
    for address in tenant.list(&ListPublicIpAddresses::default()).await.map_err(failed)? {
        if address.ipaddress.to_string() != host {
            continue;
        }
        // Addresses never get the tag of their cluster.
        tag(cloud, ResourceType::PublicIpAddress, address.id.as_str(), &address.tags, &[created]).await?;
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

/// The operator has a tier use a list of their own, with an item for the office.
async fn with_acl(cloud: &Cloud, tier: &Network) -> Result<(), Violation> {
    let vpc = tier.vpcid.as_ref().map(ToString::to_string).unwrap_or_default();
    let made = [("command", "createNetworkACLList"), ("name", "by-hand"), ("vpcid", vpc.as_str())];
    command(cloud, &made).await?;
    let question = ListNetworkAclLists { name: Some("by-hand".to_owned()), ..Default::default() };
    let lists = cloud.client("capstan").list(&question).await.map_err(failed)?;
    let list = lists.first().map(|list| list.id.to_string()).ok_or_else(|| wrong("no access list"))?;
    for (traffic, protocol, cidr) in [("egress", "all", "0.0.0.0/0"), ("ingress", "tcp", OFFICE)] {
        let item =
            [("aclid", list.as_str()), ("traffictype", traffic), ("protocol", protocol), ("cidrlist", cidr)];
        command(cloud, &[&[("command", "createNetworkACL")][..], &item].concat()).await?;
    }
    let used = [("aclid", list.as_str()), ("networkid", tier.id.as_str())];
    command(cloud, &[&[("command", "replaceNetworkACLList")][..], &used].concat()).await
}

/// The operator has a network let out no more than TLS.
async fn narrow_egress(cloud: &Cloud, network: &NetworkId) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    let question = ListEgressFirewallRules { networkid: Some(network.clone()), ..Default::default() };
    for rule in tenant.list(&question).await.map_err(failed)? {
        tenant.run(&DeleteEgressFirewallRule { id: rule.id }).await.map_err(failed)?;
    }
    let request = CreateEgressFirewallRule {
        networkid: network.clone(),
        protocol: "tcp".to_owned(),
        startport: Some(443),
        endport: Some(443),
        cidrlist: Vec::new(),
        destcidrlist: Vec::new(),
        icmptype: None,
        icmpcode: None,
    };
    tenant.run(&request).await.map(drop).map_err(failed)
}

/// The operator narrows who may come in to routed networks, and what may leave them.
async fn narrow_routed(cloud: &Cloud) -> Result<(), Violation> {
    let tenant = cloud.client("capstan");
    let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
    let routed: Vec<NetworkId> =
        networks.into_iter().filter(|it| it.ip4routing.is_some()).map(|it| it.id).collect();
    for rule in tenant.list(&ListRoutingFirewallRules::default()).await.map_err(failed)? {
        // Rules of other networks are listed too.
        let Some(networkid) = rule.networkid.filter(|network| routed.contains(network)) else { continue };
        let out = rule.traffictype.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("egress"));
        let (port, cidrlist) = match (out, rule.startport) {
            (true, _) => (443, Vec::new()),
            (false, Some(6443)) => (6443, vec![OFFICE.to_owned()]),
            (false, _) => continue,
        };
        tenant.run(&DeleteRoutingFirewallRule { id: rule.id }).await.map_err(failed)?;
        let request = CreateRoutingFirewallRule {
            networkid,
            protocol: "tcp".to_owned(),
            startport: Some(port),
            endport: Some(port),
            cidrlist,
            destcidrlist: Vec::new(),
            icmptype: None,
            icmpcode: None,
            traffictype: out.then(|| "egress".to_owned()),
        };
        tenant.run(&request).await.map_err(failed)?;
    }
    Ok(())
}

/// Everything that the account has with its tags, who may come in, and what may go out.
async fn inventory(cloud: &Cloud) -> Result<BTreeSet<String>, Violation> {
    let tenant = cloud.client("capstan");
    let leaks = cloud.simulator.leaks(Some("capstan"));
    let mut all: BTreeSet<String> = leaks.iter().map(|leak| format!("{leak:?}")).collect();
    let openings = tenant.list(&ListFirewallRules::default()).await.map_err(failed)?;
    all.extend(openings.iter().map(|rule| format!("{} lets in {:?}", rule.id, rule.cidrlist)));
    let rules = tenant.list(&ListLoadBalancerRules::default()).await.map_err(failed)?;
    all.extend(rules.iter().map(|rule| format!("{} on {:?}", rule.id, rule.publicip)));
    let exits = tenant.list(&ListEgressFirewallRules::default()).await.map_err(failed)?;
    all.extend(exits.iter().map(|rule| format!("lets out {rule:?}")));
    let items = tenant.list(&ListNetworkAcls::default()).await.map_err(failed)?;
    all.extend(items.iter().map(|item| format!("access list has {item:?}")));
    for network in tenant.list(&ListNetworks::default()).await.map_err(failed)? {
        all.insert(format!("network {} uses {:?}, tags {:?}", network.id, network.aclname, network.tags));
    }
    for vpc in tenant.list(&ListVpcs::default()).await.map_err(failed)? {
        all.insert(format!("VPC {} has tags {:?}", vpc.id, vpc.tags));
    }
    for address in tenant.list(&ListPublicIpAddresses::default()).await.map_err(failed)? {
        all.insert(format!("address {} has tags {:?}", address.id, address.tags));
    }
    Ok(all)
}

/// Orders of the plane so far.
fn orders(cloud: &Cloud) -> BTreeMap<String, u64> {
    let reads = |command: &str| ["list", "get", "query"].iter().any(|verb| command.starts_with(verb));
    cloud.calls().into_iter().filter(|(command, _)| !reads(command)).collect()
}

/// The tenant lets somebody in to an address that no cluster uses.
fn somebody_is_let_in<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let tenant = cloud.client("capstan");
        let addresses = tenant.list(&ListPublicIpAddresses::default()).await.map_err(failed)?;
        let address = addresses.into_iter().next().ok_or_else(|| wrong("no address"))?;
        let request = CreateFirewallRule {
            ipaddressid: address.id,
            protocol: "tcp".to_owned(),
            startport: Some(6443),
            endport: Some(6443),
            cidrlist: vec![OFFICE.to_owned()],
            icmptype: None,
            icmpcode: None,
        };
        tenant.run(&request).await.map_err(failed)?;
        cloud.simulator.forgive();
        Ok(())
    })
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

/// The egress rule of the operator is left on the network that was there before, and nothing else.
fn only_what_was_made_by_hand_is_left<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let tenant = cloud.client("capstan");
        let networks = tenant.list(&ListNetworks::default()).await.map_err(failed)?;
        let mut exits = Vec::new();
        for network in &networks {
            let question =
                ListEgressFirewallRules { networkid: Some(network.id.clone()), ..Default::default() };
            exits.extend(tenant.list(&question).await.map_err(failed)?);
        }
        let by_hand: Vec<&str> =
            exits.iter().filter(|exit| exit.startport == Some(443)).map(|exit| exit.id.as_str()).collect();
        let left = cloud.simulator.leaks(Some("capstan"));
        let left: Vec<&str> = left.iter().map(|leak| leak.id.as_str()).collect();
        match by_hand.len() == 1 && left == by_hand {
            true => Ok(()),
            false => Err(wrong(format!("left is {left:?}, egress is {exits:?}"))),
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
    let acts = [Check(a_network_is_there), Create, Check(it_is_taken_over)];
    let story = Script { bare: true, delete_at_end: true, ..Script::of(&acts) }.expunging_soon();
    let report = run(&Script { mishap_at_end: Some(only_what_was_made_by_hand_is_left), ..story }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
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
    // The tenant has rules on another network, too.
    let before = [
        Check(sites::a_shared_network_is_there),
        Check(sites::a_second_network_is_there),
        Check(somebody_is_let_in),
    ];
    let acts = before.into_iter().chain([Create, Check(it_is_taken_over), ScaleWorkers(2), Delete]);
    let acts: Vec<Act> = acts.collect();
    goes_well(&acts, Some(sites::with_kube_vip));
}

#[test]
fn a_cluster_on_a_routed_network_comes_from_capc_unchanged_and_goes_whole() {
    let acts = [Check(routed_sites::are_offered), Create, Check(it_is_taken_over), ScaleWorkers(2), Delete];
    goes_well(&acts, Some(routed_sites::asked_for));
}
