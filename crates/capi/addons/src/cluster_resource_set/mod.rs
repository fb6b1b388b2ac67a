//! `ClusterResourceSet`: applies resources to every cluster that matches, once or whenever they change.
//!
//! Owns: its finalizer, its entry in the binding of each cluster, an owner reference on each resource. Reads: Clusters,
//! their bindings, and metadata of ConfigMaps and Secrets; their content is read on demand and only its hash is
//! cached. Writes the objects in the resources to workload clusters.

mod apply;
mod decide;
mod observe;
mod observed;
mod resources;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_core::secret::SecretOutline;
use capstan_capi_types::addons::cluster_resource_set::condition;
use capstan_capi_types::addons::{
    ClusterResourceSet, ClusterResourceSetBinding, ClusterResourceSetResourceKind as ResourceKind,
    ClusterResourceSetStrategy,
};
use capstan_capi_types::core::cluster::condition as cluster_condition;
use capstan_capi_types::core::{Cluster, annotation, condition as shared};
use capstan_controller::{
    Caches, Call, Change, Controller, Decision, GATHER, Look, ObserveError, Outcome, View, Watches, catalogue,
};
use capstan_object::{Conditions as _, Key, Object};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub use apply::{all as apply_all, delete_all};
pub use observed::{Observed, Resource, Target};
pub use resources::{ConfigMapOutline, hash};

#[derive(Default)]
pub struct ClusterResourceSetController {
    /// Hashes of resources by kind and key, with the resourceVersion they belong to.
    hashes: Mutex<BTreeMap<(ResourceKind, Key), Hashed>>,
}

/// A resourceVersion, and the hash of the content or why it is invalid.
type Hashed = (String, Result<String, String>);

/// Applies one resource to one cluster. Idempotent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Apply {
    pub cluster: String,
    pub kind: ResourceKind,
    pub name: String,
    pub hash: String,
    pub strategy: ClusterResourceSetStrategy,
}

/// Result of an [`Apply`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// Errors, one per object.
    pub errors: Vec<String>,
}

impl Call for Apply {
    fn idempotency_key(&self) -> String {
        self.summary()
    }

    fn journalled(&self) -> bool {
        false
    }

    fn summary(&self) -> String {
        format!("apply {} {} to cluster {}", self.kind, self.name, self.cluster)
    }
}

/// The parts of a Cluster that trigger a reconcile.
fn trigger_fields(cluster: &Cluster) -> impl PartialEq {
    (&cluster.metadata.labels, cluster.metadata.is_deleting(), is_locked(cluster), is_connected(cluster))
}

/// `capstan adopt` imported it, and it is not managed here yet. Paused clusters do get resources, as upstream.
fn is_locked(cluster: &Cluster) -> bool {
    cluster.metadata.annotations.contains_key(annotation::ADOPTION_LOCK)
}

/// The cluster responded to a probe. Others are not contacted: in a fleet most of them are still being created.
fn is_connected(cluster: &Cluster) -> bool {
    cluster.status.conditions.is_condition_true(cluster_condition::REMOTE_CONNECTION_PROBE)
}

const CONDITIONS: [&str; 2] = [shared::PAUSED, condition::RESOURCES_APPLIED];

impl Controller for ClusterResourceSetController {
    const NAME: &'static str = "clusterresourceset";
    type Kind = ClusterResourceSet;
    type Seen = Observed;
    type Call = Apply;

    fn watches(&self, watches: &mut Watches<ClusterResourceSet>) {
        watches.related_within::<ClusterResourceSetBinding>(GATHER, |change, caches| {
            let named = |set: &ClusterResourceSet| {
                let owned = |binding: &Arc<ClusterResourceSetBinding>| {
                    binding.metadata.owner_references.iter().any(|owner| owner.uid == set.metadata.uid)
                };
                change.both().any(owned)
            };
            sets_of(caches, &change.key.namespace, named)
        });
        watches.related_within::<Cluster>(GATHER, |change, caches| match (&change.old, &change.new) {
            (Some(old), Some(new)) if trigger_fields(old) == trigger_fields(new) => Vec::new(),
            _ => sets_of(caches, &change.key.namespace, |set| {
                change.both().any(|cluster| observed::selects(set, cluster).unwrap_or(false))
            }),
        });
        watches
            .related::<ConfigMapOutline>(|change, caches| users_of(caches, change, ResourceKind::ConfigMap));
        watches.related::<SecretOutline>(|change, caches| users_of(caches, change, ResourceKind::Secret));
    }

    fn conditions(&self) -> &[&'static str] {
        &CONDITIONS
    }

    fn paused(&self, object: &ClusterResourceSet, _: &View) -> Result<Option<String>, ObserveError> {
        Ok(paused::why(None, &object.metadata, ClusterResourceSet::KIND.kind))
    }

    async fn observe(&self, object: &Arc<ClusterResourceSet>, view: &View) -> Result<Observed, ObserveError> {
        observe::observe(self, object, view).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &Apply, object: &Arc<ClusterResourceSet>, view: &View) -> Outcome {
        let namespace = object.metadata.namespace.as_str();
        let Some(workloads) = view.workloads() else {
            return Outcome::failed(
                catalogue::WORKLOAD_UNREACHABLE,
                "this plane reaches no workload clusters",
            );
        };
        let client = match workloads.client(&Key::new(namespace, call.cluster.as_str())).await {
            Ok(client) => client,
            Err(error) => return Outcome::failed(catalogue::WORKLOAD_UNREACHABLE, error.to_string()),
        };
        let documents = observe::documents(view, call.kind, &Key::new(namespace, call.name.as_str())).await;
        let objects = match documents.and_then(|documents| resources::objects(&documents)) {
            Ok(objects) => objects,
            Err(why) => return done(vec![why]),
        };
        done(apply::all(&client, objects, call.strategy).await)
    }
}

fn done(errors: Vec<String>) -> Outcome {
    match serde_json::to_value(Applied { errors }) {
        Ok(result) => Outcome::Done(result),
        Err(error) => Outcome::failed(catalogue::ENCODE, error.to_string()),
    }
}

fn sets_of(caches: &Caches, namespace: &str, wanted: impl Fn(&ClusterResourceSet) -> bool) -> Vec<Key> {
    let sets = caches.of::<ClusterResourceSet>().and_then(|cache| cache.list(namespace)).unwrap_or_default();
    sets.iter().filter(|set| wanted(set)).map(|set| set.key()).collect()
}

/// The sets that use a resource.
fn users_of<T: Object>(caches: &Caches, change: &Change<T>, kind: ResourceKind) -> Vec<Key> {
    sets_of(caches, &change.key.namespace, |set| {
        set.spec
            .resources
            .iter()
            .any(|resource| resource.kind == Some(kind) && resource.name == change.key.name)
    })
}
