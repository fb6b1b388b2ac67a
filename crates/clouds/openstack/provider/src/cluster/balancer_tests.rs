//! Decisions about the parts of load balancers, as tables.

use std::sync::Arc;

use capstan_controller::{Effect, Error, Failure, Need};
use capstan_openstack_client::load_balancer::{HealthMonitor, Listener, Member, Pool, ProvisioningStatus};
use capstan_openstack_types::v1beta2::{
    APIServerLoadBalancerMonitor, NetworkStatusWithSubnets, OpenStackCluster,
};
use jiff::Timestamp;

use super::balancer_order::{BalancerOrder, MemberOrder, Monitor};
use super::decide::decide;
use super::observed::{CloudState, NodePort};
use super::tests::{balanced, cluster, look, networked};
use super::{ClusterCall, OpenStackClusters};
use crate::code;

/// Name of the load balancer.
const NAME: &str = "k8s-clusterapi-cluster-ns-c-kubeapi";

fn calls(look: &capstan_controller::Look<OpenStackClusters>) -> Vec<(ClusterCall, Need)> {
    let call = |planned: capstan_controller::Planned<ClusterCall>| match planned.effect {
        Effect::Call(call) => Some((call, planned.need)),
        _ => None,
    };
    decide(look).effects.into_iter().filter_map(call).collect()
}

/// What is done to the load balancer.
fn change(object: OpenStackCluster, state: CloudState) -> Option<(ClusterCall, Need)> {
    let mut calls = calls(&look(object, Ok(state)));
    calls.retain(|(call, _)| {
        !matches!(call, ClusterCall::AddRules { .. } | ClusterCall::CreateAddress { .. })
    });
    calls.pop()
}

fn monitored(monitor: APIServerLoadBalancerMonitor) -> OpenStackCluster {
    let mut object = cluster();
    let server = object.spec.api_server.as_mut().expect("a server");
    server.managed_load_balancer.as_mut().expect("a load balancer").monitor = Some(monitor);
    object
}

fn of_provider(mut object: OpenStackCluster, provider: &str) -> OpenStackCluster {
    let server = object.spec.api_server.as_mut().expect("a server");
    server.managed_load_balancer.as_mut().expect("a load balancer").provider = Some(provider.to_owned());
    object
}

fn member(machine: &str, address: &str) -> Member {
    Member {
        id: machine.into(),
        name: format!("{NAME}-6443-{machine}"),
        address: address.to_owned(),
        protocol_port: 6443,
        weight: Some(1),
        admin_state_up: Some(true),
        ..Member::default()
    }
}

/// A load balancer with all its parts, with CAPO's default monitor.
fn complete(members: Vec<Member>) -> CloudState {
    let mut state = balanced(ProvisioningStatus::Active);
    let held = state.balancer.as_mut().expect("a load balancer");
    held.balancer.provider = "amphora".to_owned();
    held.listeners = vec![Listener {
        id: "l".into(),
        protocol_port: 6443,
        default_pool_id: Some("p".into()),
        ..Listener::default()
    }];
    let pool = Pool { id: "p".into(), healthmonitor_id: Some("h".into()), ..Pool::default() };
    held.pools = vec![(pool, members)];
    held.monitors = Arc::new(vec![HealthMonitor {
        id: "h".into(),
        delay: 10,
        timeout: 5,
        max_retries: 5,
        max_retries_down: 3,
        ..HealthMonitor::default()
    }]);
    let node = NodePort { port: "p1".to_owned(), address: "10.6.0.1".to_owned() };
    state.control_plane = [("m1".to_owned(), node)].into();
    state
}

fn unmonitored(mut state: CloudState, provider: &str) -> CloudState {
    let held = state.balancer.as_mut().expect("a load balancer");
    held.balancer.provider = provider.to_owned();
    held.pools[0].0.healthmonitor_id = None;
    state
}

