//! Networks in routed mode. Packets come and go with the addresses that machines have: there is no source NAT, no load
//! balancer and no public address for an endpoint. The endpoint is an address of the network that kube-vip holds, or
//! whatever else the manifest names. The routing firewall lets nobody in without a rule; tiers have access lists instead.

use std::net::Ipv4Addr;

use capstan_cloudstack_client::commands::{CreateRoutingFirewallRule, ListRoutingFirewallRules};
use capstan_cloudstack_client::model::{FirewallRule, Network, NetworkService};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackIsolatedNetwork, CloudStackIsolatedNetworkSpec,
};
use capstan_controller::Decision;
use ipnet::Ipv4Net;

use super::allowed::{allowed, is_asked};
use super::endpoint::{Openings, Site, not_ours};
use super::hints::Hints;
use super::rules::{going, sources};
use super::{IsolatedNetworks, Made, NetworkCall, ObservedNetwork};
use crate::clouds::Access;
use crate::error::CloudError;
use crate::{annotation, code};

/// Port of endpoints whose manifest names none.
const API_PORT: u16 = 6443;
/// Prefix of a network whose manifest names no netmask; CloudStack's default allows none that is shorter.
const PREFIX: u8 = 24;

/// The network is in routed mode.
pub(super) fn is_routed(network: &Network) -> bool {
    network.ip4routing.as_ref().is_some_and(|mode| !mode.is_empty())
}

/// Whether CloudStack chooses the addresses of networks of an offering: it does unless somebody's switches route them.
pub(super) fn is_sized(services: &[NetworkService]) -> bool {
    let guards = services.iter().filter(|service| matches!(service.name.as_str(), "Firewall" | "NetworkACL"));
    let mut providers = guards.flat_map(|service| &service.provider);
    providers.all(|provider| matches!(provider.name.as_str(), "VirtualRouter" | "VpcVirtualRouter"))
}

/// The prefix length of a network that CloudStack chooses the addresses of.
pub(super) fn size(spec: &CloudStackIsolatedNetworkSpec) -> Result<u8, CloudError> {
    if spec.netmask.is_empty() {
        return Ok(PREFIX);
    }
    let netmask = spec.netmask.parse::<Ipv4Addr>().ok();
    let prefix = netmask.and_then(|netmask| Ipv4Net::with_netmask(Ipv4Addr::UNSPECIFIED, netmask).ok());
    prefix.map(|range| range.prefix_len()).ok_or_else(|| {
        let message = format!(
            "network.netmask of failure domain {} is {:?}: give one such as 255.255.255.0, or none",
            spec.failure_domain_name, spec.netmask
        );
        CloudError::new(code::REFUSED, "NetmaskInvalid", message)
    })
}

/// Observes the routing firewall rules.
pub(super) async fn observe(
    network: &Network,
    observed: &mut ObservedNetwork,
    access: &Access,
) -> Result<(), CloudError> {
    if network.vpcid.is_some() {
        return Ok(());
    }
    let question = ListRoutingFirewallRules {
        networkid: Some(network.id.clone()),
        scope: access.scope(),
        ..ListRoutingFirewallRules::default()
    };
    let mut rules = access.client.list(&question).await.map_err(|error| access.explain(&error))?;
    rules.retain(|rule| !going(rule.state.as_ref()));
    (observed.exits, observed.openings) = rules.into_iter().partition(is_egress);
    Ok(())
}

fn is_egress(rule: &FirewallRule) -> bool {
    rule.traffictype.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("egress"))
}

/// The rule that lets somebody in.
pub(super) fn opening(network: &str, port: u16, cidr: &str, to: &str) -> CreateRoutingFirewallRule {
    CreateRoutingFirewallRule {
        networkid: network.into(),
        protocol: "tcp".to_owned(),
        startport: Some(port),
        endport: Some(port),
        cidrlist: vec![cidr.to_owned()],
        destcidrlist: vec![to.to_owned()],
        icmptype: None,
        icmpcode: None,
        traffictype: Some("ingress".to_owned()),
    }
}

