//! Rules of managed security groups, as CAPO has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capstan_openstack_client::network::{NewSecurityGroupRule, SecurityGroupRule};
use capstan_openstack_types::ManagedSecurityGroupName;
use capstan_openstack_types::v1beta2::{ManagedSecurityGroups, SecurityGroupRuleSpec};
use serde::{Deserialize, Serialize};

/// The port that API servers listen on unless the manifest has another.
pub(crate) const API_PORT: u16 = 6443;

/// In place of the last port of a rule for ICMP: every code of the type in place of the first.
const ANY_CODE: i32 = -1;

/// A rule. Two are the same whatever their descriptions are.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    pub direction: String,
    pub ethertype: String,
    pub protocol: Option<String>,
    /// First and last port. Of ICMP type and code.
    pub ports: Option<(i32, i32)>,
    pub remote_group: Option<String>,
    pub remote_prefix: Option<String>,
    pub description: String,
}

impl Rule {
    fn ingress(description: &str) -> Self {
        Self {
            direction: "ingress".to_owned(),
            ethertype: "IPv4".to_owned(),
            description: description.to_owned(),
            ..Self::default()
        }
    }

    fn on(mut self, protocol: &str, first: i32, last: i32) -> Self {
        self.protocol = Some(protocol.to_owned());
        self.ports = Some((first, last));
        self
    }

    fn with_remote_group(mut self, group: &str) -> Self {
        self.remote_group = Some(group.to_owned());
        self
    }

    fn with_remote_prefix(mut self, prefix: &str) -> Self {
        self.remote_prefix = Some(prefix.to_owned());
        self
    }

    /// The same traffic.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.traffic() == other.traffic()
    }

    /// The rule without its description and as Neutron keeps it, so that two spellings of the same are equal.
    fn traffic(&self) -> Self {
        let range = |prefix: &String| canonical_range(prefix).unwrap_or_else(|| prefix.clone());
        Self {
            description: String::new(),
            protocol: canonical_protocol(self.protocol.as_deref(), &self.ethertype),
            ports: self.ports.filter(|ports| *ports != (1, 65_535)),
            remote_prefix: self.remote_prefix.as_ref().map(range).filter(|range| !range.ends_with("/0")),
            ..self.clone()
        }
    }

    /// A rule that exists.
    pub(super) fn held(rule: &SecurityGroupRule) -> Self {
        let protocol = rule.protocol.clone().filter(|protocol| protocol != "any");
        Self {
            direction: rule.direction.clone(),
            ethertype: rule.ethertype.clone(),
            ports: ports(protocol.as_deref(), rule.port_range_min, rule.port_range_max),
            protocol,
            remote_group: rule.remote_group_id.as_ref().map(ToString::to_string),
            remote_prefix: rule.remote_ip_prefix.clone(),
            description: rule.description.clone().unwrap_or_default(),
        }
    }

    pub(super) fn request(&self, group: &str) -> NewSecurityGroupRule {
        NewSecurityGroupRule {
            security_group_id: group.into(),
            direction: self.direction.clone(),
            ethertype: Some(self.ethertype.clone()),
            protocol: self.protocol.clone(),
            port_range_min: self.ports.map(|(first, _)| first),
            port_range_max: self.ports.map(|(_, last)| last).filter(|last| *last != ANY_CODE),
            remote_group_id: self.remote_group.as_deref().map(Into::into),
            remote_ip_prefix: self.remote_prefix.clone(),
            description: Some(self.description.clone()).filter(|text| !text.is_empty()),
        }
    }
}

/// Neutron's name of a protocol; `None` is any.
fn canonical_protocol(protocol: Option<&str>, ethertype: &str) -> Option<String> {
    let protocol = protocol?.to_ascii_lowercase();
    let name = match protocol.as_str() {
        "" | "any" => return None,
        "icmp" | "icmpv6" | "1" | "58" if ethertype == "IPv6" => "ipv6-icmp",
        "1" => "icmp",
        "6" => "tcp",
        "17" => "udp",
        other => other,
    };
    Some(name.to_owned())
}

