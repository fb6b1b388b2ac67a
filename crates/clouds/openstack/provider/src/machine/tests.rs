//! Decisions about OpenStackMachines, as tables.

use std::sync::Arc;

use capstan_capi_types::core::{Machine, label};
use capstan_controller::Effect;
use capstan_object::ConditionStatus::{self, False, True, Unknown};
use capstan_object::{Condition, Conditions as _, ObjectMeta, OwnerReference};
use capstan_openstack_types::names::{ADDRESS_PAIRS_ANNOTATION, finalizer};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{
    MachineInitialization, NetworkStatusWithSubnets, OpenStackCluster, OpenStackIdentityReference,
    OpenStackMachine,
};
use capstan_provider_kit::testing::{cluster, deleted, effects, look, machine, now};
use serde_json::{Value, json};

use super::decide::decide;
use super::{OpenStackMachines, Seen};
use crate::condition::INSTANCE_READY;
use crate::{mark, server_group};

type Decision = capstan_controller::Decision<OpenStackMachines>;

fn object() -> OpenStackMachine {
    let metadata = ObjectMeta { uid: "u".to_owned(), ..ObjectMeta::named("ns", "m") };
    let mut object = OpenStackMachine { metadata, ..OpenStackMachine::default() };
    object.metadata.finalizers.push(finalizer::MACHINE.to_owned());
    object
}

fn infrastructure() -> OpenStackCluster {
    let mut cluster = OpenStackCluster { metadata: ObjectMeta::named("ns", "c"), ..Default::default() };
    cluster.metadata.uid = "cu".to_owned();
    cluster.status.initialization = serde_json::from_value(json!({"provisioned": true})).expect("progress");
    cluster.status.network =
        Some(NetworkStatusWithSubnets { id: "net".to_owned(), ..NetworkStatusWithSubnets::default() });
    cluster
}

/// Everything that a machine needs is there.
fn seen() -> Seen {
    Seen {
        machine: Some(Arc::new(machine())),
        cluster: Some(Arc::new(cluster())),
        infrastructure: Some(Arc::new(infrastructure())),
        server: None,
    }
}

/// The server of an owner, in a state of Nova.
fn server(owner: &str, state: Option<&str>, message: &str) -> Arc<OpenStackServer> {
    let mut server = OpenStackServer { metadata: ObjectMeta::named("ns", "m"), ..Default::default() };
    let owner = OwnerReference { uid: owner.to_owned(), ..OwnerReference::default() };
    server.metadata.owner_references.push(owner);
    server.status.instance_id = state.map(|_| "s1".to_owned());
    server.status.instance_state = state.map(str::to_owned);
    if !message.is_empty() {
        server.status.conditions.push(Condition {
            kind: INSTANCE_READY.to_owned(),
            status: False,
            observed_generation: None,
            last_transition_time: now().into(),
            reason: "InstanceNotReady".to_owned(),
            message: message.to_owned(),
        });
    }
    Arc::new(server)
}

fn decided(object: OpenStackMachine, seen: Seen) -> Decision {
    decide(&look::<OpenStackMachines>(object, seen))
}

fn ready(decision: &Decision) -> &Condition {
    decision.object.status.conditions.condition("Ready").expect("Ready")
}

/// The only object that is created.
fn created(decision: &Decision) -> &Value {
    match decision.effects.as_slice() {
        [planned] => match &planned.effect {
            Effect::Create { body, .. } => body,
            other => panic!("{}", other.summary()),
        },
        _ => panic!("{:?}", effects(decision)),
    }
}

