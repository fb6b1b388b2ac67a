//! Decisions about OpenStackServers, as tables.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::ipam::IPAddressClaim;
use capstan_capi_types::kubernetes::{LocalObjectReference, TypedLocalObjectReference};
use capstan_controller::{Call as _, Code, Failure, Look};
use capstan_object::ConditionStatus::{self, False, True, Unknown};
use capstan_object::{Condition, Conditions as _, ObjectMeta, OwnerReference};
use capstan_openstack_client::block_storage::Volume;
use capstan_openstack_client::compute::Server;
use capstan_openstack_client::network::{Port, Trunk};
use capstan_openstack_types::names::finalizer;
use capstan_openstack_types::v1alpha1::{OpenStackServer, ResolvedServerSpec};
use capstan_openstack_types::v1beta1::{AddressPair, PortOpts, ResolvedPortSpec};
use capstan_openstack_types::v1beta2::RootVolume;
use capstan_provider_kit::decisions::CLOUD_REACHABLE;
pub(super) use capstan_provider_kit::testing::{calls, deleted, effects, look, now};
use capstan_provider_kit::{BootData, BootDataError, BootDataRef};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::address_pairs::PairsState;
use super::decide::decide;
use super::floating_ip::FloatingIpState;
use super::observed::{Seen, ServerState};
use super::{OpenStackServers, SERVER_ID};
use crate::code;
use crate::error::CloudError;
use crate::project::{LOOK_AGAIN, POLL};

pub(super) type Decision = capstan_controller::Decision<OpenStackServers>;

/// A server `ns/m` with two ports and boot data.
pub(super) fn object() -> OpenStackServer {
    let metadata = ObjectMeta { uid: "u".to_owned(), ..ObjectMeta::named("ns", "m") };
    let mut object = OpenStackServer { metadata, ..OpenStackServer::default() };
    object.metadata.finalizers.push(finalizer::SERVER.to_owned());
    object.spec.ports = vec![PortOpts::default(), PortOpts::default()];
    object.spec.user_data_ref = Some(LocalObjectReference { name: "m-data".to_owned() });
    object
}

/// One whose server was seen before.
pub(super) fn known() -> OpenStackServer {
    let mut object = object();
    object.status.instance_id = Some("s1".to_owned());
    object
}

fn with_root_volume() -> OpenStackServer {
    let mut object = object();
    object.spec.root_volume = Some(RootVolume { size_gib: 20, ..RootVolume::default() });
    object
}

pub(super) fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("as the cloud writes it")
}

pub(super) fn resolved() -> ResolvedServerSpec {
    let port = |name: &str| ResolvedPortSpec {
        name: name.to_owned(),
        description: "a port".to_owned(),
        network_id: "n1".to_owned(),
        ..ResolvedPortSpec::default()
    };
    ResolvedServerSpec {
        image_id: "i1".to_owned(),
        flavor_id: "f1".to_owned(),
        ports: vec![port("m-0"), port("m-1")],
        ..ResolvedServerSpec::default()
    }
}

fn port(id: &str) -> Option<Port> {
    Some(Port { id: id.into(), ..Port::default() })
}

pub(super) fn volume(name: &str, status: &str) -> Volume {
    read(json!({"id": format!("id-{name}"), "name": name, "status": status}))
}

pub(super) fn trunk(id: &str, port: &str, sub_ports: &[&str]) -> Trunk {
    let sub_ports: Vec<Value> = sub_ports.iter().map(|id| json!({"port_id": id})).collect();
    read(json!({"id": id, "port_id": port, "sub_ports": sub_ports}))
}

fn server(status: &str, task: Option<&str>) -> Server {
    read(json!({
        "id": "s1", "name": "m", "status": status, "OS-EXT-STS:task_state": task,
        "addresses": {"net": [{"addr": "192.0.2.7", "OS-EXT-IPS:type": "floating"}]},
        "fault": {"message": "No valid host was found."},
    }))
}

