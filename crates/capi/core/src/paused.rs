//! Paused objects and the `Paused` condition.

use capstan_capi_types::core::{Cluster, annotation, reason};
use capstan_controller::Change;
use capstan_object::{ConditionStatus, ObjectMeta};

use crate::conditions::ConditionState;

/// Why all objects of a cluster are paused: the lock of `capstan adopt`, or `spec.paused`.
pub fn of_cluster(cluster: &Cluster) -> Option<&'static str> {
    if cluster.metadata.annotations.contains_key(annotation::ADOPTION_LOCK) {
        return Some("Cluster is locked until capstan adopt --unlock");
    }
    (cluster.spec.paused == Some(true)).then_some("Cluster spec.paused is set to true")
}

/// Why an object is paused: its cluster is, or it has the annotation.
pub fn why(cluster: Option<&Cluster>, meta: &ObjectMeta, kind: &str) -> Option<String> {
    let mut reasons: Vec<String> = cluster.and_then(of_cluster).map(str::to_owned).into_iter().collect();
    if meta.annotations.contains_key(annotation::PAUSED) {
        reasons.push(format!("{kind} has the cluster.x-k8s.io/paused annotation"));
    }
    Some(reasons.join(", ")).filter(|reasons| !reasons.is_empty())
}

/// The `Paused` condition.
pub fn condition(why: Option<&str>) -> ConditionState {
    match why {
        Some(why) => ConditionState::new(ConditionStatus::True, reason::PAUSED, why),
        None => ConditionState::new(ConditionStatus::False, reason::NOT_PAUSED, ""),
    }
}

/// Whether a change of a cluster matters to its objects: created, deleted, paused or resumed, infrastructure or control
/// plane provisioned or lost.
pub fn concerns_members(change: &Change<Cluster>) -> bool {
    let reported = |cluster: &std::sync::Arc<Cluster>| {
        let initialization = &cluster.status.initialization;
        (
            cluster.spec.paused,
            of_cluster(cluster),
            cluster.metadata.is_deleting(),
            initialization.infrastructure_provisioned,
            initialization.control_plane_initialized,
        )
    };
    change.old.as_ref().map(reported) != change.new.as_ref().map(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_cluster_is_paused_whatever_its_spec_says() {
        let mut cluster = Cluster::default();
        cluster.metadata.annotations.insert(annotation::ADOPTION_LOCK.to_owned(), String::new());
        for paused in [None, Some(false), Some(true)] {
            cluster.spec.paused = paused;
            let why = why(Some(&cluster), &ObjectMeta::default(), "Machine");
            assert_eq!(why.as_deref(), Some("Cluster is locked until capstan adopt --unlock"), "{paused:?}");
        }
    }

    #[test]
    fn both_reasons_are_reported() {
        let mut cluster = Cluster::default();
        let mut meta = ObjectMeta::default();
        assert_eq!(why(Some(&cluster), &meta, "MachineSet"), None);
        cluster.spec.paused = Some(true);
        meta.annotations.insert(annotation::PAUSED.to_owned(), String::new());
        assert_eq!(
            why(Some(&cluster), &meta, "MachineSet").as_deref(),
            Some("Cluster spec.paused is set to true, MachineSet has the cluster.x-k8s.io/paused annotation")
        );
    }
}
