//! Decisions about ports for SSH, as a table.

use std::sync::Arc;

use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackIsolatedNetwork, CloudStackMachine, Vpc,
};
use capstan_controller::{Concluded, Decision, Effect};
use capstan_object::{Condition, ConditionStatus, Conditions};
use capstan_provider_kit::testing::best_efforts;
use serde_json::{Value, json};

use super::decide::decide;
use super::forwarding::AddressRules;
use super::ssh::{SshRules, question};
use super::tests::{calls, deleted, look, now, provisioned, read, ready, seen, vm};
use super::{CloudStackMachines, FORWARDED, Instance, MachineCall, Seen};
use crate::annotation;
use crate::code;
use crate::error::CloudError;

fn cluster(wanted: bool, cidrs: &str) -> Option<Arc<CloudStackCluster>> {
    let mut cluster = CloudStackCluster::default();
    let annotations = &mut cluster.metadata.annotations;
    annotations.insert(annotation::SSH_FORWARDING.to_owned(), wanted.to_string());
    annotations.insert(annotation::ALLOWED_CIDRS.to_owned(), cidrs.to_owned());
    Some(Arc::new(cluster))
}

fn observed(wanted: bool, cidrs: &str, ssh: Result<SshRules, CloudError>) -> Seen {
    let mut network = CloudStackIsolatedNetwork::default();
    network.status.public_ip_id = "a1".to_owned();
    network.spec.control_plane_endpoint.host = "192.0.2.7".to_owned();
    Seen {
        infrastructure: cluster(wanted, cidrs),
        network: Some(Arc::new(network)),
        ssh: Some(ssh),
        ..seen(vm("Running"))
    }
}

fn forwarded(to: &[(&str, u16)]) -> AddressRules {
    let rule = |(machine, port): &(&str, u16)| {
        read(
            json!({"id": format!("p{port}"), "publicport": port, "privateport": 22, "virtualmachineid": machine}),
        )
    };
    AddressRules { forwarded: to.iter().map(rule).collect(), ..AddressRules::default() }
}

fn with_condition(
    mut machine: CloudStackMachine,
    status: ConditionStatus,
    reason: &str,
) -> CloudStackMachine {
    machine.status.conditions.push(Condition {
        kind: FORWARDED.to_owned(),
        status,
        reason: reason.to_owned(),
        message: String::new(),
        last_transition_time: now().into(),
        observed_generation: None,
    });
    machine
}

fn openings(ports: &[u16]) -> Option<Vec<capstan_cloudstack_client::model::FirewallRule>> {
    let rule = |port: &u16| read(json!({"id": format!("f{port}"), "startport": port, "endport": port}));
    Some(ports.iter().map(rule).collect())
}

/// Firewall rules on port 2225: ids, and whom they let in.
fn admitting(rules: &[(&str, &str)]) -> AddressRules {
    let rule = |(id, cidrs): &(&str, &str)| {
        read(json!({"id": id, "protocol": "tcp", "startport": 2225, "endport": 2225, "cidrlist": cidrs}))
    };
    AddressRules { openings: Some(rules.iter().map(rule).collect()), ..forwarded(&[("v1", 2225)]) }
}

/// A machine that is forwarded by port 2225, for these sources.
fn recorded(open: bool, openings: &[&str], sources: &str) -> CloudStackMachine {
    let mut machine = with_condition(provisioned(), ConditionStatus::True, "Forwarded");
    let record = json!({"port": 2225, "open": open, "openings": openings, "sources": [sources]});
    machine.metadata.annotations.insert(annotation::SSH_RECORD.to_owned(), record.to_string());
    machine
}

fn record(decision: &Decision<CloudStackMachines>) -> Value {
    let text = decision.object.metadata.annotations.get(annotation::SSH_RECORD);
    text.map(|text| serde_json::from_str(text).expect("JSON")).unwrap_or_default()
}

