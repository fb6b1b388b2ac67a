//! Load balancer rules.

use serde_json::{Value, json};

use super::{job, sync};
use crate::call::{Answer, Call, Caller};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::compute::{Vm, VmState};
use crate::model::identity::RoleType;
use crate::model::network::{FirewallRule, LbRule, Network, OpenedFor, Ports, PublicIp};
use crate::model::place::GuestType;
use crate::model::table::Key;
use crate::render::VmView;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listLoadBalancerRules",
        "id:lb name publicipid:ip networkid:network zoneid:zone virtualmachineid:vm account domainid:domain \
         projectid:project listall:flag",
        list,
    ),
    job(
        "createLoadBalancerRule",
        "algorithm! name! description:long privateport:number! publicport:number! publicipid:ip networkid:network \
         zoneid:zone protocol \
         openfirewall:flag cidrlist:long account domainid:domain",
        "user.loadbalancer.CreateLoadBalancerRuleCmd",
        create,
    ),
    job(
        "updateLoadBalancerRule",
        "id:lb! name description:long algorithm protocol",
        "user.loadbalancer.UpdateLoadBalancerRuleCmd",
        update,
    ),
    job("deleteLoadBalancerRule", "id:lb!", "user.loadbalancer.DeleteLoadBalancerRuleCmd", delete),
    sync("listLoadBalancerRuleInstances", "id:lb! lbvmips:flag applied:flag", list_instances),
    job(
        "assignToLoadBalancerRule",
        "id:lb! virtualmachineids:vm[]",
        "user.loadbalancer.AssignToLoadBalancerRuleCmd",
        assign,
    ),
    job(
        "removeFromLoadBalancerRule",
        "id:lb! virtualmachineids:vm[]",
        "user.loadbalancer.RemoveFromLoadBalancerRuleCmd",
        remove,
    ),
];

const PROTOCOLS: [&str; 4] = ["tcp", "udp", "tcp-proxy", "ssl"];

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let scope = cloud.scope(call)?;
    let tags = cloud.tag_filter(call)?;
    let vm = call.key(&cloud.vms, "virtualmachineid");
    let shown = cloud
        .lb_rules
        .iter()
        .filter(|rule| {
            cloud.shows(call, scope, rule.account)
                && call.selects(&cloud.lb_rules, "id", rule.key)
                && call.selects(&cloud.ips, "publicipid", rule.ip)
                && call.selects(&cloud.networks, "networkid", rule.network)
                && call.selects(&cloud.zones, "zoneid", cloud.networks[rule.network].zone)
                && vm.is_none_or(|vm| rule.members.contains(&vm))
                && call.names("name", &rule.name)
                && call.keyword_in(&[&rule.name, rule.description.as_deref().unwrap_or_default()])
                && cloud.is_tagged(&tags, &rule.uuid)
        })
        .map(|rule| cloud.show_lb_rule(rule.key, call.caller.is_root()))
        .collect();
    Ok(Answer::List("loadbalancerrule", shown))
}

/// A port of a rule.
pub(super) fn port(value: i64) -> Result<u16> {
    u16::try_from(value).map_err(|_| ApiError::invalid(format!("publicPort is an invalid value: {value}")))
}

