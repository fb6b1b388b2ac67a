//! The CNI of clusters: where its manifests come from, and which of them a cluster gets.
//!
//! ```text
//! --lifecycle-cni ─▶ Source: built-in, manifests, or a chart
//!                       │ plan: settings of a cluster ─▶ values       pure
//!                       ▼
//!                     Plan ─▶ Renderer: helm, cached ─▶ Manifests ─▶ an add-on
//! ```

mod add_on;
mod helm;
mod manifests;
mod render;
mod source;
mod values;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub use add_on::{Parts, part, resource_set};
pub use helm::Helm;
pub use manifests::Manifests;
pub use render::{Order, Render, Renderer};
pub use source::{Chart, Source};

use crate::names::annotation;
use crate::types::{Cilium, Cluster};

/// A CNI that a cluster may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Cilium,
    Calico,
}

impl Network {
    pub const ALL: [Self; 2] = [Self::Cilium, Self::Calico];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cilium => "cilium",
            Self::Calico => "calico",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Cilium => "Cilium",
            Self::Calico => "Calico",
        }
    }

    /// The namespace that its chart is rendered for.
    fn namespace(self) -> &'static str {
        match self {
            Self::Cilium => "kube-system",
            Self::Calico => "tigera-operator",
        }
    }

    /// The CNI of a cluster, by its annotation; Cilium if it has none.
    pub fn of(cluster: &Cluster) -> Result<Self, String> {
        let Some(name) = cluster.metadata.annotations.get(annotation::CNI) else { return Ok(Self::Cilium) };
        Self::ALL
            .into_iter()
            .find(|network| network.as_str() == name)
            .ok_or_else(|| format!("the annotation {} is {name:?}: use cilium or calico", annotation::CNI))
    }
}

/// The CNIs that the operator configured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cni {
    cilium: Source,
    calico: Option<Source>,
}

impl Cni {
    /// Reads `[NAME=]SOURCE` of each flag.
    pub fn of_flags(flags: &[String]) -> Result<Self, String> {
        let (mut cilium, mut calico) = (None, None);
        for flag in flags {
            let named = flag.split_once('=').and_then(|(name, source)| {
                let network = Network::ALL.into_iter().find(|network| network.as_str() == name)?;
                Some((network, source))
            });
            let (network, source) = named.unwrap_or((Network::Cilium, flag));
            let place = match network {
                Network::Cilium => &mut cilium,
                Network::Calico => &mut calico,
            };
            if place.is_some() {
                return Err(format!("{} is defined twice", network.as_str()));
            }
            *place = Some(Source::read(source).map_err(|why| format!("{source}: {why}"))?);
        }
        Ok(Self { cilium: cilium.unwrap_or_default(), calico })
    }

    /// The same with another source of Cilium.
    #[must_use]
    pub fn with_cilium(mut self, source: Source) -> Self {
        self.cilium = source;
        self
    }

    /// Whether `helm` is needed.
    pub fn has_charts(&self) -> bool {
        [Some(&self.cilium), self.calico.as_ref()]
            .into_iter()
            .flatten()
            .any(|source| matches!(source, Source::Chart(_)))
    }

