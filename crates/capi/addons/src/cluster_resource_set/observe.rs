//! Reads what a decision about a ClusterResourceSet depends on.

use std::sync::Arc;

use capstan_capi_core::secret::SecretOutline;
use capstan_capi_types::addons::cluster_resource_set::SECRET_TYPE;
use capstan_capi_types::addons::{
    ClusterResourceSet, ClusterResourceSetBinding, ClusterResourceSetResourceKind as ResourceKind,
};
use capstan_capi_types::core::Cluster;
use capstan_controller::{KindName, ObserveError, View};
use capstan_object::{Key, Object, ObjectMeta};
use serde_json::Value;

use super::observed::{Observed, Resource, Target, is_complete, selects};
use super::resources::{self, ConfigMapOutline};
use super::{ClusterResourceSetController, apply, is_connected, is_locked};

pub(super) async fn observe(
    controller: &ClusterResourceSetController,
    set: &Arc<ClusterResourceSet>,
    view: &View,
) -> Result<Observed, ObserveError> {
    let namespace = set.metadata.namespace.as_str();
    let mut seen = Observed::default();
    for cluster in view.list::<Cluster>(namespace)? {
        match selects(set, &cluster) {
            Ok(true) if !cluster.metadata.is_deleting() && !is_locked(&cluster) => {}
            Ok(_) => continue,
            Err(why) => {
                seen.bad_selector = Some(why);
                break;
            }
        }
        let binding = view.get::<ClusterResourceSetBinding>(&cluster.key())?;
        let unreachable = (!is_connected(&cluster)).then(|| format!("{} is not connected", cluster.key()));
        seen.targets.push(Target { cluster: cluster.metadata.name.clone(), binding, unreachable });
    }
    if seen.targets.is_empty() || set.metadata.is_deleting() {
        return Ok(seen);
    }
    for reference in &set.spec.resources {
        let key = Key::new(namespace, reference.name.as_str());
        let outline = match reference.kind {
            Some(ResourceKind::ConfigMap) => {
                view.get::<ConfigMapOutline>(&key)?.map(|found| (found.metadata.clone(), true))
            }
            Some(ResourceKind::Secret) => view
                .get::<SecretOutline>(&key)?
                .map(|found| (found.metadata.clone(), found.kind == SECRET_TYPE)),
            None => None,
        };
        seen.resources.push(match (outline, reference.kind) {
            (Some((meta, true)), Some(kind)) => {
                let hash = hash(controller, view, kind, &key, &meta).await;
                Resource::Found { meta: Box::new(meta), hash }
            }
            (Some((_, false)), _) => Resource::WrongType,
            _ => Resource::Missing,
        });
    }
    // Only clusters with pending resources have to be reachable.
    for target in seen.targets.iter_mut().filter(|target| target.unreachable.is_none()) {
        if !is_complete(set, &seen.resources, target) {
            target.unreachable = match view.workloads() {
                Some(workloads) => {
                    let cluster = Key::new(namespace, target.cluster.as_str());
                    workloads.client(&cluster).await.err().map(|error| error.to_string())
                }
                None => Some("this plane reaches no workload clusters".to_owned()),
            };
        }
    }
    Ok(seen)
}

/// The hash of a resource, computed once per resourceVersion.
async fn hash(
    controller: &ClusterResourceSetController,
    view: &View,
    kind: ResourceKind,
    key: &Key,
    meta: &ObjectMeta,
) -> Result<String, String> {
    let id = (kind, key.clone());
    if let Some((version, hash)) = controller.hashes.lock().get(&id)
        && *version == meta.resource_version
    {
        return hash.clone();
    }
    let hash = documents(view, kind, key).await.map(|documents| resources::hash(&documents));
    controller.hashes.lock().insert(id, (meta.resource_version.clone(), hash.clone()));
    hash
}

pub(super) async fn documents(view: &View, kind: ResourceKind, key: &Key) -> Result<Vec<String>, String> {
    let name = match kind {
        ResourceKind::ConfigMap => KindName::of::<ConfigMapOutline>(),
        ResourceKind::Secret => KindName::of::<SecretOutline>(),
    };
    let reply = view.client().get_raw(&name, key).await.map_err(|error| apply::error_chain(&error))?;
    let Some(reply) = reply else { return Err(format!("{kind} {key} does not exist")) };
    let value: Value = reply.parse().map_err(|error| apply::error_chain(&error))?;
    resources::documents(&value, kind == ResourceKind::Secret).map_err(|why| format!("{kind} {key}: {why}"))
}
