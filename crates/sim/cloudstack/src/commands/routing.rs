//! Routed networks: their firewall, and the ranges that a zone has for them.

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use super::firewall::{self, icmp, insert, overlaps, ports};
use super::{job, root_admin, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::network::{FirewallRule, Network};
use crate::model::place::{NetworkOffering, Zone};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listRoutingFirewallRules",
        "id:firewall networkid:network traffictype account domainid:domain projectid:project listall:flag",
        list_rules,
    ),
    job(
        "createRoutingFirewallRule",
        "protocol! startport:number endport:number cidrlist:long destcidrlist:long icmptype:number \
         icmpcode:number networkid:network! traffictype",
        "user.network.routing.CreateRoutingFirewallRuleCmd",
        create_rule,
    ),
    job(
        "deleteRoutingFirewallRule",
        "id:firewall!",
        "user.network.routing.DeleteRoutingFirewallRuleCmd",
        firewall::delete,
    ),
    root_admin(sync("listIpv4SubnetsForZone", "id:zonesubnet zoneid:zone subnet", list_subnets)),
    root_admin(job(
        "createIpv4SubnetForZone",
        "zoneid:zone! subnet!",
        "admin.network.CreateIpv4SubnetForZoneCmd",
        create_subnet,
    )),
    root_admin(job(
        "deleteIpv4SubnetForZone",
        "id:zonesubnet!",
        "admin.network.DeleteIpv4SubnetForZoneCmd",
        delete_subnet,
    )),
];

/// Least and most prefix length of routed networks, `routed.network.ipv4.min.cidr.size` and its sibling.
const NETWORK_SIZES: (i64, i64) = (24, 30);
/// The same of routed VPCs, `routed.ipv4.vpc.min.cidr.size` and its sibling.
const VPC_SIZES: (i64, i64) = (22, 28);

fn list_rules(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let egress = match call.filled("traffictype") {
        None => None,
        // Here the case matters.
        Some("Ingress") => Some(false),
        Some("Egress") => Some(true),
        Some(_) => return Err(ApiError::internal(0)),
    };
    firewall::list(cloud, call, |rule| egress.is_none_or(|egress| rule.egress == egress))
}

fn cidrs(call: &Call, name: &str, side: &str) -> Result<Vec<String>> {
    let Some(list) = call.filled(name) else { return Ok(vec!["0.0.0.0/0".to_owned()]) };
    let list: Vec<String> = list.split(',').map(|one| one.trim().to_owned()).collect();
    let valid = |text: &str| text.contains('/') && text.parse::<Ipv4Net>().is_ok();
    match list.iter().find(|cidr| !valid(cidr)) {
        Some(bad) => Err(ApiError::invalid(format!("Invalid {side} IPv4 CIDR: {bad}"))),
        None => Ok(list),
    }
}

fn create_rule(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let network = call.the(&cloud.networks, "networkid")?;
    let egress = match call.filled("traffictype").map(str::to_lowercase).as_deref() {
        None | Some("ingress") => false,
        Some("egress") => true,
        Some(_) => {
            let given = call.text("traffictype").unwrap_or_default();
            return Err(ApiError::invalid(format!("Invalid traffic type {given}")));
        }
    };
    let protocol = match call.text("protocol").unwrap_or_default().trim().to_lowercase().as_str() {
        "1" => "icmp".to_owned(),
        "6" => "tcp".to_owned(),
        "17" => "udp".to_owned(),
        number if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            return Err(ApiError::invalid(format!("Protocol {number} not supported")));
        }
        name => name.to_owned(),
    };
    let cidrs = (cidrs(call, "cidrlist", "source")?, self::cidrs(call, "destcidrlist", "destination")?);
    let ports = ports(call)?;
    let row = &cloud.networks[network];
    let account = row.account;
    cloud.allow(call.caller, account)?;
    if !cloud.offering_of(network).offers("Firewall") {
        return Err(ApiError::internal(4250));
    }
    let known: &[&str] = if egress { &["tcp", "udp", "icmp", "all"] } else { &["tcp", "udp", "icmp"] };
    if !known.contains(&protocol.as_str()) {
        return Err(ApiError::invalid(format!("Protocol {protocol} is not supported in zone")));
    }
    if protocol != "icmp" && (call.text("icmptype").is_some() || call.text("icmpcode").is_some()) {
        return Err(ApiError::invalid("Can specify icmpCode and icmpType for ICMP protocol only"));
    }
    if protocol == "icmp" && ports.is_some() {
        return Err(ApiError::invalid("Can't specify start/end port when protocol is ICMP"));
    }
    let icmp = icmp(call, &protocol);
    let conflict = cloud.firewall_rules.iter().find(|rule| {
        rule.network == network
            && rule.egress == egress
            && overlaps(rule, &protocol, ports, &cidrs.0)
            && rule.destinations.iter().any(|cidr| cidrs.1.contains(cidr))
            && rule.icmp == icmp
    });
    if let Some(rule) = conflict {
        return Err(match ports {
            _ if protocol == "icmp" => {
                ApiError::invalid(format!("New rule conflicts with existing rule: {}", rule.uuid))
            }
            None => ApiError::conflict(
                9999,
                format!("There is already a firewall rule specified with protocol = {protocol} and no ports"),
            ),
            Some(ports) => ApiError::conflict(
                9999,
                format!(
                    "The range specified, {}-{}, conflicts with rule {}",
                    ports.start, ports.end, rule.uuid
                ),
            ),
        });
    }
    let (cidrs, destinations) = cidrs;
    let it = FirewallRule {
        account,
        network,
        ip: None,
        egress,
        protocol,
        ports,
        icmp,
        cidrs,
        destinations,
        opened_for: None,
    };
    Ok(insert(cloud, call, it))
}

