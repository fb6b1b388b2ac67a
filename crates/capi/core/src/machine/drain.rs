//! Draining a node: which pods are evicted, in which order, and how progress is reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::{
    Cluster, Machine, MachineDrainRule, MachineDrainRuleDrainBehavior as Behavior, label,
};
use capstan_object::{Key, LabelSelector, Time};
use jiff::Timestamp;

use super::call::PodName;
use crate::conditions::shortened;
use crate::workload::Pod;

/// On an unreachable node, pods that have been terminating for longer than this no longer count.
const ABANDONED_AFTER_SECONDS: i64 = 1;

/// What to do with the pods of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Pods to evict now: those of the lowest order.
    pub evict_now: Vec<PodName>,
    /// Pods to evict once those of lower order are gone.
    pub evict_later: Vec<PodName>,
    /// Pods to wait for now.
    pub complete_now: Vec<PodName>,
    /// Pods to wait for once those of lower order are gone.
    pub complete_later: Vec<PodName>,
    /// Pods that were evicted and still exist.
    pub ending: Vec<PodName>,
    /// Claims of pods that stay: their volumes are not waited for.
    pub kept_claims: Vec<String>,
    /// The node is unreachable: pods get a grace period of one second.
    pub hurry: bool,
}

/// What happens to one pod, and its drain order.
enum DrainAction {
    Stay,
    Go(i32),
    Complete(i32),
}

impl Plan {
    /// Classifies pods. Fails for an invalid rule or pod label.
    #[expect(clippy::too_many_arguments, reason = "all of it is one look at one node")]
    pub fn new(
        pods: &[Pod],
        namespaces: &BTreeMap<String, BTreeMap<String, String>>,
        daemon_sets: &[Key],
        rules: &[Arc<MachineDrainRule>],
        machine: &Machine,
        cluster: &Cluster,
        unreachable: bool,
        now: Timestamp,
    ) -> Result<Self, String> {
        let mut rules: Vec<_> = rules
            .iter()
            .map(|rule| Ok((rule, applies_to_machine(rule, machine, cluster)?)))
            .collect::<Result<Vec<_>, String>>()?
            .into_iter()
            .filter(|(_, applies)| *applies)
            .map(|(rule, _)| rule)
            .collect();
        rules.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let mut plan = Self { hurry: unreachable, ..Self::default() };
        let mut sorted: Vec<&Pod> = pods.iter().collect();
        sorted.sort_by_key(|pod| PodName::of(pod).to_string());
        let mut fates = Vec::new();
        for pod in sorted {
            let abandoned = unreachable
                && pod.metadata.deletion_timestamp.is_some_and(|since| {
                    now.duration_since(since.timestamp()).as_secs() > ABANDONED_AFTER_SECONDS
                });
            let action =
                if abandoned { DrainAction::Stay } else { action(pod, namespaces, daemon_sets, &rules)? };
            fates.push((pod, action));
        }
        let order = |action: &DrainAction| match action {
            DrainAction::Stay => None,
            DrainAction::Go(order) | DrainAction::Complete(order) => Some(*order),
        };
        let lowest = fates.iter().filter_map(|(_, action)| order(action)).min();
        for (pod, action) in fates {
            let first = order(&action) == lowest;
            let list = match action {
                DrainAction::Stay => {
                    plan.keep_claims(pod);
                    continue;
                }
                DrainAction::Complete(_) if first => &mut plan.complete_now,
                DrainAction::Complete(_) => &mut plan.complete_later,
                DrainAction::Go(_) if pod.metadata.is_deleting() => &mut plan.ending,
                DrainAction::Go(_) if first => &mut plan.evict_now,
                DrainAction::Go(_) => &mut plan.evict_later,
            };
            list.push(PodName::of(pod));
        }
        Ok(plan)
    }

    fn keep_claims(&mut self, pod: &Pod) {
        let claims = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        self.kept_claims
            .extend(claims.map(|claim| format!("{}/{}", pod.metadata.namespace, claim.claim_name)));
    }

