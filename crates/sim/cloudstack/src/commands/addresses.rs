//! Public addresses.

use std::net::Ipv4Addr;

use serde_json::json;

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::{Cloud, Scope};
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::identity::{Account, Resource};
use crate::model::network::{HeldIp, Network, PublicIp, Vpc};
use crate::model::place::{GuestType, Zone};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listPublicIpAddresses",
        "id:ip ipaddress zoneid:zone networkid:anynetwork associatednetworkid:network vpcid:vpc issourcenat:flag \
         isstaticnat:flag allocatedonly:flag forvirtualnetwork:flag state account domainid:domain \
         projectid:project listall:flag physicalnetworkid:physicalnetwork vlanid:vlan",
        list,
    ),
    job(
        "associateIpAddress",
        "networkid:network zoneid:zone vpcid:vpc ipaddress account domainid:domain projectid:project \
         regionid:number",
        "user.address.AssociateIPAddrCmd",
        associate,
    ),
    job(
        "disassociateIpAddress",
        "id:ip ipaddress accountid:account",
        "user.address.DisassociateIPAddrCmd",
        disassociate,
    ),
];

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let states: Vec<&str> = call.filled("state").into_iter().flat_map(|list| list.split(',')).collect();
    let asks = |state: &str| states.iter().any(|held| held.trim().eq_ignore_ascii_case(state));
    let unheld = asks("Free") || asks("Reserved");
    let allocated = match call.flag("allocatedonly") {
        Some(true) if unheld => {
            return Err(ApiError::invalid("Conflict: allocatedonly is true but state is Free"));
        }
        Some(false) if !unheld && asks("Allocated") => true,
        Some(only) => only,
        None => !unheld,
    };
    // Root sees everybody's among those that are not allocated to anybody.
    let whole = !allocated && call.caller.is_root() && call.text("domainid").is_none();
    let scope = if whole { Scope::AllAndProjects } else { cloud.scope(call)? };
    // A network or VPC that is gone filters nothing.
    let network =
        call.key(&cloud.networks, "associatednetworkid").filter(|key| !cloud.networks[*key].removed);
    let vpc = call.key(&cloud.vpcs, "vpcid").filter(|key| !cloud.vpcs[*key].removed);
    if let Some(network) = network
        && cloud.network_offerings[cloud.networks[network].offering].guest_type != GuestType::Shared
    {
        cloud.allow(call.caller, cloud.networks[network].account)?;
    }
    if let Some(vpc) = vpc {
        cloud.allow(call.caller, cloud.vpcs[vpc].account)?;
    }
    let tags = cloud.tag_filter(call)?;
    let shown = cloud
        .ips
        .iter()
        .filter(|ip| {
            let held = ip.held.as_ref();
            let visible = match held {
                None => !allocated,
                Some(held) => !held.system && cloud.shows(call, scope, held.account),
            };
            let address = ip.address.to_string();
            visible
                && call.selects(&cloud.ips, "id", ip.key)
                && call.selects(&cloud.zones, "zoneid", ip.zone)
                && call.names("ipaddress", &address)
                && (call.text("ipaddress").is_some() || call.keyword_in(&[&address]))
                && (states.is_empty() || asks(held.map_or("Free", |held| held.state)))
                && network.is_none_or(|network| held.is_some_and(|held| held.network == Some(network)))
                && vpc.is_none_or(|vpc| held.is_some_and(|held| held.vpc == Some(vpc)))
                && call
                    .flag("issourcenat")
                    .is_none_or(|wanted| held.is_some_and(|held| held.source_nat == wanted))
                && call
                    .flag("isstaticnat")
                    .is_none_or(|wanted| held.is_some_and(|held| held.static_nat.is_some() == wanted))
                && cloud.is_tagged(&tags, &ip.uuid)
        })
        .map(|ip| cloud.show_ip(ip.key, call.caller.is_root()))
        .collect();
    Ok(Answer::List("publicipaddress", shown))
}

impl Cloud {
    /// The address that machines of a network are seen with.
    pub(crate) fn source_nat(&self, network: Key<Network>) -> Option<Key<PublicIp>> {
        self.ips
            .iter()
            .find(|ip| ip.held.as_ref().is_some_and(|held| held.network == Some(network) && held.source_nat))
            .map(|ip| ip.key)
    }

    /// Takes an address of a zone: the one that is wanted, or the first that is free.
    pub(crate) fn take_address(
        &mut self,
        account: Key<Account>,
        zone: Key<Zone>,
        wanted: Option<Ipv4Addr>,
        network: Option<Key<Network>>,
        vpc: Option<Key<Vpc>>,
    ) -> Result<Key<PublicIp>> {
        let limit = self.limit(account, Resource::PublicIp);
        if limit >= 0 && self.used(account, Resource::PublicIp) >= limit {
            return Err(ApiError::new(
                532,
                4280,
                format!(
                    "Maximum number of public IP addresses for account: {} has been exceeded.",
                    self.accounts[account].name
                ),
            ));
        }
        let free = self.ips.iter().find(|ip| {
            ip.zone == zone && ip.held.is_none() && wanted.is_none_or(|wanted| ip.address == wanted)
        });
        let Some(key) = free.map(|ip| ip.key) else {
            return Err(ApiError::new(533, 9999, "Insufficient address capacity"));
        };
        // The first address of a network is what its machines are seen with.
        let source_nat = network.is_some_and(|network| {
            let offering = &self.network_offerings[self.networks[network].offering];
            (offering.offers("SourceNat") || offering.is_router_gateway())
                && vpc.is_none()
                && self.source_nat(network).is_none()
        });
        self.ips[key].held = Some(HeldIp {
            account,
            allocated: self.now,
            network,
            vpc,
            source_nat,
            state: "Allocating",
            system: false,
            static_nat: None,
        });
        Ok(key)
    }

