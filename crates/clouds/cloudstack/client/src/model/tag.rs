//! Tags.

use serde::{Deserialize, Serialize};

use super::words;
use crate::id::{DomainId, ProjectId};

words! {
    /// What can carry tags.
    ResourceType {
        /// A machine.
        UserVm = "UserVm",
        /// A network.
        Network = "Network",
        /// A public address.
        PublicIpAddress = "PublicIpAddress",
        /// A volume.
        Volume = "Volume",
        /// A virtual private cloud.
        Vpc = "Vpc",
        /// A template.
        Template = "Template",
        /// A load balancer rule.
        LoadBalancer = "LoadBalancer",
        /// A firewall rule.
        FirewallRule = "FirewallRule",
        /// A port forwarding rule.
        PortForwardingRule = "PortForwardingRule",
        /// A project.
        Project = "Project",
        /// An account.
        Account = "Account",
    }
}

/// A tag. Keys are unique per resource whatever their case, and a second one of the same key is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// Key of the tag.
    pub key: String,
    /// Value of the tag.
    #[serde(default)]
    pub value: String,
    /// What carries it. Lists of machines leave it out.
    pub resourceid: Option<String>,
    /// What kind of thing carries it.
    pub resourcetype: Option<ResourceType>,
    /// Account that owns the tag.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
}
