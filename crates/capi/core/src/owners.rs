//! Owner references of objects that belong to a cluster, and of objects without an owner.

use std::sync::Arc;

use capstan_capi_types::core::Cluster;
use capstan_controller::{Effect, ObjectRef, ObserveError, View};
use capstan_object::{Key, Object, ObjectMeta, OwnerReference};
use serde_json::json;

use crate::contract::External;

/// The owner of a kind, if it exists and has the referenced uid.
pub fn of<T: Object>(meta: &ObjectMeta, view: &View) -> Result<Option<Arc<T>>, ObserveError> {
    let Some(reference) = reference_to::<T>(meta) else { return Ok(None) };
    let owner = view.get::<T>(&Key::new(meta.namespace.as_str(), reference.name.as_str()))?;
    Ok(owner.filter(|owner| owner.metadata().uid == reference.uid))
}

/// The reference to an owner of a kind, in any version.
fn reference_to<T: Object>(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().find(|owner| owner.kind == T::KIND.kind && owner.group() == T::KIND.group)
}

/// Adds a reference, replacing one to the same owner. Returns whether anything changed.
pub fn ensure(owners: &mut Vec<OwnerReference>, wanted: OwnerReference) -> bool {
    match owners.iter_mut().find(|owner| owner.same_owner(&wanted)) {
        Some(owner) if *owner == wanted => false,
        Some(owner) => {
            *owner = wanted;
            true
        }
        None => {
            owners.push(wanted);
            true
        }
    }
}

/// Adds an owner reference to the cluster, unless there is one in any form.
pub fn belong_to(meta: &mut ObjectMeta, cluster: &Cluster) {
    let wanted = OwnerReference::to(cluster);
    let exact = |owner: &OwnerReference| owner.uid == wanted.uid && owner.api_version == wanted.api_version;
    if !meta.owner_references.iter().any(exact) {
        ensure(&mut meta.owner_references, wanted);
    }
}

/// Adds an owner reference from a template to its cluster, so that it is deleted and moved with the cluster.
pub fn claim_template<K>(template: &External, cluster: &Cluster) -> Option<Effect<K>> {
    let mut meta = template.metadata.clone();
    belong_to(&mut meta, cluster);
    if meta.owner_references == template.metadata.owner_references {
        return None;
    }
    let change = json!({"metadata": {"ownerReferences": meta.owner_references}});
    Some(Effect::merge_guarded(template.reference(), &template.metadata, change))
}

/// Adopts an object without a controller.
pub fn adopt<K, O: Object, T: Object>(owner: &O, orphan: &T) -> Effect<K> {
    let mut owners = orphan.metadata().owner_references.clone();
    ensure(&mut owners, OwnerReference::controlled_by(owner));
    let change = json!({"metadata": {"ownerReferences": owners}});
    Effect::merge_guarded(ObjectRef::to(orphan), orphan.metadata(), change)
}
