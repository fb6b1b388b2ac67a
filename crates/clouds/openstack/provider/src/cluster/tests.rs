//! Tables of decisions: what the cloud has in, calls out.

use std::sync::Arc;

use capstan_capi_types::core::{APIEndpoint, Cluster};
use capstan_controller::{Call as _, Effect, Look, Need};
use capstan_object::{Condition, ConditionStatus, ObjectMeta, Time};
use capstan_openstack_client::image::ImageStatus;
use capstan_openstack_client::load_balancer::{LoadBalancer, ProvisioningStatus};
use capstan_openstack_client::network::{
    FloatingIp, Network, Router, SecurityGroup, SecurityGroupRule, Subnet,
};
use capstan_openstack_types::names::finalizer;
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{
    APIServer, APIServerLoadBalancer, Bastion, ManagedSecurityGroups, NetworkStatus, OpenStackCluster,
    SubnetSpec,
};
use jiff::Timestamp;

use super::OpenStackClusters;
use super::decide::decide;
use super::image::{ImageState, OwnImage};
use super::observed::{Balancer, CloudState, NodePort, Seen};
use super::plan::{Decision, Group};
use crate::code;
use crate::error::CloudError;

pub(super) fn cluster() -> OpenStackCluster {
    let mut cluster = OpenStackCluster::default();
    cluster.metadata.namespace = "ns".to_owned();
    cluster.metadata.name = "c".to_owned();
    cluster.metadata.uid = "u".to_owned();
    cluster.spec.managed_subnets =
        vec![SubnetSpec { cidr: "10.6.0.0/24".to_owned(), ..SubnetSpec::default() }];
    cluster.spec.managed_security_groups = Some(ManagedSecurityGroups::default());
    cluster.spec.api_server = Some(APIServer {
        managed_load_balancer: Some(APIServerLoadBalancer::default()),
        ..APIServer::default()
    });
    cluster
}

pub(super) fn look(
    object: OpenStackCluster,
    cloud: Result<CloudState, CloudError>,
) -> Look<OpenStackClusters> {
    let mut owner = Cluster::default();
    owner.metadata.name = "c".to_owned();
    let seen = Seen {
        cluster: Some(Arc::new(owner)),
        cluster_name: Some("c".to_owned()),
        machines: Vec::new(),
        bastion: None,
        wanted_groups: std::collections::BTreeMap::new(),
        cloud,
    };
    Look::new(Arc::new(object), seen, Timestamp::UNIX_EPOCH)
}

pub(super) fn verbs(decision: &Decision) -> Vec<String> {
    let call = |effect: &Effect<_>| match effect {
        Effect::Call(call) => {
            let call: &super::ClusterCall = call;
            call.summary().split(' ').next().unwrap_or_default().to_owned()
        }
        other => other.summary(),
    };
    decision.effects.iter().map(|planned| call(&planned.effect)).collect()
}

fn external() -> Option<NetworkStatus> {
    Some(NetworkStatus { name: "public".to_owned(), id: "ext".to_owned(), tags: Vec::new() })
}

/// A state in which network, router and groups exist; rules are missing.
pub(super) fn networked() -> CloudState {
    let group = |id: &str| SecurityGroup { id: id.into(), name: id.to_owned(), ..SecurityGroup::default() };
    CloudState {
        external: external(),
        network: Some(Network { id: "net".into(), name: "n".to_owned(), ..Network::default() }),
        subnets: vec![Subnet {
            id: "sub".into(),
            name: "s".to_owned(),
            cidr: "10.6.0.0/24".to_owned(),
            network_id: "net".into(),
            ..Subnet::default()
        }],
        router: Some(Router { id: "r".into(), name: "r".to_owned(), ..Router::default() }),
        attached: true,
        groups: [(Group::ControlPlane, group("cp")), (Group::Worker, group("w"))].into(),
        ..CloudState::default()
    }
}

pub(super) fn balanced(status: ProvisioningStatus) -> CloudState {
    let balancer = LoadBalancer {
        id: "lb".into(),
        name: "lb".to_owned(),
        provisioning_status: status,
        vip_address: "10.6.0.9".to_owned(),
        vip_port_id: "vip".into(),
        ..LoadBalancer::default()
    };
    CloudState { balancer: Some(Balancer { balancer, ..Balancer::default() }), ..networked() }
}

#[test]
fn what_does_not_depend_on_each_other_is_created_together() {
    let empty = CloudState { external: external(), ..CloudState::default() };
    assert_eq!(
        verbs(&decide(&look(cluster(), Ok(empty)))),
        ["create-network", "create-group", "create-group"]
    );
    let state = CloudState { router: None, attached: false, ..networked() };
    assert_eq!(
        verbs(&decide(&look(cluster(), Ok(state)))),
        ["create-router", "add-rules", "add-rules", "create-balancer"]
    );
}

