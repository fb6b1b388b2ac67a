//! What an operator sets up for routed networks, and manifests that ask for them.

use capstan_cloudstack_client::commands::{
    AssociateIpAddress, CreateNetwork, CreateRoutingFirewallRule, ListNetworkOfferings, ListZones, Owner,
};
use capstan_cloudstack_client::{Call, Command, Job, NetworkId, ZoneId};
use capstan_harness::{Violation, World};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::NAME;
use crate::sites::kube_vip;
use crate::story::{CheckResult, failed};

/// The offerings of the operator.
pub const OFFERING: &str = "RoutedByRouter";
const TIER_OFFERING: &str = "RoutedTier";
const VPC_OFFERING: &str = "RoutedVPC";
/// An address of the first network that is made, which no machine gets.
pub const ADDRESS: &str = "10.200.0.250";
/// The range of that network.
pub const RANGE: &str = "10.200.0.0/24";

/// An offering of networks or VPCs.
#[derive(Serialize)]
struct Offering {
    name: &'static str,
    guestiptype: &'static str,
    traffictype: &'static str,
    supportedservices: &'static str,
    networkmode: &'static str,
    egressdefaultpolicy: bool,
    forvpc: bool,
    enable: bool,
}

impl Offering {
    fn of(name: &'static str, supportedservices: &'static str, forvpc: bool) -> Self {
        Self {
            name,
            guestiptype: "Isolated",
            traffictype: "Guest",
            supportedservices,
            networkmode: "ROUTED",
            egressdefaultpolicy: false,
            forvpc,
            enable: true,
        }
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct CreateNetworkOffering(Offering);

impl Command for CreateNetworkOffering {
    const NAME: &'static str = "createNetworkOffering";
}

impl Call for CreateNetworkOffering {
    type Answer = Value;
    const KEY: Option<&'static str> = Some("networkoffering");
}

#[derive(Serialize)]
#[serde(transparent)]
struct CreateVpcOffering(Offering);

impl Command for CreateVpcOffering {
    const NAME: &'static str = "createVPCOffering";
}

impl Job for CreateVpcOffering {
    type Id = Value;
    type Outcome = Value;
    const KEY: Option<&'static str> = Some("vpcoffering");
}

/// A range that routed networks of a zone get theirs from.
#[derive(Serialize)]
struct CreateIpv4SubnetForZone {
    zoneid: ZoneId,
    subnet: &'static str,
}

impl Command for CreateIpv4SubnetForZone {
    const NAME: &'static str = "createIpv4SubnetForZone";
}

impl Job for CreateIpv4SubnetForZone {
    type Id = Value;
    type Outcome = Value;
    const KEY: Option<&'static str> = Some("zoneipv4subnet");
}

/// The operator offers routed networks and VPCs in the first zone.
pub fn are_offered<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let operator = cloud.client("admin");
        let network = Offering::of(OFFERING, "Dhcp,Dns,UserData,Firewall", false);
        operator.call(&CreateNetworkOffering(network)).await.map_err(failed)?;
        let tier = Offering::of(TIER_OFFERING, "Dhcp,Dns,UserData,NetworkACL", true);
        operator.call(&CreateNetworkOffering(tier)).await.map_err(failed)?;
        let vpc = Offering::of(VPC_OFFERING, "Dhcp,Dns,UserData,NetworkACL", true);
        operator.run(&CreateVpcOffering(vpc)).await.map_err(failed)?;
        let zones = operator.list(&ListZones::default()).await.map_err(failed)?;
        let zone = zones.into_iter().find(|zone| zone.name == "zone-1");
        let zoneid = zone.ok_or_else(|| failed("no zone"))?.id;
        let subnet = "10.200.0.0/16";
        operator.run(&CreateIpv4SubnetForZone { zoneid, subnet }).await.map_err(failed)?;
        cloud.simulator.forgive();
        Ok(())
    })
}

/// The tenant has a routed network with a rule for SSH.
pub fn one_is_there<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        are_offered(world, cloud).await?;
        let id = network(cloud).await?;
        let tenant = cloud.client("capstan");
        // The one that its router would get with the first machine.
        let request = AssociateIpAddress { networkid: Some(id.clone()), ..AssociateIpAddress::default() };
        tenant.run(&request).await.map_err(failed)?;
        let rule = CreateRoutingFirewallRule {
            networkid: id,
            protocol: "tcp".to_owned(),
            startport: Some(22),
            endport: Some(22),
            cidrlist: vec!["192.0.2.0/24".to_owned()],
            destcidrlist: Vec::new(),
            icmptype: None,
            icmpcode: None,
            traffictype: None,
        };
        tenant.run(&rule).await.map_err(failed)?;
        cloud.simulator.forgive();
        Ok(())
    })
}

async fn network(cloud: &Cloud) -> Result<NetworkId, Violation> {
    let tenant = cloud.client("capstan");
    let zones = tenant.list(&ListZones::default()).await.map_err(failed)?;
    let zone = zones.into_iter().find(|zone| zone.name == "zone-1").ok_or_else(|| failed("no zone"))?;
    let question = ListNetworkOfferings { name: Some(OFFERING.to_owned()), ..Default::default() };
    let offerings = tenant.list(&question).await.map_err(failed)?;
    let request = CreateNetwork {
        name: NAME.to_owned(),
        displaytext: None,
        networkofferingid: offerings.into_iter().next().ok_or_else(|| failed("no offering"))?.id,
        zoneid: zone.id,
        gateway: None,
        netmask: None,
        cidrsize: Some(24),
        vpcid: None,
        aclid: None,
        owner: Owner::default(),
    };
    Ok(tenant.call(&request).await.map_err(failed)?.id)
}

/// The network is routed, and kube-vip holds an address of it.
pub fn asked_for(body: &mut Value) {
    kube_vip(body, ADDRESS);
    if body["kind"] == "CloudStackCluster" {
        body["spec"]["failureDomains"][0]["zone"]["network"]["offering"] = OFFERING.into();
    }
}

/// The same without a word about the endpoint.
pub fn asked_for_without_endpoint(body: &mut Value) {
    asked_for(body);
    if body["kind"] == "CloudStackCluster" {
        body["spec"]["controlPlaneEndpoint"]["host"] = "".into();
    }
}

/// The network is a tier of a routed VPC.
pub fn asked_for_in_a_vpc(body: &mut Value) {
    kube_vip(body, ADDRESS);
    if body["kind"] == "CloudStackCluster" {
        let network = &mut body["spec"]["failureDomains"][0]["zone"]["network"];
        network["offering"] = TIER_OFFERING.into();
        network["vpc"] = json!({"name": crate::sites::VPC, "offering": VPC_OFFERING});
    }
}