/// Whether a rule comes with one that opens the firewall. Tiers have access lists in place of firewalls.
pub(super) fn opens(call: &Call, in_vpc: bool) -> Result<bool> {
    match call.flag("openfirewall") {
        Some(true) if in_vpc => {
            Err(ApiError::invalid("Can't have openFirewall=true when IP address belongs to VPC"))
        }
        asked => Ok(asked.unwrap_or(!in_vpc)),
    }
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let Some(ip) = call.key(&cloud.ips, "publicipid") else {
        return Err(ApiError::invalid(
            "Can't define IP owner. Either specify Account/domainId or publicIpId",
        ));
    };
    let Some(held) = &cloud.ips[ip].held else {
        return Err(ApiError::invalid(
            "Unable to create load balancer rule; the IP address is not allocated",
        ));
    };
    let (account, on, vpc) = (held.account, held.network, held.vpc);
    cloud.allow(call.caller, account)?;
    let Some(network) = call.key(&cloud.networks, "networkid").or(on) else {
        return Err(ApiError::parameter(format!(
            "IP address ID={} is not associated with any Network",
            ip.number()
        )));
    };
    cloud.tier_fits(ip, network).map_err(ApiError::wrapped)?;
    cloud.is_conserved(ip, network, "Lb").map_err(ApiError::wrapped)?;
    let opens = opens(call, vpc.is_some()).map_err(ApiError::wrapped)?;
    let protocol = call.filled("protocol").map(str::to_lowercase);
    if let Some(protocol) = protocol.as_deref() {
        if !PROTOCOLS.contains(&protocol) {
            return Err(ApiError::parameter(format!(
                "protocol {protocol} is not in valid protocols [{}]",
                PROTOCOLS.join(", ")
            )));
        }
        if protocol == "udp" {
            return Err(ApiError::parameter("LB service provider cannot support this rule"));
        }
    }
    let public_port = port(call.number("publicport").unwrap_or(-1)).map_err(ApiError::wrapped)?;
    let private_port = port(call.number("privateport").unwrap_or(-1)).map_err(ApiError::wrapped)?;
    let cidrs = call.filled("cidrlist").map(|list| list.replace(',', " "));
    for cidr in cidrs.iter().flat_map(|list| list.split_whitespace()) {
        if cidr.parse::<ipnet::Ipv4Net>().is_err() {
            return Err(ApiError::parameter(format!("CIDR [{cidr}] is invalid.")));
        }
    }
    let algorithm = call.text("algorithm").unwrap_or_default().to_owned();
    if !["roundrobin", "leastconn", "source"].contains(&algorithm.as_str()) {
        return Err(ApiError::parameter(format!("Invalid algorithm: {algorithm}")));
    }
    let ports = Ports { start: public_port, end: public_port };
    cloud.port_is_free(ip, "tcp", ports).map_err(ApiError::wrapped)?;
    let it = LbRule {
        name: call.text("name").unwrap_or_default().to_owned(),
        description: call.text("description").map(str::to_owned),
        account,
        ip,
        network,
        public_port,
        private_port,
        algorithm,
        protocol,
        cidrs,
        active: false,
        members: Vec::new(),
    };
    if vpc.is_some() {
        cloud.bind_tier(ip, network);
    }
    let uuid = cloud.fresh_uuid();
    let key = cloud.lb_rules.insert(uuid.clone(), cloud.now, it);
    let firewall = cloud.network_offerings[cloud.networks[network].offering].offers("Firewall");
    if opens && firewall {
        cloud.open_firewall(ip, "tcp", ports, OpenedFor::LoadBalancer(key));
    }
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"loadbalancer": cloud.show_lb_rule(key, full)}))
    });
    Ok(Answer::Job(submission.making_the("FirewallRule", &uuid)))
}

impl Cloud {
    /// Refuses rules on an address of a VPC for a network that is no tier of it, or for a second tier.
    pub(super) fn tier_fits(&self, ip: Key<PublicIp>, network: Key<Network>) -> Result<()> {
        let Some((vpc, tier)) = self.ips[ip].held.as_ref().and_then(|held| Some((held.vpc?, held.network)))
        else {
            return Ok(());
        };
        if self.networks[network].vpc != Some(vpc) {
            return Err(ApiError::invalid("Network is not part of the VPC of the IP address"));
        }
        if tier.is_some_and(|tier| tier != network) {
            return Err(ApiError::invalid(
                "Can't assign IP to the network directly when network belongs to VPC: it is in use by another tier",
            ));
        }
        if !self.network_offerings[self.networks[network].offering].offers("Lb") {
            return Err(ApiError::invalid("LB service is not supported in the network"));
        }
        Ok(())
    }

    /// Refuses a second service on an address of a network whose offering does not conserve addresses.
    pub(super) fn is_conserved(
        &self,
        ip: Key<PublicIp>,
        network: Key<Network>,
        service: &'static str,
    ) -> Result<()> {
        let offering = self.offering_of(network);
        if offering.conserve_mode || offering.guest_type != GuestType::Isolated || offering.provided_by("Nsx")
        {
            return Ok(());
        }
        let held = self.ips[ip].held.as_ref();
        let services = [
            (held.is_some_and(|held| held.source_nat), "SourceNat"),
            (self.lb_rules.iter().any(|rule| rule.ip == ip), "Lb"),
            (self.forwardings.iter().any(|rule| rule.ip == ip), "PortForwarding"),
        ];
        match services.into_iter().find(|(is, used)| *is && *used != service) {
            Some((_, used)) => Err(ApiError::invalid(format!(
                "The IP {} is already used as {used} rather than {service}",
                self.ips[ip].address
            ))),
            None => Ok(()),
        }
    }

