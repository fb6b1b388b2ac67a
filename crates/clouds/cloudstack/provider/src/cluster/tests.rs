//! Decisions about CloudStackClusters, as a table.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, condition};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackFailureDomainSpec, Endpoint, Vpc,
};
use capstan_controller::{Decision, Look};
use capstan_object::{Condition, Conditions, ObjectMeta};
use capstan_provider_kit::testing::{best_efforts, effects, now};
use serde_json::json;

use super::decide::decide;
use super::mirror::Member;
use super::{CloudStackClusters, Seen};
use crate::code;
use crate::error::CloudError;

fn object(domains: &[&str]) -> CloudStackCluster {
    let metadata = ObjectMeta { uid: "u".to_owned(), ..ObjectMeta::named("ns", "c") };
    let mut object = CloudStackCluster { metadata, ..CloudStackCluster::default() };
    let domain = |name: &&str| CloudStackFailureDomainSpec {
        name: (*name).to_owned(),
        ..CloudStackFailureDomainSpec::default()
    };
    object.spec.failure_domains = domains.iter().map(domain).collect();
    object.metadata.finalizers.push(names::finalizer::CLUSTER.to_owned());
    object
}

fn domain(name: &str, ready: bool) -> Arc<CloudStackFailureDomain> {
    let metadata = ObjectMeta::named("ns", names::failure_domain_object(name, "c"));
    let mut domain = CloudStackFailureDomain { metadata, ..CloudStackFailureDomain::default() };
    domain.spec.name = name.to_owned();
    domain.status.ready = ready;
    Arc::new(domain)
}

fn seen(domains: Vec<Arc<CloudStackFailureDomain>>) -> Seen {
    let cluster = Cluster { metadata: ObjectMeta::named("ns", "c"), ..Cluster::default() };
    Seen { cluster: Some(Arc::new(cluster)), domains, ..Seen::default() }
}

fn endpoint() -> Option<Endpoint> {
    Some(Endpoint { host: "192.0.2.1".to_owned(), port: 6443 })
}

fn decided(object: CloudStackCluster, seen: Seen) -> Decision<CloudStackClusters> {
    decide(&Look::new(Arc::new(object), seen, now()))
}

fn ready(decision: &Decision<CloudStackClusters>) -> &Condition {
    decision.object.status.conditions.condition(condition::READY).expect("Ready")
}

#[test]
fn each_entry_gets_an_object_and_one_without_an_entry_loses_its() {
    let decision = decided(object(&["a", "b"]), seen(vec![domain("a", true), domain("z", true)]));
    let effects = effects(&decision);
    assert_eq!(effects.len(), 2, "{effects:?}");
    assert_eq!(
        best_efforts(&decision),
        effects[1..],
        "nothing goes before what may take its network over is there"
    );
    assert!(effects[0].starts_with("create") && effects[0].contains(&names::failure_domain_object("b", "c")));
    assert!(effects[1].starts_with("delete") && effects[1].contains(&names::failure_domain_object("z", "c")));
    let reported: Vec<&str> =
        decision.object.status.failure_domains.0.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(reported, ["a", "b"]);
}

#[test]
fn a_failure_domain_that_was_corrected_before_it_was_of_use_is_made_again() {
    let at = |zone: &str, ready: bool| {
        let mut domain = CloudStackFailureDomain::clone(&domain("a", ready));
        domain.spec.zone.name = zone.to_owned();
        Arc::new(domain)
    };
    let mut cluster = object(&["a"]);
    cluster.spec.failure_domains[0].zone.name = "zone-1".to_owned();
    for (zone, ready, deleted) in [("typo", false, true), ("Zone-1", false, false), ("typo", true, false)] {
        let effects = effects(&decided(cluster.clone(), seen(vec![at(zone, ready)])));
        assert_eq!(effects.iter().any(|effect| effect.starts_with("delete")), deleted, "{zone} {ready}");
    }
}

#[test]
fn a_vpc_that_was_taken_out_before_the_cloud_had_it_is_forgotten() {
    let cluster = object(&["a"]);
    for (id, deleted) in [("", true), ("vpc-1", false)] {
        let mut before = CloudStackFailureDomain::clone(&domain("a", false));
        before.spec.zone.network.vpc =
            Some(Vpc { id: id.to_owned(), name: "big".to_owned(), ..Vpc::default() });
        let effects = effects(&decided(cluster.clone(), seen(vec![Arc::new(before)])));
        assert_eq!(effects.iter().any(|effect| effect.starts_with("delete")), deleted, "{id}");
    }
}