    pub fn is_done(&self) -> bool {
        [&self.evict_now, &self.evict_later, &self.complete_now, &self.complete_later, &self.ending]
            .iter()
            .all(|pods| pods.is_empty())
    }

    /// The condition message, with refused evictions.
    pub fn message(&self, since: Time, refused: &[(PodName, String)]) -> String {
        let mut lines = vec![format!("Drain not completed yet (started at {since}):")];
        let subject = |pods: &[PodName]| {
            let names: Vec<_> = pods.iter().map(ToString::to_string).collect();
            let kind = if names.len() > 1 { "Pods" } else { "Pod" };
            format!("* {kind} {}", shortened(&names, 3))
        };
        let is_refused = |pod: &&PodName| refused.iter().any(|(other, _)| other == *pod);
        let mut ending = self.ending.clone();
        ending.extend(self.evict_now.iter().filter(|pod| !is_refused(pod)).cloned());
        ending.sort();
        if !ending.is_empty() {
            lines.push(format!(
                "{}: deletionTimestamp set, but still not removed from the Node",
                subject(&ending)
            ));
        }
        let mut by_message: BTreeMap<&str, Vec<PodName>> = BTreeMap::new();
        for (pod, message) in refused.iter().filter(|(pod, _)| self.evict_now.contains(pod)) {
            by_message.entry(message).or_default().push(pod.clone());
        }
        for (message, pods) in by_message.iter().take(MESSAGES_SHOWN) {
            lines.push(format!("{}: {}", subject(pods), refusal(message)));
        }
        match by_message.values().skip(MESSAGES_SHOWN).map(Vec::len).sum() {
            0_usize => {}
            1 => lines.push("* 1 Pod with other issues".to_owned()),
            others => lines.push(format!("* {others} Pods with other issues")),
        }
        if !self.complete_now.is_empty() {
            lines.push(format!("{}: waiting for completion", subject(&self.complete_now)));
        }
        let names = |pods: &[PodName]| {
            let names: Vec<_> = pods.iter().map(ToString::to_string).collect();
            shortened(&names, 3)
        };
        if !self.evict_later.is_empty() {
            lines.push(format!(
                "After above Pods have been removed from the Node, the following Pods will be evicted: {}",
                names(&self.evict_later)
            ));
        }
        if !self.complete_later.is_empty() {
            lines.push(format!(
                "After above Pods have been removed from the Node, waiting for the following Pods to complete without eviction: {}",
                names(&self.complete_later)
            ));
        }
        lines.join("\n")
    }
}

/// Maximum number of distinct refusals in a message.
const MESSAGES_SHOWN: usize = 5;

/// Rewords the server's refusal as upstream does: other controllers match on it.
fn refusal(message: &str) -> String {
    const BUDGET: &str = "annot evict pod as it would violate the pod's disruption budget.";
    let message = message.replace(&format!("C{BUDGET}"), &format!("c{BUDGET}"));
    if message.starts_with(&format!("c{BUDGET}")) {
        message
    } else {
        format!("failed to evict Pod, {message}")
    }
}

/// First match wins: pods of DaemonSets and static pods stay, since they would be recreated; then the pod's own
/// label; then the rules in order of their names.
fn action(
    pod: &Pod,
    namespaces: &BTreeMap<String, BTreeMap<String, String>>,
    daemon_sets: &[Key],
    rules: &[&Arc<MachineDrainRule>],
) -> Result<DrainAction, String> {
    let of_daemon_set =
        pod.metadata.controller().filter(|owner| owner.kind == "DaemonSet").is_some_and(|owner| {
            daemon_sets.contains(&Key::new(pod.metadata.namespace.as_str(), owner.name.as_str()))
        });
    if (of_daemon_set && !pod.is_finished()) || pod.is_static() {
        return Ok(DrainAction::Stay);
    }
    match pod
        .metadata
        .labels
        .get(label::POD_DRAIN)
        .map(|value| value.replacen('-', "", 1).to_lowercase())
        .as_deref()
    {
        Some("skip") => return Ok(DrainAction::Stay),
        Some("waitcompleted") => return Ok(DrainAction::Complete(0)),
        _ => {}
    }
    let namespace = namespaces
        .get(&pod.metadata.namespace)
        .ok_or_else(|| format!("Pods with error \"Pod Namespace does not exist\": {}", PodName::of(pod)))?;
    for rule in rules {
        if !applies_to_pod(rule, pod, namespace)? {
            continue;
        }
        return Ok(match rule.spec.drain.behavior {
            Some(Behavior::Drain) => DrainAction::Go(rule.spec.drain.order.unwrap_or(0)),
            Some(Behavior::Skip) => DrainAction::Stay,
            Some(Behavior::WaitCompleted) => DrainAction::Complete(0),
            None => {
                return Err(format!("MachineDrainRule {:?} has no spec.drain.behavior", rule.metadata.name));
            }
        });
    }
    Ok(DrainAction::Go(0))
}

