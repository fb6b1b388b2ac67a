//! The CNI of a cluster, as an add-on: a ConfigMap with manifests and a ClusterResourceSet that applies them.

use capstan_capi_types::addons::{
    ClusterResourceSet, ClusterResourceSetResourceKind, ClusterResourceSetStrategy, ResourceRef,
};
use capstan_capi_types::core::label;
use serde_json::{Value, json};

use crate::generate::metadata;
use crate::names;
use crate::types::{Cilium, Cluster};

/// What is applied if the operator configured nothing: enough for simulated machines, whose nodes wait for a DaemonSet.
const BUILT_IN: &str = include_str!("cni.yaml");

/// The manifests of the CNI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cni {
    manifests: String,
    built_in: bool,
}

impl Default for Cni {
    fn default() -> Self {
        Self { manifests: BUILT_IN.to_owned(), built_in: true }
    }
}

impl Cni {
    /// Manifests of the operator: YAML documents.
    pub fn of_manifests(text: String) -> Result<Self, String> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| error.to_string())?;
        let mut objects = documents.iter().filter(|document| !document.is_null()).peekable();
        if objects.peek().is_none() {
            return Err("it has no objects".to_owned());
        }
        match objects
            .find(|object| object["kind"].as_str().is_none() || object["apiVersion"].as_str().is_none())
        {
            Some(_) => Err("an object has no apiVersion or no kind".to_owned()),
            None => Ok(Self { manifests: text, built_in: false }),
        }
    }

    /// Settings of Cilium that the manifests cannot follow.
    pub fn unsupported(&self, cilium: Option<&Cilium>) -> Option<String> {
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
        (!fields.is_empty()).then(|| {
            let whose = if self.built_in { "the built-in CNI" } else { "the manifests of --lifecycle-cni" };
            format!(
                "spec.clusterNetwork.cniConfig.cilium: {whose} cannot follow {}: remove it, or install Cilium yourself and set skipUpgrade: true",
                fields.join(", ")
            )
        })
    }

    /// The ConfigMap with the manifests.
    pub fn config_map(&self, cluster: &Cluster) -> Value {
        let meta = metadata(cluster, &names::cni(&cluster.metadata.name));
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "labels": meta.labels},
            "data": {"cni.yaml": self.manifests},
        })
    }

    /// What applies it to this cluster and no other.
    pub fn resource_set(cluster: &Cluster) -> ClusterResourceSet {
        let name = names::cni(&cluster.metadata.name);
        let mut set =
            ClusterResourceSet { metadata: metadata(cluster, &name), ..ClusterResourceSet::default() };
        for key in [label::CLUSTER_NAME, names::label::CLUSTER_NAME] {
            set.spec.cluster_selector.match_labels.insert(key.to_owned(), cluster.metadata.name.clone());
        }
        set.spec.resources =
            vec![ResourceRef { name, kind: Some(ClusterResourceSetResourceKind::ConfigMap) }];
        set.spec.strategy = Some(ClusterResourceSetStrategy::Reconcile);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_the_manifests_cannot_follow_are_named() {
        let cni = Cni::default();
        let settings = |mode: &str| Cilium { policy_enforcement_mode: mode.to_owned(), ..Cilium::default() };
        assert_eq!(cni.unsupported(Some(&settings("default"))), None);
        let why = cni.unsupported(Some(&settings("always"))).expect("unsupported");
        assert!(why.contains("policyEnforcementMode"), "{why}");
    }

    #[test]
    fn manifests_of_the_operator_are_objects() {
        assert!(
            Cni::of_manifests("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n".to_owned()).is_ok()
        );
        for wrong in ["", "a: b\n", "{"] {
            assert!(Cni::of_manifests(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
