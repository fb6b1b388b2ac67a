//! The CNI of a cluster as an add-on: ConfigMaps and a Secret with manifests, and a ClusterResourceSet that applies them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_addons::cluster_resource_set::hash;
use capstan_capi_types::addons::cluster_resource_set::SECRET_TYPE;
use capstan_capi_types::addons::{
    ClusterResourceSet, ClusterResourceSetResourceKind as ResourceKind, ClusterResourceSetStrategy,
    ResourceRef,
};
use capstan_capi_types::core::label;
use serde_json::{Value, json};

use crate::generate::metadata;
use crate::names::{self, annotation};
use crate::types::Cluster;

/// Secrets or ConfigMaps with parts of the manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    pub config_maps: usize,
    /// There is a Secret, too: charts generate certificates.
    pub secret: bool,
}

impl Parts {
    /// The parts in the order in which they are applied. The first has the name of the add-on.
    pub fn of(self, cluster: &Cluster) -> Vec<ResourceRef> {
        let add_on = names::cni(&cluster.metadata.name);
        let part = |name: String, kind| ResourceRef { name, kind: Some(kind) };
        let config_map = |at: usize| match at {
            0 => part(add_on.clone(), ResourceKind::ConfigMap),
            _ => part(format!("{add_on}-{}", at + 1), ResourceKind::ConfigMap),
        };
        let secret = self.secret.then(|| part(format!("{add_on}-secrets"), ResourceKind::Secret));
        (0..self.config_maps).map(config_map).chain(secret).collect()
    }
}

/// The ConfigMap or Secret with a part of the manifests.
pub fn part(cluster: &Cluster, reference: &ResourceRef, text: &str) -> Value {
    let meta = metadata(cluster, &reference.name);
    let metadata = json!({
        "name": meta.name, "namespace": meta.namespace, "labels": meta.labels,
        "annotations": {annotation::CNI_HASH: hash(&[text.to_owned()])},
    });
    match reference.kind {
        Some(ResourceKind::Secret) => json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": SECRET_TYPE,
            "data": {"cni.yaml": STANDARD.encode(text)},
        }),
        _ => json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cni.yaml": text},
        }),
    }
}

/// What applies the parts to this cluster and no other.
pub fn resource_set(cluster: &Cluster, parts: Parts) -> ClusterResourceSet {
    let name = names::cni(&cluster.metadata.name);
    let mut set = ClusterResourceSet { metadata: metadata(cluster, &name), ..ClusterResourceSet::default() };
    for key in [label::CLUSTER_NAME, names::label::CLUSTER_NAME] {
        set.spec.cluster_selector.match_labels.insert(key.to_owned(), cluster.metadata.name.clone());
    }
    set.spec.resources = parts.of(cluster);
    set.spec.strategy = Some(ClusterResourceSetStrategy::Reconcile);
    set
}
