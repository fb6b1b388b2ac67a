//! Syncs labels, annotations and taints from a Machine to its Node. Synced keys are recorded in annotations of the
//! Node, so that keys that the Machine no longer has are removed, and others are left alone.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_types::core::{
    Machine, MachineDeployment, MachineSet, MachineTaintPropagation, annotation, label,
};
use capstan_capi_types::kubernetes::Taint;
use regex::RegexSet;
use serde_json::{Map, Value, json};

use crate::contract::{External, InfrastructureMachine};
use crate::workload::Node;

/// Taint of a node that was not synced yet: keeps pods away until then.
pub(crate) const UNINITIALIZED: (&str, &str) = ("node.cluster.x-k8s.io/uninitialized", "NoSchedule");

/// Taint of a node of an old MachineSet: evicted pods prefer other nodes.
const OUTDATED: (&str, &str) = ("node.cluster.x-k8s.io/outdated-revision", "PreferNoSchedule");

/// Annotations every Node of a Machine has.
const COMMON: [&str; 5] = [
    annotation::CLUSTER_NAME,
    annotation::CLUSTER_NAMESPACE,
    annotation::MACHINE,
    annotation::OWNER_KIND,
    annotation::OWNER_NAME,
];

/// Keys that are synced beside those that always are: each key that one of the patterns matches.
#[derive(Debug, Clone, Default)]
pub struct SyncedKeys {
    labels: RegexSet,
    annotations: RegexSet,
}

impl SyncedKeys {
    /// By patterns of keys of labels and of annotations. A pattern matches anywhere in a key unless it is anchored.
    pub fn matching(labels: &[String], annotations: &[String]) -> Result<Self, regex::Error> {
        Ok(Self { labels: RegexSet::new(labels)?, annotations: RegexSet::new(annotations)? })
    }
}

/// The merge patch that syncs a Node, guarded by resourceVersion; `None` if it is in sync.
pub(super) fn change(
    machine: &Machine,
    node: &Node,
    infrastructure: Option<&External>,
    set: Option<&MachineSet>,
    deployment: Option<&MachineDeployment>,
    synced: &SyncedKeys,
) -> Option<Value> {
    let mut labels = managed_labels(&machine.metadata.labels, &synced.labels);
    let interruptible =
        infrastructure.and_then(|object| InfrastructureMachine(object).interruptible().ok().flatten());
    if interruptible == Some(true) {
        labels.insert(label::INTERRUPTIBLE.to_owned(), String::new());
    }
    let mut annotations = managed_annotations(machine, &synced.annotations);
    let own: Vec<&str> = annotations.keys().map(String::as_str).filter(|key| !COMMON.contains(key)).collect();
    let names = |keys: &[&str]| keys.join(",");
    let tracked = [
        (annotation::ANNOTATIONS_FROM_MACHINE, names(&own)),
        (annotation::LABELS_FROM_MACHINE, names(&labels.keys().map(String::as_str).collect::<Vec<_>>())),
        (annotation::TAINTS_FROM_MACHINE, kept_taints(machine)),
    ];
    let taints = taints(machine, node, is_outdated(set, deployment));
    let label_patch =
        difference(&node.metadata.labels, &labels, &before(node, annotation::LABELS_FROM_MACHINE));
    let mut gone = before(node, annotation::ANNOTATIONS_FROM_MACHINE);
    gone.extend(COMMON.iter().map(|key| (*key).to_owned()));
    annotations.extend(tracked.map(|(key, value)| (key.to_owned(), value)));
    let annotation_patch = difference(&node.metadata.annotations, &annotations, &gone);
    let taints_change = taints != node.spec.taints;
    if label_patch.is_empty() && annotation_patch.is_empty() && !taints_change {
        return None;
    }
    let mut change = json!({"metadata": {"resourceVersion": node.metadata.resource_version}});
    if !label_patch.is_empty() {
        change["metadata"]["labels"] = label_patch.into();
    }
    if !annotation_patch.is_empty() {
        change["metadata"]["annotations"] = annotation_patch.into();
    }
    if taints_change {
        change["spec"]["taints"] = json!(taints);
    }
    Some(change)
}

