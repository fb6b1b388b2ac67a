//! Decisions about KVMClusters.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use capstan_capi_types::core::{APIEndpoint, Cluster};
use capstan_controller::Decision;
use capstan_object::{Conditions as _, ObjectMeta};
use capstan_provider_kit::ClusterMembers;
use capstan_provider_kit::decisions::{CLOUD_REACHABLE, Silence};
use capstan_provider_kit::testing::{calls, deleted, look, ready};

use super::decide::decide;
use super::{FINALIZER, KVMClusters, NETWORK, NetworkCall, Seen};
use crate::backend::{Id, Network};
use crate::types::KVMCluster;

fn id() -> Id {
    "u-1".to_owned().try_into().expect("an id")
}

fn object() -> KVMCluster {
    let metadata = ObjectMeta { uid: "u-1".to_owned(), ..ObjectMeta::named("ns", "c") };
    let mut cluster = KVMCluster { metadata, ..KVMCluster::default() };
    cluster.metadata.finalizers.push(FINALIZER.to_owned());
    cluster
}

fn network(complete: bool) -> Network {
    Network {
        subnet: "10.89.0.0/24".parse().expect("a network"),
        endpoint: (Ipv4Addr::new(10, 89, 0, 1), 6443),
        members: BTreeSet::new(),
        complete,
    }
}

fn seen(network: Option<Network>) -> Seen {
    let cluster = Some(Arc::new(Cluster::default()));
    Seen { members: ClusterMembers { cluster, ..ClusterMembers::default() }, network, silence: None }
}

fn decided(object: KVMCluster, seen: Seen) -> Decision<KVMClusters> {
    decide(&look(object, seen))
}

#[test]
fn a_network_is_created_and_repaired() {
    let ensure = NetworkCall::Ensure { network: id(), subnet: None };
    for found in [None, Some(network(false))] {
        let decision = decided(object(), seen(found));
        assert_eq!(calls(&decision), std::slice::from_ref(&ensure));
        assert_eq!(decision.object.metadata.annotations[NETWORK], "u-1", "written with the intent");
        assert_eq!(decision.object.status.initialization.provisioned, None);
    }
    let mut named = object();
    named.spec.network.cidr = "10.7.0.0/24".to_owned();
    let subnet = "10.7.0.0/24".parse().ok();
    assert_eq!(calls(&decided(named, seen(None))), [NetworkCall::Ensure { network: id(), subnet }]);
}

#[test]
fn the_endpoint_is_the_load_balancer_of_the_control_plane() {
    let members = BTreeSet::from([Ipv4Addr::new(10, 89, 0, 2)]);
    let mut seen = seen(Some(network(true)));
    seen.members.control_plane = members.clone();
    let decision = decided(object(), seen);
    assert_eq!(calls(&decision), [NetworkCall::Balance { network: id(), members }]);
    let endpoint = &decision.object.spec.control_plane_endpoint;
    assert_eq!((endpoint.host.as_str(), endpoint.port), ("10.89.0.1", 6443));
    assert_eq!(decision.object.status.initialization.provisioned, Some(true));

    let mut elsewhere = object();
    elsewhere.spec.control_plane_endpoint = APIEndpoint { host: "a.example".to_owned(), port: 6443 };
    let decision = decided(elsewhere, self::seen(Some(network(true))));
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "EndpointElsewhere"));
}

#[test]
fn a_network_is_removed_after_its_machines() {
    let deleted = deleted(object());
    let members = ClusterMembers { machines: vec!["m".to_owned()], ..ClusterMembers::default() };
    let with = Seen { members, network: Some(network(true)), silence: None };
    let decision = decided(deleted.clone(), with);
    assert_eq!((calls(&decision), decision.waits[0].reason.as_str()), (vec![], "WaitingForMachines"));
    let decision = decided(deleted.clone(), Seen { network: Some(network(false)), ..Seen::default() });
    assert_eq!(calls(&decision), [NetworkCall::Remove { network: id() }]);
    assert!(decided(deleted, Seen::default()).object.metadata.finalizers.is_empty());
}

#[test]
fn a_host_that_does_not_answer_leaves_a_network_as_it_was_last_seen() {
    let silence = || Silence { code: crate::code::HOST, why: "its directory cannot be read".to_owned() };
    let unknown = || Seen { silence: Some(silence()), ..seen(None) };
    let made = decided(object(), seen(Some(network(true)))).object;
    let decision = decided(made, unknown());
    let reported =
        decision.object.status.conditions.condition(CLOUD_REACHABLE).cloned().expect("a condition");
    assert!(reported.message.starts_with("E-KVM-HOST: its directory cannot be read"), "{reported:?}");
    assert!(ready(&decision).is_true(), "as last seen");
    assert_eq!(calls(&decision), []);
    for object in [object(), deleted(object())] {
        let decision = decided(object, unknown());
        assert_eq!((ready(&decision).reason.as_str(), calls(&decision)), ("Unreachable", vec![]));
        assert_eq!(decision.object.metadata.finalizers, [FINALIZER]);
    }
}
