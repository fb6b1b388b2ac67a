//! Deletions of OpenStackServers, as tables.

use std::time::Duration;

use capstan_openstack_client::block_storage::Volume;

use super::SUB_PORTS;
use super::decide::decide;
use super::observe::volumes_age;
use super::observed::{Seen, ServerState};
use super::tests::{
    at, decided, deleted, effects, existing, known, left, ready, seen, silent, trunk, volume,
};
use crate::project::PENDING;

#[test]
fn the_server_goes_first_then_trunks_with_their_sub_ports_then_ports_and_volumes_that_nova_kept() {
    let trunks = |sub_ports: &[&str]| vec![trunk("t0", "p0", sub_ports)];
    let volumes = |status: &str| ServerState { volumes: vec![volume("m-root", status)], ..left() };
    let freed = vec!["p9".to_owned()];
    let rows: Vec<(&str, ServerState, Vec<&str>)> = vec![
        ("it runs", existing("ACTIVE", None), vec!["delete-server s1"]),
        ("it failed", existing("ERROR", None), vec!["delete-server s1"]),
        ("it is being deleted", existing("ACTIVE", Some("deleting")), vec![]),
        ("it is gone", left(), vec!["delete-port p0", "delete-port p1"]),
        (
            "a trunk carries ports",
            ServerState { trunks: trunks(&["p8", "p9"]), ..left() },
            vec![
                "remove-sub-ports p8 p9 of t0",
                "delete-port p8",
                "delete-port p9",
                "delete-trunk t0",
                "delete-port p0",
                "delete-port p1",
            ],
        ),
        (
            "a port was taken from the trunk and not deleted",
            ServerState { trunks: trunks(&[]), sub_ports: freed.clone(), ..left() },
            vec!["delete-port p9", "delete-trunk t0", "delete-port p0", "delete-port p1"],
        ),
        (
            "everything but that port is gone",
            ServerState { sub_ports: freed, ..ServerState::default() },
            vec!["delete-port p9"],
        ),
        (
            "Nova kept the volume",
            volumes("available"),
            vec!["delete-port p0", "delete-port p1", "delete-volume id-m-root"],
        ),
        ("Nova deletes the volume", volumes("deleting"), vec!["delete-port p0", "delete-port p1"]),
        ("Nova deleted the volume", ServerState::default(), vec![]),
    ];
    for (says, state, wanted) in rows {
        let is_there = state.server.is_some() || !wanted.is_empty();
        let decision = decided(deleted(known()), state);
        assert_eq!(effects(&decision), wanted, "{says}");
        assert_eq!(!decision.object.metadata.finalizers.is_empty(), is_there, "{says}");
    }
}

#[test]
fn ports_that_a_trunk_carries_are_recorded_before_they_are_taken_from_it() {
    let carrying = ServerState {
        trunks: vec![trunk("t0", "p0", &["p8"]), trunk("t1", "p1", &["p7"])],
        sub_ports: vec!["p9".to_owned(), "p8".to_owned()],
        ..left()
    };
    let decision = decided(deleted(known()), carrying);
    assert_eq!(decision.object.metadata.annotations[SUB_PORTS], "p8,p7,p9");
    let count = effects(&decision).iter().filter(|effect| *effect == "delete-port p8").count();
    assert_eq!(count, 1, "each is deleted once");
    let nothing = decided(deleted(known()), left());
    assert!(!nothing.object.metadata.annotations.contains_key(SUB_PORTS));
}

#[test]
fn volumes_are_listed_again_before_one_is_deleted_that_nova_may_have_deleted() {
    let rows: [(&str, &[&str], bool, Option<Duration>); 7] = [
        ("none", &[], true, None),
        ("listed before the server was gone", &["in-use"], true, Some(Duration::ZERO)),
        ("kept, or about to go", &["available", "deleting"], true, Some(Duration::ZERO)),
        ("on its way", &["deleting"], true, Some(PENDING)),
        ("for a new server", &["available"], false, None),
        ("for a new server, being created", &["available", "creating"], false, Some(PENDING)),
        ("for a new server, failed", &["error"], false, None),
    ];
    for (says, statuses, is_deleting, wanted) in rows {
        let found: Vec<Volume> = statuses.iter().map(|status| volume("m-root", status)).collect();
        assert_eq!(volumes_age(&found, is_deleting), wanted, "{says}");
    }
}

#[test]
fn a_deletion_waits_for_a_cloud_that_does_not_answer() {
    let decision = decide(&at(deleted(known()), Seen { cloud: Err(silent()), ..seen(left()) }));
    assert!(decision.effects.is_empty() && decision.look_again.is_some());
    assert!(!decision.object.metadata.finalizers.is_empty());
    assert!(ready(&decision).message.starts_with("E-OS-UNREACHABLE"), "{}", ready(&decision).message);
}
