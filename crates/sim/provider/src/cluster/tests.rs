//! Decisions about SimClusters.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use capstan_capi_types::core::{APIEndpoint, Cluster, FailureDomain, annotation};
use capstan_controller::Look;
use capstan_guest::Balancer;
use capstan_object::{Conditions, ObjectMeta};
use capstan_provider_kit::ClusterMembers;
use capstan_provider_kit::decisions::{CLOUD_REACHABLE, Silence};
use capstan_provider_kit::testing::{calls, deleted, look};

use super::decide::decide;
use super::{BalancerCall, FINALIZER, Seen, SimClusters};
use crate::types::SimCluster;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 1, 2, 3);

fn object() -> SimCluster {
    let mut cluster = SimCluster { metadata: ObjectMeta::named("ns", "c"), ..SimCluster::default() };
    cluster.metadata.finalizers.push(FINALIZER.to_owned());
    cluster
}

fn placed() -> SimCluster {
    let mut cluster = object();
    cluster.spec.control_plane_endpoint = APIEndpoint { host: ADDRESS.to_string(), port: 6443 };
    cluster
}

fn members(last: &[u8]) -> BTreeSet<Ipv4Addr> {
    last.iter().map(|last| Ipv4Addr::new(172, 16, 0, *last)).collect()
}

fn seen(balancer: Option<&[u8]>, machines: &[u8]) -> Seen {
    let endpoint = SocketAddrV4::new(ADDRESS, 6443);
    Seen {
        members: ClusterMembers {
            cluster: Some(Arc::new(Cluster::default())),
            machines: machines.iter().map(|last| format!("m{last}")).collect(),
            control_plane: members(machines),
        },
        balancer: balancer.map(|held| Balancer { endpoint, members: members(held) }),
        silence: None,
    }
}

#[test]
fn a_load_balancer_is_allocated_filled_and_released() {
    let balancer = || "ns/c".to_owned();
    let allocate = || vec![BalancerCall::Allocate { balancer: balancer() }];
    let release = || vec![BalancerCall::Release { balancer: balancer() }];
    let balance = |last: &[u8]| vec![BalancerCall::Balance { balancer: balancer(), members: members(last) }];
    for (what, object, seen, expected) in [
        ("nothing exists", object(), seen(None, &[]), allocate()),
        ("it exists", object(), seen(Some(&[]), &[]), vec![]),
        ("a control plane machine was added", placed(), seen(Some(&[]), &[4]), balance(&[4])),
        ("one was removed", placed(), seen(Some(&[4, 5]), &[5]), balance(&[5])),
        ("in sync", placed(), seen(Some(&[4]), &[4]), vec![]),
        ("the site has lost it", placed(), seen(None, &[4]), allocate()),
        ("deleted, with machines", deleted(placed()), seen(Some(&[4]), &[4]), vec![]),
        ("deleted, without machines", deleted(placed()), seen(Some(&[4]), &[]), release()),
        ("deleted and gone", deleted(placed()), seen(None, &[]), vec![]),
    ] {
        let decision = decide(&look(object, seen));
        assert_eq!(calls(&decision), expected, "{what}");
    }
}

#[test]
fn the_contract_is_fulfilled_once_the_load_balancer_is_there() {
    let mut cluster = object();
    cluster.spec.failure_domains = vec![FailureDomain { name: "a".to_owned(), ..FailureDomain::default() }];
    let decision = decide(&look(cluster, seen(Some(&[]), &[]))).object;
    assert_eq!(
        decision.spec.control_plane_endpoint,
        APIEndpoint { host: "127.1.2.3".to_owned(), port: 6443 }
    );
    assert_eq!(decision.status.initialization.provisioned, Some(true));
    assert_eq!(decision.status.failure_domains.len(), 1);
    assert!(decision.status.conditions.is_condition_true("Ready"));
    assert_eq!(
        decision.status.conditions.condition("Paused").map(|paused| paused.reason.as_str()),
        Some("NotPaused")
    );
}

#[test]
fn a_foreign_endpoint_is_reported_and_nothing_is_done() {
    let mut cluster = object();
    cluster.spec.control_plane_endpoint = APIEndpoint { host: "10.0.0.1".to_owned(), port: 443 };
    let decision = decide(&look(cluster, seen(Some(&[]), &[4])));
    assert!(decision.effects.is_empty());
    let ready = decision.object.status.conditions.condition("Ready").expect("a condition");
    assert_eq!(ready.reason, "EndpointElsewhere");
    assert_eq!(decision.object.status.initialization.provisioned, None);
}

#[test]
fn the_finalizer_is_removed_last_and_foreign_objects_are_left_alone() {
    let gone = decide(&look(deleted(placed()), seen(None, &[])));
    assert!(gone.object.metadata.finalizers.is_empty());
    let waiting = decide(&look(deleted(placed()), seen(Some(&[4]), &[4])));
    assert_eq!(waiting.object.metadata.finalizers, [FINALIZER]);
    assert_eq!(waiting.waits[0].reason, "WaitingForMachines");

    let mut managed = object();
    managed.metadata.annotations.insert(annotation::MANAGED_BY.to_owned(), String::new());
    let decision = decide(&look(managed.clone(), seen(None, &[])));
    assert!(decision.effects.is_empty());
    assert_eq!(decision.object, managed);
}

#[test]
fn a_paused_cluster_reports_it_and_keeps_its_members() {
    let mut look: Look<SimClusters> = look(placed(), seen(Some(&[4]), &[5]));
    look.paused = Some("Cluster spec.paused is set to true".to_owned());
    let decision = decide(&look);
    assert!(decision.effects.is_empty());
    assert!(decision.object.status.conditions.is_condition_true("Paused"));
    assert!(decision.object.status.conditions.condition("Ready").is_none());
}

#[test]
fn a_site_that_does_not_answer_leaves_the_cluster_as_it_was_last_seen() {
    let silence = Silence { code: crate::code::SITE, why: "the site does not answer".to_owned() };
    let unknown = || Seen { silence: Some(silence.clone()), ..seen(None, &[4]) };
    let provisioned = decide(&look(placed(), seen(Some(&[4]), &[4]))).object;
    let decision = decide(&look(provisioned, unknown()));
    let conditions = &decision.object.status.conditions;
    assert!(conditions.is_condition_true("Ready"), "{conditions:?}");
    assert!(conditions.condition(CLOUD_REACHABLE).is_some_and(|it| it.message.starts_with("E-SIM-SITE: ")));
    assert_eq!(calls(&decision), [], "nothing is allocated a second time");
    let going = decide(&look(deleted(placed()), Seen { silence: Some(silence.clone()), ..seen(None, &[]) }));
    assert_eq!(going.object.metadata.finalizers, [FINALIZER]);
}