#[test]
fn the_monitor_follows_the_manifest_and_is_no_condition_of_anything() {
    let state = || complete(vec![member("m1", "10.6.0.1")]);
    assert_eq!(change(cluster(), state()), None);
    let slower = APIServerLoadBalancerMonitor { delay: 30, timeout: 20, ..Default::default() };
    let monitor = Monitor { delay: 30, timeout: 20, max_retries: 5, max_retries_down: 3 };
    let set = ClusterCall::SetMonitor { balancer: "lb".to_owned(), id: "h".to_owned(), monitor };
    assert_eq!(change(monitored(slower), state()), Some((set, Need::BestEffort)));
    let members_first = change(monitored(Default::default()), unmonitored(complete(Vec::new()), "amphora"));
    assert!(matches!(members_first, Some((ClusterCall::SetMembers { .. }, Need::Required))));
}

#[test]
fn a_pool_gets_a_monitor_except_one_of_ovn_that_nobody_asked_for() {
    let state = |provider: &str| unmonitored(complete(vec![member("m1", "10.6.0.1")]), provider);
    for (provider, object, wanted) in [
        ("amphora", cluster(), true),
        ("ovn", cluster(), false),
        ("ovn", monitored(APIServerLoadBalancerMonitor::default()), true),
    ] {
        let made = change(object, state(provider));
        assert_eq!(
            matches!(made, Some((ClusterCall::CreateMonitor { .. }, _))),
            wanted,
            "{provider} {made:?}"
        );
        assert_eq!(made.is_some(), wanted);
    }
}

fn ordered(look: &capstan_controller::Look<OpenStackClusters>) -> BalancerOrder {
    let order = calls(look).into_iter().find_map(|(call, _)| match call {
        ClusterCall::CreateBalancer { order, .. } => Some(*order),
        _ => None,
    });
    order.expect("an order")
}

#[test]
fn the_order_of_a_load_balancer_has_what_its_provider_can() {
    for (object, algorithm, monitor) in [
        (cluster(), "ROUND_ROBIN", true),
        (of_provider(cluster(), "ovn"), "SOURCE_IP_PORT", false),
        (of_provider(monitored(APIServerLoadBalancerMonitor::default()), "ovn"), "SOURCE_IP_PORT", true),
    ] {
        let order = ordered(&look(object, Ok(networked())));
        assert_eq!((order.algorithm.as_str(), order.monitor.is_some()), (algorithm, monitor));
        let request = serde_json::to_value(order.request(NAME)).expect("JSON");
        let pool = &request["listeners"][0]["default_pool"];
        assert_eq!(pool["healthmonitor"].is_object(), monitor, "{pool}");
    }
}

#[test]
fn a_load_balancer_that_its_provider_cannot_make_whole_is_made_alone_and_then_its_parts() {
    let mut refused = look(cluster(), Ok(networked()));
    refused.failures.push(Failure {
        effect: format!("create-balancer {NAME}"),
        call: None,
        error: Error { code: code::UNSUPPORTED, message: "no ROUND_ROBIN".to_owned() },
        since: Timestamp::UNIX_EPOCH,
        attempts: 1,
    });
    assert_eq!(ordered(&refused).ports, Vec::<u16>::new());
    let mut alone = balanced(ProvisioningStatus::Active);
    alone.balancer.as_mut().expect("a load balancer").balancer.provider = "ovn".to_owned();
    let first = change(cluster(), alone.clone());
    assert!(matches!(first, Some((ClusterCall::CreateListener { .. }, _))), "{first:?}");
    let held = alone.balancer.as_mut().expect("a load balancer");
    held.listeners = vec![Listener { id: "l".into(), protocol_port: 6443, ..Listener::default() }];
    let Some((ClusterCall::CreatePool { algorithm, .. }, _)) = change(cluster(), alone) else {
        panic!("no pool is created");
    };
    assert_eq!(algorithm, "SOURCE_IP_PORT");
}

