//! What goes when an object does, and what stays for others.

use super::*;

#[test]
fn what_lets_packets_out_of_a_network_that_was_there_goes_with_its_last_cluster() {
    let denying = |keys: &[&str]| {
        let network = json!({"id": "n1", "name": "net", "egressdefaultpolicy": false, "tags": tags(keys)});
        ObservedNetwork { network: Some(read(network)), exits: vec![exit()], ..ObservedNetwork::default() }
    };
    let deleted = |exit: Option<&str>| {
        let mut object = object();
        object.metadata.deletion_timestamp = Some(now().into());
        Made { exit: exit.map(str::to_owned), ..Made::default() }.put(&mut object.metadata);
        object
    };
    let (ours, others) = ("CAPC_cluster_cu", "CAPC_cluster_au");
    let rows = [
        (
            "we made it and are alone",
            Some("e1"),
            vec![ours],
            vec!["delete-exit e1", "untag n1 CAPC_cluster_cu"],
        ),
        (
            "we made it and another needs it",
            Some("e1"),
            vec![ours, others],
            vec!["tag n1 [capstan_egress_e1]", "untag n1 CAPC_cluster_cu"],
        ),
        (
            "another made it, and we are the last",
            None,
            vec![ours, "capstan_egress_e1"],
            vec!["delete-exit e1", "untag n1 capstan_egress_e1", "untag n1 CAPC_cluster_cu"],
        ),
        ("somebody's own", None, vec![ours], vec!["untag n1 CAPC_cluster_cu"]),
    ];
    for (says, exit, keys, wanted) in rows {
        assert_eq!(calls(&decide(&look(deleted(exit), cluster(), denying(&keys)))), wanted, "{says}");
    }
    let mut beside = look(deleted(Some("e1")), cluster(), denying(&[]));
    beside.seen.neighbours.push(Neighbour::default());
    assert_eq!(calls(&decide(&beside)), ["tag n1 [capstan_egress_e1]"], "one that has no tag yet counts too");
}

#[test]
fn what_another_failure_domain_of_the_cluster_uses_stays() {
    let observed = || ObservedNetwork {
        network: Some(ours(BOTH)),
        addresses: vec![address("192.0.2.1", true, &[]), address(IP, false, BOTH)],
        rules: vec![rule(IP)],
        openings: vec![opening("f1", IP, "10.0.0.0/8")],
        ..ObservedNetwork::default()
    };
    let mut deleted = object();
    deleted.metadata.deletion_timestamp = Some(now().into());
    let openings = ["f1".to_owned()].into();
    let (rule, address) = (Some("r1".to_owned()), Some(format!("id-{IP}")));
    Made { rule, address, openings, ..Made::default() }.put(&mut deleted.metadata);
    let other = |address: &str, deleting: bool| {
        let tags = ["capc_cluster_cu".to_owned()].into();
        Neighbour { tags, address: address.to_owned(), deleting, ..Neighbour::default() }
    };
    let (id, release) = (format!("id-{IP}"), format!("release-address id-{IP}"));
    let own = ["delete-rule r1", "delete-opening f1", release.as_str()];
    let rows: [(&str, Neighbour, &[&str]); 3] = [
        ("it is on the same address", other(&id, false), &[]),
        ("it has an address of its own", other("id-2", false), &own),
        ("it goes too", other(&id, true), &["delete-network n1"]),
    ];
    for (says, neighbour, wanted) in rows {
        let mut beside = look(deleted.clone(), cluster(), observed());
        beside.seen.neighbours.push(neighbour);
        assert_eq!(calls(&decide(&beside)), wanted, "{says}");
    }
}

