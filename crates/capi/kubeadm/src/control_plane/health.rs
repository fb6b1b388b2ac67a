//! How the machines of a control plane fare, seen from inside its cluster.
//!
//! ```text
//! nodes, static pods, etcd ─▶ conditions of each Machine ─▶ EtcdClusterHealthy, ControlPlaneComponentsHealthy
//! ```

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_core::conditions::{Verdict, shortened};
use capstan_capi_core::workload::Node;
use capstan_capi_types::controlplane::kubeadm_control_plane::{condition, reason};
use capstan_capi_types::core::{Machine, reason as shared};
use capstan_object::{ConditionStatus, Conditions};
use jiff::{SignedDuration, Timestamp};

use super::etcd::EtcdSeen;
use super::workload::{
    COMPONENTS, CONTROL_PLANE_ROLE, Inside, PodStatus, StaticPod, Workload, last_heard, pod_name,
};
use super::{Member, Plane};

/// How the parts of a control plane fare.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// Conditions of machines, by name.
    pub machines: BTreeMap<String, Vec<(&'static str, Verdict)>>,
    /// `EtcdClusterHealthy`, if there is something new to say.
    pub etcd: Option<Verdict>,
    /// `ControlPlaneComponentsHealthy`, if there is something new to say.
    pub components: Option<Verdict>,
    /// Members of etcd and machines match, as far as can be expected now.
    pub matching: bool,
}

/// The conditions of a machine by its static pods, in the order of [`COMPONENTS`].
const PODS: [&str; 4] = [
    condition::MACHINE_API_SERVER_POD_HEALTHY,
    condition::MACHINE_CONTROLLER_MANAGER_POD_HEALTHY,
    condition::MACHINE_SCHEDULER_POD_HEALTHY,
    condition::MACHINE_ETCD_POD_HEALTHY,
];

/// After this time a node's member of etcd should have been seen.
const MEMBER_SEEN_AFTER: SignedDuration = SignedDuration::from_mins(2);

fn unknown(message: impl Into<String>) -> Verdict {
    Verdict::new(ConditionStatus::Unknown, shared::INSPECTION_FAILED, message)
}

fn fails(reason: &str, message: impl Into<String>) -> Verdict {
    Verdict::new(ConditionStatus::False, reason, message)
}

impl Health {
    /// Judges what was seen. `grace` is how long a silent cluster is taken to be as it was.
    pub fn of(
        plane: &Plane,
        workload: &Workload,
        answered: &capstan_controller::Health,
        grace: SignedDuration,
    ) -> Self {
        let own = &plane.control_plane;
        let initialized = own.status.conditions.condition(condition::INITIALIZED);
        if !plane.is_initialized() {
            return Self::all(plane, &unknown("Waiting for Cluster control plane to be initialized"));
        }
        match workload {
            Workload::Reached(inside) => Self::seen(plane, inside),
            Workload::NotAsked => Self::kept(plane),
            Workload::Unreachable(why) => {
                let since = initialized.map(|condition| condition.last_transition_time.timestamp());
                let last = answered.last_success.max(since);
                let down = |message: String| {
                    Verdict::new(ConditionStatus::Unknown, shared::CONNECTION_DOWN, message)
                };
                let known = own.status.conditions.condition(condition::ETCD_CLUSTER_HEALTHY).is_some()
                    && own.status.conditions.condition(condition::CONTROL_PLANE_COMPONENTS_HEALTHY).is_some();
                let silent = last.is_none_or(|last| plane.now.duration_since(last) > grace);
                if silent {
                    let heard = last_heard(answered);
                    return Self::all(plane, &down(if heard.is_empty() { why.clone() } else { heard }));
                }
                // What was last known is kept while the connection may come back.
                if known { Self::kept(plane) } else { Self::all(plane, &down(why.clone())) }
            }
        }
    }

    /// Nothing new is known.
    fn kept(plane: &Plane) -> Self {
        Self { matching: plane.etcd.is_empty(), ..Self::default() }
    }

    /// The same of everything.
    fn all(plane: &Plane, verdict: &Verdict) -> Self {
        let kinds = plane.health_conditions();
        let of = |_: &Member| {
            let labels = (condition::MACHINE_NODE_KUBEADM_LABELS_AND_TAINTS_SET, verdict.clone());
            kinds.iter().map(|kind| (*kind, verdict.clone())).chain([labels]).collect()
        };
        Self {
            machines: each(plane, of),
            etcd: plane.manages_etcd().then(|| verdict.clone()),
            components: Some(verdict.clone()),
            matching: false,
        }
    }

