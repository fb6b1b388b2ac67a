//! Secrets that a control plane creates and owns: certificates and the admin kubeconfig.

mod certificates;
mod kubeconfig;

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::CLUSTER_SECRET_TYPE;
use capstan_controller::{Effect, ObjectRef};
use capstan_object::{Object, OwnerReference};
use serde_json::json;

use super::scope::Decided;
use crate::Error;
use crate::control_plane::calls::ControlPlaneCall;
use capstan_capi_core::secret::Secret;

pub(super) use certificates::certificates;
pub(super) use kubeconfig::kubeconfig;

/// Takes ownership of a Secret that a controller created, also from another controller.
fn own(control_plane: &KubeadmControlPlane, secret: &Secret, decision: &mut Decided) {
    let wanted = OwnerReference::controlled_by(control_plane);
    let mut owners = secret.metadata.owner_references.clone();
    let controller = secret.metadata.controller();
    let ours = controller.is_some_and(|owner| owner.kind == KubeadmControlPlane::KIND.kind);
    if secret.kind != CLUSTER_SECRET_TYPE && !ours {
        return;
    }
    owners.retain(|owner| owner.controller != Some(true) || owner.same_owner(&wanted));
    capstan_capi_core::owners::ensure(&mut owners, wanted);
    if owners == secret.metadata.owner_references {
        return;
    }
    let change = json!({"metadata": {"ownerReferences": owners}});
    decision.then(Effect::merge_guarded(ObjectRef::to(secret), &secret.metadata, change));
}

fn impossible(what: &str, error: &Error) -> Effect<ControlPlaneCall> {
    Effect::Impossible { what: what.to_owned(), why: error.to_string() }
}
