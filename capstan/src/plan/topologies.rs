//! What a change does to clusters of a class: objects that change, templates that are rotated, machines that are replaced.
//!
//! The topology controller runs on the copy. This compares the parts of each cluster before the change with those at the
//! end.

use std::collections::BTreeSet;

use capstan_capi_types::core::{ClusterClass, label};
use capstan_object::Key;
use capstan_rehearsal::{MachineEvent, Preview};
use capstan_view::{Topology, one_line};
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use super::changes::{ChangeKind, differences};
use super::counts::{MachineCount, machine_counts};
use crate::apply::title;

/// Kinds that a topology makes beside what the Cluster refers to.
const KINDS: [&str; 3] = ["MachineDeployment", "MachinePool", "MachineHealthCheck"];

/// Where parts refer to templates. Templates are replaced by new ones; references to other objects stay.
const REFERENCES: [&str; 4] = [
    "/machineTemplate/spec/infrastructureRef",
    "/machineTemplate/infrastructureRef",
    "/template/spec/bootstrap/configRef",
    "/template/spec/infrastructureRef",
];

/// Fields that providers write.
const PROVIDER_FIELDS: [(&str, &str); 2] =
    [("", "providerIDList"), ("/template/spec/bootstrap", "dataSecretName")];

/// What a change names: the kind and key of objects in a manifest, of patches and of deletions.
pub type Named = (String, Key);

/// What happens to a cluster of a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyPlan {
    pub namespace: String,
    pub cluster: String,
    /// Name of the ClusterClass; with its namespace if the cluster is in another.
    pub class: String,
    /// Why the topology is not reconciled at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_reconciled: Option<String>,
    pub parts: Vec<PartPlan>,
}

/// What happens to an object of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartPlan {
    /// `Kind/name`.
    pub object: String,
    pub becomes: ChangeKind,
    /// Kinds of its templates that are replaced by new ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rotated: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    #[serde(skip_serializing_if = "MachineCount::is_empty")]
    pub machines: MachineCount,
}

/// The clusters of classes that a change names, directly or by a template, and all others that it changes.
pub fn of(named: &[Named], course: &Preview) -> Vec<TopologyPlan> {
    let classes = named_classes(named, course);
    let mut plans = Vec::new();
    for cluster in course.objects.iter().filter(|object| is_of_kind(object, "Cluster")) {
        let Some(topology) = Topology::of(cluster) else { continue };
        let key = key_of(cluster);
        let is_named =
            classes.contains(&topology.class_key()) || named.contains(&("Cluster".to_owned(), key.clone()));
        let parts = parts(&key, cluster, course);
        if !is_named && parts.is_empty() {
            continue;
        }
        plans.push(TopologyPlan {
            class: topology.class_name(&key.namespace),
            not_reconciled: not_reconciled(cluster),
            namespace: key.namespace,
            cluster: key.name,
            parts,
        });
    }
    plans
}

/// Classes that are named, or that refer to a template that is.
fn named_classes(named: &[Named], course: &Preview) -> BTreeSet<Key> {
    let classes = named.iter().filter(|(kind, _)| kind == "ClusterClass");
    let mut classes: BTreeSet<Key> = classes.map(|(_, key)| key.clone()).collect();
    let all = course.objects.iter().chain(&course.objects_before);
    classes.extend(referring(all.filter(|object| is_of_kind(object, "ClusterClass")), named));
    classes
}

/// Classes that refer to a template that a change names.
pub fn referring<'a>(
    classes: impl IntoIterator<Item = &'a Value>,
    named: &[Named],
) -> impl Iterator<Item = Key> {
    classes.into_iter().filter(|class| refers_to(class, named)).map(key_of)
}

pub fn class_of(cluster: &Value) -> Option<Key> {
    Topology::of(cluster).map(|topology| topology.class_key())
}

fn refers_to(class: &Value, named: &[Named]) -> bool {
    let Ok(typed) = ClusterClass::deserialize(class) else { return false };
    let namespace = key_of(class).namespace;
    typed.spec.templates().iter().any(|(_, template)| {
        let wanted = (template.kind.clone(), Key::new(namespace.as_str(), template.name.as_str()));
        named.contains(&wanted)
    })
}

fn is_of_kind(object: &Value, kind: &str) -> bool {
    object["kind"] == kind
        && object["apiVersion"].as_str().is_some_and(|api| api.starts_with("cluster.x-k8s.io/"))
}

pub fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