#[test]
fn the_port_is_chosen_from_the_rules_that_were_observed() {
    let range: Value = json!({"id": "p", "publicport": 2222, "publicendport": 2230, "privateport": 80});
    let ranged = AddressRules { forwarded: vec![read(range)], ..AddressRules::default() };
    let balanced = AddressRules {
        balanced: Some(vec![read(json!({"id": "b", "publicport": "2222"}))]),
        ..AddressRules::default()
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let rows = [
        ("nothing is there", forwarded(&[]), names(&[]), 2222),
        ("others are forwarded", forwarded(&[("v8", 2222), ("v9", 2224)]), names(&[]), 2223),
        ("a range is forwarded", ranged, names(&[]), 2231),
        ("a load balancer has the first", balanced, names(&[]), 2223),
        ("two come before and have none", forwarded(&[]), names(&["v7", "v8"]), 2224),
        ("one of two has one by now", forwarded(&[("v7", 2222)]), names(&["v7", "v8"]), 2224),
        ("both have one", forwarded(&[("v7", 2223), ("v8", 2222)]), names(&["v7", "v8"]), 2224),
    ];
    for (says, rules, before, port) in rows {
        let seen = observed(true, "", Ok(SshRules { rules, before }));
        let decision = decide(&look(provisioned(), seen));
        assert_eq!(calls(&decision), [format!("forward-ssh a1 {port} to v1")], "{says}");
        assert_eq!(best_efforts(&decision), calls(&decision), "{says}");
    }
}

#[test]
fn a_machine_that_is_forwarded_says_where_and_others_are_let_in_first() {
    let everybody = "0.0.0.0/0";
    let rows = [
        ("everybody", "", forwarded(&[("v1", 2225)]), vec![], Some("192.0.2.7:2225")),
        (
            "somebody, not let in yet",
            "10.0.0.0/8",
            admitting(&[]),
            vec!["open-firewall a1 2225 to 10.0.0.0/8"],
            None,
        ),
        ("somebody, let in", "10.0.0.0/8", admitting(&[("f", "10.0.0.0/8")]), vec![], Some("192.0.2.7:2225")),
        (
            "two, one let in, and others by a foreign rule",
            "10.0.0.0/8,192.0.2.0/24",
            admitting(&[("f", "10.0.0.0/8"), ("g", everybody)]),
            vec!["open-firewall a1 2225 to 192.0.2.0/24"],
            None,
        ),
        (
            "a foreign rule lets others in",
            "10.0.0.0/8",
            admitting(&[("f", "10.0.0.0/8"), ("g", everybody)]),
            vec![],
            Some("192.0.2.7:2225; firewall rules that were not created here admit others: g (0.0.0.0/0)"),
        ),
    ];
    for (says, cidrs, rules, wanted, at) in rows {
        let seen = observed(true, cidrs, Ok(SshRules { rules, before: Vec::new() }));
        let mut machine = recorded(cidrs.is_empty(), &["f"], "");
        machine.status.conditions.clear();
        let decision = decide(&look(machine, seen));
        assert_eq!(calls(&decision), wanted, "{says}");
        let reported = decision.object.status.conditions.condition(FORWARDED).expect("a condition");
        assert_eq!(reported.is_true().then_some(reported.message.as_str()), at, "{says}");
    }
}

#[test]
fn when_others_may_connect_what_was_opened_here_is_closed_and_nothing_else() {
    let everybody = "0.0.0.0/0";
    let office = ("office", "10.9.0.0/16");
    let rows = [
        (
            "a rule for everybody that came with the forwarding goes with it",
            (recorded(true, &[], everybody), "10.0.0.0/8", admitting(&[("f", everybody), office])),
            vec!["unforward-ssh a1 to v1"],
        ),
        (
            "then it is made again on its port, without one",
            (
                recorded(true, &[], everybody),
                "10.0.0.0/8",
                AddressRules { forwarded: vec![], ..admitting(&[office]) },
            ),
            vec!["forward-ssh a1 2225 to v1"],
        ),
        (
            "a rule on record is closed",
            (
                recorded(false, &["f"], "10.0.0.0/8"),
                "192.0.2.0/24",
                admitting(&[("f", "10.0.0.0/8"), office]),
            ),
            vec!["close-firewall a1 f"],
        ),
        (
            "one that is not stays, and is no reason to open nothing",
            (recorded(false, &[], "10.0.0.0/8"), "192.0.2.0/24", admitting(&[("f", "10.0.0.0/8"), office])),
            vec!["open-firewall a1 2225 to 192.0.2.0/24"],
        ),
        (
            "everybody may, and nobody else decided otherwise",
            (recorded(false, &[], "10.0.0.0/8"), "", admitting(&[])),
            vec!["open-firewall a1 2225 to 0.0.0.0/0"],
        ),
        (
            "everybody may, and somebody decided otherwise",
            (recorded(false, &[], "10.0.0.0/8"), "", admitting(&[office])),
            vec![],
        ),
        ("nothing changed", (recorded(false, &["f"], "10.0.0.0/8"), "10.0.0.0/8", admitting(&[])), vec![]),
    ];
    for (says, (machine, cidrs, rules), wanted) in rows {
        let seen = observed(true, cidrs, Ok(SshRules { rules, before: Vec::new() }));
        assert_eq!(calls(&decide(&look(machine, seen))), wanted, "{says}");
    }
}

#[test]
fn what_may_come_with_a_rule_is_on_record_before_it_is_ordered_and_what_is_opened_after() {
    let ssh = |rules| Ok(SshRules { rules, before: Vec::new() });
    for (cidrs, open) in [("", true), ("10.0.0.0/8", false)] {
        let decision = decide(&look(provisioned(), observed(true, cidrs, ssh(forwarded(&[])))));
        let record = record(&decision);
        assert_eq!((&record["port"], record["open"] == true), (&json!(2222), open), "{record}");
    }
    let mut done =
        look(recorded(false, &[], ""), observed(true, "10.0.0.0/8", ssh(admitting(&[("f", "10.0.0.0/8")]))));
    let call = MachineCall::OpenFirewall {
        address: "a1".to_owned(),
        port: 2225,
        cidrs: vec!["10.0.0.0/8".to_owned()],
    };
    done.concluded.push(Concluded { call, result: Some(json!({"rule": "f"})) });
    let record = record(&decide(&done));
    assert_eq!((&record["openings"], &record["sources"]), (&json!(["f"]), &json!(["10.0.0.0/8"])));
}

#[test]
fn forwarding_ends_with_what_was_opened_for_it_when_it_is_not_wanted_or_the_machine_goes() {
    let rules =
        || AddressRules { openings: openings(&[2225, 6443]), ..forwarded(&[("v1", 2225), ("v2", 2226)]) };
    let ssh = |rules| Ok(SshRules { rules, before: Vec::new() });
    let ended = ["close-firewall a1 f", "unforward-ssh a1 to v1"];
    let known = || recorded(false, &["f"], "10.0.0.0/8");
    for (object, wanted) in [(known(), false), (deleted(known()), true)] {
        let decision = decide(&look(object, observed(wanted, "", ssh(rules()))));
        assert_eq!(calls(&decision), ended);
        assert_eq!(best_efforts(&decision), ended, "each by itself");
        assert!(!decision.object.metadata.finalizers.is_empty());
    }
    let mut without_status = known();
    without_status.status.conditions.clear();
    assert_eq!(
        calls(&decide(&look(without_status, observed(false, "", ssh(rules()))))),
        ended,
        "after a move"
    );
    let unopened = recorded(true, &[], "0.0.0.0/0");
    assert_eq!(calls(&decide(&look(unopened, observed(false, "", ssh(rules()))))), ended[1..]);

    let over = decide(&look(recorded(true, &[], ""), observed(false, "", ssh(forwarded(&[])))));
    let reported = over.object.status.conditions.condition(FORWARDED).map(|it| it.reason.as_str());
    assert_eq!((reported, record(&over)), (Some("NotWanted"), Value::Null));
    let gone = decide(&look(deleted(recorded(true, &[], "")), observed(true, "", ssh(forwarded(&[])))));
    assert_eq!(calls(&gone), ["destroy-vm v1"]);
    let vanished = Seen { instance: Instance::Gone, ..observed(true, "", ssh(forwarded(&[]))) };
    assert_eq!(
        calls(&decide(&look(deleted(known()), vanished))),
        ended[..1],
        "the rule went with the machine"
    );
}

#[test]
fn a_machine_does_not_go_before_its_port_if_the_cloud_may_answer_soon() {
    let known = || deleted(with_condition(provisioned(), ConditionStatus::True, "Forwarded"));
    for (code, wanted) in [(code::UNREACHABLE, vec![]), (code::PERMISSION, vec!["destroy-vm v1"])] {
        let cause = CloudError::new(code, "Reason", "no");
        let decision = decide(&look(known(), observed(true, "", Err(cause))));
        assert_eq!(calls(&decision), wanted, "{code}");
        assert_eq!(ready(&decision).message.starts_with(code.id()), wanted.is_empty(), "{code}");
    }
}

#[test]
fn rules_are_asked_for_only_when_something_depends_on_them() {
    let asked = |object: &CloudStackMachine, wanted: bool, cidrs: &str, state: &str| {
        let seen = Seen { instance: vm(state), ..observed(wanted, cidrs, Ok(SshRules::default())) };
        let Instance::There { machine, .. } = &seen.instance else { panic!("there") };
        question(object, &seen, machine).map(|question| (question.balanced, question.openings))
    };
    let known = recorded(true, &[], "0.0.0.0/0");
    let failed = with_condition(provisioned(), ConditionStatus::False, "ForwardFailed");
    assert_eq!(asked(&provisioned(), false, "", "Running"), None, "not wanted");
    assert_eq!(asked(&known, true, "", "Running"), None, "as it should be");
    assert_eq!(asked(&known, true, "10.0.0.0/8", "Running"), Some((false, true)), "others may connect");
    assert_eq!(asked(&provisioned(), true, "", "Stopped"), None, "it does not run");
    assert_eq!(asked(&provisioned(), true, "", "Running"), Some((false, false)));
    assert_eq!(asked(&provisioned(), true, "10.0.0.0/8", "Running"), Some((false, true)));
    assert_eq!(asked(&failed, true, "", "Running"), Some((true, false)), "a load balancer may have the port");
    assert_eq!(asked(&known, false, "", "Running"), Some((false, false)), "it ends");
    assert_eq!(asked(&deleted(known.clone()), true, "", "Running"), Some((false, false)), "it goes");
    assert_eq!(asked(&deleted(known), true, "", "Expunging"), None, "rules go with it");
}

#[test]
fn on_a_tier_the_forwarding_rule_says_who_may_connect_and_no_firewall_is_touched() {
    let on_a_tier = |cidrs: &str, rules: AddressRules| {
        let mut seen = observed(true, cidrs, Ok(SshRules { rules, before: Vec::new() }));
        let network = Arc::make_mut(seen.network.as_mut().expect("a network"));
        network.spec.id = "n1".to_owned();
        network.spec.vpc = Some(Vpc { id: "vpc1".to_owned(), ..Vpc::default() });
        seen
    };
    let admitting = |who: &str| {
        let mut rules = forwarded(&[("v1", 2225)]);
        rules.forwarded[0].cidrlist = Some(who.to_owned());
        rules
    };
    let here = (Some(2222), false, Some("n1".to_owned()));
    for (cidrs, admitted) in [("", vec![]), ("10.0.0.0/8", vec!["10.0.0.0/8".to_owned()])] {
        let seen = on_a_tier(cidrs, forwarded(&[]));
        let Instance::There { machine, .. } = &seen.instance else { panic!("there") };
        assert!(question(&provisioned(), &seen, machine).is_some_and(|question| !question.openings));
        let decision = decide(&look(provisioned(), seen));
        let [planned] = decision.effects.as_slice() else { panic!("{:?}", calls(&decision)) };
        let Effect::Call(MachineCall::Forward { port, open, tier, cidrs, .. }) = &planned.effect else {
            panic!("{:?}", calls(&decision))
        };
        assert_eq!(((*port, *open, tier.clone()), cidrs), (here.clone(), &admitted));
        assert_eq!(record(&decision)["open"], Value::Null, "no firewall rule comes with it");
    }
    let unforwarded = ["unforward-ssh a1 to v1"];
    for (says, cidrs, held, wanted) in [
        ("everybody, as wanted", "", "", vec![]),
        ("some, as wanted", "10.0.0.0/8,192.0.2.0/24", "192.0.2.0/24,10.0.0.0/8", vec![]),
        ("too many", "10.0.0.0/8", "", unforwarded.to_vec()),
        ("too few", "", "10.0.0.0/8", unforwarded.to_vec()),
    ] {
        let decision = decide(&look(recorded(false, &[], ""), on_a_tier(cidrs, admitting(held))));
        assert_eq!(calls(&decision), wanted, "{says}");
        let reported = decision.object.status.conditions.condition(FORWARDED).expect("a condition");
        assert_eq!(reported.is_true(), wanted.is_empty(), "{says}");
    }
}
