//! Decisions about CloudStackFailureDomains, as a table.

use std::sync::Arc;

use capstan_capi_types::core::{condition, label};
use capstan_cloudstack_client::model::{Network, Zone};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, Vpc,
};
use capstan_controller::{Decision, Effect, Look, Need, Patch};
use capstan_object::{Conditions, ObjectMeta, OwnerReference};
use capstan_provider_kit::testing::{best_efforts, effects, now};
use serde_json::json;

use super::decide::decide;
use super::{FailureDomains, Seen, ZoneAndNetwork};
use crate::code;
use crate::error::CloudError;

fn object() -> CloudStackFailureDomain {
    let mut domain =
        CloudStackFailureDomain { metadata: ObjectMeta::named("ns", "fd"), ..Default::default() };
    domain.metadata.labels.insert(label::CLUSTER_NAME.to_owned(), "c".to_owned());
    domain.metadata.finalizers.push(names::finalizer::FAILURE_DOMAIN.to_owned());
    domain.spec.name = "a".to_owned();
    domain.spec.zone.name = "zone".to_owned();
    domain.spec.zone.network.name = "net".to_owned();
    domain
}

fn place(kind: Option<&str>) -> ZoneAndNetwork {
    let zone: Zone = serde_json::from_value(json!({"id": "z1", "name": "zone"})).expect("a zone");
    let network = kind.map(|kind| {
        let network = json!({"id": "n1", "name": "net", "type": kind});
        serde_json::from_value::<Network>(network).expect("a network")
    });
    ZoneAndNetwork { zone, network }
}

fn seen(place: Option<Result<ZoneAndNetwork, CloudError>>) -> Seen {
    Seen { owner: Some(Arc::new(CloudStackCluster::default())), place, ..Seen::default() }
}

fn own_network(ready: bool) -> Arc<CloudStackIsolatedNetwork> {
    let metadata = ObjectMeta::named("ns", "c-net");
    let mut network = CloudStackIsolatedNetwork { metadata, ..CloudStackIsolatedNetwork::default() };
    network.spec.id = "n1".to_owned();
    network.status.ready = ready;
    Arc::new(network)
}

fn decided(object: CloudStackFailureDomain, seen: Seen) -> Decision<FailureDomains> {
    decide(&Look::new(Arc::new(object), seen, now()))
}

#[test]
fn a_shared_network_is_enough_and_an_isolated_or_missing_one_is_looked_after() {
    let shared = decided(object(), seen(Some(Ok(place(Some("Shared"))))));
    assert!(shared.object.status.ready && shared.effects.is_empty());
    let zone = &shared.object.spec.zone;
    assert_eq!(
        (zone.id.as_str(), zone.network.id.as_str(), zone.network.kind.as_str()),
        ("z1", "n1", "Shared")
    );
    for kind in [Some("Isolated"), None] {
        let decision = decided(object(), seen(Some(Ok(place(kind)))));
        assert!(!decision.object.status.ready);
        assert_eq!(effects(&decision).len(), 1, "{kind:?}");
        assert!(effects(&decision)[0].ends_with("c-net"), "{kind:?}");
        assert_eq!(decision.object.spec.zone.id, "z1");
    }
}

#[test]
fn it_is_ready_when_its_network_is() {
    for (network_is, ready) in [(false, false), (true, true)] {
        let seen = Seen { networks: vec![own_network(network_is)], ..seen(None) };
        let decision = decided(object(), seen);
        assert_eq!(decision.object.status.ready, ready);
        assert_eq!(decision.object.spec.zone.network.id, if ready { "n1" } else { "" });
    }
}

#[test]
fn obstacles_are_reported_and_retried() {
    let cause = CloudError::new(code::NOT_FOUND, "ZoneNotFound", "there is no zone");
    let decision = decided(object(), seen(Some(Err(cause))));
    let ready = decision.object.status.conditions.condition(condition::READY).expect("Ready");
    assert_eq!(
        (ready.reason.as_str(), ready.message.as_str()),
        ("ZoneNotFound", "E-CS-NOTFOUND: there is no zone")
    );
    assert!(decision.look_again.is_some());
}

