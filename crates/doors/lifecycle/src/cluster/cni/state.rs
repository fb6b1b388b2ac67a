//! What is recorded about the CNI of a cluster, and whether it was applied. Pure.

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_types::addons::cluster_resource_set::condition;
use capstan_capi_types::addons::{ClusterResourceSetBinding, ResourceRef};
use capstan_controller::Look;
use capstan_object::ConditionStatus::{False, True};
use capstan_object::Conditions as _;

use super::super::{Clusters, Current};
use crate::cni::Parts;
use crate::names::{self, annotation};
use crate::types::Cluster;

/// An annotation of the add-on's first ConfigMap.
fn annotation_of<'a>(cluster: &Cluster, current: &'a Current, key: &str) -> Option<&'a str> {
    let first = current.cni_parts.get(&names::cni(&cluster.metadata.name))?;
    first.annotations.get(key).map(String::as_str)
}

/// The record of the last apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// Of what the manifests are made from.
    pub digest: &'a str,
    pub parts: Parts,
}

impl<'a> Record<'a> {
    /// The value of the annotation.
    pub fn text(&self) -> String {
        let Parts { config_maps, secret } = self.parts;
        format!("{}/{config_maps}/{}", self.digest, u8::from(secret))
    }

    fn parse(text: &'a str) -> Self {
        // Earlier versions recorded a digest of their own, of one part.
        let mut words = text.split('/');
        let digest = words.next().unwrap_or_default();
        let config_maps = words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
        Self { digest, parts: Parts { config_maps, secret: words.next() == Some("1") } }
    }
}

pub(super) fn recorded<'a>(cluster: &Cluster, current: &'a Current) -> Option<Record<'a>> {
    annotation_of(cluster, current, annotation::APPLIED).map(Record::parse)
}

/// Whether the CNI is left as it is. With `skipUpgrade` a new cluster gets one all the same, as from EKS Anywhere: once.
/// One that EKS Anywhere installed before the cluster was taken over is not replaced.
pub(in crate::cluster) fn is_left(cluster: &Cluster, current: &Current) -> bool {
    let recorded = recorded(cluster, current).is_some();
    let installed_before = cluster.metadata.annotations.contains_key(annotation::CILIUM_INSTALLED);
    match cluster.skips_cni() {
        // It was ready, so it has a CNI, wherever that is from.
        true => {
            installed_before || cluster.status.reconciled_generation > 0 || recorded && current.cni.is_some()
        }
        false => installed_before && !recorded,
    }
}

/// The parts that were written.
fn parts(cluster: &Cluster, current: &Current) -> Vec<ResourceRef> {
    recorded(cluster, current).map_or_else(Vec::new, |record| record.parts.of(cluster))
}

/// Whether manifests with this digest are written, and all of them.
pub(super) fn is_recorded(cluster: &Cluster, current: &Current, digest: &str) -> bool {
    recorded(cluster, current).is_some_and(|record| record.digest == digest)
        && parts(cluster, current).iter().all(|part| current.cni_parts.contains_key(&part.name))
}

/// Whether the check of a version may have left something in the workload cluster.
pub(super) fn is_marked(cluster: &Cluster, current: &Current) -> bool {
    annotation_of(cluster, current, annotation::CNI_PREFLIGHT).is_some()
}

/// Whether every part was applied as it is now.
pub(super) fn is_applied(cluster: &Cluster, current: &Current) -> bool {
    let name = names::cni(&cluster.metadata.name);
    let Some(binding) = &current.applied else { return false };
    let ClusterResourceSetBinding { spec, .. } = &**binding;
    let entry = spec.bindings.iter().find(|entry| entry.cluster_resource_set_name == name);
    let is_applied = |part: &ResourceRef| {
        let wanted = current.cni_parts.get(&part.name);
        let wanted = wanted.and_then(|it| it.annotations.get(annotation::CNI_HASH));
        let mut known = entry.iter().flat_map(|entry| &entry.resources);
        known.any(|it| it.name == part.name && it.applied == Some(true) && Some(&it.hash) == wanted)
    };
    let parts = parts(cluster, current);
    !parts.is_empty() && parts.iter().all(is_applied)
}

/// What the phase waits for or what failed, if it does not only wait for the add-on to be applied.
pub(in crate::cluster) type Pending = Option<(&'static str, String)>;

pub(in crate::cluster) const SKIPPED: &str = "SkipUpgradesForDefaultCNIConfigured";
/// EKS Anywhere's reason, with the word at its end.
pub(super) const UPGRADING: &str = "DefaultCNIUpgradeInProgressReason";

/// The condition `DefaultCNIConfigured`.
pub(in crate::cluster) fn configured(look: &Look<Clusters>, pending: Pending) -> ConditionState {
    let (cluster, current) = (&look.object, &look.seen.current);
    if is_left(cluster, current) {
        let what = "Configured to skip default Cilium CNI upgrades";
        return ConditionState::new(False, SKIPPED, what);
    }
    if let Some((reason, message)) = pending {
        return ConditionState::new(False, reason, message);
    }
    if is_applied(cluster, current) {
        return ConditionState::new(True, "DefaultCNIConfigured", "");
    }
    if recorded(cluster, current).is_none() {
        let what = "The CNI is installed when the control plane is available";
        return ConditionState::new(False, "ControlPlaneNotReady", what);
    }
    let set = current.cni.as_ref();
    let failed = set.and_then(|set| set.status.conditions.condition(condition::RESOURCES_APPLIED));
    match failed.filter(|failed| failed.status == False) {
        Some(failed) => ConditionState::new(False, "DefaultCNINotApplied", failed.message.clone()),
        None => {
            ConditionState::new(False, "DefaultCNINotApplied", "The manifests of the CNI are not applied yet")
        }
    }
}
