//! What the rules of a network let through, as both halves of the controller read them.

use capstan_cloudstack_client::model::{FirewallRule, LoadBalancerRule, Network, RuleState};

use super::allowed::EVERYBODY;
use super::{Made, ObservedNetwork};

/// The rule is on its way out.
pub(super) fn going(state: Option<&RuleState>) -> bool {
    matches!(state, Some(RuleState::Revoke | RuleState::Deleting))
}

/// Whom a firewall rule lets in.
pub(super) fn sources(rule: &FirewallRule) -> &str {
    rule.cidrlist.as_deref().filter(|list| !list.is_empty()).unwrap_or(EVERYBODY)
}

impl ObservedNetwork {
    pub(super) fn rule_on(&self, address: &str, port: u16) -> Option<&LoadBalancerRule> {
        self.rules.iter().find(|rule| {
            rule.publicport == Some(port) && rule.publicipid.as_ref().is_some_and(|id| id.as_str() == address)
        })
    }

    /// What lets packets in to a port of an address, with who may come by it.
    pub(super) fn openings_on(
        &self,
        address: &str,
        port: u16,
    ) -> impl Iterator<Item = (&FirewallRule, &str)> {
        let on = move |rule: &&FirewallRule| {
            let tcp = rule.protocol.as_deref().is_some_and(|protocol| protocol.eq_ignore_ascii_case("tcp"));
            tcp && (rule.startport, rule.endport.or(rule.startport)) == (Some(port), Some(port))
                && rule.ipaddressid.as_ref().is_some_and(|id| id.as_str() == address)
        };
        self.openings.iter().filter(on).map(|rule| (rule, sources(rule)))
    }

    /// What lets packets in to a port of an address among others.
    pub(super) fn leading_to(&self, address: &str, port: u16) -> impl Iterator<Item = &FirewallRule> {
        self.openings.iter().filter(move |rule| {
            let protocol = rule.protocol.as_deref().unwrap_or("all").to_lowercase();
            let first = rule.startport.unwrap_or(0);
            let last = rule.endport.or(rule.startport).unwrap_or(u16::MAX);
            matches!(protocol.as_str(), "tcp" | "all")
                && (first..=last).contains(&port)
                && rule.ipaddressid.as_ref().is_some_and(|id| id.as_str() == address)
        })
    }

    /// Everything may go out.
    pub(super) fn lets_out(&self) -> bool {
        // What leaves a tier is up to its access list.
        let free = |network: &Network| network.egressdefaultpolicy == Some(true) || network.vpcid.is_some();
        if self.network.as_ref().is_some_and(free) {
            return true;
        }
        let all = |protocol: &str| {
            self.exits.iter().any(|exit| {
                let this = exit.protocol.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(protocol));
                this && exit.startport.is_none() && exit.icmptype.is_none_or(|kind| kind == -1)
            })
        };
        all("all") || ["tcp", "udp", "icmp"].into_iter().all(all)
    }

    /// Somebody else decides what may go out, and not everything may: the network came here like that, or has egress
    /// rules that were not made here.
    pub(super) fn is_kept_in(&self, made: &Made) -> bool {
        let foreign = |exit: &FirewallRule| made.exit.as_deref() != Some(exit.id.as_str());
        !self.lets_out() && (made.taken_over || self.exits.iter().any(foreign))
    }
}
