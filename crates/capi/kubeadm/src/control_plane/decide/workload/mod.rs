//! Reconciles what kubeadm installed in the workload cluster.

mod coredns;
mod image;
mod kube_proxy;
mod kubeadm_config;

use capstan_capi_types::controlplane::kubeadm_control_plane::annotation;
use serde_json::json;

use super::turn::Turn;
use crate::control_plane::calls::{ControlPlaneCall, Installed};
use crate::control_plane::installed::bindings;
use crate::control_plane::observed::Plane;

/// Before machines of another version or configuration join: role bindings and kubeadm's configuration.
pub(super) fn before_roll_out(turn: &mut Turn<'_>, plane: &Plane) {
    let Some(inside) = turn.look.seen.workload.inside() else { return };
    if plane.machines.iter().any(|member| member.machine.spec.version != plane.control_plane.spec.version) {
        for name in bindings(&plane.control_plane.spec.version) {
            if !inside.bindings.iter().any(|known| known == name) {
                turn.decision.call(ControlPlaneCall::Bind { name: (*name).to_owned() });
            }
        }
    }
    if let Some(found) = &inside.kubeadm_config {
        match kubeadm_config::change(plane, found) {
            Ok(Some(text)) => {
                let change = json!({
                    "metadata": {"resourceVersion": found.metadata.resource_version},
                    "data": {kubeadm_config::CLUSTER_CONFIGURATION: text},
                });
                turn.decision.call(ControlPlaneCall::Change { what: Installed::KubeadmConfig, change });
            }
            Ok(None) => {}
            Err(error) => turn.wait("KubeadmConfigUnreadable", error.to_string()),
        }
    }
}

/// Once all machines are up to date: kube-proxy and CoreDNS.
pub(super) fn add_ons(turn: &mut Turn<'_>, plane: &Plane) {
    let Some(inside) = turn.look.seen.workload.inside().filter(|_| plane.is_initialized()) else { return };
    let annotations = &plane.control_plane.metadata.annotations;
    if !annotations.contains_key(annotation::SKIP_KUBE_PROXY)
        && let Some(change) = inside.kube_proxy.as_ref().and_then(|found| kube_proxy::change(plane, found))
    {
        turn.decision.call(ControlPlaneCall::Change { what: Installed::KubeProxy, change });
    }
    if annotations.contains_key(annotation::SKIP_COREDNS) {
        return;
    }
    match coredns::next(plane, inside) {
        Ok(Some(call)) => {
            if let Some(change) =
                inside.kubeadm_config.as_ref().and_then(|found| kubeadm_config::dns_change(plane, found))
            {
                turn.decision.call(ControlPlaneCall::Change { what: Installed::KubeadmConfig, change });
            }
            turn.decision.call(call);
        }
        Ok(None) => {}
        Err(error) => turn.wait("CoreDNSHeld", format!("CoreDNS is not upgraded: {error}")),
    }
}
