//! Where the API server of a cluster is reached: an address of its own, a rule on it, and who may come in.

use std::net::IpAddr;

use capstan_cloudstack_client::model::{LoadBalancerRule, Network, PublicIpAddress};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::CloudStackCluster;
use capstan_controller::{Decision, Look};

use super::allowed::{EVERYBODY, allowed, api_port, is_asked};
use super::call::happened;
use super::claim::{Identity, holder, is_known, owns};
use super::limits::no_free_address;
use super::mark::is_tagged;
use super::{IsolatedNetworks, Made, NetworkCall, ObservedNetwork, RULE};
use crate::code;
use crate::error::CloudError;

/// What is needed to choose for a cluster on a network.
pub(super) struct Site<'a> {
    pub look: &'a Look<IsolatedNetworks>,
    pub observed: &'a ObservedNetwork,
    pub cluster: &'a CloudStackCluster,
    pub network: &'a Network,
    pub identity: &'a Identity,
}

/// The address of a cluster.
pub(super) enum Choice<'a> {
    /// This one.
    Have(&'a PublicIpAddress),
    /// One that this call gets.
    Take(NetworkCall),
    /// None can be had.
    Refused(CloudError),
}

/// An address was taken for a network by a call that asked for it.
fn took(look: &Look<IsolatedNetworks>, network: &Network, wanted: Option<IpAddr>) -> bool {
    happened(look, |call| {
        matches!(call, NetworkCall::Associate { network: of, address, .. }
            if *of == network.id.as_str() && *address == wanted)
    })
}

pub(super) fn not_ours(message: String) -> CloudError {
    CloudError::new(code::NOT_OURS, "NotOurs", message)
}

impl<'a> Site<'a> {
    fn holder(&self, address: &PublicIpAddress) -> Option<String> {
        holder(address, self.network, &self.look.object, self.identity, &self.look.seen.neighbours)
    }

    fn is_ours_alone(&self, made: &Made) -> bool {
        owns(self.network, made, self.identity)
    }

    fn associate(&self, address: Option<IpAddr>) -> NetworkCall {
        let owner = self.observed.owner.clone();
        let vpc = self.network.vpcid.as_ref().map(ToString::to_string);
        NetworkCall::Associate { network: self.network.id.to_string(), vpc, address, owner }
    }

