//! Desired MachineSets: fields that follow from the deployment without a rollout.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::{
    MachineDeployment, MachineSet, MachineSetSpec, annotation, label, machine_set,
};
use capstan_object::{ObjectMeta, OwnerReference};

use super::rollout::{SetPlan, Strategy, max_surge};
use crate::names::{Names, joined};
use crate::propagate::Propagated;
use crate::template;

/// Earlier revisions of a set that became current again. Deprecated upstream; existing values are kept.
const REVISION_HISTORY: &str = "machinedeployment.clusters.x-k8s.io/revision-history";

/// Annotations that are not propagated to sets.
const NOT_PROPAGATED: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    annotation::REVISION,
    REVISION_HISTORY,
    annotation::DESIRED_REPLICAS,
    annotation::MAX_REPLICAS,
    annotation::CONVERSION_DATA,
];

/// Annotations that the plan controls.
pub const PLANNED: &[&str] =
    &[annotation::MOVE_MACHINES_TO, annotation::RECEIVE_MACHINES_FROM, annotation::ACKNOWLEDGED_MOVE];

/// The number of a revision, and those that a set had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The set's revision.
    pub number: String,
    history: Option<String>,
}

impl Revision {
    /// The revision of the current set: higher than those of all others, and never lower than its own.
    pub fn of_current(current: Option<&MachineSet>, old: &[Arc<MachineSet>]) -> Self {
        let revision = |set: &MachineSet| set.metadata.annotations.get(annotation::REVISION).cloned();
        let number = |text: Option<String>| text.and_then(|text| text.parse::<i64>().ok());
        let newest = old.iter().filter_map(|set| number(revision(set))).max().unwrap_or(0);
        let own = current.and_then(revision);
        let next = (newest + 1).max(number(own.clone()).unwrap_or(0)).to_string();
        let before = current.and_then(|set| set.metadata.annotations.get(REVISION_HISTORY).cloned());
        let history = match own {
            Some(own) if own != next => {
                let earlier = before.filter(|before| !before.is_empty()).map(|before| before + ",");
                Some(earlier.unwrap_or_default() + &own)
            }
            _ => before,
        };
        Self { number: next, history }
    }

    /// The revision that an old set has and keeps.
    fn of_old(set: &MachineSet) -> Option<Self> {
        let annotations = &set.metadata.annotations;
        let number = annotations.get(annotation::REVISION)?.clone();
        Some(Self { number, history: annotations.get(REVISION_HISTORY).cloned() })
    }
}

