//! Orders of machines, as a table: observed state in, order or refusal out.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_cloudstack_client::UserData;
use capstan_cloudstack_client::commands::Owner;
use capstan_cloudstack_client::model::{Amount, Quota};
use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackFailureDomain, CloudStackMachine,
};
use capstan_controller::{Call, Concluded, Effect, Failure, Intent};
use capstan_provider_kit::{BootData, BootDataError};
use serde_json::{Value, json};

use super::catalog::Catalog;
use super::decide::decide;
use super::tests::{
    boot_data, calls, catalog, deleted, look, now, object, provisioned, read, ready, seen, vm,
};
use super::{CloudStackMachines, Instance, MachineCall, Order, Seen};
use crate::annotation;
use crate::code;
use crate::error::CloudError;
use crate::quota::Headroom;

type Look = capstan_controller::Look<CloudStackMachines>;

fn domain() -> Arc<CloudStackFailureDomain> {
    let mut domain = CloudStackFailureDomain::default();
    domain.spec.name = "a".to_owned();
    domain.spec.zone.id = "z1".to_owned();
    domain.spec.zone.network.id = "n1".to_owned();
    domain.spec.zone.network.name = "net".to_owned();
    domain.status.ready = true;
    Arc::new(domain)
}

fn observed() -> Seen {
    Seen { domain: Some(domain()), ..seen(Instance::None) }
}

fn wanting(spec: Value) -> CloudStackMachine {
    let mut machine = object();
    let mut whole = json!({"offering": {"name": "small"}, "template": {"name": "image"}});
    whole.as_object_mut().expect("an object").extend(spec.as_object().expect("an object").clone());
    machine.spec = read(whole);
    machine
}

fn order(object: &CloudStackMachine, seen: &Seen) -> Result<Value, CloudError> {
    Order::of(object, seen).expect("observed").map(|order| serde_json::to_value(order).expect("JSON"))
}

fn plain() -> Value {
    json!({
        "cluster": "c", "failureDomain": "a", "zone": "z1", "offering": "o1", "template": "t1",
        "networks": [{"id": "n1"}], "displayName": "m", "gzip": true, "userDataLimit": 32768,
        "bootData": {"secret": "m-data", "key": "value", "uid": "su", "resourceVersion": "7"},
    })
}

fn with(change: Value) -> Value {
    let mut order = plain();
    order.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
    order
}