#[test]
fn a_server_is_made_when_everything_it_needs_is_there_and_waits_with_a_reason_until_then() {
    let bare = |change: fn(&mut Machine)| {
        let mut machine = machine();
        change(&mut machine);
        Some(Arc::new(machine))
    };
    let grouped = |machine: &mut Machine| {
        let policy = "anti-affinity".to_owned();
        machine.metadata.annotations.insert(server_group::POLICY.to_owned(), policy);
    };
    let unprovisioned = Some(Arc::new(OpenStackCluster::default()));
    let rows: Vec<(&str, Seen, &str, &str)> = vec![
        (
            "no Cluster",
            Seen { cluster: None, ..seen() },
            "WaitingForClusterInfrastructure",
            "Waiting for the Cluster",
        ),
        (
            "no network yet",
            Seen { infrastructure: unprovisioned, ..seen() },
            "WaitingForClusterInfrastructure",
            "Waiting for the infrastructure of the cluster",
        ),
        (
            "no boot data yet",
            Seen { machine: bare(|machine| machine.spec.bootstrap.data_secret_name = None), ..seen() },
            "WaitingForBootstrapData",
            "Waiting for the boot data of the machine",
        ),
        (
            "no server group yet",
            Seen { machine: bare(grouped), ..seen() },
            "WaitingForClusterInfrastructure",
            "Waiting for the server group of the machine",
        ),
    ];
    for (says, seen, reason, message) in rows {
        let decision = decided(object(), seen);
        assert!(decision.effects.is_empty(), "{says}");
        assert_eq!((ready(&decision).status, ready(&decision).reason.as_str()), (False, reason), "{says}");
        assert_eq!(ready(&decision).message, message, "{says}");
    }
    let decision = decided(object(), seen());
    let server = created(&decision);
    assert_eq!(server["kind"], "OpenStackServer");
    assert_eq!(server["metadata"]["name"], "m");
    assert_eq!(server["metadata"]["annotations"][mark::ANNOTATION], "u", "its things survive a move");
    assert_eq!(server["spec"]["userDataRef"]["name"], "m-data");
    assert_eq!(server["spec"]["ports"][0]["network"]["id"], "net");
    assert_eq!(ready(&decision).message, "the server is being created");
}

#[test]
fn a_machine_is_in_the_server_group_that_its_annotation_asks_for_unless_it_names_one() {
    let mut asking = machine();
    asking.spec.cluster_name = "c".to_owned();
    asking.metadata.labels.insert(label::CONTROL_PLANE.to_owned(), String::new());
    let annotations = &mut asking.metadata.annotations;
    annotations.insert(server_group::POLICY.to_owned(), "anti-affinity".to_owned());
    let mut cluster = infrastructure();
    let groups = json!({"k8s-c-control-plane-anti-affinity-cu": "g1"}).to_string();
    cluster.metadata.annotations.insert(server_group::GROUPS.to_owned(), groups);
    let grouped = || Seen {
        machine: Some(Arc::new(asking.clone())),
        infrastructure: Some(Arc::new(cluster.clone())),
        ..seen()
    };
    assert_eq!(created(&decided(object(), grouped()))["spec"]["serverGroup"]["id"], "g1");
    let mut naming = object();
    naming.spec.server_group = serde_json::from_value(json!({"id": "g9"})).expect("a group");
    assert_eq!(created(&decided(naming, grouped()))["spec"]["serverGroup"]["id"], "g9");
    let mut mistaken = asking.clone();
    mistaken.metadata.annotations.insert(server_group::POLICY.to_owned(), "apart".to_owned());
    let refused = decided(object(), Seen { machine: Some(Arc::new(mistaken)), ..seen() });
    assert!(refused.effects.is_empty());
    assert_eq!(ready(&refused).reason, "InvalidMachineSpec");
    assert!(ready(&refused).message.contains("\"apart\""), "{}", ready(&refused).message);
}

#[test]
fn a_machine_is_reported_as_its_server_is() {
    let rows: [(Option<&str>, &str, ConditionStatus, &str, &str); 8] = [
        (None, "", False, "InstanceNotReady", "the server is being created"),
        (None, "E-OS-QUOTA: 10 of 10", False, "InstanceNotReady", "E-OS-QUOTA: 10 of 10"),
        (Some("BUILD"), "", False, "InstanceNotReady", "the server is being created"),
        (Some("ACTIVE"), "", True, "InstanceReady", ""),
        (Some("ERROR"), "E-OS-SERVER: no host", False, "InstanceStateError", "E-OS-SERVER: no host"),
        (Some("DELETED"), "it was deleted", False, "InstanceDeleted", "it was deleted"),
        (Some("SHUTOFF"), "", Unknown, "InstanceNotReady", "the server is in state SHUTOFF"),
        (Some("PONDERING"), "", Unknown, "InstanceNotReady", "the server is in state PONDERING"),
    ];
    for (state, message, status, reason, wanted) in rows {
        let decision = decided(object(), Seen { server: Some(server("u", state, message)), ..seen() });
        assert!(decision.effects.is_empty(), "{state:?}");
        let reported = ready(&decision);
        assert_eq!((reported.status, reported.reason.as_str()), (status, reason), "{state:?}");
        assert_eq!(reported.message, wanted, "{state:?}");
        let object = &decision.object;
        assert_eq!(object.status.instance_state.as_deref(), state);
        let active = state == Some("ACTIVE");
        assert_eq!(object.spec.provider_id.as_deref(), active.then_some("openstack:///s1"), "{state:?}");
        let provisioned = object.status.initialization.as_ref().is_some_and(|done| done.provisioned);
        assert_eq!(provisioned, active, "{state:?}");
    }
}