/// Both ports are there, and no server yet.
pub(super) fn prepared() -> ServerState {
    ServerState {
        resolved: Some(Ok(resolved())),
        ports: vec![port("p0"), port("p1")],
        ..ServerState::default()
    }
}

pub(super) fn existing(status: &str, task: Option<&str>) -> ServerState {
    ServerState { resolved: None, server: Some(server(status, task)), ..prepared() }
}

/// What is left of a server that is gone.
pub(super) fn left() -> ServerState {
    ServerState { resolved: None, ..prepared() }
}

fn boot_data() -> BootDataRef {
    BootDataRef {
        secret: "m-data".to_owned(),
        key: "value".to_owned(),
        uid: "su".to_owned(),
        resource_version: "7".to_owned(),
    }
}

pub(super) fn seen(state: ServerState) -> Seen {
    let boot_data = Some(Ok(BootData { reference: boot_data(), ignition: false }));
    Seen { cloud: Ok(state), pairs: None, boot_data }
}

pub(super) fn at(object: OpenStackServer, seen: Seen) -> Look<OpenStackServers> {
    look::<OpenStackServers>(object, seen)
}

pub(super) fn decided(object: OpenStackServer, state: ServerState) -> Decision {
    decide(&at(object, seen(state)))
}

pub(super) fn ready(decision: &Decision) -> &Condition {
    decision.object.status.conditions.condition("Ready").expect("Ready")
}

pub(super) fn silent() -> CloudError {
    CloudError::new(code::UNREACHABLE, "OpenStackError", "no answer")
}

#[test]
fn ports_and_volumes_come_first_and_the_server_when_all_of_them_can_be_used() {
    let lacking = |ports: Vec<Option<Port>>| ServerState { ports, ..prepared() };
    let holding = |status: &str| ServerState { volumes: vec![volume("m-root", status)], ..prepared() };
    let rows: Vec<(&str, OpenStackServer, ServerState, Vec<&str>)> = vec![
        (
            "nothing is there",
            with_root_volume(),
            lacking(vec![None, None]),
            vec!["create-port m-0", "create-port m-1", "create-volume m-root"],
        ),
        ("a port is there", object(), lacking(vec![port("p0"), None]), vec!["create-port m-1"]),
        ("the ports are there", with_root_volume(), prepared(), vec!["create-volume m-root"]),
        ("the volume is being created", with_root_volume(), holding("creating"), vec![]),
        ("its image is being written", with_root_volume(), holding("downloading"), vec![]),
        ("the volume is available", with_root_volume(), holding("available"), vec!["create-server m"]),
        ("no volume is needed", object(), prepared(), vec!["create-server m"]),
    ];
    for (says, object, state, wanted) in rows {
        let waits = state.volumes.iter().any(|volume| volume.status.as_str() != "available");
        let decision = decided(object, state);
        assert_eq!(effects(&decision), wanted, "{says}");
        assert_eq!((ready(&decision).status, ready(&decision).reason.as_str()), (False, "InstanceNotReady"));
        let wait = decision.waits.first().map(|wait| wait.reason.as_str());
        assert_eq!(wait, waits.then_some("WaitingForVolume"), "{says}");
        assert_eq!(decision.look_again, waits.then_some(POLL), "{says}");
    }
}

#[test]
fn ports_get_their_tags_and_trunks_before_the_server() {
    let wanting = |tags: &[&str], trunk: bool| {
        let mut resolved = resolved();
        resolved.ports[0].tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        resolved.ports[0].trunk = Some(trunk);
        ServerState { resolved: Some(Ok(resolved)), ..prepared() }
    };
    let carried = |trunks: Vec<Trunk>| ServerState { trunks, ..wanting(&[], true) };
    let mut bare_trunk = wanting(&["blue"], true);
    bare_trunk.trunks = vec![trunk("t0", "p0", &[])];
    bare_trunk.ports[0].as_mut().expect("a port").tags = vec!["blue".to_owned()];
    let rows = [
        ("a tag is missing", wanting(&["blue"], false), "set-tags p0"),
        ("the trunk is missing", wanting(&[], true), "create-trunk m-0"),
        ("another port is a trunk", carried(vec![trunk("t9", "p9", &[])]), "create-trunk m-0"),
        ("the port is a trunk", carried(vec![trunk("t0", "p0", &[])]), "create-server m"),
        ("the trunk lacks the tag", bare_trunk, "set-trunk-tags t0"),
    ];
    for (says, state, wanted) in rows {
        assert_eq!(effects(&decided(object(), state)), [wanted], "{says}");
    }
}