#[test]
fn a_tier_that_exists_is_recognised_and_one_that_does_not_is_made_in_its_vpc() {
    let mut found = place(Some("Isolated"));
    let network = json!({"id": "n1", "name": "net", "type": "Isolated", "vpcid": "v1", "vpcname": "vpc"});
    found.network = Some(serde_json::from_value(network).expect("a network"));
    let decision = decided(object(), seen(Some(Ok(found))));
    let vpc = decision.object.spec.zone.network.vpc.clone().expect("a VPC");
    assert_eq!((vpc.id.as_str(), vpc.name.as_str()), ("v1", "vpc"));
    let mut in_vpc = object();
    in_vpc.spec.zone.network.vpc = Some(Vpc { name: "vpc".to_owned(), ..Vpc::default() });
    let decision = decided(in_vpc, seen(Some(Ok(place(None)))));
    assert_eq!(effects(&decision).len(), 1);
}

#[test]
fn on_deletion_machines_go_first_then_the_network_then_the_finalizer() {
    let deleted = || {
        let mut object = object();
        object.metadata.deletion_timestamp = Some(now().into());
        object
    };
    let occupied = Seen { machines: vec!["m".to_owned()], networks: vec![own_network(true)], ..seen(None) };
    assert!(decided(deleted(), occupied).effects.is_empty());
    let serving = Seen {
        machines: vec!["m".to_owned()],
        members: vec![Arc::default()],
        has_endpoint: true,
        ..seen(None)
    };
    let refused = decided(deleted(), serving);
    let reported = refused.object.status.conditions.condition(condition::READY).expect("Ready");
    assert!(
        refused.effects.is_empty() && reported.message.starts_with("E-CS-ENDPOINT-IN-USE"),
        "{reported:?}"
    );
    let emptied = Seen {
        groups: vec![Arc::default()],
        networks: vec![own_network(true), own_network(true)],
        ..seen(None)
    };
    let decision = decided(deleted(), emptied);
    assert!(effects(&decision)[0].starts_with("delete") && !decision.object.metadata.finalizers.is_empty());
    assert_eq!(
        (effects(&decision).len(), best_efforts(&decision)),
        (3, effects(&decision)),
        "each by itself"
    );
    assert!(decided(deleted(), seen(None)).object.metadata.finalizers.is_empty());
}

#[test]
fn a_network_that_another_failure_domain_uses_passes_to_it() {
    let mut deleted = object();
    deleted.metadata.deletion_timestamp = Some(now().into());
    let mut network = (*own_network(true)).clone();
    network.metadata.uid = "nu".to_owned();
    network.metadata.resource_version = "7".to_owned();
    network.metadata.owner_references.push(OwnerReference::controlled_by(&deleted));
    let mut heir = object();
    (heir.metadata.name, heir.metadata.uid) = ("fd-b".to_owned(), "bu".to_owned());
    heir.spec.name = "b".to_owned();
    let heirs = [("nu".to_owned(), Arc::new(heir))].into();
    let seen = Seen { networks: vec![Arc::new(network)], heirs, ..seen(None) };
    let decision = decided(deleted, seen);
    let [planned] = decision.effects.as_slice() else { panic!("{:?}", effects(&decision)) };
    let Effect::Patch { patch: Patch::Merge(change), .. } = &planned.effect else { panic!("a merge") };
    assert_eq!(planned.need, Need::BestEffort);
    assert_eq!(change["metadata"]["resourceVersion"], "7");
    let owners = change["metadata"]["ownerReferences"].as_array().expect("owners");
    assert_eq!((owners.len(), &owners[0]["uid"]), (1, &json!("bu")));
    assert_eq!(change["spec"], json!({"failureDomainName": "b"}));
    assert!(!decision.object.metadata.finalizers.is_empty(), "it is still its own");
}