#[test]
fn tags_of_the_uid_before_a_move_are_our_own() {
    let mut moved = object();
    moved.metadata.deletion_timestamp = Some(now().into());
    let clusters = ["old".to_owned(), "cu".to_owned()].into();
    Made { clusters, network: Some("n1".to_owned()), ..Made::default() }.put(&mut moved.metadata);
    let mut network = ours(&["created_by_CAPC", "CAPC_cluster_old"]);
    network.displaytext = Some("Kubernetes cluster ns/c (CAPC_cluster_old)".to_owned());
    let observed = ObservedNetwork { network: Some(network), ..ObservedNetwork::default() };
    assert_eq!(calls(&decide(&look(moved, cluster(), observed))), ["delete-network n1"]);

    // From CAPC: nobody recorded the uid, and the address of the endpoint identifies it.
    let mut from_capc = object();
    from_capc.spec.id = "n1".to_owned();
    from_capc.spec.control_plane_endpoint.host = IP.to_owned();
    let mut cluster = cluster();
    cluster.spec.control_plane_endpoint.host = IP.to_owned();
    let mut network = theirs();
    network.tags = read(tags(&["created_by_CAPC", "CAPC_cluster_old", "CAPC_cluster_au"]));
    let observed = ObservedNetwork {
        network: Some(network),
        addresses: vec![address(IP, true, &["created_by_CAPC", "CAPC_cluster_old"])],
        rules: vec![rule(IP)],
        openings: vec![opening("f9", IP, "10.0.0.0/8")],
        ..ObservedNetwork::default()
    };
    let taken_over = decide(&look(from_capc, cluster.clone(), observed.clone()));
    assert_eq!(calls(&taken_over), Vec::<String>::new(), "nothing changes in the cloud");
    let clusters = Made::of(&taken_over.object.metadata).clusters;
    assert_eq!(clusters, ["cu".to_owned(), "old".to_owned()].into());
    let mut deleted = taken_over.object;
    deleted.metadata.deletion_timestamp = Some(now().into());
    assert_eq!(
        calls(&decide(&look(deleted, cluster, observed))),
        ["delete-rule r1", &format!("untag id-{IP} CAPC_cluster_old"), "untag n1 CAPC_cluster_old"],
        "the network stays for the cluster of the other tag"
    );
}

#[test]
fn the_address_of_a_tier_that_came_from_capc_is_given_back() {
    let mut from_capc = object();
    from_capc.spec.id = "n1".to_owned();
    from_capc.spec.control_plane_endpoint.host = IP.to_owned();
    from_capc.status.public_ip_id = format!("id-{IP}");
    from_capc.metadata.deletion_timestamp = Some(now().into());
    let mut tier = theirs();
    tier.tags = read(tags(&["created_by_CAPC", "CAPC_cluster_old"]));
    tier.vpcid = Some("v1".into());
    // CAPC tags addresses as made, and never with a cluster.
    let rows: [(&str, &str, &[&str], &str); 3] = [
        ("the endpoint, made by CAPC", IP, &["created_by_CAPC"], "release-address id-192.0.2.7"),
        ("made by CAPC for somebody else", "192.0.2.9", &["created_by_CAPC"], "delete-network n1"),
        ("the operator's", IP, &[], "delete-network n1"),
    ];
    for (says, ip, keys, wanted) in rows {
        let observed = ObservedNetwork {
            network: Some(tier.clone()),
            addresses: vec![address(ip, false, keys)],
            ..ObservedNetwork::default()
        };
        assert_eq!(calls(&decide(&look(from_capc.clone(), cluster(), observed))), [wanted], "{says}");
    }
}