#[test]
fn what_cannot_be_ordered_waits_with_its_code() {
    let failed = ServerState { volumes: vec![volume("m-root", "error")], ..prepared() };
    let missing = CloudError::new(code::NOT_FOUND, "OpenStackError", "spec.image: no image matches");
    let unresolved = ServerState { resolved: Some(Err(missing)), ..prepared() };
    let unreadable = BootDataError::Unreadable("there is no Secret ns/m-data".to_owned());
    let rows: Vec<(&str, OpenStackServer, Seen, &str, &str)> = vec![
        ("a volume failed", with_root_volume(), seen(failed), "InstanceCreateFailed", "E-OS-FAILED: volume"),
        ("no image", object(), seen(unresolved), "OpenStackError", "E-OS-NOTFOUND: spec.image"),
        (
            "no boot data yet",
            object(),
            Seen { boot_data: Some(Err(unreadable)), ..seen(prepared()) },
            "WaitingForBootstrapData",
            "E-OS-BOOT-DATA: there is no Secret ns/m-data",
        ),
        (
            "no answer",
            object(),
            Seen { cloud: Err(silent()), ..seen(prepared()) },
            "OpenStackError",
            "E-OS-UNREACHABLE: no answer",
        ),
    ];
    for (says, object, seen, reason, message) in rows {
        let decision = decide(&at(object, seen));
        assert!(decision.effects.is_empty(), "{says}");
        let reported = ready(&decision);
        assert_eq!((reported.status, reported.reason.as_str()), (False, reason), "{says}");
        assert!(reported.message.starts_with(message), "{says}: {}", reported.message);
        assert_eq!(decision.look_again, Some(Duration::from_secs(30)), "{says}");
        assert!(decision.waits[0].code.is_some(), "{says}");
    }
}

#[test]
fn refused_creations_pause_from_the_first_on() {
    let refused = |object: OpenStackServer, now: Timestamp, code: Code| {
        let mut refused = at(object, seen(prepared()));
        refused.now = now;
        let call = calls(&decide(&at(self::object(), seen(prepared())))).remove(0);
        let message = "Quota exceeded for instances: requested 1, but already used 10 of 10".to_owned();
        let error = capstan_controller::Error { code, message };
        let effect = call.summary();
        refused.failures.push(Failure { effect, call: Some(call), error, since: now, attempts: 1 });
        decide(&refused)
    };
    let (mut object, mut moment) = (object(), now());
    for pause in [30, 60, 120, 240, 480, 600, 600] {
        let decision = refused(object, moment, code::QUOTA);
        assert!(decision.effects.is_empty());
        assert_eq!(decision.look_again, Some(Duration::from_secs(pause)));
        assert_eq!((decision.waits[0].code, ready(&decision).status), (Some(code::QUOTA), False));
        assert_eq!(ready(&decision).reason, "InstanceCreateFailed");
        let message = &ready(&decision).message;
        assert!(
            message.starts_with("E-OS-QUOTA: ") && message.contains("10 of 10; next try at"),
            "{message}"
        );
        object = decision.object;
        moment += SignedDuration::from_secs(i64::try_from(pause).expect("seconds"));
        let mut early = at(object.clone(), seen(prepared()));
        early.now = moment - SignedDuration::from_secs(10);
        let early = decide(&early);
        assert_eq!((effects(&early).len(), early.look_again), (0, Some(Duration::from_secs(10))));
        let mut due = at(object.clone(), seen(prepared()));
        due.now = moment;
        assert_eq!(effects(&decide(&due)), ["create-server m"], "after {pause} seconds");
    }
    assert_eq!(
        effects(&refused(self::object(), now(), code::BUSY)),
        ["create-server m"],
        "what passes by itself is retried by the runtime"
    );
    let made = decided(object, existing("BUILD", None)).object;
    assert!(!made.metadata.annotations.keys().any(|key| key.ends_with("create-refused")), "{made:?}");
}