#[test]
fn the_floating_ip_is_created_while_the_load_balancer_is_built() {
    let state = balanced(ProvisioningStatus::PendingCreate);
    assert_eq!(verbs(&decide(&look(cluster(), Ok(state)))), ["add-rules", "add-rules", "create-address"]);
    let unrouted = CloudState { attached: false, ..balanced(ProvisioningStatus::PendingCreate) };
    assert_eq!(
        verbs(&decide(&look(cluster(), Ok(unrouted)))),
        ["add-interface", "add-rules", "add-rules"],
        "Neutron wants a way to the port first"
    );
}

#[test]
fn one_change_of_a_load_balancer_is_made_at_a_time() {
    let mut state = balanced(ProvisioningStatus::Active);
    let node = |n: u8| NodePort { port: format!("p{n}"), address: format!("10.6.0.{n}") };
    state.control_plane = [("m1".to_owned(), node(1)), ("m2".to_owned(), node(2))].into();
    state.address = Some(FloatingIp {
        id: "fip".into(),
        floating_ip_address: "192.0.2.1".to_owned(),
        port_id: Some("vip".into()),
        ..FloatingIp::default()
    });
    let decision = decide(&look(cluster(), Ok(state)));
    assert_eq!(verbs(&decision), ["add-rules", "add-rules", "create-listener"]);
    let endpoint = decision.object.spec.control_plane_endpoint.expect("an endpoint");
    assert_eq!((endpoint.host.as_str(), endpoint.port), ("192.0.2.1", 6443));
}

#[test]
fn a_given_endpoint_is_used_as_it_is_and_nothing_is_created_for_it() {
    let mut object = cluster();
    object.spec.api_server = Some(APIServer { enable_floating_ip: Some(false), ..APIServer::default() });
    for (host, port) in [("api.example.org", 443), ("10.6.0.5", 6443)] {
        object.spec.control_plane_endpoint = Some(APIEndpoint { host: host.to_owned(), port });
        let decision = decide(&look(object.clone(), Ok(networked())));
        assert_eq!(verbs(&decision), ["add-rules", "add-rules"], "{host}");
        let endpoint = decision.object.spec.control_plane_endpoint.expect("an endpoint");
        assert_eq!((endpoint.host.as_str(), endpoint.port), (host, port));
        let ready = |it: &&Condition| it.kind == crate::condition::ENDPOINT_READY;
        let ready = decision.object.status.conditions.iter().find(ready).map(|it| it.status);
        assert_eq!(ready, Some(ConditionStatus::True), "{host}");
    }
}

/// The state with the rules that the groups are to have.
fn with_rules(object: &OpenStackCluster, mut state: CloudState) -> CloudState {
    for planned in decide(&look(object.clone(), Ok(state.clone()))).effects {
        let Effect::Call(super::ClusterCall::AddRules { group, rules }) = planned.effect else { continue };
        let held = state.groups.values_mut().find(|held| held.id.as_str() == group).expect("the group");
        held.security_group_rules.extend(rules.iter().map(|rule| SecurityGroupRule {
            direction: rule.direction.clone(),
            ethertype: rule.ethertype.clone(),
            protocol: rule.protocol.clone(),
            port_range_min: rule.ports.map(|(first, _)| first),
            port_range_max: rule.ports.map(|(_, last)| last),
            remote_group_id: rule.remote_group.as_deref().map(Into::into),
            remote_ip_prefix: rule.remote_prefix.clone(),
            ..SecurityGroupRule::default()
        }));
    }
    state
}

#[test]
fn the_group_of_a_bastion_goes_after_its_server_and_nothing_waits_for_it() {
    let mut object = cluster();
    object.spec.bastion = Some(Bastion { enabled: Some(false), ..Bastion::default() });
    let mut state = networked();
    let group = SecurityGroup { id: "b".into(), name: "b".to_owned(), ..SecurityGroup::default() };
    state.groups.insert(Group::Bastion, group);
    let unruled = decide(&look(object.clone(), Ok(state.clone())));
    assert_eq!(verbs(&unruled), ["add-rules", "add-rules", "create-balancer"], "rules may still name it");
    let state = with_rules(&object, state);
    let mut with_server = look(object.clone(), Ok(state.clone()));
    let metadata = ObjectMeta::named("ns", "c-bastion");
    with_server.seen.bastion = Some(Arc::new(OpenStackServer { metadata, ..OpenStackServer::default() }));
    let first = verbs(&decide(&with_server));
    assert!(first.len() == 2 && first[1].starts_with("delete openstackservers"), "{first:?}");
    let last = decide(&look(object, Ok(state)));
    assert_eq!(verbs(&last), ["create-balancer", "delete-group"]);
    assert_eq!(last.effects[1].need, Need::BestEffort);
}