/// First and last port, which are one if only one is given. Of ICMP a type may stand alone.
fn ports(protocol: Option<&str>, min: Option<i32>, max: Option<i32>) -> Option<(i32, i32)> {
    let is_icmp = ["IPv4", "IPv6"].iter().any(|family| {
        matches!(canonical_protocol(protocol, family).as_deref(), Some("icmp" | "ipv6-icmp" | "icmpv6"))
    });
    match (min, max) {
        (Some(kind), None) if is_icmp => Some((kind, ANY_CODE)),
        _ => min.or(max).zip(max.or(min)),
    }
}

/// A range of addresses without bits of hosts; an address alone is a range of one.
pub(super) fn canonical_range(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/').map_or((text, None), |(ip, length)| (ip, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let longest: u32 = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Some(longest), |length| length.parse().ok())?;
    let hosts = longest.checked_sub(length)?;
    let network: IpAddr = match address {
        // A shift by all bits is none.
        IpAddr::V4(ip) => Ipv4Addr::from(u32::from(ip) & u32::MAX.checked_shl(hosts).unwrap_or(0)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip) & u128::MAX.checked_shl(hosts).unwrap_or(0)).into(),
    };
    Some(format!("{network}/{length}"))
}

/// Ids of the managed groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Groups<'a> {
    pub control_plane: &'a str,
    pub worker: &'a str,
    pub bastion: Option<&'a str>,
}

/// What the rules of a cluster depend on.
pub(super) struct Traffic<'a> {
    pub spec: &'a ManagedSecurityGroups,
    pub groups: Groups<'a>,
    /// Ports of the load balancer, that of the API server first.
    pub ports: &'a [u16],
    /// Ranges of the cluster's subnets.
    pub cidrs: &'a [String],
    /// What is let in by IPv4 is let in by IPv6 too. CAPO has no rules of IPv6.
    pub ipv6: bool,
}