    /// An address of a VPC belongs to the tier of its rules.
    pub(super) fn bind_tier(&mut self, ip: Key<PublicIp>, network: Key<Network>) {
        if let Some(held) = &mut self.ips[ip].held {
            held.network = Some(network);
        }
    }

    /// Frees an address of a VPC from its tier when its last rule is gone.
    pub(crate) fn unbind_tier(&mut self, ip: Key<PublicIp>) {
        let used = self.lb_rules.iter().any(|rule| rule.ip == ip)
            || self.forwardings.iter().any(|rule| rule.ip == ip);
        if let Some(held) = self.ips[ip].held.as_mut().filter(|held| held.vpc.is_some() && !used) {
            held.network = None;
        }
    }

    /// Refuses if another rule has one of the ports of an address.
    pub(super) fn port_is_free(&self, ip: Key<PublicIp>, protocol: &str, ports: Ports) -> Result<()> {
        let conflict = |purpose: &str, uuid: &str| {
            ApiError::conflict(
                4360,
                format!(
                    "The range specified, {}-{}, conflicts with rule {purpose} {uuid} which has the same protocol {protocol}",
                    ports.start, ports.end
                ),
            )
        };
        let balancer = self.lb_rules.iter().find(|rule| {
            rule.ip == ip
                && protocol == "tcp"
                && ports.overlap(Ports { start: rule.public_port, end: rule.public_port })
        });
        if let Some(rule) = balancer {
            return Err(conflict("LoadBalancing", &rule.uuid));
        }
        let forwarding = self
            .forwardings
            .iter()
            .find(|rule| rule.ip == ip && rule.protocol == protocol && ports.overlap(rule.public));
        match forwarding {
            Some(rule) => Err(conflict("PortForwarding", &rule.uuid)),
            None => Ok(()),
        }
    }

    /// Opens the firewall to everybody, for as long as a rule stands.
    pub(super) fn open_firewall(
        &mut self,
        ip: Key<PublicIp>,
        protocol: &str,
        ports: Ports,
        reason: OpenedFor,
    ) {
        let Some((account, Some(network))) =
            self.ips[ip].held.as_ref().map(|held| (held.account, held.network))
        else {
            return;
        };
        // One that is there already, whoever made it, is taken for the one that is asked for.
        let is_there = |rule: &FirewallRule| {
            !rule.egress && rule.ip == Some(ip) && rule.protocol == protocol && rule.ports == Some(ports)
        };
        if self.firewall_rules.iter().any(|rule| is_there(rule)) {
            return;
        }
        let it = FirewallRule {
            egress: false,
            account,
            network,
            ip: Some(ip),
            protocol: protocol.to_owned(),
            ports: Some(ports),
            icmp: None,
            cidrs: vec!["0.0.0.0/0".to_owned()],
            destinations: Vec::new(),
            opened_for: Some(reason),
        };
        let uuid = self.fresh_uuid();
        self.firewall_rules.insert(uuid, self.now, it);
    }

    /// Closes what was opened for a rule.
    pub(super) fn close_firewall(&mut self, reason: OpenedFor) {
        let opened: Vec<_> = self
            .firewall_rules
            .iter()
            .filter(|rule| rule.opened_for == Some(reason))
            .map(|rule| rule.key)
            .collect();
        for rule in opened {
            self.firewall_rules.forget(rule);
        }
    }

    pub(crate) fn remove_lb_rule(&mut self, key: Key<LbRule>) {
        self.close_firewall(OpenedFor::LoadBalancer(key));
        let (uuid, ip) = (self.lb_rules[key].uuid.clone(), self.lb_rules[key].ip);
        self.untag(&uuid);
        self.lb_rules.forget(key);
        self.unbind_tier(ip);
        self.balance(ip);
    }

    /// Takes a machine out of all rules.
    pub(crate) fn leave_balancers(&mut self, vm: Key<Vm>) {
        let mut touched = Vec::new();
        for rule in self.lb_rules.iter_mut().filter(|rule| rule.members.contains(&vm)) {
            rule.members.retain(|member| *member != vm);
            touched.push(rule.ip);
        }
        for ip in touched {
            self.balance(ip);
        }
    }
}

