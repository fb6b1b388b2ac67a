//! Reconciles what kubeadm installed in the workload cluster.

mod coredns;
mod image;
mod kube_proxy;
mod kubeadm_config;

use capstan_capi_types::controlplane::kubeadm_control_plane::annotation;
use serde_json::json;

use super::scope::ReconcileScope;
use crate::control_plane::calls::{ControlPlaneCall, InstalledObject};
use crate::control_plane::installed::bindings;
use crate::control_plane::observed::ControlPlaneState;

/// Before machines of another version or configuration join: role bindings and kubeadm's configuration.
pub(super) fn before_roll_out(scope: &mut ReconcileScope<'_>, plane: &ControlPlaneState) {
    let Some(reached) = scope.look.seen.workload.reached() else { return };
    if let Some(existing) = &reached.bindings {
        for name in bindings(&plane.control_plane.spec.version) {
            if !existing.iter().any(|known| known == name) {
                scope.decision.call(ControlPlaneCall::Bind { name: (*name).to_owned() });
            }
        }
    }
    if let Some(found) = &reached.kubeadm_config {
        match kubeadm_config::change(plane, found) {
            Ok(Some(text)) => {
                let change = json!({
                    "metadata": {"resourceVersion": found.metadata.resource_version},
                    "data": {kubeadm_config::CLUSTER_CONFIGURATION: text},
                });
                scope
                    .decision
                    .call(ControlPlaneCall::Change { what: InstalledObject::KubeadmConfig, change });
            }
            Ok(None) => {}
            Err(error) => scope.wait("KubeadmConfigUnreadable", error.to_string()),
        }
    }
}

/// Once all machines are up to date: kube-proxy and CoreDNS.
pub(super) fn add_ons(scope: &mut ReconcileScope<'_>, plane: &ControlPlaneState) {
    let Some(reached) = scope.look.seen.workload.reached().filter(|_| plane.is_initialized()) else { return };
    let annotations = &plane.control_plane.metadata.annotations;
    if !annotations.contains_key(annotation::SKIP_KUBE_PROXY)
        && let Some(change) = reached.kube_proxy.as_ref().and_then(|found| kube_proxy::change(plane, found))
    {
        scope.decision.call(ControlPlaneCall::Change { what: InstalledObject::KubeProxy, change });
    }
    if annotations.contains_key(annotation::SKIP_COREDNS) {
        return;
    }
    match coredns::next(plane, reached) {
        Ok(Some(call)) => {
            if let Some(change) =
                reached.kubeadm_config.as_ref().and_then(|found| kubeadm_config::dns_change(plane, found))
            {
                scope
                    .decision
                    .call(ControlPlaneCall::Change { what: InstalledObject::KubeadmConfig, change });
            }
            scope.decision.call(call);
        }
        Ok(None) => {}
        Err(error) => scope.wait("CoreDNSHeld", format!("CoreDNS is not upgraded: {error}")),
    }
}
