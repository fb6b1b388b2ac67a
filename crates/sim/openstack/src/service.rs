//! The services of a cloud, and where they answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A service of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    Identity,
    Compute,
    Network,
    Image,
    Volume,
    LoadBalancer,
    Placement,
}

impl Service {
    pub const ALL: [Self; 7] = [
        Self::Identity,
        Self::Compute,
        Self::LoadBalancer,
        Self::Volume,
        Self::Network,
        Self::Placement,
        Self::Image,
    ];

    /// Type in the catalog.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute => "compute",
            Self::Network => "network",
            Self::Image => "image",
            Self::Volume => "block-storage",
            Self::LoadBalancer => "load-balancer",
            Self::Placement => "placement",
        }
    }

    /// Name in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "keystone",
            Self::Compute => "nova",
            Self::Network => "neutron",
            Self::Image => "glance",
            Self::Volume => "cinder",
            Self::LoadBalancer => "octavia",
            Self::Placement => "placement",
        }
    }

    /// What the catalog adds to the service's URL.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Identity | Self::Volume => "/v3",
            Self::Compute => "/v2.1",
            Self::Network | Self::Image | Self::LoadBalancer | Self::Placement => "",
        }
    }

    /// Path prefix where all services share a listener.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Identity => "/identity",
            Self::Compute => "/compute",
            Self::Network => "/networking",
            Self::Image => "/image",
            Self::Volume => "/volume",
            Self::LoadBalancer => "/load-balancer",
            Self::Placement => "/placement",
        }
    }
}

/// URLs of the services by region and service, without a slash at the end. All regions share one Keystone.
#[derive(Debug, Clone, Default)]
pub struct Endpoints(pub BTreeMap<(String, Service), String>);

impl Endpoints {
    /// All services behind one URL: `/identity`, `/compute` and so on; of further regions below `/<region>`.
    pub fn shared(url: &str, regions: &[String]) -> Self {
        let mut all = BTreeMap::new();
        for (index, region) in regions.iter().enumerate() {
            for service in Service::ALL {
                let below = match (index, service) {
                    (0, _) | (_, Service::Identity) => String::new(),
                    _ => format!("/{region}"),
                };
                all.insert((region.clone(), service), format!("{url}{below}{}", service.prefix()));
            }
        }
        Self(all)
    }

    pub(crate) fn url(&self, region: &str, service: Service) -> &str {
        self.0.get(&(region.to_owned(), service)).map_or("", String::as_str)
    }
}
