//! Nodes are drained before their machines are destroyed.

use capstan_controller::EffectOf;
use capstan_guest::Site;
use capstan_guest::vm::Phase;
use capstan_harness::{Checker, Objects, Step};
use capstan_object::Scope;
use serde_json::Value;

use super::counts::cluster_stays;
use crate::kinds::{in_guest, is_deleting, name};
use capstan_capi_types::core::label;

/// S9: a running machine is not destroyed while its node has evictable pods, unless the whole cluster is being
/// deleted.
pub struct DrainsFirst {
    site: Site,
}

impl DrainsFirst {
    pub fn new(site: &Site) -> Self {
        Self { site: site.clone() }
    }
}

/// The pod runs on a node and a drain would evict it.
fn evictable(pod: &Value, node: &str) -> bool {
    let owned_by = |kind: &str| {
        let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.into_iter().any(|owner| owner["kind"] == kind)
    };
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let mirror = pod["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some();
    let stays = owned_by("DaemonSet") || owned_by("Node") || mirror;
    pod["spec"]["nodeName"] == node && !stays && !ended && !is_deleting(pod)
}

impl Checker for DrainsFirst {
    fn name(&self) -> &'static str {
        "S9"
    }

    fn before(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let EffectOf::Call { summary, .. } = step.effect else { return Ok(()) };
        let Some(id) = summary.strip_prefix("destroy-vm ") else { return Ok(()) };
        let Some(vm) = self.site.vm(id).filter(|vm| vm.phase == Phase::Booted) else { return Ok(()) };
        let (Some(node), Some(guest)) = (&vm.node, self.site.cluster_of(id)) else { return Ok(()) };
        let cluster = vm.tags.get(label::CLUSTER_NAME).map(String::as_str).unwrap_or_default();
        if !cluster_stays(cluster, objects) || !guest.has_quorum() {
            return Ok(());
        }
        let pods = Objects::of(guest.server()).list(&in_guest("Pod", "pods", Scope::Namespaced));
        match pods.iter().find(|pod| evictable(pod, node)) {
            Some(pod) => Err(format!("machine {id} is destroyed while pod {} runs on its node", name(pod))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evictable_pods_are_those_that_a_drain_evicts() {
        let pod = |metadata: Value, phase: &str| json!({"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase}});
        let owned = |kind: &str| json!({"name": "p", "ownerReferences": [{"kind": kind}]});
        for (what, pod, expected) in [
            ("of a set", pod(owned("ReplicaSet"), "Running"), true),
            ("of a daemon", pod(owned("DaemonSet"), "Running"), false),
            ("static", pod(owned("Node"), "Running"), false),
            ("ended", pod(owned("Job"), "Succeeded"), false),
            ("elsewhere", json!({"metadata": {"name": "p"}, "spec": {"nodeName": "m"}}), false),
            (
                "going",
                pod(json!({"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}), "Running"),
                false,
            ),
        ] {
            assert_eq!(evictable(&pod, "n"), expected, "{what}");
        }
    }
}