/// Labels of a role, of the restricted domain, of our own domain, and those asked for.
fn managed_labels(labels: &BTreeMap<String, String>, synced: &RegexSet) -> BTreeMap<String, String> {
    let managed = labels.iter().filter(|(key, _)| {
        let domain = key.split('/').next().unwrap_or_default();
        domain == label::NODE_ROLE_PREFIX
            || is_within(domain, label::NODE_RESTRICTION_DOMAIN)
            || is_within(domain, label::MANAGED_NODE_DOMAIN)
            || synced.is_match(key)
    });
    managed.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn managed_annotations(machine: &Machine, synced: &RegexSet) -> BTreeMap<String, String> {
    let meta = &machine.metadata;
    let mut managed: BTreeMap<String, String> = meta
        .annotations
        .iter()
        .filter(|(key, _)| {
            is_within(key.split('/').next().unwrap_or_default(), annotation::MANAGED_NODE_DOMAIN)
                || synced.is_match(key)
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut put = |key: &str, value: &str| drop(managed.insert(key.to_owned(), value.to_owned()));
    put(annotation::CLUSTER_NAME, &machine.spec.cluster_name);
    put(annotation::CLUSTER_NAMESPACE, &meta.namespace);
    put(annotation::MACHINE, &meta.name);
    if let Some(owner) = meta.controller() {
        put(annotation::OWNER_KIND, &owner.kind);
        put(annotation::OWNER_NAME, &owner.name);
    }
    managed
}

fn is_within(domain: &str, parent: &str) -> bool {
    domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
}

/// Synced names, from an annotation of the Node.
fn before(node: &Node, tracking: &str) -> BTreeSet<String> {
    let value = node.metadata.annotations.get(tracking).map_or("", String::as_str);
    value.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The merge patch to the desired values; synced keys that are no longer desired are removed.
fn difference(
    there: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    before: &BTreeSet<String>,
) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, value) in wanted.iter().filter(|(key, value)| there.get(*key) != Some(value)) {
        patch.insert(key.clone(), value.as_str().into());
    }
    for key in before.iter().filter(|key| there.contains_key(*key) && !wanted.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

/// Taints that are always kept, for the tracking annotation.
fn kept_taints(machine: &Machine) -> String {
    let kept =
        machine.spec.taints.iter().filter(|taint| taint.propagation == Some(MachineTaintPropagation::Always));
    let names: BTreeSet<String> =
        kept.map(|taint| format!("{}:{}", taint.key, effect(taint.effect))).collect();
    names.into_iter().collect::<Vec<_>>().join(",")
}

fn effect(effect: Option<capstan_capi_types::core::TaintEffect>) -> &'static str {
    effect.map_or("", capstan_capi_types::core::TaintEffect::as_str)
}

fn taints(machine: &Machine, node: &Node, outdated: bool) -> Vec<Taint> {
    let mut taints = node.spec.taints.clone();
    let is = |taint: &Taint, (key, effect): (&str, &str)| taint.key == key && taint.effect == effect;
    taints.retain(|taint| !is(taint, UNINITIALIZED));
    let initialized = node.metadata.annotations.contains_key(annotation::TAINTS_FROM_MACHINE);
    for wanted in &machine.spec.taints {
        // Added once, when the node appears; users may remove it later.
        if wanted.propagation == Some(MachineTaintPropagation::OnInitialization) && initialized {
            continue;
        }
        let id = (wanted.key.as_str(), effect(wanted.effect));
        match taints.iter_mut().find(|taint| is(taint, id)) {
            Some(taint) if taint.value == wanted.value => {}
            Some(taint) => taint.value = wanted.value.clone(),
            None => taints.push(Taint {
                key: wanted.key.clone(),
                value: wanted.value.clone(),
                effect: id.1.to_owned(),
                time_added: None,
            }),
        }
    }
    let wanted: BTreeSet<String> =
        machine.spec.taints.iter().map(|taint| format!("{}:{}", taint.key, effect(taint.effect))).collect();
    for name in before(node, annotation::TAINTS_FROM_MACHINE).difference(&wanted) {
        if let Some((key, effect)) = name.split_once(':') {
            taints.retain(|taint| !is(taint, (key, effect)));
        }
    }
    let marked = taints.iter().any(|taint| is(taint, OUTDATED));
    if outdated && !marked {
        taints.push(Taint { key: OUTDATED.0.to_owned(), effect: OUTDATED.1.to_owned(), ..Taint::default() });
    } else if !outdated && marked {
        taints.retain(|taint| !is(taint, OUTDATED));
    }
    taints
}

/// The machine's set is of an older revision than its deployment.
fn is_outdated(set: Option<&MachineSet>, deployment: Option<&MachineDeployment>) -> bool {
    let revision = |annotations: &BTreeMap<String, String>| {
        annotations.get(annotation::REVISION).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0)
    };
    match (set, deployment) {
        (Some(set), Some(deployment)) => {
            revision(&set.metadata.annotations) < revision(&deployment.metadata.annotations)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_capi_types::core::{MachineTaint, TaintEffect};
    use capstan_object::ObjectMeta;

    fn machine() -> Machine {
        let mut machine = Machine { metadata: ObjectMeta::named("n", "m"), ..Machine::default() };
        machine.spec.cluster_name = "c".to_owned();
        machine
    }

    fn synced(machine: &Machine, node: &Node) -> Node {
        synced_with(machine, node, &SyncedKeys::default())
    }

    /// The node after the patch; deciding again must give no patch.
    fn synced_with(machine: &Machine, node: &Node, keys: &SyncedKeys) -> Node {
        let mut value = serde_json::to_value(node).expect("a value");
        if let Some(change) = change(machine, node, None, None, None, keys) {
            merge(&mut value, &change);
        }
        let node: Node = serde_json::from_value(value).expect("a node");
        assert_eq!(change(machine, &node, None, None, None, keys), None, "a node in line is left alone");
        node
    }

    #[test]
    fn keys_that_match_a_pattern_are_synced_too() {
        let mut machine = machine();
        let both = |meta: &mut ObjectMeta, key: &str| {
            meta.labels.insert(key.to_owned(), "1".to_owned());
            meta.annotations.insert(key.to_owned(), "1".to_owned());
        };
        for key in ["acme.com/rack", "acme.com.evil/rack", "cost.acme.com/centre"] {
            both(&mut machine.metadata, key);
        }
        let patterns = |patterns: &[&str]| patterns.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let keys = SyncedKeys::matching(&patterns(&["^acme\\.com/", "^x$"]), &patterns(&["acme\\.com/"]));
        let node = synced_with(&machine, &node(), &keys.expect("patterns"));
        assert_eq!(node.metadata.labels.keys().collect::<Vec<_>>(), ["acme.com/rack", "theirs"]);
        let has = |key: &str| node.metadata.annotations.contains_key(key);
        assert!(has("acme.com/rack") && has("cost.acme.com/centre") && !has("acme.com.evil/rack"));
        assert!(SyncedKeys::matching(&patterns(&["("]), &[]).is_err());
    }

    fn merge(target: &mut Value, change: &Value) {
        let (Value::Object(target), Value::Object(change)) = (target, change) else { return };
        for (key, value) in change {
            match value {
                Value::Null => drop(target.remove(key)),
                Value::Object(_) => merge(target.entry(key.clone()).or_insert_with(|| json!({})), value),
                value => drop(target.insert(key.clone(), value.clone())),
            }
        }
    }

    fn node() -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "m", "resourceVersion": "5", "labels": {"theirs": "x"}},
            "spec": {"taints": [
                {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"},
                {"key": "theirs", "effect": "NoExecute"},
            ]},
        }))
        .expect("a node")
    }

    #[test]
    fn labels_of_the_machine_are_added_and_removed_and_others_stay() {
        let mut machine = machine();
        for key in [
            "node-role.kubernetes.io/x",
            "a.node.cluster.x-k8s.io/y",
            "node-restriction.kubernetes.io/z",
            "other/w",
        ] {
            machine.metadata.labels.insert(key.to_owned(), "1".to_owned());
        }
        let first = synced(&machine, &node());
        let labels: Vec<_> = first.metadata.labels.keys().map(String::as_str).collect();
        assert_eq!(
            labels,
            [
                "a.node.cluster.x-k8s.io/y",
                "node-restriction.kubernetes.io/z",
                "node-role.kubernetes.io/x",
                "theirs"
            ]
        );
        machine.metadata.labels.clear();
        let second = synced(&machine, &first);
        assert_eq!(second.metadata.labels.keys().collect::<Vec<_>>(), ["theirs"]);
    }

    #[test]
    fn a_synced_node_loses_its_taint_and_names_its_machine() {
        let node = synced(&machine(), &node());
        assert_eq!(node.spec.taints.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>(), ["theirs"]);
        assert_eq!(node.metadata.annotations[annotation::MACHINE], "m");
        assert_eq!(node.metadata.annotations[annotation::CLUSTER_NAME], "c");
    }

    #[test]
    fn taints_are_always_kept_or_set_once() {
        let taint = |key: &str, propagation| MachineTaint {
            key: key.to_owned(),
            value: String::new(),
            effect: Some(TaintEffect::NoSchedule),
            propagation: Some(propagation),
        };
        let mut machine = machine();
        machine.spec.taints = vec![
            taint("always", MachineTaintPropagation::Always),
            taint("once", MachineTaintPropagation::OnInitialization),
        ];
        let keys = |node: &Node| node.spec.taints.iter().map(|taint| taint.key.clone()).collect::<Vec<_>>();
        let mut first = synced(&machine, &node());
        assert_eq!(keys(&first), ["theirs", "always", "once"]);
        first.spec.taints.clear();
        let second = synced(&machine, &first);
        assert_eq!(keys(&second), ["always"]);
        machine.spec.taints.clear();
        assert_eq!(keys(&synced(&machine, &second)), Vec::<String>::new());
    }

    #[test]
    fn a_node_of_an_old_revision_is_tainted_and_untainted() {
        let with_revision =
            |revision: &str| BTreeMap::from([(annotation::REVISION.to_owned(), revision.to_owned())]);
        let (mut set, mut deployment) = (MachineSet::default(), MachineDeployment::default());
        set.metadata.annotations = with_revision("1");
        for (revision, outdated) in [("1", false), ("2", true)] {
            deployment.metadata.annotations = with_revision(revision);
            assert_eq!(is_outdated(Some(&set), Some(&deployment)), outdated);
            let taints = taints(&machine(), &node(), outdated);
            assert_eq!(taints.iter().any(|taint| taint.key == OUTDATED.0), outdated);
        }
    }
}
