//! Carries out calls for a network: one request each.

use std::net::IpAddr;

use capstan_cloudstack_client::Error;
use capstan_cloudstack_client::commands::{
    AssociateIpAddress, CreateEgressFirewallRule, CreateFirewallRule, CreateLoadBalancerRule, CreateNetwork,
    CreateTags, CreateVpc, DeleteEgressFirewallRule, DeleteFirewallRule, DeleteLoadBalancerRule,
    DeleteNetwork, DeleteRoutingFirewallRule, DeleteTags, DeleteVpc, DisassociateIpAddress, Owner, TagPair,
};
use capstan_cloudstack_client::model::ResourceType;
use capstan_controller::Outcome;

use super::observe::Change;
use super::{NetworkCall, NetworkOrder, RULE, VpcOrder, routed};
use crate::clouds::Access;
use crate::code;
use crate::error::{failed, kept};

/// Port that API servers listen on.
const API_PORT: u16 = 6443;

/// What a call changed, or how it ended without.
type Changed = Result<Change, Outcome>;

pub(super) async fn make(call: &NetworkCall, access: &Access) -> Changed {
    match call {
        NetworkCall::Create { name, order } => create_network(name, order.as_deref(), access).await,
        NetworkCall::Delete { network } => delete_network(network, access).await,
        NetworkCall::CreateVpc { name, order } => create_vpc(name, order.as_deref(), access).await,
        NetworkCall::DeleteVpc { vpc } => delete_vpc(vpc, access).await,
        NetworkCall::TagVpc { vpc, tags } => {
            tag(vpc, ResourceType::Vpc, tags, access).await?;
            Ok(Change::Other)
        }
        NetworkCall::UntagVpc { vpc, tag } => untag(vpc, ResourceType::Vpc, tag, access).await,
        NetworkCall::Tag { id, address, tags } => {
            tag(id, tagged(*address), tags, access).await?;
            Ok(match *address {
                true => Change::AddressTags(id.clone(), tags.clone()),
                false => Change::Tags(tags.clone()),
            })
        }
        NetworkCall::Untag { id, address, tag } => untag(id, tagged(*address), tag, access).await,
        NetworkCall::Associate { network, vpc, address, owner } => {
            associate(network, vpc.as_deref(), *address, owner, access).await
        }
        NetworkCall::Release { address } => release(address, access).await,
        NetworkCall::Balance { network, address, port, open, cidrs } => {
            balance(network, (address, *port), *open, cidrs, access).await
        }
        NetworkCall::Unbalance { rule } => unbalance(rule, access).await,
        NetworkCall::Open { address, port, cidr } => open((address, *port), cidr, access).await,
        NetworkCall::OpenRouted { network, port, cidr, to } => {
            let request = routed::opening(network, *port, cidr, to);
            let rule = access.client.run(&request).await.map_err(lost(access))?;
            Ok(Change::Opening(Box::new(rule)))
        }
        NetworkCall::Close { rule, routed } => close(rule, *routed, access).await,
        NetworkCall::LetOut { network, routed } => let_out(network, *routed, access).await,
        NetworkCall::KeepIn { rule, routed } => keep_in(rule, *routed, access).await,
    }
}

async fn create_network(name: &str, order: Option<&NetworkOrder>, access: &Access) -> Changed {
    let Some(order) = order else {
        return Err(Outcome::failed(code::FAILED, format!("network {name} has no order")));
    };
    let request = CreateNetwork {
        name: name.to_owned(),
        displaytext: Some(order.text.clone()),
        networkofferingid: order.offering.clone(),
        zoneid: order.zone.clone(),
        gateway: order.gateway,
        netmask: order.netmask.clone(),
        cidrsize: order.cidr_size,
        vpcid: order.vpc.clone(),
        aclid: order.acl.clone(),
        owner: order.owner.clone(),
    };
    let network = access.client.call(&request).await.map_err(lost(access))?;
    Ok(Change::Network(Some(Box::new(network))))
}

async fn delete_network(network: &str, access: &Access) -> Changed {
    let request = DeleteNetwork { id: network.into(), forced: None };
    gone(access.client.run(&request).await.map(drop), network, access)?;
    Ok(Change::Network(None))
}

async fn create_vpc(name: &str, order: Option<&VpcOrder>, access: &Access) -> Changed {
    let Some(order) = order else {
        return Err(Outcome::failed(code::FAILED, format!("VPC {name} has no order")));
    };
    let request = CreateVpc {
        name: name.to_owned(),
        displaytext: order.text.clone(),
        cidr: Some(order.cidr.clone()).filter(|cidr| !cidr.is_empty()),
        cidrsize: order.cidr_size,
        vpcofferingid: order.offering.clone(),
        zoneid: order.zone.clone(),
        start: Some(true),
        owner: order.owner.clone(),
    };
    let vpc = access.client.run(&request).await.map_err(lost(access))?;
    Ok(Change::Vpc(Some(Box::new(vpc))))
}