impl Traffic<'_> {
    pub(super) fn rules(&self, group: ManagedSecurityGroupName) -> Vec<Rule> {
        let mut rules = vec![everything_out("IPv4"), everything_out("IPv6")];
        let spec = self.spec;
        match group {
            ManagedSecurityGroupName::ControlPlane => {
                self.control_plane(&mut rules);
                self.both_families(&mut rules);
                self.own(&spec.control_plane_nodes_security_group_rules, &mut rules);
                self.own(&spec.cluster_nodes_security_group_rules, &mut rules);
            }
            ManagedSecurityGroupName::Worker => {
                self.worker(&mut rules);
                self.both_families(&mut rules);
                self.own(&spec.worker_nodes_security_group_rules, &mut rules);
                self.own(&spec.cluster_nodes_security_group_rules, &mut rules);
            }
            ManagedSecurityGroupName::Bastion => rules.push(Rule::ingress("SSH").on("tcp", 22, 22)),
        }
        let mut once: Vec<Rule> = Vec::new();
        for rule in rules {
            // Neutron refuses a rule that is there already.
            if !once.iter().any(|known| known.same(&rule)) {
                once.push(rule);
            }
        }
        once
    }

    /// Adds the rules of IPv6. Ranges are of one family, and there is no rule for another's.
    fn both_families(&self, rules: &mut Vec<Rule>) {
        if !self.ipv6 {
            return;
        }
        let v6 = |rule: &Rule| Rule { ethertype: "IPv6".to_owned(), ..rule.clone() };
        let open = rules.iter().filter(|rule| rule.direction == "ingress" && rule.remote_prefix.is_none());
        let mut more: Vec<Rule> = open.map(v6).collect();
        for rule in rules.iter().filter(|rule| rule.remote_prefix.is_some()) {
            let ranges = self.cidrs.iter().filter(|cidr| cidr.contains(':'));
            more.extend(ranges.map(|range| v6(rule).with_remote_prefix(range)));
        }
        rules.append(&mut more);
    }

    fn control_plane(&self, rules: &mut Vec<Rule>) {
        let Groups { control_plane, worker, bastion } = self.groups;
        let api = |port: u16| Rule::ingress("Kubernetes API").on("tcp", port.into(), port.into());
        rules.push(api(API_PORT));
        // CAPO opens 6443 whatever the port of the API server is.
        rules.extend(self.ports.first().map(|port| api(*port)));
        rules.extend(
            self.ports
                .iter()
                .skip(1)
                .map(|port| Rule::ingress("Additional port").on("tcp", (*port).into(), (*port).into())),
        );
        if self.spec.allow_all_in_cluster_traffic {
            rules.extend(
                [control_plane, worker]
                    .map(|group| Rule::ingress("In-cluster Ingress").with_remote_group(group)),
            );
        } else {
            rules.push(Rule::ingress("Etcd").on("tcp", 2379, 2380).with_remote_group(control_plane));
            rules.extend([control_plane, worker].map(kubelet));
        }
        rules.extend(bastion.map(ssh));
    }

    fn worker(&self, rules: &mut Vec<Rule>) {
        let Groups { control_plane, worker, bastion } = self.groups;
        let node_port = |protocol: &str| Rule::ingress("Node Port Services").on(protocol, 30000, 32767);
        for protocol in ["tcp", "udp"] {
            let v4 = self.cidrs.iter().filter(|cidr| !cidr.contains(':'));
            rules.extend(v4.map(|cidr| node_port(protocol).with_remote_prefix(cidr)));
            rules.extend([worker, control_plane].map(|group| node_port(protocol).with_remote_group(group)));
        }
        if self.spec.allow_all_in_cluster_traffic {
            rules.extend(
                [worker, control_plane]
                    .map(|group| Rule::ingress("In-cluster Ingress").with_remote_group(group)),
            );
        } else {
            rules.extend([worker, control_plane].map(kubelet));
        }
        rules.extend(bastion.map(ssh));
    }

    /// Rules of the manifest.
    fn own(&self, specs: &[SecurityGroupRuleSpec], rules: &mut Vec<Rule>) {
        for spec in specs {
            let protocol = spec.protocol.clone().filter(|protocol| !protocol.is_empty());
            let ports = ports(protocol.as_deref(), spec.port_range_min, spec.port_range_max);
            let rule = Rule {
                direction: spec.direction.clone(),
                ethertype: spec.ether_type.clone().unwrap_or_else(|| "IPv4".to_owned()),
                protocol,
                ports: ports.filter(|ports| *ports != (0, 0)),
                remote_group: spec.remote_group_id.clone(),
                remote_prefix: spec.remote_ip_prefix.clone(),
                description: spec.description.clone().unwrap_or_default(),
            };
            if spec.remote_managed_groups.is_empty() {
                rules.push(rule);
                continue;
            }
            let groups = spec.remote_managed_groups.iter().filter_map(|name| match name {
                ManagedSecurityGroupName::ControlPlane => Some(self.groups.control_plane),
                ManagedSecurityGroupName::Worker => Some(self.groups.worker),
                ManagedSecurityGroupName::Bastion => self.groups.bastion,
            });
            rules.extend(groups.map(|group| rule.clone().with_remote_group(group)));
        }
    }
}

fn everything_out(ethertype: &str) -> Rule {
    Rule {
        direction: "egress".to_owned(),
        ethertype: ethertype.to_owned(),
        description: "Full open".to_owned(),
        ..Rule::default()
    }
}

fn kubelet(group: &str) -> Rule {
    Rule::ingress("Kubelet API").on("tcp", 10250, 10250).with_remote_group(group)
}

fn ssh(group: &str) -> Rule {
    Rule::ingress("SSH").on("tcp", 22, 22).with_remote_group(group)
}

#[cfg(test)]
mod tests {
    use capstan_openstack_types::ManagedSecurityGroupName::{ControlPlane, Worker};

    use super::*;

