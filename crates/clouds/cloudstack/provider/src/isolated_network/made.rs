//! What was made in CloudStack for a network, as its object remembers it.

use std::collections::BTreeSet;

use capstan_controller::Look;
use capstan_object::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::mark::is_ours;
use super::{IsolatedNetworks, NetworkCall, ObservedNetwork};
use crate::annotation;

/// Ids of what was made. Kept in an annotation, which backups and moves keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Made {
    /// Uids that the CloudStackCluster has and had: tags in the cloud name them, and a move changes the uid.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub clusters: BTreeSet<String>,
    /// Everything was there when the object came, and nothing of it is tagged that is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc: Option<String>,
    /// The network has its tags.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tagged: bool,
    /// The network could not be given its tags: which it lacks is looked up before the next try.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tag_failed: bool,
    /// The public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The rule for the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether the rule was made with one that lets everybody in. Not recorded by releases that always made one unless
    /// the manifest said who may come in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<bool>,
    /// Rules that let packets in.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub openings: BTreeSet<String>,
    /// The rule that lets packets out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
}

impl Made {
    /// What an object remembers. A record that cannot be read is none: then nothing is deleted that has no mark.
    pub fn of(meta: &ObjectMeta) -> Self {
        let text = meta.annotations.get(annotation::MADE);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Has an object remember it.
    pub fn put(&self, meta: &mut ObjectMeta) {
        if *self == Self::default() {
            meta.annotations.remove(annotation::MADE);
        } else if let Ok(text) = serde_json::to_string(self) {
            meta.annotations.insert(annotation::MADE.to_owned(), text);
        }
    }

    /// What an object remembers, and what calls made that have ended since. They may have ended for an object that is being
    /// deleted by now: what nobody recorded, nobody would remove.
    pub(super) fn known(look: &Look<IsolatedNetworks>, observed: &ObservedNetwork) -> Self {
        let mut made = Self::of(&look.object.metadata);
        for ended in look.concluded.iter().filter(|ended| ended.result.is_some()) {
            made.add(&ended.call, observed);
        }
        made
    }

    fn add(&mut self, call: &NetworkCall, observed: &ObservedNetwork) {
        let network = observed.network.as_ref();
        match call {
            NetworkCall::Create { name, .. } => {
                let new = network.filter(|it| is_ours(it) && it.name.as_deref() == Some(name.as_str()));
                self.network = new.map(|it| it.id.to_string()).or_else(|| self.network.take());
            }
            NetworkCall::CreateVpc { name, .. } => {
                let new = observed.vpc.as_ref().filter(|it| it.name.as_deref() == Some(name.as_str()));
                self.vpc = new.map(|it| it.id.to_string()).or_else(|| self.vpc.take());
            }
            NetworkCall::Associate { network: of, address, .. }
                if network.is_some_and(|it| it.id.as_str() == of) =>
            {
                let mut all = observed.addresses.iter();
                let new = match address {
                    Some(wanted) => all.find(|it| it.ipaddress == *wanted),
                    None => all.next(),
                };
                self.address = new.map(|it| it.id.to_string()).or_else(|| self.address.take());
            }
            NetworkCall::Balance { address, port, open, .. } => {
                if let Some(rule) = observed.rule_on(address, *port) {
                    self.rule = Some(rule.id.to_string());
                    self.opened = Some(*open);
                }
            }
            NetworkCall::Open { address, port, cidr } => {
                let new = observed.openings_on(address, *port).find(|(_, who)| who == cidr);
                self.openings.extend(new.map(|(rule, _)| rule.id.to_string()));
            }
            NetworkCall::OpenRouted { port, cidr, to, .. } => {
                let new = observed.routed_opening(*port, cidr, to);
                self.openings.extend(new.map(|rule| rule.id.to_string()));
            }
            NetworkCall::LetOut { .. } => {
                let new = observed.exits.iter().find(|exit| exit.protocol.as_deref() == Some("all"));
                self.exit = new.map(|exit| exit.id.to_string()).or_else(|| self.exit.take());
            }
            _ => {}
        }
    }
}