async fn delete_vpc(vpc: &str, access: &Access) -> Changed {
    gone(access.client.run(&DeleteVpc { id: vpc.into() }).await.map(drop), vpc, access)?;
    Ok(Change::Vpc(None))
}

fn tagged(address: bool) -> ResourceType {
    if address { ResourceType::PublicIpAddress } else { ResourceType::Network }
}

async fn tag(id: &str, kind: ResourceType, tags: &[String], access: &Access) -> Result<(), Outcome> {
    let request = CreateTags {
        resourceids: vec![id.to_owned()],
        resourcetype: kind,
        tags: tags.iter().map(|tag| TagPair::new(tag.as_str(), "1")).collect(),
    };
    access.client.run(&request).await.map(drop).map_err(lost(access))
}

async fn untag(id: &str, kind: ResourceType, tag: &str, access: &Access) -> Changed {
    let request = DeleteTags {
        resourceids: vec![id.to_owned()],
        resourcetype: kind,
        tags: vec![TagPair::new(tag, "1")],
    };
    access.client.run(&request).await.map_err(lost(access))?;
    Ok(Change::Other)
}

async fn associate(
    network: &str,
    vpc: Option<&str>,
    address: Option<IpAddr>,
    owner: &Owner,
    access: &Access,
) -> Changed {
    let request = AssociateIpAddress {
        ipaddress: address,
        networkid: vpc.is_none().then(|| network.into()),
        vpcid: vpc.map(Into::into),
        owner: owner.clone(),
        ..AssociateIpAddress::default()
    };
    let address = access.client.run(&request).await.map_err(lost(access))?;
    Ok(Change::Address(Box::new(address)))
}

async fn release(address: &str, access: &Access) -> Changed {
    let done = access.client.run(&DisassociateIpAddress { id: address.into() }).await;
    gone(done.map(drop), address, access)?;
    Ok(Change::NoAddress(address.to_owned()))
}

async fn balance(
    network: &str,
    (address, port): (&str, u16),
    open: bool,
    cidrs: &[String],
    access: &Access,
) -> Changed {
    let request = CreateLoadBalancerRule {
        algorithm: "roundrobin".to_owned(),
        name: RULE.to_owned(),
        description: None,
        publicport: port,
        privateport: API_PORT,
        publicipid: Some(address.into()),
        networkid: Some(network.into()),
        protocol: Some("tcp".to_owned()),
        cidrlist: cidrs.to_vec(),
        openfirewall: Some(open),
    };
    let rule = access.client.run(&request).await.map_err(lost(access))?;
    Ok(Change::Rule(Box::new(rule)))
}

async fn unbalance(rule: &str, access: &Access) -> Changed {
    let done = access.client.run(&DeleteLoadBalancerRule { id: rule.into() }).await;
    gone(done.map(drop), rule, access)?;
    Ok(Change::NoRule(rule.to_owned()))
}

async fn open((address, port): (&str, u16), cidr: &str, access: &Access) -> Changed {
    let request = CreateFirewallRule {
        ipaddressid: address.into(),
        protocol: "tcp".to_owned(),
        startport: Some(port),
        endport: Some(port),
        cidrlist: vec![cidr.to_owned()],
        icmptype: None,
        icmpcode: None,
    };
    let rule = access.client.run(&request).await.map_err(lost(access))?;
    Ok(Change::Opening(Box::new(rule)))
}

async fn close(rule: &str, routed: bool, access: &Access) -> Changed {
    let id = rule.into();
    let done = match routed {
        true => access.client.run(&DeleteRoutingFirewallRule { id }).await,
        false => access.client.run(&DeleteFirewallRule { id }).await,
    };
    gone(done.map(drop), rule, access)?;
    Ok(Change::NoOpening(rule.to_owned()))
}

async fn let_out(network: &str, routed: bool, access: &Access) -> Changed {
    let made = match routed {
        true => access.client.run(&routed::exit(network)).await,
        false => {
            let request = CreateEgressFirewallRule {
                networkid: network.into(),
                protocol: "all".to_owned(),
                startport: None,
                endport: None,
                cidrlist: Vec::new(),
                destcidrlist: Vec::new(),
                icmptype: None,
                icmpcode: None,
            };
            access.client.run(&request).await
        }
    };
    Ok(Change::Exit(Box::new(made.map_err(lost(access))?)))
}

async fn keep_in(rule: &str, routed: bool, access: &Access) -> Changed {
    let id = rule.into();
    let done = match routed {
        true => access.client.run(&DeleteRoutingFirewallRule { id }).await,
        false => access.client.run(&DeleteEgressFirewallRule { id }).await,
    };
    gone(done.map(drop), rule, access)?;
    Ok(Change::NoExit(rule.to_owned()))
}

fn lost(access: &Access) -> impl Fn(Error) -> Outcome {
    move |error| failed(&error, &access.secret)
}

/// What is not known any more is gone, which is what was wanted.
fn gone(done: Result<(), Error>, id: &str, access: &Access) -> Result<(), Outcome> {
    match done {
        Err(error) if !error.is_unknown(id) => Err(kept(&error, &access.secret)),
        _ => Ok(()),
    }
}