    fn shown(rules: &[Rule]) -> Vec<String> {
        let line = |rule: &Rule| {
            let ports = rule.ports.map(|(first, last)| format!(" {first}-{last}")).unwrap_or_default();
            let from = rule.remote_group.clone().or(rule.remote_prefix.clone()).unwrap_or_default();
            format!("{} {}{ports} {from}", rule.direction, rule.protocol.clone().unwrap_or_default())
                .trim_end()
                .to_owned()
        };
        rules.iter().skip(2).map(line).collect()
    }

    fn rules(spec: &ManagedSecurityGroups, group: ManagedSecurityGroupName, bastion: bool) -> Vec<String> {
        let groups = Groups { control_plane: "cp", worker: "w", bastion: bastion.then_some("b") };
        let cidrs = ["10.6.0.0/24".to_owned()];
        shown(&Traffic { spec, groups, ports: &[6443, 9345], cidrs: &cidrs, ipv6: false }.rules(group))
    }

    #[test]
    fn groups_have_the_rules_of_capo() {
        let spec = ManagedSecurityGroups::default();
        assert_eq!(
            rules(&spec, ControlPlane, true),
            [
                "ingress tcp 6443-6443",
                "ingress tcp 9345-9345",
                "ingress tcp 2379-2380 cp",
                "ingress tcp 10250-10250 cp",
                "ingress tcp 10250-10250 w",
                "ingress tcp 22-22 b",
            ]
        );
        assert_eq!(
            rules(&spec, Worker, false),
            [
                "ingress tcp 30000-32767 10.6.0.0/24",
                "ingress tcp 30000-32767 w",
                "ingress tcp 30000-32767 cp",
                "ingress udp 30000-32767 10.6.0.0/24",
                "ingress udp 30000-32767 w",
                "ingress udp 30000-32767 cp",
                "ingress tcp 10250-10250 w",
                "ingress tcp 10250-10250 cp",
            ]
        );
        let all = ManagedSecurityGroups { allow_all_in_cluster_traffic: true, ..spec };
        assert_eq!(
            rules(&all, ControlPlane, false),
            ["ingress tcp 6443-6443", "ingress tcp 9345-9345", "ingress  cp", "ingress  w"]
        );
    }

    #[test]
    fn a_dual_stack_cluster_lets_in_by_both_families_what_it_lets_in() {
        let spec = ManagedSecurityGroups::default();
        let groups = Groups { control_plane: "cp", worker: "w", bastion: None };
        let cidrs = ["10.6.0.0/24".to_owned(), "fd00::/64".to_owned()];
        let traffic = Traffic { spec: &spec, groups, ports: &[6443], cidrs: &cidrs, ipv6: true };
        for group in [ControlPlane, Worker] {
            let rules = traffic.rules(group);
            let of = |ethertype: &str| rules.iter().filter(|rule| rule.ethertype == ethertype).count();
            assert_eq!(of("IPv4"), of("IPv6"));
            let mixed = |rule: &&Rule| {
                let range = rule.remote_prefix.as_ref();
                range.is_some_and(|range| range.contains(':') != (rule.ethertype == "IPv6"))
            };
            assert_eq!(rules.iter().find(mixed), None);
        }
    }

    fn spec(protocol: &str, min: Option<i32>, max: Option<i32>, prefix: &str) -> SecurityGroupRuleSpec {
        SecurityGroupRuleSpec {
            name: "own".to_owned(),
            direction: "ingress".to_owned(),
            protocol: Some(protocol.to_owned()),
            port_range_min: min,
            port_range_max: max,
            remote_ip_prefix: Some(prefix.to_owned()),
            ..SecurityGroupRuleSpec::default()
        }
    }

    /// The rules of a manifest for workers.
    fn own(specs: &[SecurityGroupRuleSpec]) -> Vec<Rule> {
        let groups = Groups { control_plane: "cp", worker: "w", bastion: None };
        let spec = &ManagedSecurityGroups::default();
        let mut rules = Vec::new();
        Traffic { spec, groups, ports: &[6443], cidrs: &[], ipv6: false }.own(specs, &mut rules);
        rules
    }