fn not_reconciled(cluster: &Value) -> Option<String> {
    let conditions = cluster["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|it| it["type"] == "TopologyReconciled")?;
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    let message = if text("message").is_empty() { text("reason") } else { text("message") };
    (text("status") != "True").then(|| one_line(message))
}

fn parts(cluster: &Key, object: &Value, course: &Preview) -> Vec<PartPlan> {
    let mine = |step: &&MachineEvent| {
        step.machine.namespace == cluster.namespace && step.machine.cluster == cluster.name
    };
    let mut counts = machine_counts(course.steps.iter().filter(mine));
    let mut parts = Vec::new();
    for (before, after) in pairs(cluster, object, course) {
        let Some(any) = after.or(before) else { continue };
        let object = title(any);
        let at = counts.iter().position(|count| count.of == object);
        let machines = at.map(|at| counts.swap_remove(at)).unwrap_or_default();
        let (becomes, rotated, fields) = match (before, after) {
            (None, _) => (ChangeKind::Created, Vec::new(), Vec::new()),
            (_, None) => (ChangeKind::Deleted, Vec::new(), Vec::new()),
            (Some(before), Some(after)) => {
                (ChangeKind::Changed, rotated(before, after), differences(&own(before), &own(after)))
            }
        };
        let part = PartPlan { object, becomes, rotated, fields, machines };
        if part.becomes != ChangeKind::Changed || !part.words().is_empty() {
            parts.push(part);
        }
    }
    parts
}

/// The parts of a cluster before the change and at its end.
fn pairs<'a>(
    cluster: &Key,
    object: &Value,
    course: &'a Preview,
) -> Vec<(Option<&'a Value>, Option<&'a Value>)> {
    let (before, after) = (&course.objects_before, &course.objects);
    let mut names: Vec<(String, String)> = Vec::new();
    let mut add = |kind: &Value, name: &Value| {
        if let (Some(kind), Some(name)) = (kind.as_str(), name.as_str()) {
            let named = (kind.to_owned(), name.to_owned());
            if !names.contains(&named) {
                names.push(named);
            }
        }
    };
    for reference in ["infrastructureRef", "controlPlaneRef"] {
        add(&object["spec"][reference]["kind"], &object["spec"][reference]["name"]);
    }
    for part in before.iter().chain(after).filter(|part| is_part(part, cluster)) {
        add(&part["kind"], &part["metadata"]["name"]);
        if part["kind"] == "MachinePool" {
            let template = &part["spec"]["template"]["spec"];
            for reference in [&template["bootstrap"]["configRef"], &template["infrastructureRef"]] {
                add(&reference["kind"], &reference["name"]);
            }
        }
    }
    let find = |objects: &'a [Value], (kind, name): &(String, String)| {
        objects.iter().find(|it| {
            let meta = &it["metadata"];
            it["kind"] == kind.as_str()
                && meta["name"] == name.as_str()
                && meta["namespace"] == cluster.namespace.as_str()
                && meta["deletionTimestamp"].is_null()
        })
    };
    names.iter().map(|named| (find(before, named), find(after, named))).collect()
}

/// Whether the topology of a cluster made an object, and nothing below it.
fn is_part(object: &Value, cluster: &Key) -> bool {
    let meta = &object["metadata"];
    KINDS.iter().any(|kind| object["kind"] == *kind)
        && meta["namespace"] == cluster.namespace.as_str()
        && meta["labels"][label::CLUSTER_NAME] == cluster.name.as_str()
        && meta["labels"].get(label::TOPOLOGY_OWNED).is_some()
}

fn is_template(reference: &Value) -> bool {
    reference["kind"].as_str().is_some_and(|kind| kind.ends_with("Template"))
}

/// Kinds of the templates to which both refer by different names.
fn rotated(before: &Value, after: &Value) -> Vec<String> {
    let reference = |object: &Value, path: &str| {
        object["spec"].pointer(path).filter(|reference| is_template(reference)).cloned()
    };
    let changed = REFERENCES.iter().filter_map(|path| {
        let (old, new) = (reference(before, path)?, reference(after, path)?);
        (old["name"] != new["name"]).then(|| new["kind"].as_str().unwrap_or_default().to_owned())
    });
    changed.collect()
}

/// The spec without names of templates and what providers write.
fn own(object: &Value) -> Value {
    let mut spec = object["spec"].clone();
    for path in REFERENCES {
        if let Some(reference) = spec.pointer_mut(path).filter(|reference| is_template(reference)) {
            reference["name"] = Value::Null;
        }
    }
    for (path, field) in PROVIDER_FIELDS {
        if let Some(Value::Object(fields)) = spec.pointer_mut(path) {
            fields.remove(field);
        }
    }
    json!({ "spec": spec })
}

impl PartPlan {
    fn words(&self) -> String {
        let mut words = Vec::new();
        match self.becomes {
            ChangeKind::Created => words.push("created".to_owned()),
            ChangeKind::Deleted => words.push("deleted".to_owned()),
            ChangeKind::Changed => {}
        }
        words.extend(self.rotated.iter().map(|kind| format!("{kind} rotated")));
        words.extend(self.fields.iter().cloned());
        words.extend(Some(self.machines.words("machine")).filter(|words| !words.is_empty()));
        words.join(", ")
    }
}

impl TopologyPlan {
    /// A line for the cluster, and one for each of its parts.
    fn lines(&self, namespaces: bool) -> Vec<String> {
        let namespace = if namespaces { format!("{}/", self.namespace) } else { String::new() };
        let mut total = MachineCount::default();
        for PartPlan { machines, .. } in &self.parts {
            total.created += machines.created;
            total.replaced += machines.replaced;
            total.deleted += machines.deleted;
        }
        let result = match &self.not_reconciled {
            Some(why) => format!("not reconciled: {why}"),
            None if self.parts.is_empty() => "no change".to_owned(),
            None if total.is_empty() => "no machine is replaced".to_owned(),
            None => total.words("machine"),
        };
        let mut lines =
            vec![format!("Cluster/{namespace}{} (ClusterClass/{}): {result}", self.cluster, self.class)];
        lines.extend(self.parts.iter().map(|part| format!("  {}: {}", part.object, part.words())));
        lines
    }
}

pub fn lines(plans: &[TopologyPlan]) -> Vec<String> {
    let namespaces: BTreeSet<&str> = plans.iter().map(|plan| plan.namespace.as_str()).collect();
    plans.iter().flat_map(|plan| plan.lines(namespaces.len() > 1)).collect()
}

#[cfg(test)]
mod tests;
