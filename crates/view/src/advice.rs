//! What to do about problems that have no error code.

use serde::Serialize;

use crate::problem::UNINITIALIZED;
use crate::{Part, Problem, topology};

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
    pub(crate) fn new(fixed_by: &'static str, fix: impl Into<String>, commands: Vec<String>) -> Self {
        Self { fixed_by, fix: fix.into(), commands }
    }
}

/// Advice for the last part of a path from the root. `message` is that of the condition that explains its state.
pub(crate) fn of(problem: Problem, path: &[&Part], message: &str) -> Option<Advice> {
    let part = path.last()?;
    if let Some(advice) = topology::advice(problem, part, message) {
        return Some(advice);
    }
    let namespace = format!("-n {}", part.namespace);
    let of_kind = |kind: &str| path.iter().rev().find(|it| it.kind == kind).map(|it| it.name.as_str());
    let machine = of_kind("Machine").unwrap_or(&part.name);
    // A machine can be the root; its cluster is not known then.
    let cluster = of_kind("Cluster").unwrap_or("CLUSTER");
    let object = format!("{} {} {namespace}", part.kind.to_lowercase(), part.name);
    let replace = format!("capstan delete machine {machine} {namespace} --yes");
    // Owners overwrite the field of their machines.
    let timeout = r#"{"deletion":{"nodeDrainTimeoutSeconds":60}}"#;
    let (owner, spec) = match (of_kind("MachineDeployment"), of_kind("KubeadmControlPlane")) {
        (Some(name), _) => {
            (format!("machinedeployment {name}"), format!(r#"{{"template":{{"spec":{timeout}}}}}"#))
        }
        (_, Some(name)) => {
            (format!("kubeadmcontrolplane {name}"), format!(r#"{{"machineTemplate":{{"spec":{timeout}}}}}"#))
        }
        _ => (format!("machine {machine}"), timeout.to_owned()),
    };
    let limit_drain = format!("kubectl patch {owner} {namespace} --type merge -p '{{\"spec\":{spec}}}'");
    let kubeconfig = format!("capstan kubeconfig {cluster} {namespace} > {cluster}.kubeconfig");
    let on_workload = |command: &str| {
        vec![kubeconfig.clone(), format!("kubectl --kubeconfig {cluster}.kubeconfig {command}")]
    };
    // What the machines are made from.
    let group = match of_kind("MachineDeployment") {
        Some(name) => format!("--workers {name}"),
        None => "--control-plane".to_owned(),
    };
    let correct = format!("capstan set {cluster} {namespace} {group} --bootstrap FIELD=VALUE");
    let only =
        |part: &&&Part| part.kind.ends_with("ControlPlane") && part.replicas.is_some_and(|it| it.1 < 2);
    let only_control_plane = path.iter().find(only).is_some();
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
        Problem::StoppedInCloud if only_control_plane => Advice::new(
            "cloud",
            "start it in the cloud: it is the only control plane machine and cannot be replaced",
            Vec::new(),
        ),
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
        Problem::NotJoined if message.contains(UNINITIALIZED) => {
            let endpoint = path.iter().find_map(|it| it.endpoint.as_deref()).unwrap_or("of the cluster");
            Advice::new(
                "cluster",
                format!(
                    "wait while the machine boots; if it takes longer, check that the endpoint {endpoint} reaches the \
                     machine, read kubeadm's error on its console and correct the bootstrap configuration, which \
                     replaces the machine"
                ),
                vec![format!("capstan console {machine} {namespace}"), correct],
            )
        }
        Problem::NotJoined => Advice::new(
            "cluster",
            "wait while the machine boots; if it takes longer, read kubeadm's error on its console and correct the \
             bootstrap configuration, which replaces the machine",
            vec![format!("capstan console {machine} {namespace}"), correct],
        ),
        Problem::Starting => Advice::new(
            "cloud",
            "wait; if it takes longer than some minutes, read the machine's console",
            vec![format!("capstan console {machine} {namespace}")],
        ),
        Problem::Deleting if message.contains("disruption budget") => Advice::new(
            "user",
            "run more replicas of the Pods, or relax the PodDisruptionBudget; or limit the wait, after which the \
             machine is deleted with the Pods",
            [on_workload("get poddisruptionbudgets --all-namespaces"), vec![limit_drain]].concat(),
        ),
        Problem::Failed if part.add_ons_of.is_some() => Advice::new(
            "user",
            "correct the manifests that the message names, or what the workload cluster refuses; they are applied again by \
             themselves",
            vec![format!("kubectl describe clusterresourcesets {namespace}")],
        ),
        Problem::Failed if message.contains("does not exist") => Advice::new(
            "user",
            "create the missing object, or correct the reference to it",
            vec![format!("kubectl edit {object}")],
        ),
        Problem::Failed if message.contains("console ends with") => Advice::new(
            "cluster",
            "read the machine's console and correct the bootstrap configuration, which replaces the machine; if it \
             was the machine alone, replace it",
            vec![format!("capstan console {machine} {namespace}"), correct, replace],
        ),
        Problem::Waiting if message.contains("Kubelet stopped posting node status") => {
            let commands = if only_control_plane { Vec::new() } else { vec![replace] };
            let other =
                if only_control_plane { "" } else { "; or delete the Machine, which its owner replaces" };
            Advice::new(
                "cluster",
                format!(
                    "the kubelet does not report any more: see whether the machine runs, and restart it{other}"
                ),
                [vec![format!("capstan console {machine} {namespace}")], commands].concat(),
            )
        }
        Problem::Failed
        | Problem::TopologyFailed
        | Problem::HookBlocks
        | Problem::Upgrading
        | Problem::Deleting
        | Problem::StillExists
        | Problem::Waiting => return None,
    })
}