/// The rule that lets everything out.
pub(super) fn exit(network: &str) -> CreateRoutingFirewallRule {
    CreateRoutingFirewallRule {
        networkid: network.into(),
        protocol: "all".to_owned(),
        startport: None,
        endport: None,
        cidrlist: Vec::new(),
        destcidrlist: Vec::new(),
        icmptype: None,
        icmpcode: None,
        traffictype: Some("egress".to_owned()),
    }
}

/// The endpoint of a cluster as its manifest names it.
struct Named {
    host: String,
    port: u16,
    /// The address, if it is one.
    address: Option<Ipv4Addr>,
}

fn named(cluster: &CloudStackCluster) -> Named {
    let endpoint = &cluster.spec.control_plane_endpoint;
    let port = u16::try_from(endpoint.port).ok().filter(|port| *port != 0).unwrap_or(API_PORT);
    Named { host: endpoint.host.clone(), port, address: endpoint.host.parse().ok() }
}

fn range(network: &Network) -> Option<Ipv4Net> {
    network.cidr.as_deref()?.parse().ok()
}

/// Whom packets for the endpoint go to: the one address if it is in the network, else any machine there.
fn target(network: &Network, named: &Named) -> String {
    let range = range(network);
    let inside = named.address.filter(|address| range.is_some_and(|range| range.contains(address)));
    match (inside, range) {
        (Some(address), _) => format!("{address}/32"),
        (None, Some(range)) => range.trunc().to_string(),
        (None, None) => super::EVERYBODY.to_owned(),
    }
}

/// A list of ranges holds one that contains another. No list stands for everybody.
fn covers(list: Option<&str>, wanted: &str) -> bool {
    let list = list.unwrap_or_default();
    let wanted = wanted.parse::<Ipv4Net>().ok();
    let contains = |held: &str| {
        held.trim().parse::<Ipv4Net>().ok().zip(wanted).is_some_and(|(held, it)| held.contains(&it))
    };
    list.is_empty() || list.split(',').any(contains)
}

fn is_on_port_alone(rule: &FirewallRule, port: u16) -> bool {
    let tcp = rule.protocol.as_deref().is_some_and(|protocol| protocol.eq_ignore_ascii_case("tcp"));
    tcp && (rule.startport, rule.endport.or(rule.startport)) == (Some(port), Some(port))
}

impl ObservedNetwork {
    /// The rule of a routed network that lets exactly these in to exactly that.
    pub(super) fn routed_opening(&self, port: u16, cidr: &str, to: &str) -> Option<&FirewallRule> {
        self.openings.iter().find(|rule| {
            is_on_port_alone(rule, port) && sources(rule) == cidr && rule.destcidrlist.as_deref() == Some(to)
        })
    }

    /// What lets packets in to a port of a target among others.
    fn routed_leading_to(&self, port: u16, to: &str) -> impl Iterator<Item = &FirewallRule> {
        self.openings.iter().filter(move |rule| {
            let tcp = rule.protocol.as_deref().is_some_and(|protocol| protocol.eq_ignore_ascii_case("tcp"));
            let first = rule.startport.unwrap_or(0);
            let last = rule.endport.or(rule.startport).unwrap_or(u16::MAX);
            tcp && (first..=last).contains(&port) && covers(rule.destcidrlist.as_deref(), to)
        })
    }
}

/// Everything that the record of a routed network says, or that its cluster asks for, is there.
pub(super) fn is_as_recorded(
    network: &Network,
    observed: &ObservedNetwork,
    object: &CloudStackIsolatedNetwork,
    cluster: &CloudStackCluster,
) -> bool {
    let made = Made::of(&object.metadata);
    let named = named(cluster);
    let to = target(network, &named);
    if network.vpcid.is_some() || named.host.is_empty() || !is_asked(cluster) && made.openings.is_empty() {
        return true;
    }
    match is_asked(cluster) {
        true => allowed(cluster).iter().all(|cidr| observed.routed_opening(named.port, cidr, &to).is_some()),
        false => observed.routed_leading_to(named.port, &to).next().is_some(),
    }
}

