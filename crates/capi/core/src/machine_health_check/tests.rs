use std::sync::Arc;

use capstan_capi_types::core::{MachineHealthCheck, UnhealthyNodeCondition, annotation, cluster};
use capstan_controller::{KindName, Patch};
use capstan_object::IntOrString;
use jiff::Timestamp;

use super::super::{Node, Observed};
use super::*;
use crate::contract::{ContractVersion, External};
use crate::testing::{at, condition as condition_of, machine};
use crate::workload::NodeCondition;

fn cluster_up() -> Cluster {
    let metadata = ObjectMeta { uid: "c".to_owned(), ..ObjectMeta::named("ns", "prod") };
    let mut cluster = Cluster { metadata, ..Cluster::default() };
    cluster.status.conditions = vec![
        condition_of(cluster::condition::CONTROL_PLANE_INITIALIZED, "True", "R", ""),
        condition_of(condition::INFRASTRUCTURE_READY, "True", "R", ""),
    ];
    cluster
}

fn check() -> MachineHealthCheck {
    let metadata = ObjectMeta { uid: "h".to_owned(), ..ObjectMeta::named("ns", "check") };
    let mut check = MachineHealthCheck { metadata, ..MachineHealthCheck::default() };
    check.spec.cluster_name = "prod".to_owned();
    check.spec.checks.unhealthy_node_conditions = vec![UnhealthyNodeCondition {
        kind: "Ready".to_owned(),
        status: "False".to_owned(),
        timeout_seconds: Some(60),
    }];
    check
}

fn target(name: &str, ready: &str) -> Target {
    let conditions = vec![NodeCondition {
        kind: "Ready".to_owned(),
        status: ready.to_owned(),
        last_transition_time: Some(at(0).into()),
        reason: "R".to_owned(),
        message: String::new(),
    }];
    Target { machine: Arc::new(machine(name)), node: Node::There(conditions) }
}

fn seen(targets: Vec<Target>) -> Observed {
    Observed { cluster: Some(Arc::new(cluster_up())), targets, ..Observed::default() }
}

fn decided(check: MachineHealthCheck, seen: Observed, now: Timestamp) -> Decided {
    decide(&Look::new(Arc::new(check), seen, now))
}

/// The effects in order, with the conditions set on machines.
fn effects(decision: &Decided) -> Vec<String> {
    let reported = |effect: &Effect<NoCall>| match effect {
        Effect::Patch { target, patch: Patch::Merge(body), .. } => {
            let conditions = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let reported = conditions.iter().map(|condition| {
                let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
                format!("{}={}/{}", text("type"), text("status"), text("reason"))
            });
            format!("{} has {}", target.key.name, reported.collect::<Vec<_>>().join(" "))
        }
        other => other.summary(),
    };
    decision.effects.iter().map(|planned| reported(&planned.effect)).collect()
}

#[test]
fn an_unhealthy_machine_is_marked_and_remediation_requested() {
    let decision = decided(check(), seen(vec![target("bad", "False"), target("good", "True")]), at(100));
    assert_eq!(
        effects(&decision),
        [
            "bad has HealthCheckSucceeded=False/UnhealthyNode OwnerRemediated=False/WaitingForRemediation",
            "good has HealthCheckSucceeded=True/HealthCheckSucceeded",
        ]
    );
    let status = &decision.object.status;
    assert_eq!(
        (status.expected_machines, status.current_healthy, status.remediations_allowed),
        (Some(2), Some(1), Some(1))
    );
    assert_eq!(status.targets, ["bad", "good"]);
    assert!(status.conditions.is_condition_true(REMEDIATION_ALLOWED));
}

#[test]
fn a_remediation_in_progress_is_not_requested_again() {
    let mut bad = target("bad", "False");
    let mut machine = machine("bad");
    machine.status.conditions = vec![
        condition_of(
            "HealthCheckSucceeded",
            "False",
            "UnhealthyNode",
            "Health check failed:\n  * Condition Ready on Node is reporting status False with reason R for more than 1m0s",
        ),
        condition_of("OwnerRemediated", "False", "RemediationDeferred", "later"),
    ];
    bad.machine = Arc::new(machine);
    assert_eq!(effects(&decided(check(), seen(vec![bad]), at(100))), Vec::<String>::new());
}

#[test]
fn too_many_unhealthy_machines_are_marked_without_remediation() {
    let mut check = check();
    check.spec.remediation.trigger_if.unhealthy_less_than_or_equal_to = Some(IntOrString::Int(0));
    let decision = decided(check, seen(vec![target("bad", "False")]), at(100));
    assert_eq!(effects(&decision), ["bad has HealthCheckSucceeded=False/UnhealthyNode"]);
    assert_eq!(decision.object.status.remediations_allowed, Some(0));
    let restricted = decision.object.status.conditions.condition(REMEDIATION_ALLOWED).expect("a condition");
    assert_eq!(
        restricted.message,
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: 1, unhealthy: 1, maxUnhealthy: 0)"
    );
}

#[test]
fn nothing_is_done_while_contact_with_the_cluster_is_lost() {
    let mut gone = target("gone", "True");
    gone.node = Node::Gone;
    let mut marked = machine("marked");
    marked.metadata.annotations.insert(annotation::REMEDIATE_MACHINE.to_owned(), String::new());
    let marked = Target { machine: Arc::new(marked), node: Node::NotYet };
    let seen = Observed {
        lost_contact: Some("no route".to_owned()),
        ..seen(vec![gone, marked, target("bad", "False")])
    };
    let decision = decided(check(), seen, at(9999));
    assert_eq!(effects(&decision), Vec::<String>::new());
    assert_eq!(decision.waits[0].what, "no route");
    assert!(decision.look_again.is_some());
}

