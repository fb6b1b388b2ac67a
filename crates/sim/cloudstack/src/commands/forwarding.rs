//! Port forwarding and static NAT.

use serde_json::json;

use super::load_balancers::{opens, port};
use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::network::{OpenedFor, PortForwarding, Ports};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listPortForwardingRules",
        "id:forwarding ipaddressid:ip networkid:network account domainid:domain projectid:project listall:flag",
        list,
    ),
    job(
        "createPortForwardingRule",
        "ipaddressid:ip! protocol! publicport:number! privateport:number! publicendport:number privateendport:number \
         virtualmachineid:vm! networkid:network openfirewall:flag cidrlist:long",
        "user.firewall.CreatePortForwardingRuleCmd",
        create,
    ),
    job(
        "deletePortForwardingRule",
        "id:forwarding! accountid:account",
        "user.firewall.DeletePortForwardingRuleCmd",
        delete,
    ),
    sync(
        "listIpForwardingRules",
        "ipaddressid:ip virtualmachineid:vm domainid:domain id:firewall projectid:project",
        list_ip_forwarding,
    ),
    sync("enableStaticNat", "ipaddressid:ip! virtualmachineid:vm! networkid:network", enable_static_nat),
    job("disableStaticNat", "ipaddressid:ip!", "user.nat.DisableStaticNatCmd", disable_static_nat),
];

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    cloud.is_ready_for(call, "port forwarding")?;
    let scope = cloud.scope(call)?;
    let tags = cloud.tag_filter(call)?;
    let shown = cloud
        .forwardings
        .iter()
        .rev()
        .filter(|rule| {
            cloud.shows(call, scope, rule.account)
                && call.selects(&cloud.forwardings, "id", rule.key)
                && call.selects(&cloud.ips, "ipaddressid", rule.ip)
                && call.selects(&cloud.networks, "networkid", rule.network)
                && cloud.is_tagged(&tags, &rule.uuid)
        })
        .map(|rule| cloud.show_forwarding(rule.key, call.caller.is_root()))
        .collect();
    Ok(Answer::List("portforwardingrule", shown))
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let (ip, vm) = (call.the(&cloud.ips, "ipaddressid")?, call.the(&cloud.vms, "virtualmachineid")?);
    let held = cloud.ips[ip].held.as_ref();
    let asked = call.key(&cloud.networks, "networkid");
    let Some((account, Some(network), vpc)) =
        held.map(|held| (held.account, held.network.or(asked.filter(|_| held.vpc.is_some())), held.vpc))
    else {
        return Err(ApiError::invalid("Unable to create port forwarding rule; the IP address is not in use"));
    };
    cloud.allow(call.caller, account)?;
    cloud.tier_fits(ip, network)?;
    cloud.is_conserved(ip, network, "PortForwarding")?;
    cloud.allow(call.caller, cloud.vms[vm].account)?;
    let cidrs: Vec<String> = call
        .filled("cidrlist")
        .map(|list| list.split(',').map(|one| one.trim().to_owned()).collect())
        .unwrap_or_default();
    if let Some(bad) = cidrs.iter().find(|cidr| cidr.parse::<ipnet::Ipv4Net>().is_err()) {
        return Err(ApiError::invalid(format!("The given source CIDR [{bad}] is invalid.")));
    }
    opens(call, vpc.is_some())?;
    let range = |start: &str, end: &str| -> Result<Ports> {
        let first = call.number(start).unwrap_or(-1);
        Ok(Ports { start: port(first)?, end: port(call.number(end).unwrap_or(first))? })
    };
    let (public, private) = (range("publicport", "publicendport")?, range("privateport", "privateendport")?);
    if public.start != public.end && public.start != private.start {
        return Err(ApiError::invalid("Private port start should be equal to public port start"));
    }
    let protocol = call.text("protocol").unwrap_or_default().to_lowercase();
    cloud.port_is_free(ip, &protocol, public)?;
    if !cloud.vms[vm].nics.iter().any(|nic| nic.network == network) {
        return Err(ApiError::invalid(
            "Unable to create port forwarding rule; the instance is not in the network",
        ));
    }
    let it = PortForwarding { account, ip, network, vm, protocol: protocol.clone(), public, private, cidrs };
    let uuid = cloud.fresh_uuid();
    let key = cloud.forwardings.insert(uuid.clone(), cloud.now, it);
    if vpc.is_some() {
        cloud.bind_tier(ip, network);
    }
    if opens(call, vpc.is_some())? {
        cloud.open_firewall(ip, &protocol, public, OpenedFor::PortForwarding(key));
    }
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"portforwardingrule": cloud.show_forwarding(key, full)}))
    });
    Ok(Answer::Job(submission.making_the("FirewallRule", &uuid)))
}

/// Rules on addresses of static NAT, of which there are none: they are made with a command that is not simulated.
fn list_ip_forwarding(_: &mut Cloud, _: &Call) -> Result<Answer> {
    Ok(Answer::List("ipforwardingrule", Vec::new()))
}

impl Cloud {
    pub(crate) fn remove_forwarding(&mut self, key: Key<PortForwarding>) {
        self.close_firewall(OpenedFor::PortForwarding(key));
        let (uuid, ip) = (self.forwardings[key].uuid.clone(), self.forwardings[key].ip);
        self.untag(&uuid);
        self.forwardings.forget(key);
        self.unbind_tier(ip);
    }
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.forwardings, "id")?;
    cloud.allow(call.caller, cloud.forwardings[key].account)?;
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        cloud.remove_forwarding(key);
        Ok(success())
    })))
}

fn enable_static_nat(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let (ip, vm) = (call.the(&cloud.ips, "ipaddressid")?, call.the(&cloud.vms, "virtualmachineid")?);
    let Some(held) = &cloud.ips[ip].held else {
        return Err(ApiError::invalid("Unable to enable static NAT; the IP address is not in use"));
    };
    cloud.allow(call.caller, held.account)?;
    cloud.allow(call.caller, cloud.vms[vm].account)?;
    let busy = held.source_nat
        || cloud.lb_rules.iter().any(|rule| rule.ip == ip)
        || cloud.forwardings.iter().any(|rule| rule.ip == ip);
    if busy {
        return Err(ApiError::conflict(
            9999,
            format!(
                "Failed to enable static nat for the ip address {} as it has rules assigned",
                cloud.ips[ip].address
            ),
        ));
    }
    if let Some(held) = &mut cloud.ips[ip].held {
        held.static_nat = Some(vm);
    }
    Ok(Answer::Body(success()))
}

fn disable_static_nat(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let ip = call.the(&cloud.ips, "ipaddressid")?;
    if let Some(held) = &cloud.ips[ip].held {
        cloud.allow(call.caller, held.account)?;
    }
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        match cloud.ips[ip].held.as_mut().and_then(|held| held.static_nat.take()) {
            Some(_) => Ok(success()),
            None => Err(ApiError::invalid("Specified IP address id is not static nat enabled")),
        }
    })))
}