impl Site<'_> {
    /// Where the API server of a cluster on a routed network is reached: calls that are missing, or why it cannot be.
    pub(super) fn routed(
        &self,
        made: &mut Made,
        calls: &mut Vec<NetworkCall>,
        decision: &mut Decision<IsolatedNetworks>,
    ) -> Result<(), CloudError> {
        decision.object.status.routing_mode = self.network.ip4routing.clone().unwrap_or_default();
        if self.look.seen.elsewhere {
            return Ok(());
        }
        let named = named(self.cluster);
        self.fits(&named)?;
        let endpoint = &mut decision.object.spec.control_plane_endpoint;
        endpoint.host.clone_from(&named.host);
        endpoint.port = named.port.into();
        if self.network.vpcid.is_none() {
            self.routed_openings(&named, made, calls);
        }
        Ok(())
    }

    /// The endpoint can be one of the network.
    fn fits(&self, named: &Named) -> Result<(), CloudError> {
        let (name, range) = (self.network.name.as_deref().unwrap_or_default(), range(self.network));
        let refused = |message: String| Err(CloudError::new(code::ENDPOINT, "EndpointUnfit", message));
        let shown = range.map_or_else(|| "the network".to_owned(), |range| range.trunc().to_string());
        if named.host.is_empty() {
            return refused(format!(
                "network {name} is routed and has no public address for the endpoint: set \
                 spec.controlPlaneEndpoint.host to an address of {shown} that no machine has, and have kube-vip hold it"
            ));
        }
        let (Some(address), Some(range)) = (named.address, range) else { return Ok(()) };
        let reserved = [range.network(), range.broadcast()].contains(&address)
            || self.network.gateway.is_some_and(|gateway| gateway == address);
        if reserved {
            return refused(format!(
                "spec.controlPlaneEndpoint.host is {address}, which is the gateway, the first or the last address of \
                 {shown}: choose another one that no machine has"
            ));
        }
        let own = self.look.object.metadata.creation_timestamp;
        let older = |other: &&super::Neighbour| {
            other.host == named.host && other.since < (own, self.look.object.metadata.uid.clone())
        };
        match self.look.seen.neighbours.iter().find(older) {
            None => Ok(()),
            Some(other) => Err(not_ours(format!(
                "spec.controlPlaneEndpoint.host asks for {address}, which CloudStackIsolatedNetwork {} has: choose another \
                 address of {shown}",
                other.name
            ))),
        }
    }

    /// Opens what is missing and closes what was made here and is not wanted any more.
    fn routed_openings(&self, named: &Named, made: &mut Made, calls: &mut Vec<NetworkCall>) {
        let to = target(self.network, named);
        let Openings::These(wanted) = self.routed_wanted(named.port, &to, made) else { return };
        let network = self.network.id.to_string();
        for cidr in &wanted {
            if self.observed.routed_opening(named.port, cidr, &to).is_none() {
                let (network, cidr, to) = (network.clone(), cidr.clone(), to.clone());
                calls.push(NetworkCall::OpenRouted { network, port: named.port, cidr, to });
            }
        }
        for rule in self.observed.openings.iter().filter(|rule| made.openings.contains(rule.id.as_str())) {
            let fits = is_on_port_alone(rule, named.port)
                && rule.destcidrlist.as_deref() == Some(&to)
                && wanted.iter().any(|cidr| cidr == sources(rule));
            if !fits {
                calls.push(NetworkCall::Close { rule: rule.id.to_string(), routed: true });
            }
        }
        let there = |id: &String| self.observed.openings.iter().any(|rule| rule.id.as_str() == id);
        made.openings.retain(there);
    }

    /// Who is to be let in: those that the manifest names; else everybody, unless somebody else decided.
    fn routed_wanted(&self, port: u16, to: &str, made: &Made) -> Openings {
        let mut foreign = self.observed.routed_leading_to(port, to);
        let foreign = foreign.any(|rule| !made.openings.contains(rule.id.as_str()));
        match !is_asked(self.cluster) && (foreign || self.identity.taken_over) {
            true => Openings::AsTheyAre,
            false => Openings::These(allowed(self.cluster)),
        }
    }
}