#[test]
fn a_server_is_reported_as_nova_reports_it() {
    /// Nova's state and task, the condition's status, reason and message, and when the server is read again.
    type Row = (&'static str, Option<&'static str>, ConditionStatus, &'static str, &'static str, Duration);
    let rows: [Row; 8] = [
        ("BUILD", Some("scheduling"), False, "InstanceNotReady", "the server is being built", POLL),
        ("ACTIVE", None, True, "InstanceReady", "", LOOK_AGAIN),
        ("ACTIVE", Some("rebooting"), True, "InstanceReady", "", POLL),
        ("ERROR", None, False, "InstanceStateError", "No valid host was found.", LOOK_AGAIN),
        ("SHUTOFF", None, Unknown, "InstanceNotReady", "the server is in state SHUTOFF", LOOK_AGAIN),
        ("REBOOT", None, Unknown, "InstanceNotReady", "the server is in state REBOOT", POLL),
        ("UNKNOWN", None, Unknown, "InstanceNotReady", "the server is in state UNKNOWN", LOOK_AGAIN),
        ("PONDERING", None, Unknown, "InstanceNotReady", "the server is in state PONDERING", LOOK_AGAIN),
    ];
    for (status, task, condition, reason, message, again) in rows {
        let decision = decided(object(), existing(status, task));
        assert!(decision.effects.is_empty(), "{status}");
        let reported = ready(&decision);
        assert_eq!((reported.status, reported.reason.as_str()), (condition, reason), "{status}");
        assert!(reported.message.contains(message), "{status}: {}", reported.message);
        assert_eq!(reported.message.starts_with("E-OS-SERVER: "), status == "ERROR", "{status}");
        let object = &decision.object;
        assert_eq!(object.status.ready, status == "ACTIVE");
        assert_eq!(object.status.instance_state.as_deref(), Some(status));
        assert_eq!(object.status.instance_id.as_deref(), Some("s1"));
        assert_eq!(object.metadata.annotations[SERVER_ID], "s1", "what survives a move");
        assert_eq!(decision.look_again, Some(again), "{status}");
    }
}

#[test]
fn addresses_are_those_of_the_ports_then_floating_ones_then_the_name() {
    let mut state = existing("ACTIVE", None);
    for (port, address) in state.ports.iter_mut().flatten().zip(["10.6.0.9", "10.7.0.4"]) {
        port.fixed_ips = read(json!([{"ip_address": address}]));
    }
    let object = decided(object(), state).object;
    let addresses: Vec<(&str, &str)> =
        object.status.addresses.iter().map(|it| (it.kind.as_str(), it.address.as_str())).collect();
    let wanted = [
        ("InternalIP", "10.6.0.9"),
        ("InternalIP", "10.7.0.4"),
        ("ExternalIP", "192.0.2.7"),
        ("InternalDNS", "m"),
    ];
    assert_eq!(addresses, wanted);
    let ports = object.status.resources.expect("resources").ports;
    assert_eq!(ports.iter().map(|port| port.id.as_str()).collect::<Vec<_>>(), ["p0", "p1"]);
}

