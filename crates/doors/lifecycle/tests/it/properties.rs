//! What must hold of clusters of the lifecycle API at every moment, beside what holds of machines in the cloud.

use capstan_capi_types::core::{self, Machine};
use capstan_controller::KindName;
use capstan_harness::{Checker, Objects, Step};
use capstan_lifecycle::names::CLUSTER_FINALIZER;
use capstan_lifecycle::names::label::{CLUSTER_NAME, CLUSTER_NAMESPACE};
use capstan_lifecycle::types::Cluster;
use capstan_object::Key;
use serde_json::Value;

use crate::check;
use crate::cloud::Cloud;
use crate::waiting::Waiting;

fn is_of_control_plane(machine: &Value) -> bool {
    machine["metadata"]["labels"].get(core::label::CONTROL_PLANE).is_some()
}

/// S2: never more machines of a role than wanted and the one that a rollout adds.
struct AtMost(usize);

impl Checker for AtMost {
    fn name(&self) -> &'static str {
        "S2"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let machines = objects.list(&KindName::of::<Machine>());
        let control_plane = machines.iter().filter(|machine| is_of_control_plane(machine)).count();
        let workers = machines.len() - control_plane;
        match control_plane.max(workers) <= self.0 {
            true => Ok(()),
            false => Err(format!("{control_plane} control plane machines and {workers} workers")),
        }
    }
}

/// S4: what was generated has a cluster that holds it with its finalizer.
struct Held;

impl Held {
    fn holder(object: &Value) -> Option<Key> {
        let labels = &object["metadata"]["labels"];
        Some(Key::new(labels[CLUSTER_NAMESPACE].as_str()?, labels[CLUSTER_NAME].as_str()?))
    }
}

impl Checker for Held {
    fn name(&self) -> &'static str {
        "S4"
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        for object in objects.list(&KindName::of::<core::Cluster>()) {
            let Some(holder) = Self::holder(&object) else { continue };
            let cluster = objects.get(&KindName::of::<Cluster>(), &holder).unwrap_or_default();
            let finalizers = cluster["metadata"]["finalizers"].as_array().into_iter().flatten();
            if !finalizers.into_iter().any(|it| it == CLUSTER_FINALIZER) {
                let name = &object["metadata"]["name"];
                return Err(format!("Cluster {name} exists and {holder} does not hold it"));
            }
        }
        Ok(())
    }
}

/// Every checker; `most` is the number of machines that a role may have.
pub fn all(cloud: &Cloud, most: usize) -> Vec<Box<dyn Checker>> {
    let mut all = check::all(cloud);
    all.extend([Box::new(AtMost(most)) as Box<dyn Checker>, Box::new(Held), Box::new(Waiting::default())]);
    all
}