#[test]
fn an_order_says_everything_that_the_manifest_and_the_cloud_say() {
    let disks = || Arc::new(vec![read(json!({"id": "d1", "name": "Custom", "iscustomized": true}))]);
    let fixed = || Arc::new(vec![read(json!({"id": "d2", "name": "Small"}))]);
    let group = || {
        let mut group = CloudStackAffinityGroup::default();
        group.spec.id = "g1".to_owned();
        Some(Arc::new(group))
    };
    let ignition = || Some(Ok(BootData { reference: boot_data(), ignition: true }));
    let of = |catalog: Catalog| Seen { catalog: Some(Ok(catalog)), ..observed() };
    let limited = |limit: &str| {
        let mut seen = observed();
        let mut cluster = seen.infrastructure.as_deref().cloned().expect("a cluster");
        cluster.metadata.annotations.insert(annotation::USER_DATA_LIMIT.to_owned(), limit.to_owned());
        seen.infrastructure = Some(Arc::new(cluster));
        seen
    };
    let taking = |limit: usize| with(json!({"userDataLimit": limit}));
    let two_offerings = || {
        let offerings = [json!({"id": "o2", "name": "small-gpu"}), json!({"id": "o1", "name": "small"})];
        of(Catalog { service_offerings: Arc::new(offerings.map(read).into()), ..catalog() })
    };
    let rows: Vec<(&str, Value, Seen, Value)> = vec![
        ("no options", json!({}), observed(), plain()),
        ("names of which others are part", json!({}), two_offerings(), plain()),
        (
            "names in another case",
            json!({"offering": {"name": "SMALL"}, "template": {"name": "Image"}}),
            two_offerings(),
            plain(),
        ),
        (
            "the exact name before the same in another case",
            json!({}),
            of(Catalog {
                service_offerings: Arc::new(vec![
                    read(json!({"id": "o2", "name": "Small"})),
                    read(json!({"id": "o1", "name": "small"})),
                ]),
                ..catalog()
            }),
            plain(),
        ),
        (
            "a disk whose size is open",
            json!({"diskOffering": {"name": "Custom", "customSizeInGB": 7}}),
            of(Catalog { disk_offerings: disks(), ..catalog() }),
            with(json!({"disk": {"offering": "d1", "size": 7}})),
        ),
        (
            "a disk with a size of its own",
            json!({"diskOffering": {"id": "d2"}}),
            of(Catalog { disk_offerings: fixed(), ..catalog() }),
            with(json!({"disk": {"offering": "d2"}})),
        ),
        (
            "networks and addresses",
            json!({"networks": [
                {"name": "net", "ip": "10.1.1.9"}, {"name": "storage"}, {"name": "x", "id": "n9"},
            ]}),
            of(Catalog {
                networks: BTreeMap::from([(
                    "storage".to_owned(),
                    vec![read(json!({"id": "n2", "name": "storage"}))],
                )]),
                ..catalog()
            }),
            with(json!({"networks": [{"id": "n1", "ip": "10.1.1.9"}, {"id": "n2"}, {"id": "n9"}]})),
        ),
        (
            "a key, details, groups that exist",
            json!({"sshKey": "k", "details": {"cpuNumber": "4"}, "affinityGroupIDs": ["g8", "g9"]}),
            Seen { group: group(), ..observed() },
            with(json!({
                "sshKey": "k", "details": {"cpuNumber": "4"}, "affinityGroups": ["g8", "g9"],
            })),
        ),
        (
            "the group of its owner",
            json!({}),
            Seen { group: group(), ..observed() },
            with(json!({"affinityGroups": ["g1"]})),
        ),
        (
            "a project",
            json!({}),
            of(Catalog { owner: Owner::project("p1".into()), ..catalog() }),
            with(json!({"owner": {"projectid": "p1"}})),
        ),
        (
            "an account",
            json!({}),
            of(Catalog { owner: Owner::account("who", "dom".into()), ..catalog() }),
            with(json!({"owner": {"account": "who", "domainid": "dom"}})),
        ),
        ("Ignition", json!({}), Seen { boot_data: ignition(), ..observed() }, with(json!({"gzip": false}))),
        ("a server that takes more user data", json!({}), limited("65536"), taking(65536)),
        ("a limit that is no number", json!({}), limited("much"), plain()),
        (
            "cloud-config as it is",
            json!({"uncompressedUserData": true}),
            observed(),
            with(json!({"gzip": false})),
        ),
    ];
    for (says, spec, seen, wanted) in rows {
        assert_eq!(order(&wanting(spec), &seen).as_ref(), Ok(&wanted), "{says}");
    }
}

#[test]
fn what_cannot_be_ordered_is_refused_by_code_and_field_and_nothing_is_called() {
    let of = |catalog: Catalog| Seen { catalog: Some(Ok(catalog)), ..observed() };
    let disks = |name: &str, open: bool| {
        let offering = json!({"id": "d1", "name": name, "iscustomized": open});
        of(Catalog { disk_offerings: Arc::new(vec![read(offering)]), ..catalog() })
    };
    let twice = || {
        let one = json!({"id": "o1", "name": "small"});
        Catalog { service_offerings: Arc::new(vec![read(one.clone()), read(one)]), ..catalog() }
    };
    let templates = |template: Value| Catalog { templates: Arc::new(vec![read(template)]), ..catalog() };
    let unready = json!({"id": "t1", "name": "image", "isready": false});
    let ignition = Some(Ok(BootData { reference: boot_data(), ignition: true }));
    let gone = BootDataError::Unreadable("there is no Secret ns/m-data".to_owned());
    let unreachable = CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no answer");
    let rows: Vec<(&str, Value, Seen, capstan_controller::Code, &str)> = vec![
        ("no offering", json!({"offering": {"name": "big"}}), observed(), code::NOT_FOUND, "spec.offering"),
        ("two offerings", json!({}), of(twice()), code::AMBIGUOUS, "spec.offering.id"),
        ("no template", json!({"template": {"name": "x"}}), observed(), code::NOT_FOUND, "spec.template"),
        ("a template on its way", json!({}), of(templates(unready)), code::NOT_FOUND, "not ready"),
        (
            "another network first",
            json!({"networks": [{"name": "x"}]}),
            observed(),
            code::REFUSED,
            "spec.networks[0]",
        ),
        (
            "no such network",
            json!({"networks": [{"name": "net"}, {"name": "x"}]}),
            observed(),
            code::NOT_FOUND,
            "spec.networks",
        ),
        (
            "no address",
            json!({"networks": [{"name": "net", "ip": "ten"}]}),
            observed(),
            code::REFUSED,
            "spec.networks[0].ip",
        ),
        (
            "a disk without size",
            json!({"diskOffering": {"name": "Custom"}}),
            disks("Custom", true),
            code::REFUSED,
            "set spec.diskOffering.customSizeInGB",
        ),
        (
            "a disk with two sizes",
            json!({"diskOffering": {"name": "Small", "customSizeInGB": 3}}),
            disks("Small", false),
            code::REFUSED,
            "remove spec.diskOffering.customSizeInGB",
        ),
        (
            "no SSH key",
            json!({"sshKey": "k"}),
            of(Catalog { lacks_ssh_key: true, ..catalog() }),
            code::NOT_FOUND,
            "spec.sshKey",
        ),
        (
            "Ignition compressed",
            json!({"uncompressedUserData": false}),
            Seen { boot_data: ignition, ..observed() },
            code::BOOT_DATA,
            "spec.uncompressedUserData",
        ),
        (
            "no boot data",
            json!({}),
            Seen { boot_data: Some(Err(gone)), ..observed() },
            code::BOOT_DATA,
            "ns/m-data",
        ),
        (
            "a cloud that does not answer",
            json!({}),
            Seen { catalog: Some(Err(unreachable)), ..observed() },
            code::UNREACHABLE,
            "no answer",
        ),
    ];
    for (says, spec, seen, code, names) in rows {
        let decision = decide(&look(wanting(spec), seen));
        assert!(decision.effects.is_empty(), "{says}");
        let reported = ready(&decision);
        assert_eq!(reported.reason, "OrderFailed", "{says}");
        assert!(
            reported.message.starts_with(code.id()) && reported.message.contains(names),
            "{says}: {}",
            reported.message
        );
        assert!(decision.look_again.is_some(), "{says}");
    }
}

