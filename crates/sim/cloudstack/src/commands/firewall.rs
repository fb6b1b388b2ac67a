//! Firewall rules: what may come in by an address, and what may leave a network.

use ipnet::Ipv4Net;
use serde_json::json;

use super::load_balancers::port;
use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::network::{FirewallRule, Network, Ports};
use crate::model::table::{Key, Row};

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listFirewallRules",
        "id:firewall ipaddressid:ip networkid:network account domainid:domain projectid:project listall:flag",
        list_ingress,
    ),
    job(
        "createFirewallRule",
        "ipaddressid:ip! protocol! startport:number endport:number cidrlist:long icmptype:number icmpcode:number",
        "user.firewall.CreateFirewallRuleCmd",
        create_ingress,
    ),
    job(
        "deleteFirewallRule",
        "id:firewall! accountid:account",
        "user.firewall.DeleteFirewallRuleCmd",
        delete,
    ),
    sync(
        "listEgressFirewallRules",
        "id:firewall networkid:network account domainid:domain projectid:project listall:flag \
         ipaddressid:ip",
        list_egress,
    ),
    job(
        "createEgressFirewallRule",
        "networkid:network! protocol! startport:number endport:number cidrlist:long destcidrlist:long icmptype:number \
         icmpcode:number",
        "user.firewall.CreateEgressFirewallRuleCmd",
        create_egress,
    ),
    job(
        "deleteEgressFirewallRule",
        "id:firewall! accountid:account",
        "user.firewall.DeleteEgressFirewallRuleCmd",
        delete,
    ),
];

fn list_ingress(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    list(cloud, call, |rule| !rule.egress)
}

fn list_egress(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    list(cloud, call, |rule| rule.egress)
}

pub(super) fn list(cloud: &Cloud, call: &Call, side: impl Fn(&Row<FirewallRule>) -> bool) -> Result<Answer> {
    cloud.is_ready_for(call, "firewall")?;
    let scope = cloud.scope(call)?;
    let tags = cloud.tag_filter(call)?;
    let shown = cloud
        .firewall_rules
        .iter()
        .rev()
        .filter(|rule| {
            side(rule)
                && cloud.shows(call, scope, rule.account)
                && call.selects(&cloud.firewall_rules, "id", rule.key)
                && call.text("ipaddressid").is_none_or(|id| rule.ip == cloud.ips.find(id))
                && call.selects(&cloud.networks, "networkid", rule.network)
                && cloud.is_tagged(&tags, &rule.uuid)
        })
        .map(|rule| cloud.show_firewall_rule(rule.key, call.caller.is_root()))
        .collect();
    Ok(Answer::List("firewallrule", shown))
}

impl Cloud {
    /// Refuses lists of the rules on an address that is nobody's yet, or not the caller's.
    pub(super) fn is_ready_for(&self, call: &Call, rules: &str) -> Result<()> {
        let Some(ip) = call.key(&self.ips, "ipaddressid") else { return Ok(()) };
        match self.ips[ip].held.as_ref().filter(|held| held.state == "Allocated") {
            Some(held) => self.allow(call.caller, held.account),
            None => Err(ApiError::invalid(format!(
                "Ip address id={} not ready for {rules} rules yet",
                ip.number()
            ))),
        }
    }
}

/// Ports of a call: none for all of them; without an end, one.
pub(super) fn ports(call: &Call) -> Result<Option<Ports>> {
    let Some(start) = call.number("startport") else { return Ok(None) };
    let ports = Ports { start: port(start)?, end: port(call.number("endport").unwrap_or(start))? };
    if ports.start > ports.end {
        return Err(ApiError::invalid("Start port can't be bigger than end port"));
    }
    Ok(Some(ports))
}

fn cidrs(call: &Call, name: &str) -> Result<Vec<String>> {
    let list: Vec<String> = call
        .filled(name)
        .map(|list| list.split(',').map(|one| one.trim().to_owned()).collect())
        .unwrap_or_default();
    match list.iter().find(|cidr| cidr.parse::<Ipv4Net>().is_err()) {
        Some(bad) => Err(ApiError::parameter(format!("Source cidrs formatting error {bad}"))),
        None => Ok(list),
    }
}

pub(super) fn icmp(call: &Call, protocol: &str) -> Option<(i64, i64)> {
    (protocol == "icmp")
        .then(|| (call.number("icmptype").unwrap_or(-1), call.number("icmpcode").unwrap_or(-1)))
}

/// Two rules say the same of a port if one of their ranges is the same too.
pub(super) fn overlaps(rule: &FirewallRule, protocol: &str, ports: Option<Ports>, cidrs: &[String]) -> bool {
    let same_ports = match (rule.ports, ports) {
        (Some(one), Some(other)) => one.overlap(other),
        (None, None) => true,
        _ => false,
    };
    rule.protocol == protocol && same_ports && rule.cidrs.iter().any(|cidr| cidrs.contains(cidr))
}

