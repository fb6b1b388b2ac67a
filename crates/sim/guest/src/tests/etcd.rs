//! etcd through ports of Pods.

use std::sync::Arc;

use capstan_apiserver::pki::{Authority, Leaf, PrivateKey, tls_time};
use capstan_etcd::{Client, Error};
use capstan_object::Key;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use super::node_kind;
use crate::testing::{Bed, condition, get, pass};

/// A client of the member on a Node, known by an authority.
async fn connect(bed: &Bed, node: &str, authority: &Authority) -> Result<Client, Error> {
    let leaf = Leaf::Client { name: "apiserver-etcd-client".to_owned(), groups: Vec::new() };
    let own = authority.issue(&bed.env, &leaf).expect("issued");
    let mut roots = RootCertStore::empty();
    roots.add(bed.authorities.etcd.credential().certificate.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_details(provider, tls_time(&bed.env))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![own.certificate.clone()], own.key.to_rustls())
        .expect("a client");
    let pod = Key::new("kube-system", format!("etcd-{node}"));
    let stream =
        bed.remote().port_forward(&pod, 2379).await.map_err(|error| Error::Unavailable(error.to_string()))?;
    Client::connect(stream, Some((Arc::new(tls), ServerName::try_from("localhost").expect("a name")))).await
}

async fn client(bed: &Bed, node: &str) -> Client {
    connect(bed, node, &bed.authorities.etcd).await.expect("a connection")
}

#[tokio::test(start_paused = true)]
async fn members_are_listed_removed_and_led_through_ports_of_pods() {
    let mut bed = Bed::new();
    let cluster = bed.init().await;
    bed.control_plane("cp-2").await;
    let third = bed.control_plane("cp-3").await;
    pass(5).await;
    let members = client(&bed, "cp-1").await.members().await.expect("members");
    let mut names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["cp-1", "cp-2", "cp-3"]);
    assert!(members.iter().all(|member| !member.is_learner));
    let id = |name: &str| members.iter().find(|member| member.name == name).expect("a member").id;
    let status = client(&bed, "cp-2").await.status().await.expect("a status");
    assert_eq!((status.member_id, status.leader), (id("cp-2"), id("cp-1")));
    assert_eq!(status.version, "3.6.8");

    let refused = client(&bed, "cp-2").await.move_leader(id("cp-3")).await;
    assert!(matches!(refused, Err(Error::NotLeader)), "{refused:?}");
    client(&bed, "cp-1").await.move_leader(id("cp-3")).await.expect("moved");
    assert_eq!(client(&bed, "cp-1").await.status().await.expect("a status").leader, id("cp-3"));

    client(&bed, "cp-1").await.remove_member(id("cp-3")).await.expect("removed");
    assert_eq!(cluster.etcd_members().len(), 2);
    let gone = client(&bed, "cp-1").await.remove_member(id("cp-3")).await;
    assert!(matches!(gone, Err(Error::MemberNotFound)), "{gone:?}");
    // Its API server has no etcd any more, and its kubelet no API server.
    pass(60).await;
    let node = get(&bed.client(), &node_kind(), "", "cp-3").await.expect("a Node");
    assert_eq!(condition(&node, "Ready"), "Unknown");
    assert_eq!(cluster.door(&third), crate::cluster::Door::Broken);
}

#[tokio::test(start_paused = true)]
async fn etcd_speaks_to_its_own_authority_alone() {
    let mut bed = Bed::new();
    bed.init().await;
    pass(5).await;
    let foreign = Authority::create(&bed.env, PrivateKey::generate().expect("a key")).expect("an authority");
    let connected = connect(&bed, "cp-1", &foreign).await;
    // TLS 1.3 lets a client believe it is connected until it is answered.
    let answered = match connected {
        Ok(mut client) => client.status().await.map(drop),
        Err(error) => Err(error),
    };
    assert!(answered.is_err());
    let kubernetes = connect(&bed, "cp-1", &bed.authorities.ca).await;
    let answered = match kubernetes {
        Ok(mut client) => client.status().await.map(drop),
        Err(error) => Err(error),
    };
    assert!(answered.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_dead_member_keeps_others_from_joining_until_it_is_removed() {
    let mut bed = Bed::new();
    bed.init().await;
    bed.control_plane("cp-2").await;
    let third = bed.control_plane("cp-3").await;
    pass(5).await;
    bed.site.destroy(&third).expect("destroyed");
    let node = bed.machine("cp-4").await;
    bed.balance(&node);
    let request = crate::request::JoinRequest {
        control_plane: Some(bed.shared_files()),
        ..bed.join_request(node.clone())
    };
    let error = bed.join(request.clone()).await.expect_err("refused");
    assert_eq!(error.phase, "check-etcd");
    let mut first = client(&bed, "cp-1").await;
    let dead = first.members().await.expect("members").into_iter().find(|member| member.name == "cp-3");
    first.remove_member(dead.expect("a member").id).await.expect("removed");
    bed.join(request).await.expect("joined");
}