#[test]
fn the_provider_id_has_the_region_of_the_machines_own_credentials() {
    let mut regional = object();
    regional.spec.identity_ref = Some(OpenStackIdentityReference {
        region: "west".to_owned(),
        ..OpenStackIdentityReference::default()
    });
    let decision = decided(regional, Seen { server: Some(server("u", Some("ACTIVE"), "")), ..seen() });
    assert_eq!(decision.object.spec.provider_id.as_deref(), Some("openstack://west/s1"));
}

#[test]
fn address_pairs_of_the_server_are_recorded_where_capo_records_them() {
    let mut paired = server("u", Some("ACTIVE"), "").as_ref().clone();
    paired.metadata.annotations.insert(ADDRESS_PAIRS_ANNOTATION.to_owned(), "[null]".to_owned());
    let decision = decided(object(), Seen { server: Some(Arc::new(paired)), ..seen() });
    assert_eq!(decision.object.metadata.annotations[ADDRESS_PAIRS_ANNOTATION], "[null]");
}

#[test]
fn a_machine_whose_server_is_gone_is_not_created_again() {
    let mut provisioned = object();
    provisioned.status.initialization = Some(MachineInitialization { provisioned: true });
    let mut moved = object();
    moved.spec.provider_id = Some("openstack:///s1".to_owned());
    for (says, object) in [("it ran", provisioned), ("it ran before a move, which drops status", moved)] {
        let decision = decided(object, seen());
        assert!(decision.effects.is_empty(), "{says}");
        assert_eq!(ready(&decision).reason, "InstanceDeleted", "{says}");
    }
}

#[test]
fn a_server_of_another_owner_is_neither_used_nor_deleted() {
    let foreign = || Seen { server: Some(server("somebody", Some("ACTIVE"), "")), ..seen() };
    let kept = decided(object(), foreign());
    assert!(kept.effects.is_empty());
    assert_eq!(ready(&kept).reason, "InvalidMachineSpec");
    assert!(ready(&kept).message.contains("belongs to another object"), "{}", ready(&kept).message);
    assert_eq!(kept.object.spec.provider_id, None);
    let gone = decided(deleted(object()), foreign());
    assert!(gone.effects.is_empty() && gone.object.metadata.finalizers.is_empty());
}

#[test]
fn a_machine_goes_when_its_server_is_gone() {
    let running = server("u", Some("ACTIVE"), "");
    let going = Arc::new(deleted(server("u", Some("ACTIVE"), "a volume is in use").as_ref().clone()));
    for (says, server, count, is_held) in [
        ("it runs", Some(running), 1, true),
        ("it goes", Some(going), 0, true),
        ("it is gone", None, 0, false),
    ] {
        let decision = decided(deleted(object()), Seen { server, ..seen() });
        assert_eq!(decision.effects.len(), count, "{says}: {:?}", effects(&decision));
        assert!(effects(&decision).iter().all(|effect| effect.starts_with("delete ")), "{says}");
        assert_eq!(!decision.object.metadata.finalizers.is_empty(), is_held, "{says}");
        if says == "it goes" {
            assert_eq!(ready(&decision).message, "a volume is in use");
        }
    }
}

#[test]
fn a_machine_without_an_owner_waits_for_it() {
    let decision = decided(object(), Seen { machine: None, ..seen() });
    assert!(decision.effects.is_empty());
    assert_eq!(decision.waits[0].reason, "WaitingForOwner");
}
