//! `ClusterResourceSetBinding`: deleted with its cluster.
//!
//! This controller only deletes bindings; ClusterResourceSets write them.

use std::sync::Arc;

use capstan_capi_types::addons::ClusterResourceSetBinding;
use capstan_capi_types::core::Cluster;
use capstan_controller::{Controller, Decision, Effect, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object, OwnerReference};

#[derive(Debug, Default)]
pub struct ClusterResourceSetBindingController;

/// Observed state besides the ClusterResourceSetBinding.
#[derive(Debug)]
pub struct Observed {
    pub cluster: Option<Arc<Cluster>>,
}

/// The cluster of a binding, by `spec.clusterName` or by the owner reference that older versions used.
fn cluster_name(binding: &ClusterResourceSetBinding) -> Option<String> {
    if !binding.spec.cluster_name.is_empty() {
        return Some(binding.spec.cluster_name.clone());
    }
    let owners = &binding.metadata.owner_references;
    owners.iter().find(|owner| is_cluster(owner)).map(|owner| owner.name.clone())
}

fn is_cluster(owner: &OwnerReference) -> bool {
    owner.kind == Cluster::KIND.kind && owner.group() == Cluster::KIND.group
}

impl Controller for ClusterResourceSetBindingController {
    const NAME: &'static str = "clusterresourcesetbinding";
    type Kind = ClusterResourceSetBinding;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<ClusterResourceSetBinding>) {
        // A binding has its cluster's name, and only the cluster's deletion matters.
        let stays = |cluster: &Arc<Cluster>| !cluster.metadata.is_deleting();
        watches.related::<Cluster>(move |change, _| {
            if change.old.as_ref().is_some_and(stays) == change.new.as_ref().is_some_and(stays) {
                return Vec::new();
            }
            vec![change.key.clone()]
        });
    }

    async fn observe(
        &self,
        object: &Arc<ClusterResourceSetBinding>,
        view: &View,
    ) -> Result<Observed, ObserveError> {
        let namespace = object.metadata.namespace.as_str();
        let cluster = match cluster_name(object) {
            Some(name) => view.get::<Cluster>(&Key::new(namespace, name))?,
            None => None,
        };
        Ok(Observed { cluster })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        let gone = look.seen.cluster.as_ref().is_none_or(|cluster| cluster.metadata.is_deleting());
        if gone {
            if !look.object.metadata.is_deleting() {
                decision.then(Effect::delete(&*look.object));
            }
            return decision;
        }
        decision.object.spec.cluster_name = cluster_name(&look.object).unwrap_or_default();
        decision.object.metadata.owner_references.retain(|owner| !is_cluster(owner));
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_object::ObjectMeta;
    use jiff::Timestamp;

    fn decide(
        change: impl Fn(&mut ClusterResourceSetBinding),
        cluster: Option<Cluster>,
    ) -> Decision<ClusterResourceSetBindingController> {
        let mut binding =
            ClusterResourceSetBinding { metadata: ObjectMeta::named("n", "c"), ..Default::default() };
        change(&mut binding);
        let seen = Observed { cluster: cluster.map(Arc::new) };
        ClusterResourceSetBindingController.decide(&Look::new(Arc::new(binding), seen, Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn a_binding_is_deleted_with_its_cluster() {
        let mut going = Cluster::default();
        going.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        for (cluster, effects) in [(None, 1), (Some(going), 1), (Some(Cluster::default()), 0)] {
            assert_eq!(decide(|_| (), cluster).effects.len(), effects);
        }
    }

    #[test]
    fn an_owner_reference_to_the_cluster_becomes_a_field() {
        let cluster = Cluster { metadata: ObjectMeta::named("n", "c"), ..Cluster::default() };
        let owner = OwnerReference::to(&cluster);
        let decision =
            decide(|binding| binding.metadata.owner_references = vec![owner.clone()], Some(cluster.clone()));
        assert_eq!(decision.object.spec.cluster_name, "c");
        assert_eq!(decision.object.metadata.owner_references, []);
    }
}
