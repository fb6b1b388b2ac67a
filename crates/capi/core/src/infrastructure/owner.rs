//! Who a provider's object belongs to.

use std::sync::Arc;

use capstan_controller::{ObserveError, View};
use capstan_object::{Key, Object, ObjectMeta, OwnerReference};

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