#[test]
fn it_is_ready_when_every_failure_domain_is_and_the_endpoint_is_known() {
    struct Row {
        says: &'static str,
        domains: Vec<Arc<CloudStackFailureDomain>>,
        endpoint: Option<Endpoint>,
        reason: &'static str,
        ready: bool,
    }
    let rows = [
        Row {
            says: "a failure domain is not ready",
            domains: vec![domain("a", true), domain("b", false)],
            endpoint: endpoint(),
            reason: "WaitingForFailureDomains",
            ready: false,
        },
        Row {
            says: "nobody knows the endpoint",
            domains: vec![domain("a", true), domain("b", true)],
            endpoint: None,
            reason: "EndpointMissing",
            ready: false,
        },
        Row {
            says: "all is there",
            domains: vec![domain("a", true), domain("b", true)],
            endpoint: endpoint(),
            reason: "Provisioned",
            ready: true,
        },
    ];
    for Row { says, domains, endpoint, reason, ready: wanted } in rows {
        let decision = decided(object(&["a", "b"]), Seen { endpoint, ..seen(domains) });
        let status = &decision.object.status;
        assert_eq!((ready(&decision).reason.as_str(), status.ready), (reason, wanted), "{says}");
        assert_eq!(status.initialization.provisioned, wanted.then_some(true), "{says}");
        assert!(decision.effects.is_empty(), "{says}");
    }
}

#[test]
fn control_planes_live_where_the_endpoint_reaches_them() {
    let on_network = |name: &str, network: &str| {
        let mut domain = CloudStackFailureDomain::clone(&domain(name, true));
        domain.spec.zone.network.name = network.to_owned();
        Arc::new(domain)
    };
    let domains = || vec![on_network("a", "one"), on_network("b", "two")];
    let host = endpoint().expect("an endpoint").host;
    let networks = |hosts: [&str; 2]| {
        let hosts = hosts.into_iter().map(str::to_owned);
        vec!["c-one".to_owned(), "c-two".to_owned()].into_iter().zip(hosts).collect::<Vec<_>>()
    };
    let rows = [
        ("each network has an address of its own", networks([&host, "192.0.2.9"]), [true, false]),
        (
            "no network has the address: somebody else serves it",
            networks(["192.0.2.8", "192.0.2.9"]),
            [true, true],
        ),
        ("nothing is isolated", Vec::new(), [true, true]),
    ];
    for (says, networks, wanted) in rows {
        let seen = Seen { endpoint: endpoint(), networks, ..seen(domains()) };
        let decision = decided(object(&["a", "b"]), seen);
        let reported: Vec<_> =
            decision.object.status.failure_domains.0.iter().map(|domain| domain.control_plane).collect();
        assert_eq!(reported, wanted.map(Some), "{says}");
    }
}

#[test]
fn a_failure_domain_whose_network_has_the_endpoint_stays_until_the_cluster_goes() {
    let object_of = |name: &str| names::failure_domain_object(name, "c");
    let rows = [
        ("its network has the endpoint", vec!["b"], vec![object_of("a")], true),
        ("another network has the endpoint", vec!["b"], vec![object_of("b")], false),
        ("so has another that stays", vec!["b"], vec![object_of("a"), object_of("b")], false),
        ("it is put back", vec!["a", "b"], vec![object_of("a")], false),
    ];
    for (says, named, serving, refused) in rows {
        let domains = vec![domain("a", true), domain("b", true)];
        let decision = decided(
            object(&named),
            Seen { endpoint: endpoint(), serving: serving.clone(), ..seen(domains.clone()) },
        );
        let deleted = effects(&decision).iter().any(|effect| effect.starts_with("delete"));
        assert_eq!(deleted, named.len() == 1 && !refused, "{says}");
        let ready = ready(&decision);
        assert_eq!(ready.reason == "EndpointInUse", refused, "{says}: {}", ready.message);
        assert_eq!(
            ready.message.contains("E-CS-ENDPOINT-IN-USE: failure domain a is not removed"),
            refused,
            "{says}"
        );
        let offered = decision.object.status.failure_domains.0.iter();
        let offered: Vec<&str> = offered.map(|domain| domain.name.as_str()).collect();
        assert_eq!(offered.contains(&"a"), refused || named.contains(&"a"), "{says}");
        let mut going = object(&named);
        going.metadata.deletion_timestamp = Some(now().into());
        let decision = decided(going, Seen { serving, ..seen(domains) });
        assert_eq!(effects(&decision).len(), 2, "{says}: both go with the cluster");
        assert_eq!(best_efforts(&decision), effects(&decision), "{says}: each by itself");
    }
}