fn show_subnet(cloud: &Cloud, zone: Key<Zone>, id: &str, subnet: Ipv4Net) -> Value {
    let row = &cloud.zones[zone];
    json!({"id": id, "subnet": subnet.to_string(), "zoneid": row.uuid, "zonename": row.name})
}

fn list_subnets(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let mut shown = Vec::new();
    for zone in cloud.zones.iter().filter(|zone| call.selects(&cloud.zones, "zoneid", zone.key)) {
        for (id, subnet) in &zone.routed_subnets {
            if call.names("id", id) && call.names("subnet", &subnet.to_string()) {
                shown.push(show_subnet(cloud, zone.key, id, *subnet));
            }
        }
    }
    Ok(Answer::List("zoneipv4subnet", shown))
}

fn create_subnet(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let zone = call.the(&cloud.zones, "zoneid")?;
    let text = call.text("subnet").unwrap_or_default().to_owned();
    let uuid = cloud.fresh_uuid();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let subnet: Ipv4Net =
            text.parse().map_err(|_| ApiError::invalid(format!("Invalid IPv4 subnet: {text}")))?;
        let subnet = subnet.trunc();
        let held = cloud.zones[zone].routed_subnets.iter().find(|(_, held)| overlap(held, &subnet));
        if let Some((_, held)) = held {
            return Err(ApiError::invalid(format!("Existing zone subnet {held} has overlap with: {subnet}")));
        }
        cloud.zones[zone].routed_subnets.push((uuid.clone(), subnet));
        Ok(json!({"zoneipv4subnet": show_subnet(cloud, zone, &uuid, subnet)}))
    });
    Ok(Answer::Job(submission))
}

fn delete_subnet(_: &mut Cloud, call: &Call) -> Result<Answer> {
    let id = call.text("id").unwrap_or_default().to_owned();
    let submission = Submission::once(std::time::Duration::ZERO, move |cloud, _| {
        let zone = cloud.zones.iter().find(|zone| zone.routed_subnets.iter().any(|(held, _)| *held == id));
        let Some(zone) = zone.map(|zone| zone.key) else { return Ok(success()) };
        let subnet = cloud.zones[zone].routed_subnets.iter().find(|(held, _)| *held == id);
        let used = subnet.map_or(0, |(_, subnet)| {
            cloud.routed_ranges(zone).iter().filter(|range| overlap(range, subnet)).count()
        });
        if used > 0 {
            return Err(ApiError::invalid(format!("The subnet is being used by {used} guest networks.")));
        }
        cloud.zones[zone].routed_subnets.retain(|(held, _)| *held != id);
        Ok(success())
    });
    Ok(Answer::Job(submission))
}

fn overlap(one: &Ipv4Net, other: &Ipv4Net) -> bool {
    one.contains(other) || other.contains(one)
}