fn update(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.lb_rules, "id")?;
    cloud.allow(call.caller, cloud.lb_rules[key].account)?;
    let text = |name: &str| call.filled(name).map(str::to_owned);
    let (name, description, algorithm) = (text("name"), text("description"), text("algorithm"));
    let full = call.caller.is_root();
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let row = &mut cloud.lb_rules[key];
        if row.protocol.is_none() {
            // The server trips over its own missing value.
            return Err(ApiError::runtime(
                "Cannot invoke \"String.equals(Object)\" because the return value of \
                 \"com.cloud.network.dao.LoadBalancerVO.getLbProtocol()\" is null",
            ));
        }
        if let Some(name) = name {
            row.name = name;
        }
        if description.is_some() {
            row.description = description;
        }
        if let Some(algorithm) = algorithm {
            row.algorithm = algorithm;
        }
        Ok(json!({"loadbalancer": cloud.show_lb_rule(key, full)}))
    })))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.lb_rules, "id")?;
    let allowed = cloud.may_operate(call.caller, cloud.lb_rules[key].account);
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if !allowed {
            return Err(ApiError { code: 530, ..ApiError::not_yours() });
        }
        if !cloud.lb_rules[key].removed {
            cloud.remove_lb_rule(key);
        }
        Ok(success())
    })))
}

fn list_instances(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.lb_rules, "id")?;
    cloud.allow(call.caller, cloud.lb_rules[key].account)?;
    let network = cloud.lb_rules[key].network;
    let with_addresses = call.is("lbvmips");
    // Without addresses everybody is shown what users are shown.
    let role = if with_addresses { call.caller.role } else { RoleType::User };
    let view = VmView::full(Caller { role, ..call.caller });
    // All members are applied, and other machines are not looked for.
    let members = if call.flag("applied") == Some(false) { &[] } else { &*cloud.lb_rules[key].members };
    let shown = members.iter().map(|vm| {
        let instance = cloud.show_vm(*vm, view).done();
        if !with_addresses {
            return instance;
        }
        let addresses: Vec<Value> = cloud.vms[*vm]
            .nics
            .iter()
            .filter(|nic| nic.network == network)
            .filter_map(|nic| nic.address.map(|address| Value::from(address.to_string())))
            .collect();
        json!({"loadbalancerruleinstance": instance, "lbvmipaddresses": addresses})
    });
    let name = if with_addresses { "lbrulevmidip" } else { "loadbalancerruleinstance" };
    Ok(Answer::List(name, shown.collect()))
}

fn assign(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.lb_rules, "id")?;
    let mut vms = call.keys(&cloud.vms, "virtualmachineids");
    let mut fits = cloud.may_operate(call.caller, cloud.lb_rules[key].account);
    // Members may also be named by an address of theirs.
    for entry in call.params.maps("vmidipmap") {
        let of = |name: &str| entry.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let Some(vm) = of("vmid").and_then(|id| cloud.vms.find(id)) else { continue };
        let has = |wanted: &str| {
            cloud.vms[vm].nics.iter().any(|nic| nic.address.is_some_and(|held| held.to_string() == wanted))
        };
        fits &= of("vmip").is_none_or(has);
        vms.push(vm);
    }
    let caller = call.caller;
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let network = cloud.lb_rules[key].network;
        let takes = |vm: &Key<Vm>| {
            let row = &cloud.vms[*vm];
            !row.removed
                && !matches!(row.state, VmState::Destroyed | VmState::Expunging | VmState::Error)
                && cloud.may_operate(caller, row.account)
                && row.nics.iter().any(|nic| nic.network == network)
                && !cloud.lb_rules[key].members.contains(vm)
        };
        // One that does not fit fails them all, whatever the reason.
        if !fits || cloud.lb_rules[key].removed || vms.is_empty() || !vms.iter().all(takes) {
            return Err(ApiError::runtime("Failed to assign load balancer rule"));
        }
        let row = &mut cloud.lb_rules[key];
        row.members.extend(vms);
        row.active = true;
        let ip = row.ip;
        cloud.balance(ip);
        Ok(success())
    })))
}

fn remove(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.lb_rules, "id")?;
    let allowed = cloud.may_operate(call.caller, cloud.lb_rules[key].account);
    let vms = call.keys(&cloud.vms, "virtualmachineids");
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if vms.is_empty() {
            return Err(ApiError::invalid("Failed to remove Instance from load balancer rule"));
        }
        if !allowed {
            return Err(ApiError::runtime("Failed to remove instance from load balancer rule"));
        }
        let row = &mut cloud.lb_rules[key];
        row.members.retain(|member| !vms.contains(member));
        let ip = row.ip;
        cloud.balance(ip);
        Ok(success())
    })))
}