    /// What a cluster gets; the error says which setting cannot be followed.
    pub fn plan(&self, cluster: &Cluster) -> Result<Plan, String> {
        let network = Network::of(cluster)?;
        let source = match network {
            Network::Cilium => &self.cilium,
            Network::Calico => self.calico.as_ref().ok_or_else(|| {
                format!(
                    "the annotation {} asks for calico, and the server has no manifests of it: start it with --lifecycle-cni calico=SOURCE",
                    annotation::CNI
                )
            })?,
        };
        let what = match (network, source) {
            (Network::Calico, _) => Some("Calico"),
            (_, Source::BuiltIn) => Some("the built-in CNI"),
            (_, Source::Manifests(_)) => Some("the manifests of --lifecycle-cni"),
            (_, Source::Chart(_)) => None,
        };
        if let Some(what) = what
            && let Some(fields) = settings(cluster.cilium())
        {
            return Err(format!(
                "spec.clusterNetwork.cniConfig.cilium: {what} cannot follow {fields}: remove it, give a chart of Cilium to --lifecycle-cni, or set skipUpgrade: true and configure Cilium yourself"
            ));
        }
        let input = match source {
            Source::BuiltIn => Input::Manifests(source::BUILT_IN.into()),
            Source::Manifests(text) => Input::Manifests(text.clone()),
            Source::Chart(chart) => Input::Order(Order {
                chart: chart.clone(),
                release: network.as_str(),
                namespace: network.namespace(),
                values: match network {
                    Network::Cilium => values::cilium(cluster),
                    Network::Calico => values::calico(cluster),
                },
                kube_version: cluster.spec.kubernetes_version.clone(),
                extra: match network {
                    Network::Cilium => values::policy_of_system(cluster),
                    Network::Calico => Some(values::namespace(network.namespace())),
                },
            }),
        };
        Ok(Plan { network, input })
    }
}

/// Settings of Cilium that a cluster has and plain manifests cannot follow.
fn settings(cilium: Option<&Cilium>) -> Option<String> {
    let cilium = cilium?;
    let plain = |text: &str| text.is_empty() || text == "default";
    let set = [
        ("policyEnforcementMode", !plain(&cilium.policy_enforcement_mode)),
        ("egressMasqueradeInterfaces", !cilium.egress_masquerade_interfaces.is_empty()),
        ("routingMode", !plain(&cilium.routing_mode) && cilium.routing_mode != "overlay"),
        ("ipv4NativeRoutingCIDR", !cilium.ipv4_native_routing_cidr.is_empty()),
        ("ipv6NativeRoutingCIDR", !cilium.ipv6_native_routing_cidr.is_empty()),
        ("cniExclusive", cilium.cni_exclusive.is_some()),
        ("helmValues", cilium.helm_values.is_some()),
    ];
    let fields: Vec<&str> = set.iter().filter(|(_, set)| *set).map(|(field, _)| *field).collect();
    (!fields.is_empty()).then(|| fields.join(", "))
}

/// The CNI of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub network: Network,
    input: Input,
}

#[derive(Debug, Clone, PartialEq)]
enum Input {
    Manifests(Arc<str>),
    Order(Order),
}

impl Plan {
    /// Identifies what the manifests are made from. Charts generate certificates, so that rendering one twice gives
    /// different manifests: what is installed is compared by this, and not by its content.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.network.as_str());
        match &self.input {
            Input::Manifests(text) => hash.update(text.as_bytes()),
            Input::Order(order) => hash.update(order.identity()),
        }
        let digest = hash.finalize();
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a new version is checked on every node before it is installed: charts of Cilium have templates for that.
    pub fn has_preflight(&self) -> bool {
        self.network == Network::Cilium && matches!(self.input, Input::Order(_))
    }

    /// The manifests. `from` is the minor version that is upgraded, so that the chart keeps what it needs.
    pub async fn manifests(
        &self,
        renderer: &Renderer,
        now: Timestamp,
        from: Option<&str>,
    ) -> Result<Arc<Manifests>, String> {
        match &self.input {
            Input::Manifests(text) => Manifests::parse(text).map(Arc::new),
            Input::Order(order) => {
                let values = |values: Value| match from {
                    Some(version) => values::upgrading_from(values, version),
                    None => values,
                };
                let order = Order { values: values(order.values.clone()), ..order.clone() };
                renderer.render(&order, now).await
            }
        }
    }

    /// The manifests that check a new version on every node: nothing that is part of the installation.
    pub async fn preflight(&self, renderer: &Renderer, now: Timestamp) -> Result<Manifests, String> {
        let Input::Order(order) = &self.input else { return Ok(Manifests::default()) };
        let values = values::preflight(order.values.clone());
        let check = renderer.render(&Order { values, extra: None, ..order.clone() }, now).await?;
        Ok(check.without(&*renderer.render(order, now).await?))
    }
}

#[cfg(test)]
mod tests;
