//! What is asked of the cloud for a network. Each call is one request that was complete when it was decided.

use std::net::IpAddr;

use capstan_cloudstack_client::commands::Owner;
use capstan_controller::{Call, Intent, Look, Resolution};
use capstan_provider_kit::{order, resolution};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{IsolatedNetworks, NetworkOrder, ObservedNetwork, VpcOrder};

/// A call to CloudStack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum NetworkCall {
    /// Make the network.
    Create {
        name: String,
        /// Everything else; none in intents of releases that did not journal it.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<NetworkOrder>>,
    },
    /// Make the VPC of the network.
    CreateVpc {
        name: String,
        /// Everything else.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<VpcOrder>>,
    },
    /// Put tags on the VPC.
    TagVpc {
        vpc: String,
        /// Keys.
        tags: Vec<String>,
    },
    /// Take a tag off the VPC.
    UntagVpc {
        vpc: String,
        /// The key.
        tag: String,
    },
    DeleteVpc {
        vpc: String,
    },
    /// Put tags on the network or an address.
    Tag {
        /// Id of the tagged resource.
        id: String,
        /// Whether the id is that of an address.
        address: bool,
        /// Keys.
        tags: Vec<String>,
    },
    /// Take a tag off the network or an address.
    Untag {
        /// Id of the tagged resource.
        id: String,
        /// Whether the id is that of an address.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        address: bool,
        /// The key.
        tag: String,
    },
    /// Take an address for the network.
    Associate {
        network: String,
        /// The VPC of the network, whose addresses belong to the VPC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vpc: Option<String>,
        /// This one; any if none.
        address: Option<IpAddr>,
        /// The account or project, unless it is that of the keys.
        #[serde(default, skip_serializing_if = "Owner::is_caller")]
        owner: Owner,
    },
    /// Have a port of the address lead to the API servers.
    Balance {
        network: String,
        address: String,
        port: u16,
        /// Let everybody in.
        open: bool,
        /// Who may use it, where there is no firewall; everybody if empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cidrs: Vec<String>,
    },
    /// Let somebody in.
    Open {
        address: String,
        port: u16,
        /// Source that is admitted.
        cidr: String,
    },
    /// Let somebody in to a routed network.
    OpenRouted {
        network: String,
        port: u16,
        /// Source that is admitted.
        cidr: String,
        /// To which of its addresses.
        to: String,
    },
    /// Let somebody in no longer.
    Close {
        rule: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        routed: bool,
    },
    /// Let everything out.
    LetOut {
        network: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        routed: bool,
    },
    /// Take back what lets out.
    KeepIn {
        rule: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        routed: bool,
    },
    /// Delete the rule for the API servers.
    Unbalance {
        rule: String,
    },
    /// Give an address back.
    Release {
        address: String,
    },
    /// Delete the network with everything on it.
    Delete {
        network: String,
    },
}

impl Call for NetworkCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Create { name, .. } => format!("network/{name}"),
            Self::CreateVpc { name, .. } => format!("vpc/{name}"),
            Self::DeleteVpc { vpc } => format!("vpc/{vpc}"),
            Self::TagVpc { vpc, .. } | Self::UntagVpc { vpc, .. } => format!("tags/{vpc}"),
            Self::Tag { id, .. } | Self::Untag { id, .. } => format!("tags/{id}"),
            Self::Associate { network, .. } => format!("address-of/{network}"),
            Self::Balance { address, port, .. } => format!("rule/{address}/{port}"),
            Self::Open { address, port, cidr } => format!("opening/{address}/{port}/{cidr}"),
            Self::OpenRouted { network, port, cidr, to } => format!("opening/{network}/{port}/{cidr}/{to}"),
            Self::Close { rule, .. } => format!("opening/{rule}"),
            Self::LetOut { network, .. } => format!("exit-of/{network}"),
            Self::KeepIn { rule, .. } => format!("exit/{rule}"),
            Self::Unbalance { rule } => format!("rule/{rule}"),
            Self::Release { address } => format!("address/{address}"),
            Self::Delete { network } => format!("network/{network}"),
        }
    }

    fn journalled(&self) -> bool {
        !matches!(self, Self::Tag { .. } | Self::Untag { .. } | Self::TagVpc { .. } | Self::UntagVpc { .. })
    }

    fn summary(&self) -> String {
        match self {
            Self::Create { name, .. } => format!("create-network {name}"),
            Self::CreateVpc { name, .. } => format!("create-vpc {name}"),
            Self::DeleteVpc { vpc } => format!("delete-vpc {vpc}"),
            Self::TagVpc { vpc, tags } => format!("tag {vpc} [{}]", tags.join(" ")),
            Self::UntagVpc { vpc, tag } => format!("untag {vpc} {tag}"),
            Self::Tag { id, tags, .. } => format!("tag {id} [{}]", tags.join(" ")),
            Self::Untag { id, tag, .. } => format!("untag {id} {tag}"),
            Self::Associate { network, address: Some(address), .. } => {
                format!("take-address {address} for {network}")
            }
            Self::Associate { network, address: None, .. } => format!("take-address for {network}"),
            Self::Balance { address, port, .. } => format!("create-rule {address} {port}"),
            Self::Open { address, port, cidr } => format!("let-in {cidr} to {address} {port}"),
            Self::OpenRouted { network, port, cidr, to } => {
                format!("let-in {cidr} to {to} {port} of {network}")
            }
            Self::Close { rule, .. } => format!("delete-opening {rule}"),
            Self::LetOut { network, .. } => format!("let-out {network}"),
            Self::KeepIn { rule, .. } => format!("delete-exit {rule}"),
            Self::Unbalance { rule } => format!("delete-rule {rule}"),
            Self::Release { address } => format!("release-address {address}"),
            Self::Delete { network } => format!("delete-network {network}"),
        }
    }
}

