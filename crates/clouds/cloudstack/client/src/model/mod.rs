//! What the cloud is made of, as CloudStack describes it.
//!
//! Fields carry CloudStack's own names. Only what somebody needs is here; everything else in an answer is ignored, and so
//! are types that differ between commands and releases: a port may come as a number or as text. What a server may leave
//! out is an `Option`, or false, or empty.

mod address;
mod affinity;
mod event;
mod identity;
mod job;
mod kubernetes;
mod machine;
mod network;
mod offering;
mod rule;
mod server;
mod tag;
mod template;
mod volume;
mod zone;

pub use crate::loose::Amount;
pub use address::{AddressState, PublicIpAddress};
pub use affinity::AffinityGroup;
pub use event::Event;
pub use identity::{
    Account, Domain, Project, ProjectState, Quota, ResourceLimit, SshKeyPair, User, UserKeys, UserState,
};
pub use job::{AsyncJob, JobResult};
pub use kubernetes::{ClusterMember, KubernetesCluster};
pub use machine::{
    Destroyed, GroupMembership, MachineState, MachineUserData, Nic, SecondaryAddress, VirtualMachine,
};
pub use network::{
    GuestType, Network, NetworkAclList, NetworkAclRule, NetworkService, NetworkState, ServiceProvider, Vpc,
    VpcState,
};
pub use offering::{DiskOffering, NetworkMode, NetworkOffering, ServiceOffering, VpcOffering};
pub use rule::{FirewallRule, LoadBalancerMember, LoadBalancerRule, PortForwardingRule, RuleState};
pub use server::{Api, ApiParameter, Capability};
pub use tag::{ResourceType, Tag};
pub use template::Template;
pub use volume::{Volume, VolumeState};
pub use zone::{Zone, ZoneNetworkType};

use serde::{Deserialize, Serialize};

/// Declares a set of words that servers use, open to words of later releases.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$word_doc])* $word,)*
            /// A word that is not known here.
            Other(String),
        }

        impl $name {
            /// The word as CloudStack writes it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$word => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$word,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
                Ok(Self::from(&*text))
            }
        }
    };
}

use words;

/// The answer of commands that only say that all went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}