/// Octavia drops bits of hosts. Members come after this, and never if it were to be set each time.
#[test]
fn ranges_that_may_connect_are_compared_as_octavia_keeps_them() {
    let mut object = cluster();
    let server = object.spec.api_server.as_mut().expect("a server");
    server.managed_load_balancer.as_mut().expect("a load balancer").allowed_cidrs =
        vec!["203.0.113.7/24".to_owned(), "203.0.113.0/24".to_owned(), "192.0.2.7".to_owned()];
    let mut state = complete(vec![member("m1", "10.6.0.1")]);
    let held = state.balancer.as_mut().expect("a load balancer");
    let ranges = ["10.6.0.0/24", "203.0.113.0/24", "192.0.2.7/32"].map(str::to_owned);
    held.listeners[0].allowed_cidrs = Some(ranges.to_vec());
    assert_eq!(change(object, state), None);
}

#[test]
fn a_load_balancer_is_in_the_ipv4_subnet_whatever_the_order_of_subnets() {
    let subnet = |id: &str, cidr: &str| capstan_openstack_types::v1beta2::Subnet {
        id: id.to_owned(),
        cidr: cidr.to_owned(),
        ..capstan_openstack_types::v1beta2::Subnet::default()
    };
    let existing = NetworkStatusWithSubnets {
        id: "net".to_owned(),
        subnets: vec![subnet("v6", "fd00::/64"), subnet("v4", "10.6.0.0/24")],
        ..NetworkStatusWithSubnets::default()
    };
    let mut object = cluster();
    object.spec.managed_subnets = Vec::new();
    let mut state = CloudState { existing: Some(existing), ..networked() };
    assert_eq!(ordered(&look(object.clone(), Ok(state.clone()))).subnet.as_deref(), Some("v4"));
    let only = state.existing.as_mut().expect("a network");
    only.subnets.truncate(1);
    assert_eq!(ordered(&look(object, Ok(state))).subnet.as_deref(), Some("v6"));
}

/// Octavia resets what a request that replaces all members leaves out.
#[test]
fn members_keep_what_others_set_when_the_control_plane_changes() {
    let theirs = Member {
        name: "theirs".to_owned(),
        address: "10.6.0.99".to_owned(),
        protocol_port: 8443,
        weight: Some(0),
        backup: Some(true),
        admin_state_up: Some(false),
        monitor_address: Some("10.6.0.98".to_owned()),
        monitor_port: Some(8080),
        tags: vec!["blue".to_owned()],
        ..Member::default()
    };
    let drained = Member { weight: Some(0), ..member("m1", "10.6.0.1") };
    let settled = complete(vec![drained.clone(), theirs.clone()]);
    assert_eq!(change(cluster(), settled.clone()), None, "a drained member is what it is to be");
    let mut state = settled;
    let node = NodePort { port: "p2".to_owned(), address: "10.6.0.2".to_owned() };
    state.control_plane.insert("m2".to_owned(), node);
    let Some((ClusterCall::SetMembers { members, .. }, _)) = change(cluster(), state) else {
        panic!("members are not set");
    };
    let kept = |member: &Member| members.contains(&MemberOrder::of(member));
    assert!(members.len() == 3 && kept(&theirs) && kept(&drained), "{members:?}");
    let request = serde_json::to_value(MemberOrder::of(&theirs).request()).expect("JSON");
    let wanted = serde_json::json!({
        "name": "theirs", "address": "10.6.0.99", "protocol_port": 8443, "weight": 0, "backup": true,
        "admin_state_up": false, "monitor_address": "10.6.0.98", "monitor_port": 8080, "tags": ["blue"],
    });
    assert_eq!(request, wanted);
    let plain = serde_json::to_value(MemberOrder::of(&member("m1", "10.6.0.1")).request()).expect("JSON");
    assert_eq!(plain.as_object().map(serde_json::Map::len), Some(3), "{plain}");
}
