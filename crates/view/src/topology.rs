//! What a cluster has of its class: its version, what is still to be upgraded, and why the topology is not reconciled.

use capstan_object::{Condition, ConditionStatus, Conditions as _, Key};
use serde::Serialize;
use serde_json::Value;

use crate::advice::Advice;
use crate::printable::in_line;
use crate::{Part, Problem, one_line};

/// The condition of the topology controller.
const RECONCILED: &str = "TopologyReconciled";

/// The reason in the older API.
const HOOK: &str = "LifecycleHookBlocking";

/// The topology of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// Name of the ClusterClass.
    pub class: String,
    pub class_namespace: String,
    /// The desired version.
    pub version: String,
    /// Versions that the control plane still gets, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub control_plane_pending: Vec<String>,
    /// Versions that workers still get, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers_pending: Vec<String>,
}

impl Topology {
    /// Of a Cluster as any version of the API serves it; `None` without a class.
    pub fn of(object: &Value) -> Option<Self> {
        let topology = &object["spec"]["topology"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let class = &topology["classRef"];
        let namespaces = [&class["namespace"], &topology["classNamespace"], &object["metadata"]["namespace"]];
        let plan = |part: &str| {
            let versions = object["status"][part]["upgradePlan"].as_array().into_iter().flatten();
            versions.filter_map(|step| text(&step["version"])).collect()
        };
        Some(Self {
            class: text(&class["name"]).or_else(|| text(&topology["class"]))?,
            class_namespace: namespaces.into_iter().find_map(text).unwrap_or_default(),
            version: text(&topology["version"]).unwrap_or_default(),
            control_plane_pending: plan("controlPlane"),
            workers_pending: plan("workers"),
        })
    }

    pub fn class_key(&self) -> Key {
        Key::new(self.class_namespace.as_str(), self.class.as_str())
    }

    /// Name of the class, with the namespace if that is not `namespace`.
    pub fn class_name(&self, namespace: &str) -> String {
        match self.class_namespace == namespace {
            true => self.class.clone(),
            false => format!("{}/{}", self.class_namespace, self.class),
        }
    }
}

/// Why a topology is not reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreconciled {
    Failed,
    ClassNotReconciled,
    /// A lifecycle hook holds the cluster back.
    Hook,
    Upgrading,
    /// An annotation of the user holds workers back. Nothing is in progress.
    Deferred,
}

impl Unreconciled {
    /// What a condition says; `None` of other conditions, and of a cluster that is paused or deleted.
    pub(crate) fn of(condition: &Condition) -> Option<Self> {
        if condition.kind != RECONCILED || condition.status != ConditionStatus::False {
            return None;
        }
        match condition.reason.as_str() {
            reason if reason == HOOK || condition.message.contains("hooks are blocking") => Some(Self::Hook),
            "ClusterClassNotReconciled" => Some(Self::ClassNotReconciled),
            "Paused" | "Deleting" => None,
            reason if reason.contains("Failed") => Some(Self::Failed),
            reason if reason.ends_with("Deferred") => Some(Self::Deferred),
            _ => Some(Self::Upgrading),
        }
    }
}

impl Part {
    pub(crate) fn unreconciled(&self) -> Option<(Unreconciled, &Condition)> {
        let condition = self.conditions.condition(RECONCILED)?;
        Some((Unreconciled::of(condition)?, condition))
    }

    /// The condition of a topology that is not reconciled for one of these reasons.
    pub(crate) fn unreconciled_by(&self, reasons: &[Unreconciled]) -> Option<&Condition> {
        self.unreconciled().filter(|(reason, _)| reasons.contains(reason)).map(|(_, condition)| condition)
    }

    /// The condition of a topology whose workers an annotation keeps from an upgrade. The cluster is ready otherwise.
    pub fn deferred_upgrade(&self) -> Option<&Condition> {
        self.unreconciled_by(&[Unreconciled::Deferred])
    }
}