fn decided(look: &Look) -> MachineCall {
    let mut effects = decide(look).effects;
    match effects.pop().map(|planned| planned.effect) {
        Some(Effect::Call(call)) if effects.is_empty() => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_journal_holds_the_order_with_its_version_and_reads_back_as_it_was_written() {
    let call = decided(&look(wanting(json!({})), observed()));
    let written = serde_json::to_value(&call).expect("JSON");
    let wanted = json!({"verb": "deploy", "name": "m", "attempt": 0, "order": with(json!({"v": 1}))});
    assert_eq!(written, wanted);
    assert_eq!(serde_json::from_value::<MachineCall>(written).expect("a call"), call);
    let length = serde_json::to_string(&wanted).expect("JSON").len();
    assert!(length < 400, "an intent is one readable line, not {length} characters");
}

#[test]
fn intents_of_the_release_before_are_still_read() {
    for (written, key) in [
        (json!({"verb": "deploy", "name": "m", "attempt": 2}), "m"),
        (json!({"verb": "destroy", "id": "v1"}), "v1"),
        (json!({"verb": "attach", "rule": "r1", "id": "v1"}), "r1/v1"),
        (json!({"verb": "detach", "rule": "r1", "id": "v1"}), "r1/v1"),
        (json!({"verb": "forward", "address": "a1", "id": "v1"}), "ssh/a1/v1"),
        (json!({"verb": "unforward", "address": "a1", "id": "v1"}), "ssh/a1/v1"),
    ] {
        let intent = json!([{"key": key, "call": written, "at": "2026-01-01T00:00:00Z"}]);
        let intents: Vec<Intent<MachineCall>> = read(intent);
        assert_eq!(intents[0].call.idempotency_key(), key);
    }
    let mut older = with(json!({"v": 1}));
    older.as_object_mut().expect("an object").remove("userDataLimit");
    let older = json!({"verb": "deploy", "name": "m", "attempt": 0, "order": older});
    let MachineCall::Deploy { order: Some(order), .. } = read(older) else { panic!("an order") };
    assert_eq!(order.user_data_limit, UserData::DEFAULT_LIMIT, "which was read when the call was made");
    let newer = json!({"verb": "deploy", "name": "m", "attempt": 0, "order": {"v": 9, "cell": "west"}});
    assert_eq!(read::<MachineCall>(newer).idempotency_key(), "m", "and those of a release after this one");
}

#[test]
fn an_order_that_was_taken_counts_even_if_it_would_be_another_by_now() {
    let taken = decided(&look(wanting(json!({})), observed()));
    let changed = Catalog { templates: Arc::new(Vec::new()), ..catalog() };
    let mut after = look(wanting(json!({})), Seen { catalog: Some(Ok(changed)), ..observed() });
    after.concluded.push(Concluded { call: taken, result: Some(json!({"id": "v1", "job": "j1"})) });
    let decision = decide(&after);
    assert!(decision.effects.is_empty());
    assert_eq!(decision.object.spec.instance_id.as_deref(), Some("v1"));
}

#[test]
fn why_an_order_failed_stays_visible_while_another_is_made() {
    let mut again = look(wanting(json!({})), observed());
    let call = decided(&again);
    let error = capstan_controller::Error { code: code::QUOTA, message: "20 of 20 used".to_owned() };
    let effect = call.summary();
    again.failures.push(Failure { effect, call: Some(call), error, since: now(), attempts: 1 });
    again.seen.catalog = Some(Ok(Catalog { owner: Owner::project("p1".into()), ..catalog() }));
    let decision = decide(&again);
    assert!(decision.effects.is_empty(), "the next order comes after a pause");
    assert!(ready(&decision).message.starts_with("E-CS-QUOTA: 20 of 20 used; next try at "));
    let mut later = look(decision.object, observed());
    later.now = now() + jiff::SignedDuration::from_secs(30);
    assert_eq!(calls(&decide(&later)), ["deploy-vm m"]);
    assert_eq!(ready(&decide(&later)).message, "E-CS-QUOTA: 20 of 20 used");
}

#[test]
fn the_request_is_the_order_and_nothing_else() {
    let user_data = || UserData::plain(b"boot").expect("short");
    let request = |spec: Value| {
        let order = Order::of(&wanting(spec), &observed()).expect("observed").expect("an order");
        order.request("m", user_data())
    };
    let plain = request(json!({}));
    assert_eq!(plain.networkids, ["n1".into()]);
    assert!(plain.iptonetworklist.is_empty() && plain.diskofferingid.is_none());
    assert_eq!((plain.name.as_deref(), plain.displayname.as_deref()), (Some("m"), Some("m")));
    let placed = request(json!({"networks": [{"name": "net", "ip": "10.1.1.9"}]}));
    assert!(placed.networkids.is_empty());
    assert_eq!(placed.iptonetworklist[0].ip, "10.1.1.9".parse().ok());
}

#[test]
fn a_machine_is_destroyed_with_the_disk_that_was_observed_and_not_while_that_is_unknown() {
    use super::teardown::Teardown;

    let destroyed = |teardown| {
        let mut seen = seen(vm("Running"));
        seen.teardown = teardown;
        decide(&look(deleted(provisioned()), seen))
    };
    let decision =
        destroyed(Some(Ok(Teardown { expunge: true, disks: vec!["d1".into()], ..Teardown::default() })));
    let [planned] = decision.effects.as_slice() else { panic!("one call") };
    let wanted = MachineCall::Destroy { id: "v1".to_owned(), expunge: true, disks: vec!["d1".into()] };
    assert_eq!(planned.effect, Effect::Call(wanted));
    let refused = CloudError::new(code::PERMISSION, "NotPermitted", "listCapabilities is not allowed");
    let decision = destroyed(Some(Err(refused)));
    assert!(decision.effects.is_empty() && decision.look_again.is_some());
    assert!(ready(&decision).message.starts_with("E-CS-PERMISSION"), "{}", ready(&decision).message);
    assert!(!decision.object.metadata.finalizers.is_empty());
}

#[test]
fn a_member_that_could_not_be_added_because_it_is_one_counts_as_added() {
    use capstan_object::{Condition, Conditions};

    let mut seen = seen(vm("Running"));
    let mut network = capstan_cloudstack_types::v1beta3::CloudStackIsolatedNetwork::default();
    network.status.load_balancer_rule_id = "r1".to_owned();
    seen.network = Some(Arc::new(network));
    seen.machine = Some(Arc::new(super::tests::owner(true)));
    for (member, wanted, attached) in [(None, 1, false), (Some(false), 1, false), (Some(true), 0, true)] {
        seen.is_member = member;
        let at = look(provisioned(), std::mem::take(&mut seen));
        let decision = decide(&at);
        assert_eq!(decision.effects.len(), wanted, "{member:?}");
        let reported = decision.object.status.conditions.condition(super::ATTACHED);
        assert_eq!(reported.is_some_and(Condition::is_true), attached, "{member:?}");
        seen = at.seen;
    }
}

#[test]
fn an_order_beyond_a_limit_is_not_made() {
    let left =
        |machines| Headroom::of(Quota { vmavailable: Some(Amount::Limited(machines)), ..Quota::default() });
    let look = |machines| look(wanting(json!({})), Seen { headroom: Some(left(machines)), ..observed() });
    assert_eq!(calls(&decide(&look(1))), ["deploy-vm m"]);
    let decision = decide(&look(0));
    assert!(decision.effects.is_empty());
    assert_eq!(
        decision.object.metadata.annotations.get(crate::annotation::ORDERS),
        None,
        "no name is used up"
    );
    assert!(ready(&decision).message.starts_with("E-CS-QUOTA: virtual machines needed: 1"));
}
