//! Networks, addresses and rules.

use serde_json::{Value, json};

use super::place::vpc_services;
use super::{Fields, time};
use crate::cloud::Cloud;
use crate::model::network::{FirewallRule, LbRule, Network, PortForwarding, PublicIp, Vpc};
use crate::model::place::GuestType;
use crate::model::table::Key;

/// Capabilities of services: name, value, whether an offering may choose it.
const CAPABILITIES: &[(&str, &str, bool)] = &[
    ("AllowDnsSuffixModification", "true", false),
    ("ElasticIp", "false", false),
    ("AssociatePublicIP", "true", false),
    ("AutoScaleCounters", "[]", false),
    ("SupportedLBIsolation", "dedicated", true),
    ("SupportedStickinessMethods", "[]", false),
    ("SslTermination", "true", false),
    ("SupportedLbAlgorithms", "roundrobin,leastconn,source", false),
    ("VmAutoScaling", "true", false),
    ("LbSchemes", "Public", false),
    ("ElasticLb", "false", false),
    ("InlineMode", "false", false),
    ("SupportedVpnTypes", "pptp,l2tp,ipsec", false),
    ("VpnTypes", "remoteaccessvpn", false),
    ("SupportedSourceNatTypes", "peraccount", true),
    ("RedundantRouter", "false", true),
    ("MultipleIps", "true", false),
    ("SupportedTrafficDirection", "ingress, egress", false),
    ("TrafficStatistics", "per public ip", false),
    ("SupportedEgressProtocols", "tcp,udp,icmp, all", false),
    ("DhcpAccrossMultipleSubnets", "true", false),
];

fn capabilities_of(service: &str) -> &'static [&'static str] {
    match service {
        "Dns" => &["AllowDnsSuffixModification"],
        "StaticNat" => &["ElasticIp", "AssociatePublicIP"],
        "Lb" => &[
            "AutoScaleCounters",
            "SupportedLBIsolation",
            "SupportedStickinessMethods",
            "SslTermination",
            "SupportedLbAlgorithms",
            "VmAutoScaling",
            "SupportedProtocols",
            "LbSchemes",
            "ElasticLb",
            "InlineMode",
        ],
        "Vpn" => &["SupportedVpnTypes", "VpnTypes"],
        "SourceNat" => &["SupportedSourceNatTypes", "RedundantRouter"],
        "PortForwarding" | "NetworkACL" => &["SupportedProtocols"],
        "Firewall" => &[
            "MultipleIps",
            "SupportedTrafficDirection",
            "TrafficStatistics",
            "SupportedEgressProtocols",
            "SupportedProtocols",
        ],
        "Dhcp" => &["DhcpAccrossMultipleSubnets"],
        _ => &[],
    }
}

pub(crate) fn show_capability(service: &str, name: &str) -> Value {
    let known = CAPABILITIES.iter().find(|(held, ..)| *held == name);
    let (value, choose) = match (service, name) {
        ("Lb", "SupportedProtocols") => ("tcp, udp, tcp-proxy, ssl", false),
        ("PortForwarding", "SupportedProtocols") => ("tcp,udp", false),
        (_, "SupportedProtocols") => ("tcp,udp,icmp", false),
        _ => known.map_or(("", false), |(_, value, choose)| (*value, *choose)),
    };
    json!({"name": name, "value": value, "canchooseservicecapability": choose})
}

