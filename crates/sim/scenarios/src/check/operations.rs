//! Operations report the progress of a change.

use std::collections::BTreeMap;

use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::KindName;
use capstan_controller::operation::{Intention, Operation};
use capstan_harness::{Checker, Objects, Step};
use capstan_object::ObjectMeta;
use serde::Deserialize as _;
use serde_json::Value;

use crate::kinds::{holds, name};

/// O1: a finished operation does not change, an idle and healthy cluster has none open, and the last operation of a
/// deleted cluster is its deletion.
#[derive(Default)]
pub struct OperationsEnd {
    last: BTreeMap<String, Operation>,
}

fn operation(cluster: &Value) -> Option<Operation> {
    Operation::of(&ObjectMeta::deserialize(&cluster["metadata"]).ok()?)
}

impl OperationsEnd {
    fn see(&mut self, clusters: &[Value]) -> Result<(), String> {
        let gone =
            self.last.iter().find(|(known, _)| !clusters.iter().any(|cluster| name(cluster) == *known));
        if let Some((cluster, operation)) = gone.map(|(name, operation)| (name.clone(), operation.clone())) {
            self.last.remove(&cluster);
            if operation.intention != Intention::Delete {
                return Err(format!("cluster {cluster} is gone, but its last operation was {operation:?}"));
            }
        }
        for cluster in clusters {
            let Some(now) = operation(cluster) else { continue };
            let before = self.last.insert(name(cluster).to_owned(), now.clone());
            let reopened = before.filter(|before| {
                before.is_over()
                    && (before.intention, before.started) == (now.intention, now.started)
                    && *before != now
            });
            if let Some(before) = reopened {
                return Err(format!("{before:?} was finished and became {now:?}"));
            }
        }
        Ok(())
    }
}

impl Checker for OperationsEnd {
    fn name(&self) -> &'static str {
        "O1"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        self.see(&objects.list(&KindName::of::<Cluster>()))
    }

    fn idle(&mut self, objects: &Objects) -> Result<(), String> {
        let clusters = objects.list(&KindName::of::<Cluster>());
        self.see(&clusters)?;
        // Upstream calls a cluster available whatever its pools report; without a CNI it is not created yet.
        let machines = objects.list(&KindName::of::<Machine>());
        let has_network = machines.iter().any(|machine| holds(machine, "NodeReady"));
        for cluster in clusters.iter().filter(|cluster| holds(cluster, "Available")) {
            match operation(cluster) {
                Some(operation) if operation.is_over() => {}
                Some(_) if !machines.is_empty() && !has_network => {}
                Some(open) => return Err(format!("{} is available, but {open:?} is open", name(cluster))),
                None => return Err(format!("{} has no operation", name(cluster))),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a moment")
    }

    fn cluster(operation: &Operation) -> Value {
        let mut meta = ObjectMeta::named("default", "c");
        operation.put(&mut meta).expect("written");
        json!({"metadata": meta})
    }

    fn made(intention: Intention, done: bool) -> Operation {
        let mut operation = Operation::begin(intention, 1, at(0), &[("Network", 1)]);
        operation.progress("Network", u32::from(done), 1, at(5));
        operation
    }

    #[test]
    fn a_finished_operation_may_not_change() {
        let mut checker = OperationsEnd::default();
        assert_eq!(checker.see(&[cluster(&made(Intention::Create, true))]), Ok(()));
        assert!(checker.see(&[cluster(&made(Intention::Create, false))]).is_err());
    }

    #[test]
    fn the_last_operation_of_a_cluster_is_its_deletion() {
        let mut checker = OperationsEnd::default();
        assert_eq!(checker.see(&[cluster(&made(Intention::Create, true))]), Ok(()));
        assert!(checker.see(&[]).is_err());
        assert_eq!(checker.see(&[cluster(&made(Intention::Delete, false))]), Ok(()));
        assert_eq!(checker.see(&[]), Ok(()));
    }
}
