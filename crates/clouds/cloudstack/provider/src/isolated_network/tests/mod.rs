//! Decisions about CloudStackIsolatedNetworks, as a table.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, condition};
use capstan_cloudstack_client::commands::Owner;
use capstan_cloudstack_client::model::{
    Amount, FirewallRule, LoadBalancerRule, Network, PublicIpAddress, Quota,
};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
};
use capstan_controller::{Concluded, Effect, Failure, Intent, Look, Resolution};
use capstan_object::{Condition, ConditionStatus, Conditions, Key, ObjectMeta};
use capstan_provider_kit::testing::{best_efforts, effects as calls, now};
use jiff::SignedDuration;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::resolve;
use super::decide::decide;
use super::mark::mark;
use super::settled::{became_unavailable, must_ask};
use super::{IsolatedNetworks, Made, Neighbour, NetworkCall, ObservedNetwork, Seen};
use crate::annotation;
use crate::quota::Headroom;

mod removal;

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("as the cloud writes it")
}

fn cluster() -> CloudStackCluster {
    let metadata = ObjectMeta { uid: "cu".to_owned(), ..ObjectMeta::named("ns", "c") };
    CloudStackCluster { metadata, ..CloudStackCluster::default() }
}

fn object() -> CloudStackIsolatedNetwork {
    let mut object =
        CloudStackIsolatedNetwork { metadata: ObjectMeta::named("ns", "c-net"), ..Default::default() };
    object.metadata.finalizers.push(names::finalizer::ISOLATED_NETWORK.to_owned());
    object.spec.name = "net".to_owned();
    object
}

fn tags(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({"key": key, "value": "1"})).collect()
}

fn ours(keys: &[&str]) -> Network {
    read(json!({"id": "n1", "name": "net", "displaytext": mark(&cluster()), "type": "Isolated",
        "egressdefaultpolicy": false, "tags": tags(keys)}))
}

fn theirs() -> Network {
    read(json!({"id": "n1", "name": "net", "displaytext": "net", "egressdefaultpolicy": true}))
}

fn address(ip: &str, source_nat: bool, keys: &[&str]) -> PublicIpAddress {
    read(json!({"id": format!("id-{ip}"), "ipaddress": ip, "issourcenat": source_nat, "tags": tags(keys)}))
}

fn rule(ip: &str) -> LoadBalancerRule {
    read(
        json!({"id": "r1", "name": "Kubernetes_API_Server", "publicport": "6443", "publicipid": format!("id-{ip}")}),
    )
}

fn opening(id: &str, ip: &str, cidr: &str) -> FirewallRule {
    read(json!({"id": id, "protocol": "tcp", "startport": 6443, "endport": 6443,
        "ipaddressid": format!("id-{ip}"), "cidrlist": cidr}))
}

fn exit() -> FirewallRule {
    read(json!({"id": "e1", "protocol": "all"}))
}

fn look(
    object: CloudStackIsolatedNetwork,
    cluster: CloudStackCluster,
    observed: ObservedNetwork,
) -> Look<IsolatedNetworks> {
    let seen = Seen {
        domain: Some(Arc::new(CloudStackFailureDomain::default())),
        cluster: Some(Arc::new(cluster)),
        observed: Some(Ok(observed)),
        ..Seen::default()
    };
    Look::new(Arc::new(object), seen, now())
}

/// No network is there, and an offering to make it from.
fn absent() -> ObservedNetwork {
    let named = |id: &str, name: &str| read(json!({"id": id, "name": name}));
    let default = "DefaultIsolatedNetworkOfferingWithSourceNatService";
    let offerings = vec![named("o2", &format!("{default}-2")), named("o1", default), named("o3", "fast")];
    ObservedNetwork {
        offerings: Arc::new(offerings),
        owner: Owner::project("p1".into()),
        ..ObservedNetwork::default()
    }
}

const BOTH: &[&str] = &["created_by_CAPC", "CAPC_cluster_cu"];
const IP: &str = "192.0.2.7";

