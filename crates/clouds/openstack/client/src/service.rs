//! The services, and what they are called in catalogs.

use std::fmt;

/// A service of an OpenStack cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Keystone.
    Identity,
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// The image service.
    Image,
    /// Cinder.
    BlockStorage,
    /// Octavia.
    LoadBalancer,
    /// Placement.
    Placement,
}

impl Service {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Identity,
        Self::Compute,
        Self::Network,
        Self::Image,
        Self::BlockStorage,
        Self::LoadBalancer,
        Self::Placement,
    ];

    /// The official service type, as errors and settings name it.
    pub fn official_type(self) -> &'static str {
        self.types()[0]
    }

    /// The official type and its aliases, in the order in which a catalog is searched for them: the service types
    /// authority lists aliases by age, newest first.
    pub fn types(self) -> &'static [&'static str] {
        match self {
            Self::Identity => &["identity"],
            Self::Compute => &["compute"],
            Self::Network => &["network"],
            Self::Image => &["image"],
            Self::BlockStorage => &["block-storage", "volumev3", "block-store", "volume", "volumev2"],
            Self::LoadBalancer => &["load-balancer"],
            Self::Placement => &["placement"],
        }
    }

    /// The version of its API that this client speaks: a segment of the URL.
    pub(crate) fn version(self) -> Option<&'static str> {
        match self {
            Self::Identity => Some("v3"),
            Self::Compute => Some("v2.1"),
            Self::Network => Some("v2.0"),
            Self::Image => Some("v2"),
            Self::BlockStorage => Some("v3"),
            Self::LoadBalancer => Some("v2"),
            Self::Placement => None,
        }
    }

    /// The word before the number in `OpenStack-API-Version`. Cinder answers 400 to any other than its own.
    pub(crate) fn microversion_word(self) -> &'static str {
        match self {
            Self::BlockStorage => "volume",
            other => other.official_type(),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.official_type())
    }
}
