//! What a reader of the condition `Ready` should know of a network that is set up: whom others let in, what they let out, and
//! what they forbid. It depends only on what is compared with the record each time, so that it is corrected when it changes.

use capstan_cloudstack_client::model::{FirewallRule, Network};
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackIsolatedNetwork};

use super::allowed::{EVERYBODY, allowed, api_port, is_asked};
use super::rules::sources;
use super::{Made, ObservedNetwork, acl, routed};
use crate::annotation;
use crate::error::CloudError;

/// A network that is set up, and what is on record about it.
pub(super) struct Hints<'a> {
    pub observed: &'a ObservedNetwork,
    pub network: &'a Network,
    pub object: &'a CloudStackIsolatedNetwork,
    pub cluster: &'a CloudStackCluster,
    pub made: &'a Made,
    /// The endpoint of the cluster is an address of another network of its.
    pub elsewhere: bool,
}

impl Hints<'_> {
    /// The message of the condition.
    pub(super) fn message(&self) -> String {
        let hint = match routed::is_routed(self.network) {
            true => self.routed(),
            false => self.let_in_by_others().or_else(|| self.blocked()),
        };
        let parts = [self.lacking().map(|cause| cause.text()).or(hint), self.kept_in()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// What the access list of a tier blocks.
    pub(super) fn lacking(&self) -> Option<CloudError> {
        let rules = self.observed.acl.as_ref()?;
        acl::lacking(self.network, rules, api_port(self.cluster))
    }

    /// Others than the manifest names may reach the endpoint of a tier: its rule is not changed here once it is made.
    fn blocked(&self) -> Option<String> {
        self.network.vpcid.as_ref()?;
        let id = &self.object.status.load_balancer_rule_id;
        let rule = self.observed.rules.iter().find(|rule| rule.id.as_str() == id)?;
        let held: Vec<&str> = rule.cidrlist.as_deref().unwrap_or_default().split([' ', ',']).collect();
        let named = allowed(self.cluster);
        let same = held.len() == named.len() && named.iter().all(|cidr| held.contains(&cidr.as_str()));
        (is_asked(self.cluster) && !same).then(|| {
            format!(
                "{} restricts the sources of the API server, and load balancer rule {id} admits {}: delete the rule to have it \
                 made anew",
                annotation::ALLOWED_CIDRS,
                rule.cidrlist.as_deref().filter(|list| !list.is_empty()).unwrap_or(EVERYBODY)
            )
        })
    }

    /// Not everything may go out, which somebody else decided.
    fn kept_in(&self) -> Option<String> {
        if !self.observed.is_kept_in(self.made) {
            return None;
        }
        let shown: Vec<String> = self.observed.exits.iter().map(exit_text).collect();
        let allowed = match shown.is_empty() {
            true => "no egress rule lets anything out".to_owned(),
            false => format!("only what these rules let out: {}", shown.join(", ")),
        };
        Some(format!(
            "egress follows rules of network {} that were not made here: {allowed}; add a rule if machines need more",
            self.network.name.as_deref().unwrap_or_default()
        ))
    }

    /// Who comes in beside those that the manifest names, by rules that somebody else made.
    fn let_in_by_others(&self) -> Option<String> {
        let status = &self.object.status;
        let port = u16::try_from(self.object.spec.control_plane_endpoint.port).ok()?;
        let named = allowed(self.cluster);
        let foreign = self.observed.foreign((&status.public_ip_id, port), self.made);
        let beside = foreign.filter(|rule| !named.iter().any(|cidr| cidr == sources(rule)));
        let shown: Vec<String> = beside.map(|rule| format!("{} ({})", rule.id, sources(rule))).collect();
        (is_asked(self.cluster) && !shown.is_empty()).then(|| {
            format!(
                "{} restricts the sources of the API server, and firewall rules that were not created here admit others: {}; \
                 delete them if that is not intended",
                annotation::ALLOWED_CIDRS,
                shown.join(", ")
            )
        })
    }
}

impl ObservedNetwork {
    /// Openings of a port that are not on record as made here.
    pub(super) fn foreign<'s>(
        &'s self,
        (address, port): (&'s str, u16),
        made: &'s Made,
    ) -> impl Iterator<Item = &'s FirewallRule> {
        self.leading_to(address, port).filter(move |rule| !self.is_made(rule, (address, port), made))
    }

    /// An opening of a port was made here, alone or with the rule for the API server.
    pub(super) fn is_made(&self, rule: &FirewallRule, (address, port): (&str, u16), made: &Made) -> bool {
        let came_along = || {
            let ours = self.rule_on(address, port).is_some_and(|rule| {
                made.rule.as_deref() == Some(rule.id.as_str()) && made.opened.unwrap_or(true)
            });
            ours && self.openings_on(address, port).any(|(it, who)| it.id == rule.id && who == EVERYBODY)
        };
        made.openings.contains(rule.id.as_str()) || came_along()
    }
}

/// An egress rule by its id, and what it lets out.
fn exit_text(rule: &FirewallRule) -> String {
    let protocol = rule.protocol.as_deref().unwrap_or("all");
    match (rule.startport, rule.endport.or(rule.startport)) {
        (Some(first), Some(last)) if first != last => format!("{} ({protocol} {first}-{last})", rule.id),
        (Some(port), _) => format!("{} ({protocol} {port})", rule.id),
        _ => format!("{} ({protocol})", rule.id),
    }
}