#[test]
fn a_machine_with_a_pending_timeout_is_requeued() {
    let decision = decided(check(), seen(vec![target("bad", "False")]), at(20));
    assert_eq!(effects(&decision), Vec::<String>::new());
    assert_eq!(decision.look_again, Some(Duration::from_secs(41)));
}

fn remediation_objects(
    name: &str,
    with_template: bool,
    request_of: Option<&str>,
) -> (MachineHealthCheck, Observed) {
    let mut check = check();
    let reference = &mut check.spec.remediation.template_ref;
    reference.kind = "RebootTemplate".to_owned();
    reference.name = "reboot".to_owned();
    reference.api_version = "fix.x/v1".to_owned();
    let external = |kind: &str, plural: &str, name: &str| {
        let value = json!({"metadata": {"name": name, "namespace": "ns", "uid": "r"}, "spec": {"template": {"spec": {"how": "hard"}}}});
        External::new(KindName::namespaced("fix.x", "v1", kind, plural), ContractVersion::V1Beta2, value)
    };
    let mut seen = seen(vec![target(name, if name == "bad" { "False" } else { "True" })]);
    seen.remediation_template = if with_template {
        Lookup::Object(Box::new(external("RebootTemplate", "reboottemplates", "reboot")))
    } else {
        Lookup::Missing
    };
    if let Some(machine) = request_of {
        seen.requests.insert(machine.to_owned(), external("Reboot", "reboots", machine));
    }
    (check, seen)
}

#[test]
fn a_template_requests_external_remediation() {
    for (what, machine, with_template, request_of, expected) in [
        (
            "a request is made",
            "bad",
            true,
            None,
            vec![
                "create reboots.fix.x bad",
                "bad has ExternallyRemediated=False/WaitingForRemediation HealthCheckSucceeded=False/UnhealthyNode",
            ],
        ),
        (
            "one that is there is left",
            "bad",
            true,
            Some("bad"),
            vec!["bad has HealthCheckSucceeded=False/UnhealthyNode"],
        ),
        (
            "a missing template is reported",
            "bad",
            false,
            None,
            vec![
                "bad has ExternallyRemediated=False/RemediationTemplateNotFound HealthCheckSucceeded=False/UnhealthyNode",
            ],
        ),
        (
            "a request for a machine that recovered goes",
            "good",
            true,
            Some("good"),
            vec!["delete reboots.fix.x ns/good", "good has HealthCheckSucceeded=True/HealthCheckSucceeded"],
        ),
    ] {
        let (check, seen) = remediation_objects(machine, with_template, request_of);
        let mut found = effects(&decided(check, seen, at(100)));
        for line in &mut found {
            // The order of conditions does not matter here.
            if let Some((name, reported)) = line.split_once(" has ") {
                let mut reported: Vec<_> = reported.split(' ').collect();
                reported.sort_unstable();
                *line = format!("{name} has {}", reported.join(" "));
            }
        }
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn a_request_that_could_not_be_created_is_reported_until_it_is() {
    let externally = |look: Look<_>| {
        effects(&decide(&look))
            .into_iter()
            .find(|line| line.contains("ExternallyRemediated"))
            .unwrap_or_default()
    };
    let (check, seen) = remediation_objects("bad", true, None);
    let mut look = Look::new(Arc::new(check), seen, at(100));
    look.failures = vec![capstan_controller::Failure {
        effect: "create reboots.fix.x bad".to_owned(),
        call: None,
        error: capstan_controller::Error {
            code: capstan_controller::catalogue::API_REFUSED,
            message: "forbidden".to_owned(),
        },
        since: at(90),
        attempts: 1,
    }];
    assert!(externally(look).contains("ExternallyRemediated=False/RemediationRequestCreationFailed"));

    let (check, mut seen) = remediation_objects("bad", true, Some("bad"));
    let machine = Arc::make_mut(&mut seen.targets[0].machine);
    machine.status.conditions.push(Condition {
        kind: machine_condition::EXTERNALLY_REMEDIATED.to_owned(),
        status: ConditionStatus::False,
        observed_generation: None,
        last_transition_time: at(50).into(),
        reason: machine_reason::REMEDIATION_REQUEST_CREATION_FAILED.to_owned(),
        message: String::new(),
    });
    let look = Look::new(Arc::new(check), seen, at(100));
    assert!(externally(look).contains("ExternallyRemediated=False/WaitingForRemediation"));
}

#[test]
fn a_check_is_owned_by_its_cluster_and_idle_when_paused() {
    let decision = decided(check(), seen(vec![]), at(0));
    assert_eq!(decision.object.metadata.owner_references[0].uid, "c");
    assert_eq!(decision.object.metadata.labels[label::CLUSTER_NAME], "prod");
    let mut look = Look::new(Arc::new(check()), seen(vec![target("bad", "False")]), at(100));
    look.paused = Some("Cluster spec.paused is set to true".to_owned());
    let decision = decide(&look);
    assert!(
        decision.effects.is_empty() && decision.object.status.conditions.is_condition_true(condition::PAUSED)
    );
}
