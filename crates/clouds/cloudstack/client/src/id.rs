//! Names of things in the cloud. They are all UUIDs on the wire; the types keep them from being mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The id as CloudStack writes it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// A zone.
    ZoneId;
    /// A host, which only administrators see.
    HostId;
    /// A service offering: processors and memory.
    ServiceOfferingId;
    /// A disk offering.
    DiskOfferingId;
    /// A network offering.
    NetworkOfferingId;
    /// An offering of virtual private clouds.
    VpcOfferingId;
    /// A template of machines.
    TemplateId;
    /// A virtual machine.
    VirtualMachineId;
    /// A network interface of a machine.
    NicId;
    /// A network.
    NetworkId;
    /// An entry of a cluster in CloudStack's own list.
    KubernetesClusterId;
    /// A virtual private cloud.
    VpcId;
    /// A network ACL.
    AclId;
    /// A public address.
    PublicIpAddressId;
    /// A load balancer rule.
    LoadBalancerRuleId;
    /// A firewall rule, ingress, egress or of a routed network.
    FirewallRuleId;
    /// A port forwarding rule.
    PortForwardingRuleId;
    /// An affinity group.
    AffinityGroupId;
    /// A volume.
    VolumeId;
    /// An SSH key pair.
    SshKeyPairId;
    /// A domain.
    DomainId;
    /// An account.
    AccountId;
    /// A user.
    UserId;
    /// A project.
    ProjectId;
    /// An asynchronous job.
    JobId;
}

/// The id of a job's new thing, for jobs that make none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoId;

impl<'de> Deserialize<'de> for NoId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}