#[test]
fn what_was_made_in_somebody_elses_network_is_recorded_and_only_that_is_taken_back() {
    let mut observed = ObservedNetwork {
        network: Some(theirs()),
        addresses: vec![address("192.0.2.1", true, &[]), address(IP, false, &[])],
        rules: vec![rule(IP)],
        openings: vec![opening("f1", IP, "0.0.0.0/0")],
        ..ObservedNetwork::default()
    };
    let taken = NetworkCall::Associate {
        vpc: None,
        network: "n1".to_owned(),
        address: IP.parse().ok(),
        owner: Owner::project("p1".into()),
    };
    let balanced = NetworkCall::Balance {
        cidrs: Vec::new(),
        network: "n1".to_owned(),
        address: format!("id-{IP}"),
        port: 6443,
        open: true,
    };
    let mut first = look(object(), cluster(), observed.clone());
    for call in [taken, balanced] {
        first.concluded.push(Concluded { call, result: Some(Value::Null) });
    }
    let decision = decide(&first);
    assert_eq!(calls(&decision), [format!("tag id-{IP} [created_by_CAPC CAPC_cluster_cu]")]);
    let made = Made::of(&decision.object.metadata);
    assert_eq!((made.address.as_deref(), made.rule.as_deref()), (Some("id-192.0.2.7"), Some("r1")));

    let mut deleted = decision.object.clone();
    deleted.metadata.deletion_timestamp = Some(now().into());
    observed.rules.push(read(
        json!({"id": "r2", "name": "web", "publicport": "443", "publicipid": format!("id-{IP}")}),
    ));
    let decision = decide(&look(deleted.clone(), cluster(), observed.clone()));
    assert_eq!(calls(&decision), ["delete-rule r1", "release-address id-192.0.2.7"]);
    observed.rules.remove(0);
    observed.addresses.pop();
    let decision = decide(&look(deleted, cluster(), observed));
    assert!(decision.effects.is_empty() && decision.object.metadata.finalizers.is_empty());
}

#[test]
fn a_network_of_our_own_goes_unless_another_cluster_uses_it() {
    let mut deleted = object();
    deleted.metadata.deletion_timestamp = Some(now().into());
    let with = |keys: &[&str]| ObservedNetwork { network: Some(ours(keys)), ..ObservedNetwork::default() };
    let rows: [(&str, ObservedNetwork, Vec<&str>); 3] = [
        ("ours alone", with(BOTH), vec!["delete-network n1"]),
        ("made and not tagged yet", with(&[]), vec!["delete-network n1"]),
        (
            "used by another cluster",
            with(&["created_by_CAPC", "CAPC_cluster_cu", "CAPC_cluster_other"]),
            vec!["untag n1 CAPC_cluster_cu"],
        ),
    ];
    for (says, observed, wanted) in rows {
        assert_eq!(calls(&decide(&look(deleted.clone(), cluster(), observed))), wanted, "{says}");
    }
    let decision = decide(&look(deleted, cluster(), ObservedNetwork::default()));
    assert!(decision.object.metadata.finalizers.is_empty(), "what is gone lets go");
}

#[test]
fn a_vpc_that_cannot_be_deleted_holds_the_object_and_is_tried_after_a_pause() {
    let mut deleted = object();
    deleted.metadata.deletion_timestamp = Some(now().into());
    Made { vpc: Some("v1".to_owned()), ..Made::default() }.put(&mut deleted.metadata);
    let vpc = || Some(read(json!({"id": "v1", "name": "v", "cidr": "10.1.0.0/16"})));
    let observed = || ObservedNetwork { vpc: vpc(), ..ObservedNetwork::default() };
    let mut refused = look(deleted, cluster(), observed());
    assert_eq!(calls(&decide(&refused)), ["delete-vpc v1"]);
    let error =
        capstan_controller::Error { code: crate::code::DELETE, message: "used by 1 networks".to_owned() };
    let effect = "delete-vpc v1".to_owned();
    refused.failures.push(Failure { effect, call: None, error, since: now(), attempts: 1 });
    let pausing = decide(&refused);
    assert!(pausing.effects.is_empty() && !pausing.object.metadata.finalizers.is_empty());
    assert_eq!(pausing.look_again, Some(std::time::Duration::from_secs(30)));
    let ready = pausing.object.status.conditions.condition(condition::READY).expect("Ready");
    assert!(ready.message.starts_with("E-CS-DELETE: used by 1 networks; next try at"));
    let mut due = look(pausing.object, cluster(), observed());
    assert!(decide(&due).effects.is_empty());
    due.now = now() + jiff::SignedDuration::from_secs(30);
    assert_eq!(calls(&decide(&due)), ["delete-vpc v1"]);
}