    /// Gives an address back, and takes its rules away.
    pub(crate) fn release(&mut self, ip: Key<PublicIp>) {
        self.remove_rules(ip);
        let uuid = self.ips[ip].uuid.clone();
        self.untag(&uuid);
        self.ips[ip].held = None;
    }

    /// Takes the rules of an address away.
    pub(crate) fn remove_rules(&mut self, ip: Key<PublicIp>) {
        let balancers: Vec<_> =
            self.lb_rules.iter().filter(|rule| rule.ip == ip).map(|rule| rule.key).collect();
        for rule in balancers {
            self.remove_lb_rule(rule);
        }
        let forwardings: Vec<_> =
            self.forwardings.iter().filter(|rule| rule.ip == ip).map(|rule| rule.key).collect();
        for rule in forwardings {
            self.remove_forwarding(rule);
        }
        let rules: Vec<_> =
            self.firewall_rules.iter().filter(|rule| rule.ip == Some(ip)).map(|rule| rule.key).collect();
        for rule in rules {
            self.firewall_rules.forget(rule);
        }
    }
}

fn associate(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let mut network = call.key(&cloud.networks, "networkid");
    let vpc = call.key(&cloud.vpcs, "vpcid");
    let wanted = match call.filled("ipaddress") {
        Some(text) => {
            Some(text.parse().map_err(|_| ApiError::invalid(format!("{text} is not an IP address")))?)
        }
        None => None,
    };
    let (owner, zone) = if let Some(network) = network {
        let row = &cloud.networks[network];
        if row.removed {
            return Err(ApiError::invalid("Unable to find Network by network id specified"));
        }
        cloud.allow(call.caller, row.account)?;
        (row.account, row.zone)
    } else if let Some(vpc) = vpc {
        let row = &cloud.vpcs[vpc];
        cloud.allow(call.caller, row.account)?;
        (row.account, row.zone)
    } else if let Some(zone) = call.key(&cloud.zones, "zoneid") {
        let owner = cloud.owner(call)?;
        let mut isolated = cloud.networks.iter().filter(|row| {
            row.account == owner
                && row.zone == zone
                && cloud.network_offerings[row.offering].guest_type == GuestType::Isolated
        });
        network = isolated.next().map(|row| row.key);
        if isolated.next().is_some() {
            return Err(ApiError::invalid("Account has more than one isolated Network in the zone"));
        }
        (owner, zone)
    } else {
        return Err(ApiError::invalid(
            "Unable to figure out zone to assign IP to. Please specify either zoneId, or networkId, or vpcId in the call",
        ));
    };
    let key = cloud.take_address(owner, zone, wanted, network, vpc)?;
    let uuid = cloud.ips[key].uuid.clone();
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        // The reply is made before the address has reached its last state, but for those of VPCs.
        let early = cloud.ips[key].held.as_ref().is_some_and(|held| held.vpc.is_none());
        let shown = early.then(|| cloud.show_ip(key, full));
        if let Some(held) = &mut cloud.ips[key].held {
            held.state = "Allocated";
        }
        Ok(json!({"ipaddress": shown.unwrap_or_else(|| cloud.show_ip(key, full))}))
    });
    Ok(Answer::Job(submission.making_the("IpAddress", &uuid)))
}

fn disassociate(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = match (call.key(&cloud.ips, "id"), call.filled("ipaddress")) {
        (Some(key), _) => key,
        (None, Some(text)) => {
            let found = cloud.ips.iter().find(|ip| ip.held.is_some() && ip.address.to_string() == text);
            found.map(|ip| ip.key).ok_or_else(|| ApiError::internal(4250))?
        }
        (None, None) => return Err(ApiError::invalid("Please specify either IP address or IP address ID")),
    };
    let Some(held) = &cloud.ips[key].held else { return Err(ApiError::internal(4250)) };
    let refused = if !cloud.may_operate(call.caller, held.account) {
        Some(ApiError { code: 530, ..ApiError::not_yours() })
    } else if held.source_nat {
        Some(ApiError::runtime("IP address is used for source nat purposes and can not be disassociated."))
    } else {
        None
    };
    let uuid = cloud.ips[key].uuid.clone();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if let Some(refused) = refused {
            return Err(refused);
        }
        cloud.release(key);
        Ok(success())
    });
    Ok(Answer::Job(submission.about_the("IpAddress", &uuid)))
}