impl Cloud {
    /// `full`: with the fields that only root sees.
    pub(crate) fn show_network(&self, key: Key<Network>, full: bool) -> Value {
        let row = &self.networks[key];
        let zone = &self.zones[row.zone];
        let offering = &self.network_offerings[row.offering];
        let services: Vec<Value> = offering
            .services
            .iter()
            .map(|(service, by)| {
                let mut capabilities: Vec<Value> =
                    capabilities_of(service).iter().map(|name| show_capability(service, name)).collect();
                // Routers of VPCs connect sites.
                let connects = *service == "Vpn" && *by == "VpcVirtualRouter";
                if let Some(kinds) = capabilities.iter_mut().find(|it| connects && it["name"] == "VpnTypes") {
                    kinds["value"] = "s2svpn".into();
                }
                json!({"name": service, "provider": [{"name": by}], "capability": capabilities})
            })
            .collect();
        let traffic = if row.nics > 0 { 100 } else { 0 };
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "displaytext": row.display_text,
            "broadcastdomaintype": "Vlan",
            "traffictype": "Guest",
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "networkofferingid": offering.uuid,
            "networkofferingname": offering.name,
            "networkofferingdisplaytext": offering.display_text,
            "networkofferingconservemode": offering.conserve_mode,
            "networkofferingavailability": if offering.required { "Required" } else { "Optional" },
            "issystem": false,
            "state": row.state.name(),
            "related": row.uuid,
            "dns1": zone.dns,
            "type": offering.guest_type.name(),
            "acltype": if offering.guest_type == GuestType::Shared { "Domain" } else { "Account" },
            "service": services,
            "physicalnetworkid": zone.physical_network,
            "restartrequired": false,
            "specifyvlan": offering.specify_vlan,
            "specifyipranges": offering.specify_ip_ranges,
            "canusefordeploy": true,
            "ispersistent": false,
            "tags": self.short_tags(&row.uuid),
            "strechedl2subnet": false,
            "redundantrouter": false,
            "supportsvmautoscaling": offering.offers("Lb"),
            "created": time(row.created),
            "receivedbytes": traffic,
            "sentbytes": traffic,
            "publicmtu": 1500,
            "privatemtu": 1500,
            "hasannotations": false,
        }));
        if offering.guest_type == GuestType::Shared {
            let root = self.accounts[row.account].domain;
            fields
                .put("domainid", self.domains[root].uuid.as_str())
                .put("domain", self.domains[root].name.as_str())
                .put("domainpath", self.domain_path(root))
                .put("subdomainaccess", true);
        } else {
            fields.owner(self, row.account);
        }
        if full {
            fields.put("displaynetwork", true).put("details", json!({}));
            if let Some(vlan) = row.vlan {
                fields.put("broadcasturi", format!("vlan://{vlan}")).put("vlan", vlan.to_string());
            }
        }
        if offering.network_mode == Some("ROUTED") {
            let routes: Vec<Value> = self
                .ips
                .iter()
                .filter(|ip| {
                    ip.held.as_ref().is_some_and(|held| {
                        held.source_nat
                            && (held.network == Some(key) || (row.vpc.is_some() && held.vpc == row.vpc))
                    })
                })
                .filter_map(|ip| {
                    let cidr = row.cidr?;
                    Some(json!({"subnet": cidr.to_string(), "gateway": ip.address.to_string()}))
                })
                .collect();
            fields.put("ip4routing", offering.routing_mode.unwrap_or("Static")).put("ip4routes", routes);
        }
        if let (Some(cidr), Some(gateway)) = (row.cidr, row.gateway) {
            fields
                .put("cidr", cidr.to_string())
                .put("gateway", gateway.to_string())
                .put("netmask", cidr.netmask().to_string())
                .put("networkdomain", self.network_domain(row.account));
        }
        if let Some(vpc) = row.vpc {
            let vpc = &self.vpcs[vpc];
            fields.put("vpcid", vpc.uuid.as_str()).put("vpcname", vpc.name.as_str());
        } else if offering.guest_type == GuestType::Isolated {
            fields.put("egressdefaultpolicy", offering.egress_default_allow);
        }
        if let Some(acl) = row.acl {
            let acl = &self.acls[acl];
            fields.put("aclid", acl.uuid.as_str()).put("aclname", acl.name.as_str());
        }
        fields.done()
    }

    /// Suffix of host names in networks of an account.
    pub(crate) fn network_domain(&self, account: Key<crate::model::identity::Account>) -> String {
        let row = &self.accounts[account];
        match &self.domains[row.domain].network_domain {
            Some(domain) => domain.clone(),
            None => format!("cs{}cloud.internal", account.number()),
        }
    }

    /// `full`: with the fields that only root sees.
    pub(crate) fn show_ip(&self, key: Key<PublicIp>, full: bool) -> Value {
        let row = &self.ips[key];
        let zone = &self.zones[row.zone];
        let rules = self.lb_rules.iter().any(|rule| rule.ip == key)
            || self.firewall_rules.iter().any(|rule| rule.ip == Some(key))
            || self.forwardings.iter().any(|rule| rule.ip == key);
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "ipaddress": row.address.to_string(),
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "issourcenat": row.held.as_ref().is_some_and(|held| held.source_nat),
            "forvirtualnetwork": true,
            "isstaticnat": row.held.as_ref().is_some_and(|held| held.static_nat.is_some()),
            "issystem": false,
            "networkid": zone.public_network,
            "state": row.held.as_ref().map_or("Free", |held| held.state),
            "physicalnetworkid": zone.physical_network,
            "tags": self.short_tags(&row.uuid),
            "isportable": false,
            "hasrules": rules,
            "forsystemvms": false,
            "forprovider": false,
            "hasannotations": false,
        }));
        if let Some(held) = &row.held {
            fields.put("allocated", time(held.allocated)).owner(self, held.account);
            if let Some(network) = held.network {
                let network = &self.networks[network];
                fields
                    .put("associatednetworkid", network.uuid.as_str())
                    .put("associatednetworkname", network.name.as_str());
            }
            if let Some(vpc) = held.vpc {
                let vpc = &self.vpcs[vpc];
                fields.put("vpcid", vpc.uuid.as_str()).put("vpcname", vpc.name.as_str());
            }
            if let Some(vm) = held.static_nat {
                let vm = &self.vms[vm];
                fields
                    .put("virtualmachineid", vm.uuid.as_str())
                    .put("virtualmachinename", vm.name.as_str())
                    .put("virtualmachinedisplayname", vm.display_name.as_str());
                let nic = vm.nics.iter().find(|nic| Some(nic.network) == held.network);
                let address = nic.and_then(|nic| nic.address);
                fields.maybe("vmipaddress", address.map(|address| address.to_string()));
            }
        }
        if full {
            fields
                .put("vlanid", zone.public_vlan.as_str())
                .put("vlanname", "vlan://50")
                .put("fordisplay", true);
        }
        fields.done()
    }

    /// `full`: with the fields that only root sees.
    pub(crate) fn show_lb_rule(&self, key: Key<LbRule>, full: bool) -> Value {
        let row = &self.lb_rules[key];
        let ip = &self.ips[row.ip];
        let network = &self.networks[row.network];
        let zone = &self.zones[network.zone];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "publicipid": ip.uuid,
            "publicip": ip.address.to_string(),
            "publicport": row.public_port.to_string(),
            "privateport": row.private_port.to_string(),
            "algorithm": row.algorithm,
            "networkid": network.uuid,
            "state": if row.active { "Active" } else { "Add" },
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "tags": self.short_tags(&row.uuid),
        }));
        fields
            .owner(self, row.account)
            .maybe("description", row.description.as_deref())
            .maybe("protocol", row.protocol.as_deref())
            .maybe("cidrlist", row.cidrs.as_deref())
            .maybe("fordisplay", full.then_some(true));
        fields.done()
    }

    /// `full`: with the fields that only root sees.
    pub(crate) fn show_firewall_rule(&self, key: Key<FirewallRule>, full: bool) -> Value {
        let row = &self.firewall_rules[key];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "protocol": row.protocol,
            "networkid": self.networks[row.network].uuid,
            "state": "Active",
            "cidrlist": row.cidrs.join(","),
            "tags": self.short_tags(&row.uuid),
            "destcidrlist": row.destinations.join(","),
            "traffictype": if row.egress { "Egress" } else { "Ingress" },
        }));
        if let Some(ports) = row.ports {
            fields.put("startport", ports.start).put("endport", ports.end);
        }
        if let Some((kind, code)) = row.icmp {
            fields.put("icmptype", kind).put("icmpcode", code);
        }
        if let Some(ip) = row.ip {
            let ip = &self.ips[ip];
            fields.put("ipaddressid", ip.uuid.as_str()).put("ipaddress", ip.address.to_string());
        }
        fields.maybe("fordisplay", full.then_some(true));
        fields.done()
    }

    /// `full`: with the fields that only root sees.
    pub(crate) fn show_forwarding(&self, key: Key<PortForwarding>, full: bool) -> Value {
        let row = &self.forwardings[key];
        let (ip, vm) = (&self.ips[row.ip], &self.vms[row.vm]);
        let guest = vm.nics.iter().find(|nic| nic.network == row.network).and_then(|nic| nic.address);
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "privateport": row.private.start.to_string(),
            "privateendport": row.private.end.to_string(),
            "protocol": row.protocol,
            "publicport": row.public.start.to_string(),
            "publicendport": row.public.end.to_string(),
            "virtualmachineid": vm.uuid,
            "virtualmachinename": vm.name,
            "virtualmachinedisplayname": vm.display_name,
            "ipaddressid": ip.uuid,
            "ipaddress": ip.address.to_string(),
            "state": "Active",
            "cidrlist": row.cidrs.join(","),
            "tags": self.short_tags(&row.uuid),
            "networkid": self.networks[row.network].uuid,
        }));
        fields
            .maybe("vmguestip", guest.map(|address| address.to_string()))
            .maybe("fordisplay", full.then_some(true));
        fields.done()
    }

    /// `full`: with the fields that only root sees.
    pub(crate) fn show_vpc(&self, key: Key<Vpc>, full: bool) -> Value {
        let row = &self.vpcs[key];
        let zone = &self.zones[row.zone];
        let offering = &self.vpc_offerings[row.offering];
        let tiers: Vec<Value> = self
            .networks
            .iter()
            .filter(|network| network.vpc == Some(key))
            .map(|network| self.show_network(network.key, full))
            .collect();
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "displaytext": row.display_text,
            "state": "Enabled",
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "service": vpc_services(&offering.services),
            "cidr": row.cidr.to_string(),
            "vpcofferingid": offering.uuid,
            "vpcofferingname": offering.name,
            "created": time(row.created),
            "network": tiers,
            "restartrequired": false,
            "networkdomain": self.network_domain(row.account),
            "tags": self.short_tags(&row.uuid),
            "distributedvpcrouter": false,
            "regionlevelvpc": false,
            "redundantvpcrouter": false,
            "publicmtu": 1500,
            "hasannotations": false,
        }));
        fields.owner(self, row.account).maybe("fordisplay", full.then_some(true));
        if offering.network_mode == Some("ROUTED") {
            fields.put("ip4routing", "Static").put("ip4routes", json!([]));
        }
        fields.done()
    }
}