    fn seen(plane: &Plane, inside: &Inside) -> Self {
        let machines = each(plane, |member| {
            let node = inside.nodes.get(&member.machine.status.node_ref.name).map(AsRef::as_ref);
            let mut verdicts = pods(plane, member, node, inside);
            if plane.manages_etcd() {
                verdicts.push((condition::MACHINE_ETCD_MEMBER_HEALTHY, member_health(member, &inside.etcd)));
            }
            verdicts
        });
        let mut health = Self { machines, etcd: None, components: None, matching: true };
        let names: BTreeSet<&str> =
            named(plane).map(|machine| machine.status.node_ref.name.as_str()).collect();
        let provisioning = names.len() < plane.machines.len();
        let mut strangers = Vec::new();
        if !provisioning {
            let labelled = inside.nodes.values().filter(|node| is_labelled(node));
            for node in labelled.filter(|node| !names.contains(node.metadata.name.as_str())) {
                let name = &node.metadata.name;
                strangers.push(format!("Control plane Node {name} does not have a corresponding Machine"));
            }
        }
        let kinds = if plane.manages_etcd() { &PODS[..] } else { &PODS[..3] };
        health.components = Some(health.summary(plane, kinds, &strangers, "control plane"));
        if plane.manages_etcd() {
            let mut strangers = Vec::new();
            for member in inside.etcd.members().iter().filter(|member| !names.contains(member.name.as_str()))
            {
                let name = match member.name.as_str() {
                    "" => format!("{} (Name not yet assigned)", member.id),
                    name => name.to_owned(),
                };
                strangers.push(format!("Etcd member {name} does not have a corresponding Machine"));
            }
            health.matching = matching(plane, inside, provisioning || strangers.is_empty());
            let kinds = [condition::MACHINE_ETCD_MEMBER_HEALTHY];
            health.etcd = Some(health.summary(plane, &kinds, &strangers, "etcd member"));
        }
        health
    }

    /// Conditions of all machines made one. A machine without identity yet is too young to be an issue.
    fn summary(&self, plane: &Plane, kinds: &[&str], strangers: &[String], note: &str) -> Verdict {
        let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let (mut issue, mut doubt, mut fine) = (!strangers.is_empty(), false, false);
        for member in &plane.machines {
            let machine = &member.machine;
            let found = self.machines.get(&machine.metadata.name).map(Vec::as_slice).unwrap_or_default();
            let told: Vec<_> = found.iter().filter(|(kind, _)| kinds.contains(kind)).collect();
            let mut lines = Vec::new();
            for (kind, verdict) in &told {
                match verdict.status {
                    ConditionStatus::True => fine = true,
                    ConditionStatus::Unknown if machine.spec.provider_id.is_empty() => fine = true,
                    status => {
                        if status == ConditionStatus::False {
                            issue = true
                        } else {
                            doubt = true
                        }
                        let message = match verdict.message.as_str() {
                            "" => format!("condition is {status:?}"),
                            message => message.to_owned(),
                        };
                        lines.push(format!("  * {kind}: {message}"));
                    }
                }
            }
            if lines.is_empty() {
                continue;
            }
            let messages: BTreeSet<&str> = told.iter().map(|(_, verdict)| verdict.message.as_str()).collect();
            let text = match messages.first() {
                Some(message) if told.len() > 1 && messages.len() == 1 => {
                    format!("  * Control plane components: {message}")
                }
                _ => lines.join("\n"),
            };
            groups.entry(text).or_default().push(&machine.metadata.name);
        }
        let mut groups: Vec<(String, Vec<&str>)> = groups.into_iter().collect();
        groups.sort_by_key(|(_, names)| (std::cmp::Reverse(names.len()), names.join(",")));
        let lines = groups.iter().map(|(text, names)| {
            let plural = if names.len() == 1 { "" } else { "s" };
            format!("* Machine{plural} {}:\n{text}", shortened(names, 3))
        });
        let lines: Vec<String> = lines.chain(strangers.iter().map(|text| format!("* {text}"))).collect();
        let message = lines.join("\n");
        if issue {
            fails(reason::NOT_HEALTHY, message)
        } else if doubt {
            Verdict::new(ConditionStatus::Unknown, reason::HEALTH_UNKNOWN, message)
        } else if fine {
            Verdict::new(ConditionStatus::True, reason::HEALTHY, "")
        } else {
            let message = format!("No Machines reporting {note} status");
            Verdict::new(ConditionStatus::Unknown, reason::HEALTH_UNKNOWN, message)
        }
    }
}