impl NetworkCall {
    /// The observed show that it happened.
    fn shows(&self, observed: &ObservedNetwork) -> bool {
        let network = |id: &str| observed.network.as_ref().is_some_and(|network| network.id.as_str() == id);
        match self {
            Self::Create { .. } => observed.network.is_some(),
            Self::CreateVpc { .. } => observed.vpc.is_some(),
            Self::DeleteVpc { .. } => observed.vpc.is_none(),
            Self::Tag { .. } | Self::Untag { .. } | Self::TagVpc { .. } | Self::UntagVpc { .. } => true,
            Self::Associate { address: Some(wanted), .. } => {
                observed.addresses.iter().any(|address| address.ipaddress == *wanted)
            }
            Self::Associate { address: None, .. } => !observed.addresses.is_empty(),
            Self::Balance { address, port, .. } => observed.rule_on(address, *port).is_some(),
            Self::Open { address, port, cidr } => {
                observed.openings_on(address, *port).any(|(_, allowed)| allowed == cidr)
            }
            Self::OpenRouted { network: id, port, cidr, to } => {
                network(id) && observed.routed_opening(*port, cidr, to).is_some()
            }
            Self::Close { rule, .. } => !observed.openings.iter().any(|opening| opening.id.as_str() == rule),
            Self::LetOut { .. } => observed.lets_out(),
            Self::KeepIn { rule, .. } => !observed.exits.iter().any(|exit| exit.id.as_str() == rule),
            Self::Unbalance { rule } => !observed.rules.iter().any(|known| known.id.as_str() == rule),
            Self::Release { address } => !observed.addresses.iter().any(|known| known.id.as_str() == address),
            Self::Delete { network: id } => !network(id),
        }
    }

    /// CloudStack can refuse it for long: it is repeated after a pause.
    pub(super) fn is_paced(&self) -> bool {
        !matches!(self, Self::Tag { .. } | Self::Untag { .. } | Self::TagVpc { .. } | Self::UntagVpc { .. })
    }

    /// It makes something that may still appear.
    pub(super) fn makes(&self) -> bool {
        matches!(
            self,
            Self::Create { .. }
                | Self::CreateVpc { .. }
                | Self::Associate { .. }
                | Self::Balance { .. }
                | Self::Open { .. }
                | Self::OpenRouted { .. }
                | Self::LetOut { .. }
        )
    }
}

/// A call came to a good end, whatever its details were.
pub(super) fn happened(look: &Look<IsolatedNetworks>, which: impl Fn(&NetworkCall) -> bool) -> bool {
    look.concluded.iter().any(|known| known.result.is_some() && which(&known.call))
}

/// What became of a call that nobody heard the end of.
pub(super) fn resolve(
    intent: &Intent<NetworkCall>,
    observed: &ObservedNetwork,
    now: Timestamp,
) -> Resolution {
    let (has_happened, creates) = (intent.call.shows(observed), intent.call.makes());
    resolution(has_happened, creates, (intent.at.timestamp(), now), "CloudStack")
}