/// The topology in a few lines.
pub(crate) fn lines(part: &Part) -> Vec<String> {
    let Some(topology) = &part.topology else { return Vec::new() };
    let class = topology.class_name(&part.namespace);
    let mut lines = vec![format!("topology: ClusterClass/{class}, {}", topology.version)];
    for (what, pending) in
        [("control plane", &topology.control_plane_pending), ("workers", &topology.workers_pending)]
    {
        if !pending.is_empty() {
            lines.push(format!("  {what}: pending upgrade to {}", pending.join(", ")));
        }
    }
    match part.conditions.condition(RECONCILED) {
        Some(condition) if condition.is_true() => lines[0].push_str(", reconciled"),
        Some(condition) => {
            let words = [condition.reason.as_str(), condition.message.as_str()];
            let words: Vec<String> = words.into_iter().filter(|it| !it.is_empty()).map(one_line).collect();
            lines.push(format!("  not reconciled: {}", words.join(": ")));
        }
        None => lines[0].push_str(", not reconciled yet"),
    }
    lines.iter().map(|line| in_line(line).into_owned()).collect()
}

/// What to do about a topology.
pub(crate) fn advice(problem: Problem, part: &Part, message: &str) -> Option<Advice> {
    let topology = part.topology.as_ref()?;
    let namespace = format!("-n {}", part.namespace);
    let of_class = format!("clusterclass {} -n {}", topology.class, topology.class_namespace);
    let edit_cluster = format!("kubectl edit cluster {} {namespace}", part.name);
    let edit_class = format!("kubectl edit {of_class}");
    let extensions = "kubectl get extensionconfigs".to_owned();
    match problem {
        Problem::HookBlocks if message.contains("hook.cluster.cluster.x-k8s.io") => {
            return Some(Advice::new(
                "user",
                "remove the annotation that the message names from the Cluster",
                vec![edit_cluster],
            ));
        }
        Problem::HookBlocks => {
            return Some(Advice::new(
                "extension",
                "wait until the extension allows the cluster to continue, or ask its operator",
                vec![extensions],
            ));
        }
        Problem::TopologyFailed => {}
        _ => return None,
    }
    let class = format!("ClusterClass {}/{}", topology.class_namespace, topology.class);
    let (fix, commands) = match message {
        it if it.contains(&class) && it.contains("does not exist") => (
            "create the ClusterClass, or correct spec.topology.classRef of the Cluster",
            vec![format!("capstan get clusterclasses -n {}", topology.class_namespace), edit_cluster],
        ),
        it if it.contains("not reconciled") || it.contains("VariablesReady") => {
            ("see the conditions of the ClusterClass", vec![format!("kubectl describe {of_class}")])
        }
        it if it.contains(".variables") => (
            "correct the variables of the Cluster; the ClusterClass has their schemas",
            vec![format!("kubectl get {of_class} -o yaml"), edit_cluster],
        ),
        it if it.contains("spec.topology") => ("correct spec.topology of the Cluster", vec![edit_cluster]),
        it if it.contains("not topology owned") => {
            ("delete the other object, or give the workers of the topology another name", vec![edit_cluster])
        }
        it if is_about_extensions(it) => ("make the extension server answer", vec![extensions]),
        it if it.contains("patch ") => {
            ("correct the patch in the ClusterClass, or the variables that it uses", vec![edit_class])
        }
        it if it.contains("does not exist") || it.contains("is not installed") => {
            ("create what is missing, or correct the reference in the ClusterClass", vec![edit_class])
        }
        _ => (
            "correct what the message names: the ClusterClass, its templates, or spec.topology of the Cluster",
            vec![edit_class, edit_cluster],
        ),
    };
    Some(Advice::new("user", fix, commands))
}

/// Failed calls begin with the name of the hook.
fn is_about_extensions(message: &str) -> bool {
    const HOOKS: [&str; 4] = ["GeneratePatches", "ValidateTopology", "BeforeCluster", "AfterCluster"];
    const PARTS: [&str; 4] = ["BeforeControlPlane", "AfterControlPlane", "BeforeWorkers", "AfterWorkers"];
    HOOKS.iter().chain(&PARTS).any(|hook| message.starts_with(hook))
}
