//! What to do about problems that have no error code.

use serde::Serialize;

use crate::{Part, Problem};

/// Who can fix a problem, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Advice {
    #[serde(rename = "turn")]
    pub fixed_by: &'static str,
    #[serde(rename = "mend")]
    pub fix: String,
    /// Commands to paste.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

impl Advice {
    fn new(fixed_by: &'static str, fix: impl Into<String>, commands: Vec<String>) -> Self {
        Self { fixed_by, fix: fix.into(), commands }
    }
}

/// Advice for the last part of a path from the root. `message` is that of the condition that explains its state.
pub(crate) fn of(problem: Problem, path: &[&Part], message: &str) -> Option<Advice> {
    let part = path.last()?;
    let namespace = format!("-n {}", part.namespace);
    let of_kind = |kind: &str| path.iter().rev().find(|it| it.kind == kind).map(|it| it.name.as_str());
    let machine = of_kind("Machine").unwrap_or(&part.name);
    // A machine can be the root; its cluster is not known then.
    let cluster = of_kind("Cluster").unwrap_or("CLUSTER");
    let object = format!("{} {} {namespace}", part.kind.to_lowercase(), part.name);
    let replace = format!("capstan delete machine {machine} {namespace}");
    let kubeconfig = format!("capstan kubeconfig {cluster} {namespace} > {cluster}.kubeconfig");
    let on_workload = |command: &str| {
        vec![kubeconfig.clone(), format!("kubectl --kubeconfig {cluster}.kubeconfig {command}")]
    };
    Some(match problem {
        Problem::Paused if part.kind == "Cluster" => Advice::new(
            "user",
            "resume the cluster",
            vec![format!("capstan resume {} {namespace}", part.name)],
        ),
        Problem::Paused => Advice::new(
            "user",
            format!(
                "resume the cluster, or remove the annotation cluster.x-k8s.io/paused from {}",
                part.title()
            ),
            vec![format!("kubectl annotate {object} cluster.x-k8s.io/paused-")],
        ),
        Problem::Unreachable => Advice::new(
            "cluster",
            "check the machines of the control plane and the network between them and the management plane",
            on_workload("get --raw /readyz"),
        ),
        Problem::DoesNotExist => Advice::new(
            "user",
            format!("create it, or correct the reference in {}", part.title()),
            vec![format!("kubectl edit {object}")],
        ),
        Problem::DeletedInCloud => {
            Advice::new("user", "delete the Machine; its owner replaces it", vec![replace])
        }
        Problem::StoppedInCloud => Advice::new(
            "user",
            "start it in the cloud, or delete the Machine; its owner replaces it",
            vec![replace],
        ),
        Problem::NoCni => Advice::new(
            "user",
            "nodes are NotReady because no CNI is installed: apply the manifest of one",
            on_workload("apply -f CNI.yaml"),
        ),
        Problem::NotJoined => Advice::new(
            "cluster",
            "wait while the machine boots; if it takes longer, read kubeadm's error on its console, correct the \
             bootstrap configuration, and replace the machine",
            vec![format!("capstan console {machine} {namespace}"), replace],
        ),
        Problem::Starting => Advice::new(
            "cloud",
            "wait; if it takes longer than some minutes, read the machine's console",
            vec![format!("capstan console {machine} {namespace}")],
        ),
        Problem::Deleting if message.contains("disruption budget") => Advice::new(
            "user",
            "run more replicas of the Pods, or relax the PodDisruptionBudget; \
             spec.deletion.nodeDrainTimeoutSeconds of the Machine limits the wait",
            on_workload("get poddisruptionbudgets --all-namespaces"),
        ),
        Problem::Failed if message.contains("does not exist") => Advice::new(
            "user",
            "create the missing object, or correct the reference to it",
            vec![format!("kubectl edit {object}")],
        ),
        Problem::Failed if message.contains("console ends with") => Advice::new(
            "cluster",
            "read the machine's console, correct the bootstrap configuration, and replace the machine",
            vec![format!("capstan console {machine} {namespace}"), replace],
        ),
        Problem::Failed | Problem::Deleting | Problem::StillExists | Problem::Waiting => return None,
    })
}