fn create_ingress(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let ip = call.the(&cloud.ips, "ipaddressid")?;
    let Some(held) = &cloud.ips[ip].held else {
        return Err(ApiError::invalid("Unable to create firewall rule; the IP address is not allocated"));
    };
    let (account, network) = (held.account, held.network);
    cloud.allow(call.caller, account)?;
    let protocol = call.text("protocol").unwrap_or_default().to_lowercase();
    if network.is_some_and(|network| cloud.offering_of(network).is_router_gateway()) {
        // The answer does not name the commands for routed networks.
        return Err(ApiError::internal(4250));
    }
    let offers =
        |network: Key<Network>| cloud.network_offerings[cloud.networks[network].offering].offers("Firewall");
    let Some(network) = network.filter(|network| offers(*network)) else {
        return Err(ApiError::invalid(format!(
            "There is no new provider for IP {} of service Firewall!",
            cloud.ips[ip].address
        )));
    };
    if !["tcp", "udp", "icmp"].contains(&protocol.as_str()) {
        return Err(ApiError::invalid(format!(
            "Protocol {protocol} is not supported in zone {}",
            cloud.ips[ip].zone.number()
        )));
    }
    let ports = ports(call)?;
    if protocol == "icmp" && ports.is_some() {
        return Err(ApiError::invalid("Can't specify start/end port when protocol is ICMP"));
    }
    let mut cidrs = cidrs(call, "cidrlist")?;
    if cidrs.is_empty() {
        cidrs.push("0.0.0.0/0".to_owned());
    }
    let conflict = cloud
        .firewall_rules
        .iter()
        .find(|rule| rule.ip == Some(ip) && protocol != "icmp" && overlaps(rule, &protocol, ports, &cidrs));
    if let Some(rule) = conflict {
        let range = ports.map_or_else(|| "all".to_owned(), |ports| format!("{}-{}", ports.start, ports.end));
        return Err(ApiError::conflict(
            4360,
            format!(
                "The range specified, {range}, conflicts with rule {} which has the same protocol",
                rule.uuid
            ),
        ));
    }
    let it = FirewallRule {
        account,
        network,
        ip: Some(ip),
        egress: false,
        icmp: icmp(call, &protocol),
        protocol,
        ports,
        cidrs,
        destinations: Vec::new(),
        opened_for: None,
    };
    Ok(insert(cloud, call, it))
}

fn create_egress(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let network = call.the(&cloud.networks, "networkid")?;
    let row = &cloud.networks[network];
    if row.removed {
        return Err(ApiError::invalid("Unable to create firewall rule: the network does not exist"));
    }
    let (account, guest) = (row.account, row.cidr);
    cloud.allow(call.caller, account)?;
    if cloud.offering_of(network).is_router_gateway() {
        return Err(ApiError::internal(4250));
    }
    let protocol = call.text("protocol").unwrap_or_default().to_lowercase();
    let ports = ports(call)?;
    if protocol == "all" && ports.is_some() {
        return Err(ApiError::invalid(format!(
            "Unable to create firewall rule for the network id=[{}] due to: ports must not be informed to protocol ALL, as \
             it does not require them.",
            network.number()
        )));
    }
    if protocol == "icmp" && ports.is_some() {
        return Err(ApiError::invalid("Can't specify start/end port when protocol is ICMP"));
    }
    if !["tcp", "udp", "icmp", "all"].contains(&protocol.as_str()) {
        return Err(ApiError::parameter(format!("Invalid protocol: {protocol}")));
    }
    let mut sources = cidrs(call, "cidrlist")?;
    let destinations = cidrs(call, "destcidrlist")?;
    if let Some(guest) = guest {
        let outside = sources.iter().find(|text| {
            text.parse::<Ipv4Net>().is_ok_and(|cidr| !guest.contains(&cidr) && cidr.prefix_len() != 0)
        });
        if let Some(outside) = outside {
            return Err(ApiError::parameter(format!("[{outside}] is not within the guest CIDR [{guest}]. ")));
        }
        if sources.is_empty() {
            sources.push(guest.to_string());
        }
    }
    let egress = || cloud.firewall_rules.iter().filter(|rule| rule.egress && rule.network == network);
    if protocol == "all" && egress().any(|rule| rule.protocol == "all") {
        return Err(ApiError::conflict(
            9999,
            "There is already a firewall rule specified with protocol = all and no ports",
        ));
    }
    let conflict = egress().find(|rule| {
        overlaps(rule, &protocol, ports, &sources)
            && rule.destinations == destinations
            && rule.icmp == icmp(call, &protocol)
    });
    if let Some(rule) = conflict {
        return Err(ApiError::conflict(
            9999,
            format!("New rule conflicts with existing rule: {} has the same protocol and ports", rule.uuid),
        ));
    }
    let it = FirewallRule {
        account,
        network,
        ip: None,
        egress: true,
        icmp: icmp(call, &protocol),
        protocol,
        ports,
        cidrs: sources,
        destinations,
        opened_for: None,
    };
    Ok(insert(cloud, call, it))
}

pub(super) fn insert(cloud: &mut Cloud, call: &Call, it: FirewallRule) -> Answer {
    let full = call.caller.is_root();
    let uuid = cloud.fresh_uuid();
    let key = cloud.firewall_rules.insert(uuid.clone(), cloud.now, it);
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        cloud.refloat_network(cloud.firewall_rules[key].network);
        Ok(json!({"firewallrule": cloud.show_firewall_rule(key, full)}))
    });
    Answer::Job(submission.making_the("FirewallRule", &uuid))
}

pub(super) fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.firewall_rules, "id")?;
    cloud.allow(call.caller, cloud.firewall_rules[key].account)?;
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let uuid = cloud.firewall_rules[key].uuid.clone();
        cloud.untag(&uuid);
        let network = cloud.firewall_rules[key].network;
        cloud.firewall_rules.forget(key);
        cloud.refloat_network(network);
        Ok(success())
    })))
}