#[test]
fn a_server_that_is_gone_is_reported_and_not_created_again() {
    let mut object = known();
    object.status.ready = true;
    let decision = decided(object, left());
    assert!(decision.effects.is_empty());
    let status = &decision.object.status;
    assert_eq!((status.ready, status.instance_state.as_deref()), (false, Some("DELETED")));
    assert_eq!((ready(&decision).status, ready(&decision).reason.as_str()), (False, "InstanceDeleted"));
    assert!(ready(&decision).message.contains("it is not created again"));
}

#[test]
fn a_server_that_ran_stays_as_it_was_last_seen_while_the_cloud_does_not_answer() {
    let running = decided(object(), existing("ACTIVE", None)).object;
    let unheard = |object: OpenStackServer, hours: i64| {
        let mut look = at(object, Seen { cloud: Err(silent()), ..seen(prepared()) });
        look.now = now() + SignedDuration::from_hours(hours);
        decide(&look).object
    };
    let first = unheard(running.clone(), 0);
    let reported = first.status.conditions.condition(CLOUD_REACHABLE).cloned().expect("a condition");
    assert_eq!((reported.status, reported.reason.as_str()), (False, "OpenStackError"));
    assert!(reported.message.starts_with("E-OS-UNREACHABLE: no answer"), "{}", reported.message);
    assert!(first.status.ready && first.status.conditions.is_condition_true("Ready"));
    assert_eq!(first.status.instance_state.as_deref(), Some("ACTIVE"));
    let later = unheard(first, 1);
    let since = later.status.conditions.condition(CLOUD_REACHABLE).map(|it| it.last_transition_time);
    assert_eq!(since, Some(reported.last_transition_time), "since when it does not answer");
    let again = decided(later, existing("ACTIVE", None)).object;
    assert_eq!(again.status.conditions.condition(CLOUD_REACHABLE), None);
}

#[test]
fn a_floating_ip_is_claimed_before_anything_is_created_and_released_after_everything_is_gone() {
    let claiming = || {
        let mut object = object();
        let pool = json!({"kind": "OpenStackFloatingIPPool", "name": "pool"});
        object.spec.floating_ip_pool_ref = Some(read::<TypedLocalObjectReference>(pool));
        object
    };
    let claimed = |state: ServerState, claim: Option<Arc<IPAddressClaim>>| {
        let floating_ip = Some(FloatingIpState { claim, ..FloatingIpState::default() });
        ServerState { floating_ip, ..state }
    };
    let claim = || {
        let mut claim = IPAddressClaim { metadata: ObjectMeta::named("ns", "c"), ..Default::default() };
        let owner = OwnerReference { uid: "u".to_owned(), ..OwnerReference::default() };
        claim.metadata.owner_references.push(owner);
        Some(Arc::new(claim))
    };
    let unmade = ServerState { ports: vec![None, None], ..prepared() };
    let first = effects(&decided(claiming(), claimed(unmade, None)));
    assert!(first.len() == 1 && first[0].starts_with("create "), "{first:?}");
    let waiting = decided(claiming(), claimed(prepared(), claim()));
    assert!(waiting.effects.is_empty());
    assert_eq!(ready(&waiting).message, "Waiting for a floating IP from OpenStackFloatingIPPool pool");
    let ports = decided(deleted(claiming()), claimed(left(), claim()));
    assert_eq!(effects(&ports), ["delete-port p0", "delete-port p1"]);
    let last = decided(deleted(claiming()), claimed(ServerState::default(), claim()));
    assert!(effects(&last).len() == 1 && effects(&last)[0].starts_with("delete "), "{:?}", effects(&last));
    assert!(!last.object.metadata.finalizers.is_empty());
}

#[test]
fn ports_of_a_server_that_runs_follow_their_address_pairs() {
    let pair = AddressPair { ip_address: "10.0.0.1".to_owned(), mac_address: None };
    let pairs = Some(PairsState { wanted: vec![vec![pair]], applied: Vec::new() });
    let decision = decide(&at(object(), Seen { pairs, ..seen(existing("ACTIVE", None)) }));
    assert_eq!(effects(&decision), ["set-address-pairs p0"]);
}