#[test]
fn what_is_missing_is_made_step_by_step() {
    let allowed = |cidrs: &str| {
        let mut cluster = cluster();
        cluster.metadata.annotations.insert(annotation::ALLOWED_CIDRS.to_owned(), cidrs.to_owned());
        cluster
    };
    let wanting = |host: &str| {
        let mut cluster = cluster();
        cluster.spec.control_plane_endpoint.host = host.to_owned();
        cluster
    };
    let complete = |openings: Vec<FirewallRule>| ObservedNetwork {
        network: Some(ours(BOTH)),
        addresses: vec![address(IP, true, &[])],
        rules: vec![rule(IP)],
        openings,
        exits: vec![exit()],
        ..ObservedNetwork::default()
    };
    let rows: Vec<(&str, CloudStackCluster, ObservedNetwork, Vec<&str>)> = vec![
        ("nothing is there", cluster(), absent(), vec!["create-network net"]),
        (
            "a fresh network of our own",
            cluster(),
            ObservedNetwork { network: Some(ours(&[])), ..ObservedNetwork::default() },
            vec!["tag n1 [created_by_CAPC CAPC_cluster_cu]", "let-out n1", "take-address for n1"],
        ),
        (
            "a wanted address",
            wanting("192.0.2.9"),
            ObservedNetwork { network: Some(ours(BOTH)), exits: vec![exit()], ..ObservedNetwork::default() },
            vec!["take-address 192.0.2.9 for n1"],
        ),
        (
            "an address without a rule",
            cluster(),
            ObservedNetwork { rules: Vec::new(), ..complete(Vec::new()) },
            vec!["create-rule id-192.0.2.7 6443"],
        ),
        ("everything", cluster(), complete(vec![opening("f1", IP, "0.0.0.0/0")]), vec![]),
        (
            "somebody is to be let in, and what others opened stays",
            allowed("10.0.0.0/8"),
            complete(vec![opening("f1", IP, "0.0.0.0/0")]),
            vec!["let-in 10.0.0.0/8 to id-192.0.2.7 6443"],
        ),
        (
            "a network of somebody else's",
            cluster(),
            ObservedNetwork {
                network: Some(theirs()),
                addresses: vec![address("192.0.2.1", true, &[])],
                free: IP.parse().ok(),
                ..ObservedNetwork::default()
            },
            vec!["take-address 192.0.2.7 for n1"],
        ),
    ];
    for (says, cluster, observed, wanted) in rows {
        let decision = decide(&look(object(), cluster, observed));
        assert_eq!(calls(&decision), wanted, "{says}");
        assert_eq!(decision.object.status.ready, wanted.is_empty(), "{says}");
        if wanted.is_empty() {
            let endpoint = &decision.object.spec.control_plane_endpoint;
            assert_eq!((endpoint.host.as_str(), endpoint.port), (IP, 6443));
            assert_eq!(decision.object.status.load_balancer_rule_id, "r1");
        }
    }
}