fn is_within((least, most): (i64, i64), size: i64, what: &str) -> Result<()> {
    if size > most {
        let text = format!("{what} cidr size cannot be bigger than maximum cidr size {most}");
        return Err(ApiError::invalid(text));
    }
    if size < least {
        let text = format!("{what} cidr size cannot be smaller than minimum cidr size {least}");
        return Err(ApiError::invalid(text));
    }
    Ok(())
}

impl Cloud {
    pub(crate) fn offering_of(&self, network: Key<Network>) -> &NetworkOffering {
        &self.network_offerings[self.networks[network].offering]
    }

    /// Ranges of a zone's routed networks and VPCs.
    fn routed_ranges(&self, zone: Key<Zone>) -> Vec<Ipv4Net> {
        let routed = |offering| self.network_offerings[offering].network_mode == Some("ROUTED");
        let networks =
            self.networks.iter().filter(|it| it.zone == zone && it.vpc.is_none() && routed(it.offering));
        let routed = |offering| self.vpc_offerings[offering].network_mode == Some("ROUTED");
        let vpcs = self.vpcs.iter().filter(|it| it.zone == zone && routed(it.offering));
        networks.filter_map(|it| it.cidr).chain(vpcs.map(|it| it.cidr)).collect()
    }

    /// A free range of a zone's subnets for routed networks.
    fn routed_range(&self, zone: Key<Zone>, size: i64) -> Option<Ipv4Net> {
        let (size, taken) = (u8::try_from(size).ok()?, self.routed_ranges(zone));
        let subnets = self.zones[zone].routed_subnets.iter();
        let mut ranges = subnets.filter_map(|(_, subnet)| subnet.subnets(size).ok()).flatten();
        ranges.find(|range| !taken.iter().any(|held| overlap(held, range)))
    }

    /// The range of a routed network: tenants may choose its size only. `None` if the network is of another kind.
    pub(super) fn range_of_routed_network(
        &self,
        call: &Call,
        zone: Key<Zone>,
        offering: Key<NetworkOffering>,
    ) -> Result<Option<Ipv4Net>> {
        let (offering, size) = (&self.network_offerings[offering], call.number("cidrsize"));
        let given = call.filled("gateway").is_some() && call.filled("netmask").is_some();
        if given && size.is_some() {
            return Err(ApiError::invalid("network cidr and cidr size are mutually exclusive"));
        }
        if !offering.is_router_gateway() {
            return match size {
                Some(size) => Err(ApiError::invalid(format!(
                    "network cidr size is only applicable on Isolated networks with ROUTED mode: {size}"
                ))),
                None => Ok(None),
            };
        }
        if given {
            return match offering.for_vpc || call.caller.is_root() {
                true => Ok(None),
                false => Err(ApiError::invalid(
                    "Only root admin can set the gateway/netmask of Isolated networks with ROUTED mode",
                )),
            };
        }
        let Some(size) = size else {
            return Err(ApiError::invalid(
                "network cidr or cidr size is required for Isolated networks with ROUTED mode",
            ));
        };
        is_within(NETWORK_SIZES, size, "network")?;
        let range = self.routed_range(zone, size);
        range.map(Some).ok_or_else(|| ApiError::invalid("Failed to allocate a CIDR with requested size."))
    }

    /// The range of a routed VPC, as with networks.
    pub(super) fn range_of_routed_vpc(&self, call: &Call, zone: Key<Zone>) -> Result<Option<Ipv4Net>> {
        let offering = call.the(&self.vpc_offerings, "vpcofferingid")?;
        let (cidr, size) = (call.filled("cidr"), call.number("cidrsize"));
        match (self.vpc_offerings[offering].is_gateway(), cidr, size) {
            (_, None, None) => Err(ApiError::invalid("VPC cidr or cidr size must be specified")),
            (_, Some(_), Some(_)) => Err(ApiError::invalid("VPC cidr and cidr size are mutually exclusive")),
            (false, None, Some(_)) => {
                Err(ApiError::invalid("VPC cidr size is only applicable on VPC with Routed mode"))
            }
            (true, Some(_), None) if !call.caller.is_root() => {
                Err(ApiError::invalid("Only root admin can set the gateway/netmask of VPC with ROUTED mode"))
            }
            (_, Some(_), None) => Ok(None),
            (true, None, Some(size)) => {
                is_within(VPC_SIZES, size, "VPC")?;
                let range = self.routed_range(zone, size);
                range.map(Some).ok_or_else(|| ApiError::internal(4250))
            }
        }
    }
}