fn matches(
    rule: &MachineDrainRule,
    selector: Option<&LabelSelector>,
    labels: &BTreeMap<String, String>,
) -> Result<bool, String> {
    let Some(selector) = selector else { return Ok(true) };
    selector
        .matches(labels)
        .map_err(|error| format!("invalid selectors in MachineDrainRule {}: {error}", rule.metadata.name))
}

fn applies_to_machine(rule: &MachineDrainRule, machine: &Machine, cluster: &Cluster) -> Result<bool, String> {
    let mut applies = rule.spec.machines.is_empty();
    for selector in &rule.spec.machines {
        applies |= matches(rule, selector.selector.as_ref(), &machine.metadata.labels)?
            && matches(rule, selector.cluster_selector.as_ref(), &cluster.metadata.labels)?;
    }
    Ok(applies)
}

fn applies_to_pod(
    rule: &MachineDrainRule,
    pod: &Pod,
    namespace: &BTreeMap<String, String>,
) -> Result<bool, String> {
    let mut applies = rule.spec.pods.is_empty();
    for selector in &rule.spec.pods {
        applies |= matches(rule, selector.selector.as_ref(), &pod.metadata.labels)?
            && matches(rule, selector.namespace_selector.as_ref(), namespace)?;
    }
    Ok(applies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_capi_types::core::{MachineDrainRulePodSelector, MachineDrainRuleSpec};
    use capstan_object::{ObjectMeta, OwnerReference};

    fn pod(name: &str, change: impl Fn(&mut Pod)) -> Pod {
        let mut pod = Pod { metadata: ObjectMeta::named("n", name), ..Pod::default() };
        change(&mut pod);
        pod
    }

    fn labelled(name: &str, key: &str, value: &str) -> Pod {
        pod(name, |pod| drop(pod.metadata.labels.insert(key.to_owned(), value.to_owned())))
    }

    fn of_daemon_set(name: &str, set: &str, phase: &str) -> Pod {
        pod(name, |pod| {
            pod.metadata.owner_references.push(OwnerReference {
                kind: "DaemonSet".to_owned(),
                name: set.to_owned(),
                controller: Some(true),
                ..OwnerReference::default()
            });
            pod.status.phase = phase.to_owned();
        })
    }

    fn deleted_at(name: &str, second: i64) -> Pod {
        pod(name, |pod| pod.metadata.deletion_timestamp = Some(at(second).into()))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a moment")
    }

    fn rule(name: &str, behavior: Behavior, order: Option<i32>, app: &str) -> Arc<MachineDrainRule> {
        let selector = LabelSelector {
            match_labels: BTreeMap::from([("app".to_owned(), app.to_owned())]),
            ..LabelSelector::default()
        };
        let mut rule = MachineDrainRule {
            metadata: ObjectMeta::named("default", name),
            spec: MachineDrainRuleSpec::default(),
        };
        rule.spec.drain.behavior = Some(behavior);
        rule.spec.drain.order = order;
        rule.spec.pods =
            vec![MachineDrainRulePodSelector { selector: Some(selector), namespace_selector: None }];
        Arc::new(rule)
    }

    fn plan(pods: &[Pod], rules: &[Arc<MachineDrainRule>], unreachable: bool) -> Plan {
        let namespaces = BTreeMap::from([("n".to_owned(), BTreeMap::new())]);
        let sets = [Key::new("n", "there")];
        Plan::new(
            pods,
            &namespaces,
            &sets,
            rules,
            &Machine::default(),
            &Cluster::default(),
            unreachable,
            at(100),
        )
        .expect("a plan")
    }

    fn names(pods: &[PodName]) -> Vec<&str> {
        pods.iter().map(|pod| pod.name.as_str()).collect()
    }

    #[test]
    fn pods_that_would_be_recreated_stay_and_others_are_evicted() {
        let pods = [
            pod("plain", |_| ()),
            of_daemon_set("of-a-daemon-set", "there", "Running"),
            of_daemon_set("finished", "there", "Succeeded"),
            of_daemon_set("orphan", "gone", "Running"),
            pod("static", |pod| {
                drop(pod.metadata.annotations.insert("kubernetes.io/config.mirror".into(), "x".into()))
            }),
            labelled("skipped", "cluster.x-k8s.io/drain", "skip"),
            labelled("to-be-awaited", "cluster.x-k8s.io/drain", "Wait-Completed"),
        ];
        let plan = plan(&pods, &[], false);
        assert_eq!(names(&plan.evict_now), ["finished", "orphan", "plain"]);
        assert_eq!(names(&plan.complete_now), ["to-be-awaited"]);
    }

    #[test]
    fn pods_of_higher_order_wait_for_those_of_lower() {
        let pods = [
            labelled("web", "app", "web"),
            labelled("db", "app", "db"),
            labelled("job", "app", "job"),
            labelled("log", "app", "log"),
        ];
        let rules = [
            rule("a", Behavior::Drain, Some(-5), "web"),
            rule("b", Behavior::Drain, Some(10), "db"),
            rule("c", Behavior::WaitCompleted, None, "job"),
            rule("d", Behavior::Skip, None, "log"),
        ];
        let first = plan(&pods, &rules, false);
        assert_eq!((names(&first.evict_now), names(&first.evict_later)), (vec!["web"], vec!["db"]));
        assert_eq!((names(&first.complete_now), names(&first.complete_later)), (vec![], vec!["job"]));
        let later = plan(&pods[1..], &rules, false);
        assert_eq!((names(&later.evict_later), names(&later.complete_now)), (vec!["db"], vec!["job"]));
        assert_eq!(names(&plan(&pods[1..2], &rules, false).evict_now), ["db"]);
        assert!(plan(&pods[3..], &rules, false).is_done());
    }

    #[test]
    fn on_an_unreachable_node_terminating_pods_do_not_block_the_drain() {
        let pods = [deleted_at("old", 98), deleted_at("new", 99)];
        assert_eq!(names(&plan(&pods, &[], false).ending), ["new", "old"]);
        assert_eq!(names(&plan(&pods, &[], true).ending), ["new"]);
    }

    #[test]
    fn the_message_lists_what_each_pod_waits_for() {
        let pods = [
            pod("a", |_| ()),
            pod("b", |_| ()),
            deleted_at("c", 90),
            labelled("d", "cluster.x-k8s.io/drain", "wait-completed"),
        ];
        let plan = plan(&pods, &[], false);
        let refused = [
            (plan.evict_now[0].clone(), "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget x needs 1 healthy pods and has 1 currently".to_owned()),
            (plan.evict_now[1].clone(), "no".to_owned()),
        ];
        let message = plan.message(at(0).into(), &refused);
        let lines: Vec<_> = message.lines().collect();
        assert_eq!(
            lines,
            [
                "Drain not completed yet (started at 1970-01-01T00:00:00Z):",
                "* Pod n/c: deletionTimestamp set, but still not removed from the Node",
                "* Pod n/a: cannot evict pod as it would violate the pod's disruption budget. The disruption budget x needs 1 healthy pods and has 1 currently",
                "* Pod n/b: failed to evict Pod, no",
                "* Pod n/d: waiting for completion",
            ]
        );
    }
}