impl Hints<'_> {
    /// What a reader of the condition should know of a routed network.
    pub(super) fn routed(&self) -> Option<String> {
        let named = named(self.cluster);
        let to = target(self.network, &named);
        let asked = allowed(self.cluster);
        let beside: Vec<String> = self
            .observed
            .routed_leading_to(named.port, &to)
            .filter(|rule| !self.made.openings.contains(rule.id.as_str()))
            .filter(|rule| !asked.iter().any(|cidr| cidr == sources(rule)))
            .map(|rule| format!("{} ({})", rule.id, sources(rule)))
            .collect();
        if is_asked(self.cluster) && !beside.is_empty() {
            return Some(format!(
                "{} restricts the sources of the API server, and routing firewall rules that were not created here admit others: \
                 {}; delete them if that is not intended",
                annotation::ALLOWED_CIDRS,
                beside.join(", ")
            ));
        }
        let (address, range) = (named.address?, range(self.network)?);
        let outside = !range.contains(&address) && !self.elsewhere;
        outside.then(|| {
            format!(
                "endpoint {address} is not in {} of the routed network: it has to be routed externally to the control \
                 plane",
                range.trunc()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn network() -> Network {
        let body =
            json!({"id": "n", "cidr": "10.200.4.0/24", "gateway": "10.200.4.1", "ip4routing": "Static"});
        serde_json::from_value(body).expect("a network")
    }

    #[test]
    fn cloudstack_chooses_the_range_of_a_size() {
        let size = |netmask: &str| {
            let spec = CloudStackIsolatedNetworkSpec { netmask: netmask.to_owned(), ..Default::default() };
            size(&spec).map_err(|cause| cause.code.id())
        };
        assert_eq!(size(""), Ok(24));
        assert_eq!(size("255.255.255.192"), Ok(26));
        assert_eq!(size("255.0.255.0"), Err("E-CS-REFUSED"));
        assert_eq!(size("/24"), Err("E-CS-REFUSED"));
        let by = |provider: &str| -> Vec<NetworkService> {
            let services = json!([{"name": "Dhcp", "provider": [{"name": "ConfigDrive"}]},
                                  {"name": "Firewall", "provider": [{"name": provider}]}]);
            serde_json::from_value(services).expect("services")
        };
        assert!(is_sized(&by("VirtualRouter")));
        assert!(!is_sized(&by("Nsx")), "somebody's switches know no sizes");
    }

    #[test]
    fn an_endpoint_in_the_network_is_opened_alone() {
        let to = |host: &str| {
            let named = Named { host: host.to_owned(), port: 6443, address: host.parse().ok() };
            target(&network(), &named)
        };
        assert_eq!(to("10.200.4.250"), "10.200.4.250/32");
        assert_eq!(to("192.0.2.7"), "10.200.4.0/24", "something outside leads to the machines");
        assert_eq!(to("api.example"), "10.200.4.0/24");
    }

    #[test]
    fn rules_lead_to_an_endpoint_if_ports_and_targets_cover_it() {
        let leads = |rule: Value| {
            let openings = vec![serde_json::from_value(rule).expect("a rule")];
            let observed = ObservedNetwork { openings, ..ObservedNetwork::default() };
            observed.routed_leading_to(6443, "10.200.4.250/32").next().is_some()
        };
        assert!(leads(json!({"id": "r", "protocol": "tcp"})), "everything, as CAPC opens it");
        assert!(leads(json!({"id": "r", "protocol": "TCP", "startport": 6000, "endport": 7000})));
        assert!(leads(json!({"id": "r", "protocol": "tcp", "destcidrlist": "192.0.2.0/24,10.200.4.0/24"})));
        assert!(!leads(json!({"id": "r", "protocol": "tcp", "destcidrlist": "10.200.4.7/32"})));
        assert!(!leads(json!({"id": "r", "protocol": "tcp", "startport": 22})));
        assert!(!leads(json!({"id": "r", "protocol": "udp"})));
    }
}