#[test]
fn only_openings_on_record_are_closed_and_none_is_made_where_somebody_else_decides() {
    let observed = |openings: Vec<FirewallRule>| ObservedNetwork {
        network: Some(ours(BOTH)),
        addresses: vec![address(IP, true, &[])],
        rules: vec![rule(IP)],
        openings,
        exits: vec![exit()],
        ..ObservedNetwork::default()
    };
    let recorded = |rule: Option<&str>, opened: Option<bool>, openings: &[&str]| {
        let mut object = object();
        let openings = openings.iter().map(|id| (*id).to_owned()).collect();
        Made { rule: rule.map(str::to_owned), opened, openings, ..Made::default() }.put(&mut object.metadata);
        object
    };
    let by_hand = || vec![opening("f9", IP, "10.0.0.0/8")];
    let range = || {
        vec![read(json!({"id": "f8", "protocol": "tcp", "startport": 6000, "endport": 7000,
        "ipaddressid": format!("id-{IP}"), "cidrlist": "10.0.0.0/8"}))]
    };
    let world = || vec![opening("f1", IP, "0.0.0.0/0")];
    let open = "let-in 0.0.0.0/0 to id-192.0.2.7 6443";
    let asked = "let-in 192.0.2.0/24 to id-192.0.2.7 6443";
    type Row = (&'static str, CloudStackIsolatedNetwork, Vec<FirewallRule>, &'static str, Vec<&'static str>);
    let rows: Vec<Row> = vec![
        ("taken over, narrowed by hand", object(), by_hand(), "", vec![]),
        ("taken over, closed by hand", object(), vec![], "", vec![]),
        ("our rule, narrowed by hand", recorded(Some("r1"), Some(true), &[]), by_hand(), "", vec![]),
        ("our rule, narrowed to a range", recorded(Some("r1"), Some(true), &[]), range(), "", vec![]),
        ("our rule, its opening is lost", recorded(Some("r1"), Some(true), &[]), vec![], "", vec![open]),
        ("somebody asks, others opened", object(), by_hand(), "192.0.2.0/24", vec![asked]),
        (
            "somebody asks, ours came with the rule",
            recorded(Some("r1"), Some(true), &[]),
            world(),
            "192.0.2.0/24",
            vec![asked, "delete-opening f1"],
        ),
        (
            "somebody asks, of a record that does not say",
            recorded(Some("r1"), None, &[]),
            world(),
            "192.0.2.0/24",
            vec![asked, "delete-opening f1"],
        ),
        (
            "somebody asks, not ours",
            recorded(Some("r1"), Some(false), &[]),
            world(),
            "192.0.2.0/24",
            vec![asked],
        ),
        (
            "somebody asks for another",
            recorded(Some("r1"), Some(false), &["f9"]),
            by_hand(),
            "192.0.2.0/24",
            vec![asked, "delete-opening f9"],
        ),
    ];
    for (says, object, openings, cidrs, wanted) in rows {
        let mut cluster = cluster();
        if !cidrs.is_empty() {
            cluster.metadata.annotations.insert(annotation::ALLOWED_CIDRS.to_owned(), cidrs.to_owned());
        }
        assert_eq!(calls(&decide(&look(object, cluster, observed(openings)))), wanted, "{says}");
    }
    // What is not closed is reported.
    let mut asking = cluster();
    asking.metadata.annotations.insert(annotation::ALLOWED_CIDRS.to_owned(), "10.0.0.0/8".to_owned());
    let both = vec![opening("f1", IP, "0.0.0.0/0"), opening("f9", IP, "10.0.0.0/8")];
    let mut settled = object();
    settled.status.public_ip_id = format!("id-{IP}");
    settled.spec.control_plane_endpoint.port = 6443;
    let decision = decide(&look(settled, asking, observed(both)));
    let ready = decision.object.status.conditions.condition(condition::READY).expect("Ready");
    assert!(decision.effects.is_empty() && ready.message.contains("f1 (0.0.0.0/0)"), "{}", ready.message);
}

#[test]
fn packets_are_let_out_unless_somebody_else_decides_what_goes_out() {
    let narrowed = || read::<FirewallRule>(json!({"id": "e9", "protocol": "tcp", "startport": 443}));
    let settled = |recorded: Option<&str>| {
        let mut object = object();
        let exit = recorded.map(str::to_owned);
        Made { clusters: ["cu".to_owned()].into(), exit, ..Made::default() }.put(&mut object.metadata);
        object
    };
    let from_capc = || {
        let mut object = object();
        object.spec.id = "n1".to_owned();
        object.spec.control_plane_endpoint.host = IP.to_owned();
        object
    };
    let out = "let-out n1";
    type Row =
        (&'static str, CloudStackIsolatedNetwork, Vec<FirewallRule>, Option<&'static str>, &'static str);
    let rows: Vec<Row> = vec![
        ("a fresh network", settled(None), vec![], Some(out), ""),
        ("our rule is lost", settled(Some("e1")), vec![], Some(out), ""),
        ("our rule is there", settled(Some("e1")), vec![exit()], None, ""),
        ("our rule, and another", settled(Some("e1")), vec![exit(), narrowed()], None, ""),
        ("narrowed in place of our rule", settled(Some("e1")), vec![narrowed()], None, "e9 (tcp 443)"),
        ("narrowed before we came", settled(None), vec![narrowed()], None, "e9 (tcp 443)"),
        ("taken over, narrowed", from_capc(), vec![narrowed()], None, "e9 (tcp 443)"),
        ("taken over, closed", from_capc(), vec![], None, "no egress rule lets anything out"),
    ];
    for (says, object, exits, wanted, told) in rows {
        for routed in [false, true] {
            let mut network = ours(BOTH);
            network.ip4routing = routed.then(|| "Static".to_owned());
            let mut cluster = cluster();
            cluster.spec.control_plane_endpoint.host = IP.to_owned();
            let mut opening = opening("f1", IP, "0.0.0.0/0");
            opening.destcidrlist = routed.then(|| "0.0.0.0/0".to_owned());
            let observed = ObservedNetwork {
                network: Some(network),
                addresses: vec![address(IP, true, &[])],
                rules: vec![rule(IP)],
                openings: vec![opening],
                exits: exits.clone(),
                ..ObservedNetwork::default()
            };
            let decision = decide(&look(object.clone(), cluster, observed));
            assert_eq!(calls(&decision), wanted.into_iter().collect::<Vec<_>>(), "{says}, routed: {routed}");
            let ready = decision.object.status.conditions.condition(condition::READY).expect("Ready");
            assert!(ready.message.contains(told), "{says}: {}", ready.message);
            assert_eq!(ready.is_true(), wanted.is_none(), "{says}: {}", ready.message);
        }
    }
}

#[test]
fn an_address_or_rule_of_another_cluster_is_never_used() {
    let mut foreign = ours(&["created_by_CAPC", "CAPC_cluster_au"]);
    foreign.displaytext = Some("Kubernetes cluster ns/a (CAPC_cluster_au)".to_owned());
    let free = "192.0.2.8";
    let on = |network: &Network, addresses: Vec<PublicIpAddress>| ObservedNetwork {
        network: Some(network.clone()),
        rules: addresses.iter().map(|it| rule(&it.ipaddress.to_string())).collect(),
        addresses,
        exits: vec![exit()],
        free: free.parse().ok(),
        ..ObservedNetwork::default()
    };
    let wanting = |host: &str| {
        let mut cluster = cluster();
        cluster.spec.control_plane_endpoint.host = host.to_owned();
        cluster
    };
    let tag = "tag n1 [CAPC_cluster_cu]";
    let take = format!("take-address {free} for n1");
    let rows = [
        (
            "its source NAT address",
            cluster(),
            on(&foreign, vec![address(IP, true, &[])]),
            vec![tag, take.as_str()],
            "",
        ),
        (
            "one that it tagged",
            cluster(),
            on(&foreign, vec![address(IP, false, &["CAPC_cluster_au"])]),
            vec![tag, take.as_str()],
            "",
        ),
        (
            "asked for by name",
            wanting(IP),
            on(&foreign, vec![address(IP, true, &[])]),
            vec![],
            "E-CS-NOT-OURS",
        ),
        (
            "asked for by name on another's network",
            wanting(IP),
            on(&theirs(), vec![address(IP, false, &["CAPC_cluster_au"])]),
            vec![],
            "E-CS-NOT-OURS",
        ),
    ];
    for (says, cluster, observed, wanted, code) in rows {
        let decision = decide(&look(object(), cluster, observed));
        assert_eq!(calls(&decision), wanted, "{says}");
        assert_ne!(decision.object.status.public_ip_id, format!("id-{IP}"), "{says}");
        let ready = decision.object.status.conditions.condition(condition::READY).expect("Ready");
        assert!(ready.message.starts_with(code), "{says}: {}", ready.message);
    }
    // Two objects of one management cluster that ask for one address: the older has it.
    let same = Neighbour { name: "ns/a-net".to_owned(), host: IP.to_owned(), ..Neighbour::default() };
    for (since, had) in [("2026-01-01T00:00:00Z", false), ("2027-01-01T00:00:00Z", true)] {
        let mut second = object();
        second.metadata.uid = "u2".to_owned();
        second.metadata.creation_timestamp = Some(read(json!("2026-06-01T00:00:00Z")));
        let mut look = look(second, wanting(IP), on(&theirs(), vec![address(IP, false, &[])]));
        look.seen.neighbours =
            vec![Neighbour { since: (Some(read(json!(since))), "u1".to_owned()), ..same.clone() }];
        assert_eq!(decide(&look).object.status.public_ip_id == format!("id-{IP}"), had, "{since}");
    }
    // CAPC tags no address: a rule of its name that leads to machines is a live neighbour's, unless the record says otherwise.
    let untagged = || on(&theirs(), vec![address(IP, false, &[])]);
    let served = |observed| ObservedNetwork { serving: ["r1".to_owned()].into(), ..observed };
    let mut recorded = object();
    Made { rule: Some("r1".to_owned()), clusters: ["cu".to_owned()].into(), ..Made::default() }
        .put(&mut recorded.metadata);
    let mut from_capc = object();
    from_capc.spec.id = "n1".to_owned();
    from_capc.spec.control_plane_endpoint.host = IP.to_owned();
    let tagged = || on(&theirs(), vec![address(IP, false, &["CAPC_cluster_cu"])]);
    for (says, object, observed, used) in [
        ("it leads to machines", object(), served(untagged()), false),
        ("it leads to none, as after the cluster that had it", object(), untagged(), true),
        ("it is on record", recorded, served(untagged()), true),
        ("it came along", from_capc, served(untagged()), true),
        ("the address has our tag", object(), served(tagged()), true),
    ] {
        let decision = decide(&look(object, wanting(IP), observed));
        assert_eq!(decision.object.status.load_balancer_rule_id == "r1", used, "{says}");
        let ready = decision.object.status.conditions.condition(condition::READY).expect("Ready");
        assert_eq!(ready.message.starts_with("E-CS-NOT-OURS"), !used, "{says}: {}", ready.message);
        assert!(used || decision.effects.is_empty(), "{says}");
    }
    // A rule that somebody made on the port of our own address.
    let mut observed = on(&ours(BOTH), vec![address(IP, true, &[])]);
    observed.rules[0].name = Some("web".to_owned());
    let decision = decide(&look(object(), cluster(), observed));
    let ready = decision.object.status.conditions.condition(condition::READY).expect("Ready");
    assert!(decision.effects.is_empty() && ready.message.starts_with("E-CS-NOT-OURS"), "{}", ready.message);
}

#[test]
fn a_network_gets_its_tags_a_while_after_it_is_ready_and_only_once() {
    let mut made = object();
    made.spec.id = "n1".to_owned();
    made.status.ready = true;
    Made { network: Some("n1".to_owned()), ..Made::default() }.put(&mut made.metadata);
    let settled = |object: &CloudStackIsolatedNetwork, seconds: i64| {
        let seen = Seen {
            domain: Some(Arc::new(CloudStackFailureDomain::default())),
            cluster: Some(Arc::new(cluster())),
            ..Seen::default()
        };
        Look::<IsolatedNetworks>::new(
            Arc::new(object.clone()),
            seen,
            now() + SignedDuration::from_secs(seconds),
        )
    };
    made.status.conditions.push(settled(&made, 0).condition(
        condition::READY,
        ConditionStatus::True,
        "Provisioned",
        "",
    ));
    let early = decide(&settled(&made, 599));
    assert!(early.effects.is_empty());
    let tag = "tag n1 [created_by_CAPC CAPC_cluster_cu]";
    let mut due = settled(&made, 600);
    let decision = decide(&due);
    assert_eq!((calls(&decision), best_efforts(&decision)), (vec![tag.to_owned()], vec![tag.to_owned()]));
    let call = NetworkCall::Tag {
        id: "n1".to_owned(),
        address: false,
        tags: BOTH.iter().map(|tag| (*tag).to_owned()).collect(),
    };
    due.concluded.push(Concluded { call, result: Some(Value::Null) });
    let done = decide(&due);
    assert!(done.effects.is_empty() && Made::of(&done.object.metadata).tagged);
    assert!(decide(&settled(&done.object, 1200)).effects.is_empty());
}

#[test]
fn whoever_comes_to_a_network_that_has_no_tags_yet_marks_it_for_both() {
    let mut other = ours(&[]);
    other.displaytext = Some("Kubernetes cluster ns/a (CAPC_cluster_au)".to_owned());
    let rows = [
        (&[] as &[&str], "tag n1 [created_by_CAPC CAPC_cluster_cu CAPC_cluster_au]"),
        // Its first cluster is gone: the text is history.
        (&["created_by_CAPC"], "tag n1 [CAPC_cluster_cu]"),
    ];
    for (keys, wanted) in rows {
        let network = Network { tags: read(tags(keys)), ..other.clone() };
        let (exits, free) = (vec![exit()], IP.parse().ok());
        let observed = ObservedNetwork { network: Some(network), exits, free, ..ObservedNetwork::default() };
        assert_eq!(calls(&decide(&look(object(), cluster(), observed)))[0], wanted);
    }
}

#[test]
fn a_network_that_vanished_is_reported_and_not_made_again() {
    let mut settled = object();
    settled.spec.id = "n1".to_owned();
    let decision = decide(&look(settled, cluster(), ObservedNetwork::default()));
    assert!(decision.effects.is_empty());
    let ready = decision.object.status.conditions.condition(condition::READY).expect("Ready");
    assert_eq!(ready.reason, "Gone");
}

#[test]
fn a_network_that_was_refused_is_ordered_again_after_a_pause_that_outlives_the_process() {
    let first = look(object(), cluster(), absent());
    let [planned] = decide(&first).effects.try_into().expect("one call");
    let effect = Effect::summary(&planned.effect);
    let at = |object: &CloudStackIsolatedNetwork, seconds: i64| {
        let mut look = look(object.clone(), cluster(), absent());
        look.now = now() + SignedDuration::from_secs(seconds);
        look
    };
    let refusal = || {
        let error = capstan_controller::Error { code: crate::code::REFUSED, message: "no".to_owned() };
        Failure { effect: effect.clone(), call: None, error, since: now(), attempts: 1 }
    };
    let mut known = object();
    for (sent, next) in [(0, 30), (30, 90), (90, 210)] {
        let mut refused = at(&known, sent);
        assert_eq!(calls(&decide(&refused)), ["create-network net"]);
        refused.failures.push(refusal());
        let refused = decide(&refused);
        assert!(refused.effects.is_empty());
        known = refused.object;
        assert!(calls(&decide(&at(&known, next - 1))).is_empty(), "{next}");
    }
    let there = ObservedNetwork { network: Some(ours(&[])), ..ObservedNetwork::default() };
    let found = decide(&look(known, cluster(), there));
    assert!(!found.object.metadata.annotations.contains_key(annotation::ORDER_REFUSED));
}

#[test]
fn refused_orders_for_what_is_on_a_network_pause_each_for_itself_and_pauses_outlive_the_process() {
    let fresh = || ObservedNetwork { network: Some(ours(BOTH)), ..ObservedNetwork::default() };
    let bare = || ObservedNetwork { addresses: vec![address(IP, true, &[])], ..fresh() };
    let narrow = || {
        let mut cluster = cluster();
        cluster.metadata.annotations.insert(annotation::ALLOWED_CIDRS.to_owned(), "10.0.0.0/8".to_owned());
        cluster
    };
    let closed = || ObservedNetwork { rules: vec![rule(IP)], exits: vec![exit()], ..bare() };
    let rows = [
        ("take-address for n1", cluster(), ObservedNetwork { exits: vec![exit()], ..fresh() }),
        ("let-out n1", cluster(), ObservedNetwork { rules: vec![rule(IP)], ..bare() }),
        ("create-rule id-192.0.2.7 6443", cluster(), ObservedNetwork { exits: vec![exit()], ..bare() }),
        ("let-in 10.0.0.0/8 to id-192.0.2.7 6443", narrow(), closed()),
    ];
    for (order, cluster, observed) in rows {
        let mut known = object();
        known.status.load_balancer_rule_id = "r1".to_owned();
        // A look of a process that has just begun remembers nothing but what the object says.
        let at = |object: &CloudStackIsolatedNetwork, seconds: i64| {
            let mut look = look(object.clone(), cluster.clone(), observed.clone());
            look.now = now() + SignedDuration::from_secs(seconds);
            look
        };
        for (sent, next) in [(0, 30), (30, 90), (90, 210)] {
            let mut refused = at(&known, sent);
            let decided = decide(&refused);
            let planned = decided.effects.iter().find(|planned| planned.effect.summary() == order);
            let planned = planned.unwrap_or_else(|| panic!("{order}: {:?}", calls(&decided)));
            let Effect::Call(call) = &planned.effect else { panic!("{order} is a call") };
            let error = capstan_controller::Error { code: crate::code::REFUSED, message: "no".to_owned() };
            let call = Some(call.clone());
            let effect = order.to_owned();
            refused.failures.push(Failure { effect, call, error, since: now(), attempts: 1 });
            known = decide(&refused).object;
            let paused = decide(&at(&known, next - 1));
            assert!(!calls(&paused).contains(&order.to_owned()), "{order} at {next}: {:?}", calls(&paused));
            let ready = paused.object.status.conditions.condition(condition::READY).expect("Ready");
            assert!(ready.message.contains("no; next try at"), "{}", ready.message);
        }
        let everything = ObservedNetwork {
            openings: vec![opening("f1", IP, "0.0.0.0/0"), opening("f2", IP, "10.0.0.0/8")],
            ..closed()
        };
        let done = decide(&look(known, cluster, everything));
        assert!(!done.object.metadata.annotations.contains_key(annotation::SETUP_REFUSED), "{order}");
    }
    // One that is refused holds up no other.
    let mut refused = look(object(), cluster(), fresh());
    let error = capstan_controller::Error { code: crate::code::REFUSED, message: "no".to_owned() };
    let effect = "take-address for n1".to_owned();
    refused.failures.push(Failure { effect, call: None, error, since: now(), attempts: 1 });
    assert_eq!(calls(&decide(&refused)), ["let-out n1"]);
}

#[test]
fn a_tier_waits_for_the_one_that_is_ordered_first() {
    let mut tier = object();
    tier.spec.vpc = Some(capstan_cloudstack_types::v1beta3::Vpc {
        name: "clouds".to_owned(),
        cidr: "10.1.0.0/16".to_owned(),
        ..Default::default()
    });
    let offering = json!({"id": "v1", "name": "Default VPC offering"});
    let observed = ObservedNetwork { vpc_offerings: Arc::new(vec![read(offering)]), ..absent() };
    let first = look(tier, cluster(), observed);
    assert_eq!(calls(&decide(&first)), ["create-vpc clouds"]);
    let mut second = first;
    second.seen.ordered_first = Some(Key::new("ns", "c-other"));
    let waiting = decide(&second);
    let ready = waiting.object.status.conditions.condition(condition::READY).expect("Ready");
    assert!(waiting.effects.is_empty() && waiting.look_again.is_some());
    assert_eq!(ready.reason, "WaitingForVPC");
    assert!(ready.message.contains("ns/c-other, another tier of VPC clouds"), "{}", ready.message);
}

#[test]
fn a_call_that_nobody_heard_of_is_waited_for_before_it_is_made_again() {
    let intent = |call| Intent { key: String::new(), call, at: now().into() };
    // As releases wrote it that did not journal orders.
    let create = intent(read(json!({"verb": "create", "name": "net"})));
    let later = now() + SignedDuration::from_secs(31);
    let there = ObservedNetwork { network: Some(ours(&[])), ..ObservedNetwork::default() };
    assert_eq!(resolve(&create, &there, now()), Resolution::happened());
    assert!(matches!(resolve(&create, &ObservedNetwork::default(), now()), Resolution::NotYetKnown { .. }));
    assert_eq!(resolve(&create, &ObservedNetwork::default(), later), Resolution::DidNotHappen);
    let delete = intent(NetworkCall::Delete { network: "n1".to_owned() });
    assert_eq!(resolve(&delete, &there, now()), Resolution::DidNotHappen);
    assert_eq!(resolve(&delete, &ObservedNetwork::default(), now()), Resolution::happened());
}

#[test]
fn the_cloud_is_asked_again_when_the_cluster_becomes_unavailable_after_the_network_was_ready() {
    let at = |second: i64| now().checked_add(SignedDuration::from_secs(second)).expect("a moment");
    let is = |kind: &str, status: &str, second: i64| {
        read::<Condition>(json!({"type": kind, "status": status, "reason": "It", "message": "",
            "lastTransitionTime": at(second).to_string()}))
    };
    let network = |status: &str, second: i64| {
        let mut object = object();
        object.status.ready = true;
        object
            .metadata
            .annotations
            .insert("capstan.dev/cloudstack-settled-with".to_owned(), "0.0.0.0/0".to_owned());
        object.status.conditions = vec![is(condition::READY, status, second)];
        object
    };
    let available = |status: &str, second: i64| {
        let mut cluster = Cluster::default();
        cluster.status.conditions = vec![is(condition::AVAILABLE, status, second)];
        cluster
    };
    let settled = network("True", 10);
    for (what, cluster, unavailable) in [
        ("it was never available yet", available("False", 0), false),
        ("it is available", available("True", 20), false),
        ("it was available", available("False", 20), true),
        ("nobody has looked", Cluster::default(), false),
    ] {
        assert_eq!(became_unavailable(&settled, &cluster), unavailable, "{what}");
    }
    assert!(!must_ask(&settled, &cluster()), "all is there");
    assert!(must_ask(&network("False", 30), &cluster()), "what is missing is being mended");
}

#[test]
fn an_endpoint_that_is_another_networks_address_is_not_taken_and_an_own_address_stays() {
    let observed = ObservedNetwork {
        network: Some(ours(BOTH)),
        addresses: vec![address(IP, true, &[])],
        exits: vec![exit()],
        ..ObservedNetwork::default()
    };
    let served = "192.0.2.99".to_owned();
    let mut chosen = cluster();
    chosen.spec.control_plane_endpoint.host.clone_from(&served);
    let alone = look(object(), chosen.clone(), observed.clone());
    assert_eq!(calls(&decide(&alone)), [format!("take-address {served} for n1")]);
    let mut second = look(object(), chosen.clone(), observed.clone());
    second.seen.elsewhere = true;
    let decision = decide(&second);
    assert_eq!(decision.object.spec.control_plane_endpoint.host, IP, "{:?}", calls(&decision));
    let mut settled = object();
    settled.status.public_ip_id = format!("id-{IP}");
    let decision = decide(&look(settled, chosen, observed));
    assert_eq!(decision.object.spec.control_plane_endpoint.host, IP, "{:?}", calls(&decision));
}

#[test]
fn the_order_of_a_network_is_complete_when_it_is_decided() {
    let mut placed = look(object(), cluster(), absent());
    let mut domain = CloudStackFailureDomain::default();
    domain.spec.zone.id = "z1".to_owned();
    placed.seen.domain = Some(Arc::new(domain));
    let plain = json!({"v": 1, "zone": "z1", "offering": "o1", "owner": {"projectid": "p1"},
        "text": "Kubernetes cluster ns/c (CAPC_cluster_cu)"});
    let order = |look: &Look<IsolatedNetworks>| {
        let decision = decide(look);
        let [planned] = decision.effects.as_slice() else { panic!("{:?}", calls(&decision)) };
        let Effect::Call(call) = &planned.effect else { panic!("a call") };
        let written = serde_json::to_value(call).expect("JSON");
        assert_eq!(read::<NetworkCall>(written.clone()), *call, "it reads back as it was written");
        written["order"].clone()
    };
    assert_eq!(order(&placed), plain);
    let mut asking = object();
    asking.spec.offering = "fast".to_owned();
    asking.spec.gateway = "10.1.0.1".to_owned();
    asking.spec.netmask = "255.255.0.0".to_owned();
    placed.object = Arc::new(asking);
    let mut wanted = plain;
    wanted["offering"] = "o3".into();
    wanted["gateway"] = "10.1.0.1".into();
    wanted["netmask"] = "255.255.0.0".into();
    assert_eq!(order(&placed), wanted);
}

#[test]
fn an_offering_that_is_missing_is_named_by_field_and_looked_for_again() {
    let mut asking = object();
    asking.spec.offering = "none".to_owned();
    let decision = decide(&look(asking, cluster(), absent()));
    assert!(decision.effects.is_empty() && decision.look_again.is_some());
    let ready = decision.object.status.conditions.condition(condition::READY).expect("Ready");
    assert_eq!(ready.reason, "OfferingNotFound");
    assert!(ready.message.starts_with("E-CS-NOTFOUND") && ready.message.contains("network.offering"));
}

#[test]
fn tags_that_could_not_be_put_are_looked_up_before_the_next_try() {
    let mut made = object();
    made.spec.id = "n1".to_owned();
    made.status.ready = true;
    Made { network: Some("n1".to_owned()), ..Made::default() }.put(&mut made.metadata);
    let condition = look(made.clone(), cluster(), ObservedNetwork::default()).condition(
        condition::READY,
        ConditionStatus::True,
        "Provisioned",
        "",
    );
    made.status.conditions.push(condition);
    let mut due = look(made.clone(), cluster(), ObservedNetwork::default());
    due.seen.observed = None;
    due.now = now() + SignedDuration::from_secs(600);
    let [planned] = decide(&due).effects.try_into().expect("one call");
    let call = match &planned.effect {
        Effect::Call(call) => call.clone(),
        other => panic!("{other:?}"),
    };
    let error = capstan_controller::Error { code: crate::code::FAILED, message: "a tag is there".to_owned() };
    let effect = Effect::summary(&planned.effect);
    due.failures.push(Failure { effect, call: Some(call), error, since: now(), attempts: 1 });
    let failed = decide(&due).object;
    assert!(Made::of(&failed.metadata).tag_failed && must_ask(&failed, &cluster()));

    let complete = |keys: &[&str]| ObservedNetwork {
        network: Some(ours(keys)),
        addresses: vec![address(IP, true, &[])],
        rules: vec![rule(IP)],
        openings: vec![opening("f1", IP, "0.0.0.0/0")],
        exits: vec![exit()],
        ..ObservedNetwork::default()
    };
    let later = |keys: &[&str]| {
        let mut later = look(failed.clone(), cluster(), complete(keys));
        later.now = due.now;
        decide(&later)
    };
    assert_eq!(calls(&later(&["created_by_CAPC"])), ["tag n1 [CAPC_cluster_cu]"]);
    let done = later(BOTH);
    let made = Made::of(&done.object.metadata);
    assert!(done.effects.is_empty() && made.tagged && !made.tag_failed);
}

#[test]
fn nothing_is_ordered_that_the_account_or_the_zone_has_too_little_for() {
    let message = |look: &Look<IsolatedNetworks>| {
        let decision = decide(look);
        assert!(calls(&decision).is_empty());
        decision.object.status.conditions.condition(condition::READY).expect("a condition").message.clone()
    };
    let left =
        |addresses| Headroom::of(Quota { ipavailable: Some(Amount::Limited(addresses)), ..Quota::default() });
    let mut look_at = look(object(), cluster(), absent());
    look_at.seen.headroom = Some(left(0));
    assert!(message(&look_at).starts_with("E-CS-QUOTA: public addresses needed: 1"));
    look_at.seen.headroom = Some(left(1));
    assert_eq!(calls(&decide(&look_at)), ["create-network net"]);
    look_at.seen.no_address = true;
    assert!(message(&look_at).starts_with("E-CS-CAPACITY: no public address of the zone is free"));
    let fresh =
        ObservedNetwork { network: Some(ours(BOTH)), exits: vec![exit()], ..ObservedNetwork::default() };
    let mut address = look(object(), cluster(), fresh);
    assert_eq!(calls(&decide(&address)), ["take-address for n1"]);
    address.seen.headroom = Some(left(0));
    assert!(message(&address).starts_with("E-CS-QUOTA: public addresses needed: 1"));
}
