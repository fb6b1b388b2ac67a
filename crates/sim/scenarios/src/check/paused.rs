//! No changes to a paused cluster.

use std::collections::BTreeMap;

use capstan_capi_types::core::{Cluster, label};
use capstan_controller::{EffectOf, KindName};
use capstan_harness::{Checker, Objects, Step};
use jiff::{SignedDuration, Timestamp};

use crate::kinds::name;

/// What was decided just before a pause may still be carried out for this long.
const GRACE: SignedDuration = SignedDuration::from_secs(1);

/// S10: while a Cluster is paused, no cloud call is made for its objects and nothing is created.
#[derive(Default)]
pub struct NothingWhileClusterPaused {
    since: BTreeMap<String, Timestamp>,
}

impl NothingWhileClusterPaused {
    /// Records since when which clusters are paused.
    fn note(&mut self, step: &Step<'_>, objects: &Objects) {
        for cluster in objects.list(&KindName::of::<Cluster>()) {
            if cluster["spec"]["paused"] == true {
                self.since.entry(name(&cluster).to_owned()).or_insert(step.at);
            } else {
                self.since.remove(name(&cluster));
            }
        }
    }

    fn is_paused(&self, cluster: &str, at: Timestamp) -> bool {
        self.since.get(cluster).is_some_and(|since| at.duration_since(*since) > GRACE)
    }
}

impl Checker for NothingWhileClusterPaused {
    fn name(&self) -> &'static str {
        "S10"
    }

    fn before(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        self.note(step, objects);
        let (cluster, what) = match step.effect {
            EffectOf::Call { object, summary, .. } => {
                let stored = objects.get(&object.kind, &object.key).unwrap_or_default();
                (stored["metadata"]["labels"][label::CLUSTER_NAME].clone(), (*summary).to_owned())
            }
            EffectOf::Create { kind, key, body } if kind.group.ends_with("cluster.x-k8s.io") => {
                (body["metadata"]["labels"][label::CLUSTER_NAME].clone(), format!("create {kind} {key}"))
            }
            _ => return Ok(()),
        };
        match cluster.as_str() {
            Some(cluster) if self.is_paused(cluster, step.at) => {
                Err(format!("{what}, while cluster {cluster} is paused"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_decided_before_the_pause_passes() {
        let at = |second| Timestamp::from_second(second).expect("a moment");
        let checker = NothingWhileClusterPaused { since: BTreeMap::from([("c".to_owned(), at(10))]) };
        assert!(!checker.is_paused("c", at(11)));
        assert!(checker.is_paused("c", at(12)));
        assert!(!checker.is_paused("d", at(12)));
    }
}
