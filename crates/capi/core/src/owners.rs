//! Owner references of objects that belong to a cluster, and of objects without an owner.

use std::sync::Arc;

use capstan_capi_types::core::Cluster;
use capstan_controller::{Effect, ObjectRef, ObserveError, View};
use capstan_object::{Key, Object, ObjectMeta, OwnerReference};
use serde_json::json;

use crate::contract::External;

/// The owner of a kind that an object names, if it is there and is the very one.
pub fn of<T: Object>(meta: &ObjectMeta, view: &View) -> Result<Option<Arc<T>>, ObserveError> {
    let Some(reference) = reference_to::<T>(meta) else { return Ok(None) };
    let owner = view.get::<T>(&Key::new(meta.namespace.as_str(), reference.name.as_str()))?;
    Ok(owner.filter(|owner| owner.metadata().uid == reference.uid))
}

/// The reference to an owner of a kind, in whatever version.
fn reference_to<T: Object>(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().find(|owner| owner.kind == T::KIND.kind && owner.group() == T::KIND.group)
}

/// Puts a reference among others: in place of one to the same owner, else at the end. The answer is whether
/// anything changed.
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

/// Makes an object owned by its cluster. A reference that is there in any form stays as it is.
pub fn belong_to(meta: &mut ObjectMeta, cluster: &Cluster) {
    let wanted = OwnerReference::to(cluster);
    let exact = |owner: &OwnerReference| owner.uid == wanted.uid && owner.api_version == wanted.api_version;
    if !meta.owner_references.iter().any(exact) {
        ensure(&mut meta.owner_references, wanted);
    }
}

/// Makes a template owned by the cluster that uses it, so that it goes and moves with the cluster.
pub fn claim_template<K>(template: &External, cluster: &Cluster) -> Option<Effect<K>> {
    let mut meta = template.metadata.clone();
    belong_to(&mut meta, cluster);
    if meta.owner_references == template.metadata.owner_references {
        return None;
    }
    let change = json!({"metadata": {"ownerReferences": meta.owner_references}});
    Some(Effect::merge_guarded(template.reference(), &template.metadata, change))
}

/// Takes control of an object that nobody controls.
pub fn adopt<K, O: Object, T: Object>(owner: &O, orphan: &T) -> Effect<K> {
    let mut owners = orphan.metadata().owner_references.clone();
    ensure(&mut owners, OwnerReference::controlled_by(owner));
    let change = json!({"metadata": {"ownerReferences": owners}});
    Effect::merge_guarded(ObjectRef::to(orphan), orphan.metadata(), change)
}