    #[test]
    fn a_rule_is_the_one_that_neutron_made_of_it() {
        let kept =
            |protocol: Option<&str>, ports: Option<(i32, i32)>, prefix: Option<&str>| SecurityGroupRule {
                direction: "ingress".to_owned(),
                ethertype: "IPv4".to_owned(),
                protocol: protocol.map(str::to_owned),
                port_range_min: ports.map(|(first, _)| first),
                port_range_max: ports.map(|(_, last)| last),
                remote_ip_prefix: prefix.map(str::to_owned),
                ..SecurityGroupRule::default()
            };
        let table = [
            (spec("TCP", Some(22), None, "10.0.0.5"), kept(Some("tcp"), Some((22, 22)), Some("10.0.0.5/32"))),
            (spec("tcp", Some(1), Some(65_535), "10.0.0.0/8"), kept(Some("tcp"), None, Some("10.0.0.0/8"))),
            (spec("any", None, None, "10.6.0.7/24"), kept(None, None, Some("10.6.0.7/24"))),
            (spec("udp", Some(53), Some(53), "0.0.0.0/0"), kept(Some("udp"), Some((53, 53)), None)),
        ];
        for (wanted, held) in table {
            let (wanted, held) = (own(&[wanted]).remove(0), Rule::held(&held));
            assert!(wanted.same(&held), "{wanted:?} {held:?}");
            let other = Rule { remote_prefix: Some("10.7.0.0/16".to_owned()), ..held };
            assert!(!wanted.same(&other), "{wanted:?} {other:?}");
        }
        let v6 = |protocol: &str| Rule {
            ethertype: "IPv6".to_owned(),
            protocol: Some(protocol.to_owned()),
            ..Rule::default()
        };
        assert!(v6("icmp").same(&v6("ipv6-icmp")));
    }

    #[test]
    fn two_spellings_of_a_rule_are_one_rule() {
        let open = [spec("tcp", Some(6443), Some(6443), "0.0.0.0/0")];
        let spec = ManagedSecurityGroups {
            control_plane_nodes_security_group_rules: open.to_vec(),
            ..ManagedSecurityGroups::default()
        };
        assert_eq!(
            rules(&spec, ControlPlane, false),
            rules(&ManagedSecurityGroups::default(), ControlPlane, false)
        );
    }

    #[test]
    fn a_type_of_icmp_alone_is_of_every_code() {
        let rules = own(&[
            spec("icmp", Some(8), None, "10.0.0.0/8"),
            spec("icmp", Some(3), Some(4), "10.0.0.0/8"),
            spec("tcp", Some(22), None, "10.0.0.0/8"),
        ]);
        let sent: Vec<_> = rules.iter().map(|rule| rule.request("g")).collect();
        let sent: Vec<_> = sent.iter().map(|it| (it.port_range_min, it.port_range_max)).collect();
        assert_eq!(sent, [(Some(8), None), (Some(3), Some(4)), (Some(22), Some(22))]);
        let held = SecurityGroupRule {
            direction: "ingress".to_owned(),
            ethertype: "IPv4".to_owned(),
            protocol: Some("icmp".to_owned()),
            port_range_min: Some(8),
            remote_ip_prefix: Some("10.0.0.0/8".to_owned()),
            ..SecurityGroupRule::default()
        };
        assert!(rules[0].same(&Rule::held(&held)));
    }

    #[test]
    fn a_rule_of_the_manifest_is_one_per_managed_group() {
        let spec = ManagedSecurityGroups {
            cluster_nodes_security_group_rules: vec![SecurityGroupRuleSpec {
                name: "bgp".to_owned(),
                direction: "ingress".to_owned(),
                protocol: Some("tcp".to_owned()),
                port_range_min: Some(179),
                port_range_max: Some(179),
                remote_managed_groups: vec![ControlPlane, Worker],
                ..SecurityGroupRuleSpec::default()
            }],
            ..ManagedSecurityGroups::default()
        };
        let held = rules(&spec, Worker, false);
        assert_eq!(held[held.len() - 2..], ["ingress tcp 179-179 cp", "ingress tcp 179-179 w"]);
    }
}
