//! Which changes of a class concern its clusters, and how long they wait for its controller.

use std::time::Duration;

use capstan_capi_core::paused;
use capstan_capi_types::core::{ClusterClass, cluster_class};
use capstan_controller::Change;
use capstan_object::{ConditionStatus, Key, Object};
use jiff::Timestamp;

use super::ClusterTopologies;

/// How long an edited class may be ahead of its controller before its clusters report it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether clusters see a difference. A class that its controller will look at next is left to that: all its clusters
/// would report that it is not reconciled, and a moment later that it is.
pub(super) fn concerns_clusters(change: &Change<ClusterClass>) -> bool {
    let Some(new) = &change.new else { return true };
    let ready = new.metadata.generation == new.status.observed_generation;
    if !ready && !discovery_failed(new) && !is_paused(new) {
        return false;
    }
    let seen = |class: &ClusterClass| {
        let generations = (class.metadata.generation, class.status.observed_generation);
        (generations, discovery_failed(class), is_paused(class), class.status.variables.clone())
    };
    change.old.as_ref().is_none_or(|old| seen(old) != seen(new))
}

/// Variables that extensions define are not known.
pub(super) fn discovery_failed(class: &ClusterClass) -> bool {
    let conditions = &class.status.conditions;
    conditions.iter().any(|condition| {
        condition.kind == cluster_class::condition::VARIABLES_READY
            && condition.status == ConditionStatus::False
    })
}

fn is_paused(class: &ClusterClass) -> bool {
    paused::why(None, &class.metadata, ClusterClass::KIND.kind).is_some()
}

impl ClusterTopologies {
    /// How long the cluster still waits for its class without reporting it; `None` if the time is over.
    pub(super) fn patience(&self, cluster: &Key, class: &ClusterClass, now: Timestamp) -> Option<Duration> {
        if is_paused(class) {
            return None;
        }
        let since = *self.waiting.lock().entry(cluster.clone()).or_insert(now);
        PATIENCE.checked_sub(now.duration_since(since).unsigned_abs()).filter(|left| !left.is_zero())
    }

    pub(super) fn class_is_ready(&self, cluster: &Key) {
        self.waiting.lock().remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::testing::class;

    fn of(generation: i64, observed: i64, change: Value) -> Arc<ClusterClass> {
        let mut class = class(change);
        class.metadata.generation = generation;
        class.status.observed_generation = observed;
        Arc::new(class)
    }

    #[test]
    fn an_edit_of_a_class_concerns_its_clusters_once_its_controller_has_seen_it() {
        let plain = |generation, observed| of(generation, observed, json!({}));
        let labelled = of(1, 1, json!({"metadata": {"labels": {"a": "b"}}}));
        let paused = |generation, observed| {
            let annotations = json!({"cluster.x-k8s.io/paused": ""});
            of(generation, observed, json!({"metadata": {"annotations": annotations}}))
        };
        let mut more = ClusterClass::clone(&plain(1, 1));
        let variable = json!([{"name": "a", "schema": {"openAPIV3Schema": {"type": "string"}}}]);
        let with = class(json!({"spec": {"variables": variable}}));
        more.status.variables = with.status.variables;
        let table = [
            ("found at the start", None, Some(plain(1, 1)), true),
            ("created", None, Some(plain(1, 0)), false),
            ("edited", Some(plain(1, 1)), Some(plain(2, 1)), false),
            ("edited twice", Some(plain(2, 1)), Some(plain(3, 1)), false),
            ("reconciled", Some(plain(2, 1)), Some(plain(2, 2)), true),
            ("labelled", Some(plain(1, 1)), Some(labelled), false),
            ("discovered", Some(plain(1, 1)), Some(Arc::new(more)), true),
            ("edited while paused", Some(paused(1, 1)), Some(paused(2, 1)), true),
            ("deleted", Some(plain(1, 1)), None, true),
        ];
        for (what, old, new, concerned) in table {
            let change = Change { key: Key::new("ns", "quick"), old, new, initial: false };
            assert_eq!(concerns_clusters(&change), concerned, "{what}");
        }
    }

    #[test]
    fn a_class_that_stays_unreconciled_is_reported_after_a_time() {
        let controller = ClusterTopologies::default();
        let (cluster, class) = (Key::new("ns", "one"), class(json!({})));
        let at = |second: i64| Timestamp::from_second(second).expect("a time");
        let left = |second| controller.patience(&cluster, &class, at(second)).map(|left| left.as_secs());
        assert_eq!([left(100), left(104), left(110), left(200)], [Some(10), Some(6), None, None]);
        controller.class_is_ready(&cluster);
        assert_eq!(left(300), Some(10), "another edit");
    }
}