/// Labels and annotations of a set. `revision` is given for the current set and `None` for old ones.
pub fn propagated(
    deployment: &MachineDeployment,
    strategy: &Strategy,
    unique: &str,
    set: Option<&MachineSet>,
    revision: Option<&Revision>,
    plan: Option<&SetPlan>,
) -> Propagated {
    let desired = deployment.spec.replicas.unwrap_or(0);
    let is_old = revision.is_none();
    let mut annotations: BTreeMap<String, String> = deployment
        .metadata
        .annotations
        .iter()
        .filter(|(key, _)| !NOT_PROPAGATED.contains(&key.as_str()) && !key.starts_with("capstan.dev/"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut put = |key: &str, value: String| drop(annotations.insert(key.to_owned(), value));
    put(annotation::DESIRED_REPLICAS, desired.to_string());
    put(annotation::MAX_REPLICAS, (desired + max_surge(strategy, desired)).to_string());
    put(annotation::DISABLE_MACHINE_CREATE, (is_old && *strategy == Strategy::OnDelete).to_string());
    if let Some(revision) = revision.cloned().or_else(|| set.and_then(Revision::of_old)) {
        put(annotation::REVISION, revision.number);
        if let Some(history) = revision.history {
            put(REVISION_HISTORY, history);
        }
    }
    if let Some(plan) = plan {
        let listed =
            |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(",");
        if let Some(target) = &plan.move_to {
            put(annotation::MOVE_MACHINES_TO, target.clone());
        }
        if !plan.receive_from.is_empty() {
            put(annotation::RECEIVE_MACHINES_FROM, listed(&plan.receive_from));
        }
        if !plan.acknowledged.is_empty() {
            put(annotation::ACKNOWLEDGED_MOVE, listed(&plan.acknowledged));
        }
    }
    let mut labels = template_labels(deployment, unique);
    labels.insert(label::DEPLOYMENT_NAME.to_owned(), deployment.metadata.name.clone());
    Propagated { labels, annotations }
}

/// Labels of the machines of a set.
fn template_labels(deployment: &MachineDeployment, unique: &str) -> BTreeMap<String, String> {
    let mut labels = deployment.spec.template.metadata.labels.clone();
    labels.insert(label::MACHINE_TEMPLATE_HASH.to_owned(), unique.to_owned());
    labels.insert(label::CLUSTER_NAME.to_owned(), deployment.spec.cluster_name.clone());
    labels
}

/// The spec of a set: its own template with all fields that are updated in place.
pub fn spec(
    deployment: &MachineDeployment,
    unique: &str,
    set: Option<&MachineSet>,
    replicas: i32,
) -> MachineSetSpec {
    let wanted = &deployment.spec;
    let mut spec = set.map(|set| set.spec.clone()).unwrap_or_default();
    let mut machine = match set {
        Some(set) => set.spec.template.spec.clone(),
        None => wanted.template.spec.clone(),
    };
    machine.min_ready_seconds = wanted.template.spec.min_ready_seconds;
    machine.readiness_gates = wanted.template.spec.readiness_gates.clone();
    machine.deletion = wanted.template.spec.deletion.clone();
    machine.taints = wanted.template.spec.taints.clone();
    spec.cluster_name = wanted.cluster_name.clone();
    spec.replicas = Some(replicas);
    spec.selector = wanted.selector.clone();
    spec.selector.match_labels.insert(label::MACHINE_TEMPLATE_HASH.to_owned(), unique.to_owned());
    spec.selector.match_labels.insert(label::CLUSTER_NAME.to_owned(), wanted.cluster_name.clone());
    spec.template.metadata.labels = template_labels(deployment, unique);
    spec.template.metadata.annotations = wanted.template.metadata.annotations.clone();
    spec.template.spec = machine;
    spec.machine_naming = wanted.machine_naming.clone();
    spec.deletion = wanted.deletion.clone();
    spec
}

/// A new set for the deployment's template.
pub fn new_set(
    deployment: &MachineDeployment,
    strategy: &Strategy,
    suffix: &str,
    revision: &Revision,
    plan: &SetPlan,
) -> MachineSet {
    let unique = unique(deployment, suffix);
    let mut metadata = ObjectMeta::named(deployment.metadata.namespace.clone(), name(deployment, suffix));
    propagated(deployment, strategy, &unique, None, Some(revision), Some(plan)).write(&mut metadata);
    metadata.owner_references = vec![OwnerReference::controlled_by(deployment)];
    metadata.finalizers = vec![machine_set::FINALIZER.to_owned()];
    MachineSet { metadata, spec: spec(deployment, &unique, None, plan.replicas), ..MachineSet::default() }
}

/// Names of sets to come.
pub fn names(deployment: &MachineDeployment, sets: &[Arc<MachineSet>]) -> Names {
    Names::of(&deployment.metadata, |suffix| {
        let name = name(deployment, suffix);
        sets.iter().any(|set| set.metadata.name == name)
    })
}

/// The name of a set.
pub fn name(deployment: &MachineDeployment, suffix: &str) -> String {
    joined(&deployment.metadata.name, suffix)
}

/// The label value that identifies the machines of this set.
fn unique(deployment: &MachineDeployment, suffix: &str) -> String {
    format!("{}-{suffix}", template::hash(&deployment.spec.template))
}
