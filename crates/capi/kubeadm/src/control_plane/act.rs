//! Makes the calls of a decision, and looks up calls whose outcome is unknown.

use std::sync::Arc;

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_controller::{Intent, ObserveError, Outcome, Patch, Resolution, View};
use capstan_object::Key;

use super::calls::ControlPlaneCall;
use super::code;
use super::etcd::{ClientCertificates, Etcd, etcd_credentials};
use super::installed::{NAMESPACE, binding, binding_kind};
use super::observed::cluster_of;
use super::workload_client::{error_chain, workloads};
use crate::certificates::Keys;

pub(super) async fn make(
    call: &ControlPlaneCall,
    control_plane: &Arc<KubeadmControlPlane>,
    view: &View,
    keys: &dyn Keys,
) -> Outcome {
    let cluster = cluster_of(control_plane);
    let done = async {
        let cluster = cluster.ok_or_else(|| "the cluster is gone".to_owned())?;
        match call {
            ControlPlaneCall::RemoveMember { id, nodes, .. } => {
                reach(&cluster, control_plane, view, keys).await?.remove(*id, nodes).await
            }
            ControlPlaneCall::MoveLeader { from, to } => {
                reach(&cluster, control_plane, view, keys).await?.move_leader(from, to).await
            }
            ControlPlaneCall::Bind { name } => {
                let client = workloads(view)?.client(&cluster).await;
                let client = client.map_err(|error| error.to_string())?;
                match client.create(&binding_kind(), "", &binding(name)).await {
                    Err(error) if !error.is_already_exists() => Err(error_chain(error)),
                    _ => Ok(()),
                }
            }
            ControlPlaneCall::Change { what, change } => {
                let client = workloads(view)?.client(&cluster).await;
                let client = client.map_err(|error| error.to_string())?;
                let (kind, name) = what.target();
                let patch = Patch::Merge(change.clone());
                let changed = client.patch(&kind, &Key::new(NAMESPACE, name), None, &patch).await;
                changed.map(|_| ()).map_err(error_chain)
            }
        }
    };
    let code = match call {
        ControlPlaneCall::RemoveMember { .. } | ControlPlaneCall::MoveLeader { .. } => code::ETCD,
        _ => code::WORKLOAD,
    };
    match done.await {
        Ok(()) => Outcome::done(),
        // Safe to retry: member ids are never reused, and the other calls declare the desired state.
        Err(why) => Outcome::failed(code, why),
    }
}

/// Looks up a call whose outcome is unknown. If etcd does not answer it counts as not made; a retry checks the
/// members first.
pub(super) async fn resolve(
    intent: &Intent<ControlPlaneCall>,
    control_plane: &Arc<KubeadmControlPlane>,
    view: &View,
    keys: &dyn Keys,
) -> Result<Resolution, ObserveError> {
    let (ControlPlaneCall::RemoveMember { id, nodes, .. }, Some(cluster)) =
        (&intent.call, cluster_of(control_plane))
    else {
        return Ok(Resolution::DidNotHappen);
    };
    let there = async { reach(&cluster, control_plane, view, keys).await?.has(*id, nodes).await };
    Ok(match there.await {
        Ok(false) => Resolution::happened(),
        Ok(true) | Err(_) => Resolution::DidNotHappen,
    })
}

async fn reach<'a>(
    cluster: &'a Key,
    control_plane: &KubeadmControlPlane,
    view: &'a View,
    keys: &dyn Keys,
) -> Result<Etcd<'a>, String> {
    let meta = &control_plane.metadata;
    let seed = keys
        .seed(&format!("{}/{}/{}", meta.namespace, meta.name, meta.uid))
        .map_err(|error| error.to_string())?;
    let credentials = etcd_credentials(cluster, view, &seed, &ClientCertificates::default())
        .await
        .map_err(|error| error.to_string())??;
    Ok(Etcd { workloads: workloads(view)?, cluster, credentials })
}