    /// The address of the endpoint: the one on record, else the one that the manifest names, else one that is tagged or
    /// was taken for the cluster, else the one that came with a network of its own, else another one.
    pub(super) fn address(&self, made: &Made) -> Choice<'a> {
        let addresses = &self.observed.addresses;
        let find = |is: &dyn Fn(&PublicIpAddress) -> bool| addresses.iter().find(|address| is(address));
        let known = &self.look.object.status.public_ip_id;
        if let Some(address) = find(&|address| !known.is_empty() && address.id.as_str() == known) {
            return Choice::Have(address);
        }
        let host = &self.cluster.spec.control_plane_endpoint.host;
        if !self.look.seen.elsewhere && !host.is_empty() {
            return self.named(host);
        }
        // A free address of a VPC may be kept for another tier.
        let own = self.network.vpcid.is_none() && self.is_ours_alone(made);
        let free = |address: &PublicIpAddress| self.holder(address).is_none();
        let found = find(&|address| self.identity.is_on(&address.tags))
            .or_else(|| find(&|address| took(self.look, self.network, Some(address.ipaddress))))
            .or_else(|| find(&|address| own && address.issourcenat && free(address)))
            .or_else(|| find(&|address| own && free(address)));
        if let Some(address) = found {
            return Choice::Have(address);
        }
        // CloudStack gives the first address of a fresh network by itself.
        let any = own && addresses.is_empty();
        match self.observed.free.filter(|_| !any) {
            None if !any => Choice::Refused(no_free_address()),
            chosen => Choice::Take(self.associate(chosen)),
        }
    }

    /// The address that the manifest names.
    fn named(&self, host: &str) -> Choice<'a> {
        let Ok(wanted) = host.parse::<IpAddr>() else {
            let message = format!(
                "spec.controlPlaneEndpoint.host is {host:?}, which is not an address; leave it empty to have one chosen"
            );
            return Choice::Refused(CloudError::new(code::REFUSED, "NoAddress", message));
        };
        let Some(address) = self.observed.addresses.iter().find(|it| it.ipaddress == wanted) else {
            return Choice::Take(self.associate(Some(wanted)));
        };
        match self.holder(address) {
            None => Choice::Have(address),
            Some(holder) => Choice::Refused(not_ours(format!(
                "spec.controlPlaneEndpoint.host asks for {wanted}, which {holder} has: choose another address, or leave it \
                 empty to have one chosen"
            ))),
        }
    }

    /// What has to be on the address: calls that are missing, or why there can be none.
    pub(super) fn served(
        &self,
        address: &PublicIpAddress,
        made: &mut Made,
        calls: &mut Vec<NetworkCall>,
        decision: &mut Decision<IsolatedNetworks>,
    ) -> Result<(), CloudError> {
        let port = api_port(self.cluster);
        let id = address.id.to_string();
        let rule = self.observed.rule_on(&id, port);
        if let Some(rule) = rule.filter(|rule| !self.may_use(rule, address, made)) {
            return Err(not_ours(format!(
                "load balancer rule {} ({}) has port {port} of {}{}: delete it, or set spec.controlPlaneEndpoint.host or \
                 port",
                rule.name.as_deref().unwrap_or_default(),
                rule.id,
                address.ipaddress,
                if self.observed.serves(rule.id.as_str()) { " and leads to machines" } else { "" },
            )));
        }
        calls.extend(self.address_tags(address, made));
        let endpoint = &mut decision.object.spec.control_plane_endpoint;
        endpoint.host = address.ipaddress.to_string();
        endpoint.port = port.into();
        decision.object.status.public_ip_id.clone_from(&id);
        let in_vpc = self.network.vpcid.is_some();
        let wanted = match in_vpc {
            true => Openings::AsTheyAre,
            false => self.wanted((&id, port), rule, made),
        };
        let network = self.network.id.to_string();
        let cidrs = if in_vpc && is_asked(self.cluster) { allowed(self.cluster) } else { Vec::new() };
        let balance = |open| NetworkCall::Balance {
            network: network.clone(),
            address: id.clone(),
            port,
            open,
            cidrs: cidrs.clone(),
        };
        let Some(rule) = rule else {
            let open = wanted == Openings::These(vec![EVERYBODY.to_owned()]);
            calls.push(balance(open));
            self.openings((&id, port), &wanted, open, made, calls);
            return Ok(());
        };
        decision.object.status.load_balancer_rule_id = rule.id.to_string();
        let made_with = [true, false].into_iter().find(|open| self.look.result_of(&balance(*open)).is_some());
        // What came with the rule is not seen by us until the next question.
        self.openings((&id, port), &wanted, made_with == Some(true), made, calls);
        Ok(())
    }

    /// A rule on the API server's port may lead to our machines: it is on record, or came along with everything else; one
    /// with the name that ours have, or on the very address that the manifest names, only if it is known to be ours or
    /// leads to no machine. CAPC gives its rules the same name, and tags neither them nor the address.
    fn may_use(&self, rule: &LoadBalancerRule, address: &PublicIpAddress, made: &Made) -> bool {
        let id = rule.id.as_str();
        let named = rule.name.as_deref() == Some(RULE)
            || self.cluster.spec.control_plane_endpoint.host == address.ipaddress.to_string();
        made.rule.as_deref() == Some(id)
            || self.look.object.status.load_balancer_rule_id == id
            || named && (is_known(self.network, address, made, self.identity) || !self.observed.serves(id))
    }

    /// Has CloudStack record whose the address is. The one that came with a network of our own is recorded with that.
    fn address_tags(&self, address: &PublicIpAddress, made: &Made) -> Option<NetworkCall> {
        let recorded = self.identity.is_on(&address.tags)
            || address.issourcenat && self.is_ours_alone(made)
            || self.identity.taken_over;
        if recorded {
            return None;
        }
        let created = made.address.as_deref() == Some(address.id.as_str());
        let created = created.then(|| names::CREATED_TAG.to_owned());
        let mut tags: Vec<String> = created.into_iter().collect();
        tags.push(names::cluster_tag(&self.cluster.metadata.uid));
        tags.retain(|key| !is_tagged(&address.tags, key));
        Some(NetworkCall::Tag { id: address.id.to_string(), address: true, tags })
    }

    /// Who is to be let in. Without a word about it in the manifest everybody is, by a rule that we made; where somebody
    /// else decided who comes in, or made the rule, it is left as it is.
    fn wanted(&self, on: (&str, u16), rule: Option<&LoadBalancerRule>, made: &Made) -> Openings {
        if is_asked(self.cluster) {
            return Openings::These(allowed(self.cluster));
        }
        let just_made = happened(self.look, |call| matches!(call, NetworkCall::Balance { .. }));
        let theirs = rule.is_some_and(|rule| made.rule.as_deref() != Some(rule.id.as_str())) && !just_made;
        match theirs || self.observed.foreign(on, made).next().is_some() {
            true => Openings::AsTheyAre,
            false => Openings::These(allowed(self.cluster)),
        }
    }

    /// Opens what is missing and closes what was made here and is not wanted any more.
    fn openings(
        &self,
        (address, port): (&str, u16),
        wanted: &Openings,
        comes_along: bool,
        made: &mut Made,
        calls: &mut Vec<NetworkCall>,
    ) {
        let Openings::These(wanted) = wanted else { return };
        for cidr in wanted {
            let call = NetworkCall::Open { address: address.to_owned(), port, cidr: cidr.clone() };
            let is_open = self.observed.openings_on(address, port).any(|(_, who)| who == cidr);
            if !is_open && !comes_along {
                calls.push(call);
            }
        }
        for (rule, who) in self.observed.openings_on(address, port) {
            if !wanted.iter().any(|cidr| cidr == who) && self.observed.is_made(rule, (address, port), made) {
                calls.push(NetworkCall::Close { rule: rule.id.to_string(), routed: false });
                made.openings.remove(rule.id.as_str());
            }
        }
    }
}

/// What the firewall is to look like.
#[derive(Debug, PartialEq)]
pub(super) enum Openings {
    /// These may come in.
    These(Vec<String>),
    /// Somebody else decides.
    AsTheyAre,
}