#[test]
fn the_entry_in_cloudstacks_list_holds_nothing_up_until_it_has_to_go() {
    let entry = || {
        let entry = json!({"id": "k1", "virtualmachines": [{"id": "old"}]});
        serde_json::from_value(entry).expect("an entry")
    };
    let member = |id: &str, control_plane: bool| Member { id: id.to_owned(), control_plane };
    let mirrored = |mirror| Seen {
        endpoint: endpoint(),
        members: vec![member("v1", true), member("v2", false)],
        mirror: Some(Ok(mirror)),
        ..seen(vec![domain("a", true)])
    };
    let mut asked = object(&["a"]);
    asked.spec.sync_with_acs = Some(true);
    let missing = decided(asked.clone(), mirrored(None));
    assert!(effects(&missing)[0].starts_with("create-mirror "), "{:?}", effects(&missing));
    assert_eq!(best_efforts(&missing), effects(&missing));
    let stale = decided(asked.clone(), mirrored(Some(entry())));
    let changes = ["add-to-mirror k1 [v1]", "add-to-mirror k1 [v2]", "remove-from-mirror k1 [old]"];
    assert_eq!(effects(&stale), changes);
    assert_eq!(best_efforts(&stale), changes);
    asked.metadata.deletion_timestamp = Some(now().into());
    let going = decided(asked, mirrored(Some(entry())));
    assert_eq!(effects(&going), ["delete-mirror k1"]);
    assert_eq!(best_efforts(&going), [""; 0], "failure domains go after it");
    assert!(!going.object.metadata.finalizers.is_empty());
}

#[test]
fn an_endpoint_that_the_user_chose_stays() {
    let mut chosen = object(&["a"]);
    chosen.spec.control_plane_endpoint.host = "api.example".to_owned();
    let decision = decided(chosen, Seen { endpoint: endpoint(), ..seen(vec![domain("a", true)]) });
    let endpoint = &decision.object.spec.control_plane_endpoint;
    assert_eq!((endpoint.host.as_str(), endpoint.port), ("api.example", 6443));
}

#[test]
fn on_deletion_machines_go_first_then_failure_domains_then_the_finalizer() {
    let deleted = || {
        let mut object = object(&["a"]);
        object.metadata.deletion_timestamp = Some(now().into());
        object
    };
    let machines = Seen { machines: vec!["m".to_owned()], ..seen(vec![domain("a", true)]) };
    let decision = decided(deleted(), machines);
    assert!(decision.effects.is_empty() && ready(&decision).message.contains("these machines"));
    let decision = decided(deleted(), seen(vec![domain("a", true)]));
    assert!(effects(&decision)[0].starts_with("delete"));
    assert!(!decision.object.metadata.finalizers.is_empty());
    assert!(decided(deleted(), seen(Vec::new())).object.metadata.finalizers.is_empty());
}

#[test]
fn a_list_that_cannot_be_asked_holds_a_cluster_only_if_its_entry_is_on_record() {
    let rows = [
        ("the service is off, and no entry was made", code::KUBERNETES_SERVICE, "", false),
        ("the role may not ask, and no entry was made", code::PERMISSION, "", false),
        ("nobody answers", code::UNREACHABLE, "", true),
        ("the service is off, and there is an entry", code::KUBERNETES_SERVICE, "k1", true),
        ("the role may not ask, and there is an entry", code::PERMISSION, "k1", true),
    ];
    for (says, code, entry, held) in rows {
        let mut object = object(&["a"]);
        object.metadata.deletion_timestamp = Some(now().into());
        object.status.cloud_stack_cluster_id = entry.to_owned();
        let mirror = Some(Err(CloudError::new(code, "Refused", "no")));
        let decision = decided(object, Seen { mirror, ..seen(vec![domain("a", true)]) });
        assert_eq!(effects(&decision).is_empty(), held, "{says}: the failure domain has the keys");
    }
}