#[test]
fn a_failed_load_balancer_is_reported_with_its_code() {
    let decision = decide(&look(cluster(), Ok(balanced(ProvisioningStatus::Error))));
    let conditions = format!("{:?}", decision.object.status.conditions);
    assert!(conditions.contains(code::LOAD_BALANCER.id()), "{conditions}");
}

#[test]
fn a_cloud_that_rejects_the_credentials_is_reported_and_nothing_is_done() {
    let error = CloudError::new(code::CREDENTIALS, "OpenStackAuthenticationFailed", "no");
    let decision = decide(&look(cluster(), Err(error)));
    assert_eq!(verbs(&decision), Vec::<String>::new());
    let failed =
        decision.object.status.conditions.iter().find(|it| it.kind == crate::condition::AUTHENTICATED);
    assert!(failed.is_some_and(|it| it.message.starts_with("E-OS-CREDENTIALS")));
}

fn deleted() -> OpenStackCluster {
    let mut cluster = cluster();
    cluster.metadata.deletion_timestamp = Some(Time::from(Timestamp::UNIX_EPOCH));
    cluster.metadata.finalizers = vec![finalizer::CLUSTER.to_owned()];
    cluster
}

#[test]
fn a_deletion_waits_for_machines_then_for_the_load_balancer() {
    let mut with_machines = look(deleted(), Ok(networked()));
    with_machines.seen.machines = vec!["m".to_owned()];
    assert_eq!(verbs(&decide(&with_machines)), Vec::<String>::new());
    let active = decide(&look(deleted(), Ok(balanced(ProvisioningStatus::Active))));
    assert_eq!(verbs(&active), ["delete-balancer"]);
    let going = decide(&look(deleted(), Ok(balanced(ProvisioningStatus::PendingDelete))));
    assert_eq!(verbs(&going), Vec::<String>::new());
    assert!(!going.object.metadata.finalizers.is_empty());
    let rest = decide(&look(deleted(), Ok(networked())));
    assert_eq!(
        verbs(&rest),
        ["remove-interface", "delete-router", "delete-network", "delete-group", "delete-group"]
    );
    let nothing = decide(&look(deleted(), Ok(CloudState::default())));
    assert!(nothing.object.metadata.finalizers.is_empty());
}

#[test]
fn a_deletion_waits_for_an_image_that_is_being_imported_and_deletes_it_then() {
    let image = |status: ImageStatus| {
        let image = OwnImage { id: "i".to_owned(), name: "node".to_owned(), status, failed: None };
        let images = ImageState { ours: vec![image], ..ImageState::default() };
        CloudState { images, ..CloudState::default() }
    };
    let importing = decide(&look(deleted(), Ok(image(ImageStatus::Importing))));
    assert_eq!(verbs(&importing), Vec::<String>::new());
    assert_eq!(importing.object.metadata.finalizers.len(), 1, "the image would stay");
    assert!(importing.look_again.is_some());
    let imported = decide(&look(deleted(), Ok(image(ImageStatus::Active))));
    assert_eq!(verbs(&imported), ["delete-image"]);
    let mut used = image(ImageStatus::Importing);
    used.images.in_use.insert("i".to_owned());
    assert!(decide(&look(deleted(), Ok(used))).object.metadata.finalizers.is_empty());
}

#[test]
fn only_a_floating_ip_that_was_created_for_the_cluster_is_deleted() {
    let mut object = deleted();
    if let Some(server) = &mut object.spec.api_server {
        server.floating_ip = Some("192.0.2.1".to_owned());
    }
    let state = |description: &str| {
        let description = description.to_owned();
        let address = FloatingIp { id: "fip".into(), description, ..FloatingIp::default() };
        CloudState { address: Some(address), ..balanced(ProvisioningStatus::Active) }
    };
    let capo = crate::mark::words("ns", "c");
    assert_eq!(verbs(&decide(&look(object, Ok(state(&capo))))), ["delete-balancer"]);
    let somebody = decide(&look(deleted(), Ok(state("for the website"))));
    assert_eq!(verbs(&somebody), ["delete-balancer"], "whoever put it there keeps it");
    let ours = decide(&look(deleted(), Ok(state(&capo))));
    assert_eq!(verbs(&ours), ["delete-address", "delete-balancer"]);
}