fn each(
    plane: &Plane,
    of: impl Fn(&Member) -> Vec<(&'static str, Verdict)>,
) -> BTreeMap<String, Vec<(&'static str, Verdict)>> {
    plane.machines.iter().map(|member| (member.machine.metadata.name.clone(), of(member))).collect()
}

fn named(plane: &Plane) -> impl Iterator<Item = &Machine> {
    let machines = plane.machines.iter().map(|member| member.machine.as_ref());
    machines.filter(|machine| !machine.status.node_ref.name.is_empty())
}

fn is_labelled(node: &Node) -> bool {
    node.metadata.labels.contains_key(CONTROL_PLANE_ROLE)
}

/// Machines and members of etcd match. A node may be a while older than its member, and a member than its node.
fn matching(plane: &Plane, inside: &Inside, members_known: bool) -> bool {
    let EtcdSeen::Members { members, .. } = &inside.etcd else {
        return named(plane).next().is_none();
    };
    let lacks_member = |machine: &Machine| {
        let node = &machine.status.node_ref.name;
        let old = inside.nodes.get(node).and_then(|node| node.metadata.creation_timestamp);
        let old = old.is_some_and(|made| plane.now.duration_since(made.timestamp()) > MEMBER_SEEN_AFTER);
        old && !machine.metadata.is_deleting() && !members.iter().any(|member| member.name == *node)
    };
    members_known && !named(plane).any(lacks_member)
}

/// What a machine without a Node waits for.
fn awaited(machine: &Machine) -> String {
    match machine.spec.provider_id.as_str() {
        "" => format!("Waiting for {} to report spec.providerID", machine.spec.infrastructure_ref.kind),
        id => format!("Waiting for a Node with spec.providerID {id} to exist"),
    }
}

/// Conditions by static pods, and by the marks that kubeadm puts on a Node.
fn pods(
    plane: &Plane,
    member: &Member,
    node: Option<&Node>,
    inside: &Inside,
) -> Vec<(&'static str, Verdict)> {
    let machine = &member.machine;
    let kinds = if plane.manages_etcd() { &PODS[..] } else { &PODS[..3] };
    let labels = condition::MACHINE_NODE_KUBEADM_LABELS_AND_TAINTS_SET;
    let all = |verdict: Verdict, marks: Verdict| {
        let pods = kinds.iter().map(|kind| (*kind, verdict.clone()));
        pods.chain([(labels, marks)]).collect::<Vec<_>>()
    };
    if machine.metadata.is_deleting() {
        let going = fails(shared::DELETING, "Machine is deleting");
        let marks = node.map_or_else(|| going.clone(), |node| marks(member, node));
        return all(going, marks);
    }
    let name = &machine.status.node_ref.name;
    let doubt = |message: String| all(unknown(message.clone()), unknown(message));
    if name.is_empty() {
        return doubt(awaited(machine));
    }
    let Some(node) = node else { return doubt(format!("Node {name} does not exist")) };
    let unreachable = |taint: &capstan_capi_types::kubernetes::Taint| {
        taint.key == "node.kubernetes.io/unreachable" && taint.effect == "NoExecute"
    };
    if node.spec.taints.iter().any(unreachable) {
        return doubt(format!("Node {name} is unreachable"));
    }
    let mut verdicts: Vec<(&'static str, Verdict)> = kinds
        .iter()
        .zip(COMPONENTS)
        .map(|(kind, component)| {
            let verdict = if node.is_unreachable() {
                // The kubelet is silent, and so is its news of pods.
                unknown("Node Ready condition is Unknown, Pod data might be stale")
            } else {
                pod(inside.pods.get(&pod_name(component, name)))
            };
            (*kind, verdict)
        })
        .collect();
    verdicts.push((labels, marks(member, node)));
    verdicts
}

fn pod(found: Option<&Result<StaticPod, String>>) -> Verdict {
    match found {
        None => fails(reason::POD_DOES_NOT_EXIST, "Pod does not exist"),
        Some(Err(why)) => unknown(format!("Failed to get Pod: {why}")),
        Some(Ok(pod)) => phase(&pod.status),
    }
}

fn phase(status: &PodStatus) -> Verdict {
    let provisioning = |message: &str| fails(reason::POD_PROVISIONING, message);
    match status.phase.as_str() {
        "Pending" if !status.is("PodScheduled") => provisioning("Waiting to be scheduled"),
        "Pending" if !status.is("Initialized") => provisioning("Running init containers"),
        "Pending" => provisioning(""),
        "Running" if status.is("Ready") => Verdict::new(ConditionStatus::True, reason::POD_RUNNING, ""),
        "Running" => {
            let containers = &status.container_statuses;
            let crashed = containers
                .iter()
                .any(|status| status.last_state.terminated.as_ref().is_some_and(|end| end.exit_code != 0));
            let waiting: Vec<&str> = containers
                .iter()
                .filter_map(|status| status.state.waiting.as_ref().map(|event| event.reason.as_str()))
                .collect();
            let ended: Vec<&str> = containers
                .iter()
                .filter_map(|status| status.state.terminated.as_ref().map(|event| event.reason.as_str()))
                .collect();
            match (waiting.is_empty(), ended.is_empty()) {
                (false, _) if crashed => fails(reason::POD_FAILED, waiting.join(", ")),
                (false, _) => provisioning(&waiting.join(", ")),
                (true, false) => fails(reason::POD_FAILED, ended.join(", ")),
                (true, true) => provisioning("Waiting for startup or readiness probes"),
            }
        }
        "Succeeded" | "Failed" => fails(reason::POD_FAILED, "All the containers have been terminated"),
        _ => unknown("Pod is reporting Unknown status"),
    }
}

/// The label and the taint of control plane nodes are there, unless they were not asked for.
fn marks(member: &Member, node: &Node) -> Verdict {
    let name = &node.metadata.name;
    let is_default = |key: &str, effect: &str| key == CONTROL_PLANE_ROLE && effect == "NoSchedule";
    let registered = member.config.as_ref().map(|config| match config.join_configuration.control_plane {
        Some(_) => &config.join_configuration.node_registration.taints,
        None => &config.init_configuration.node_registration.taints,
    });
    let tainted = member
        .machine
        .spec
        .taints
        .iter()
        .any(|taint| is_default(&taint.key, taint.effect.map_or("", |effect| effect.as_str())))
        || registered.is_some_and(|taints| match taints {
            // kubeadm puts it there if nothing else was said.
            None => true,
            Some(taints) => taints.iter().any(|taint| is_default(&taint.key, &taint.effect)),
        });
    let has_taint = node.spec.taints.iter().any(|taint| is_default(&taint.key, &taint.effect));
    let taint = format!("{CONTROL_PLANE_ROLE}:NoSchedule");
    let message = match (is_labelled(node), !tainted || has_taint) {
        (true, true) => {
            return Verdict::new(ConditionStatus::True, reason::LABELS_AND_TAINTS_SET, "");
        }
        (false, true) => format!("Node {name} does not have the {CONTROL_PLANE_ROLE} label"),
        (true, false) => format!("Node {name} does not have the {taint} taint"),
        (false, false) => {
            format!("Node {name} does not have the {CONTROL_PLANE_ROLE} label and the {taint} taint")
        }
    };
    fails(reason::LABELS_AND_TAINTS_NOT_SET, message)
}

/// How a machine's member of etcd fares.
fn member_health(member: &Member, etcd: &EtcdSeen) -> Verdict {
    let machine = &member.machine;
    let name = &machine.status.node_ref.name;
    if machine.metadata.is_deleting() {
        return fails(shared::DELETING, "Machine is deleting");
    }
    if name.is_empty() {
        return unknown(awaited(machine));
    }
    let members = match etcd {
        EtcdSeen::NotAsked => return unknown(format!("Node {name} does not exist")),
        EtcdSeen::Failed(why) => return unknown(why.clone()),
        EtcdSeen::Members { members, .. } => members,
    };
    let Some(found) = members.iter().find(|member| member.name == *name) else {
        return fails(reason::NOT_HEALTHY, format!("Etcd doesn't have an etcd member for Node {name}"));
    };
    if found.learner {
        return fails(reason::NOT_HEALTHY, "Waiting for learner etcd member to be promoted");
    }
    if !found.alarms.is_empty() {
        return fails(reason::NOT_HEALTHY, format!("Etcd reports alarms: {}", found.alarms.join(", ")));
    }
    Verdict::new(ConditionStatus::True, reason::HEALTHY, "")
}

/// Whether a condition that does not hold has done so for long enough to be mentioned beside what does.
pub(super) fn is_lasting(machine: &Machine, kinds: &[&str], now: Timestamp) -> bool {
    let since = kinds
        .iter()
        .filter_map(|kind| machine.status.conditions.condition(kind))
        .filter(|condition| condition.status != ConditionStatus::True)
        .map(|condition| condition.last_transition_time.timestamp())
        .min();
    since.is_some_and(|since| now.duration_since(since) > SignedDuration::from_secs(10))
}
