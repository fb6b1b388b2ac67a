//! etcd through port forwarding.

use std::sync::Arc;

use capstan_etcd::{Client, Error};
use capstan_object::Key;
use capstan_pki::{Authority, Leaf, PrivateKey, tls_time};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use super::node_kind;
use crate::testing::{TestSite, condition, get, pass};

/// Connects to the member on a Node with a certificate of this CA.
async fn connect(test_site: &TestSite, node: &str, authority: &Authority) -> Result<Client, Error> {
    let leaf = Leaf::Client { name: "apiserver-etcd-client".to_owned(), groups: Vec::new() };
    let own = authority.issue(&test_site.env, &leaf).expect("issued");
    let mut roots = RootCertStore::empty();
    roots.add(test_site.authorities.etcd.credential().certificate.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_details(provider, tls_time(&test_site.env))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![own.certificate.clone()], own.key.to_rustls())
        .expect("a client");
    let pod = Key::new("kube-system", format!("etcd-{node}"));
    let stream = test_site
        .remote()
        .port_forward(&pod, 2379)
        .await
        .map_err(|error| Error::Unavailable(error.to_string()))?;
    Client::connect(stream, Some((Arc::new(tls), ServerName::try_from("localhost").expect("a name")))).await
}

async fn client(test_site: &TestSite, node: &str) -> Client {
    connect(test_site, node, &test_site.authorities.etcd).await.expect("a connection")
}

#[tokio::test(start_paused = true)]
async fn members_are_listed_removed_and_moved_through_port_forwarding() {
    let mut test_site = TestSite::new();
    let cluster = test_site.init().await;
    test_site.control_plane("cp-2").await;
    let third = test_site.control_plane("cp-3").await;
    pass(5).await;
    let members = client(&test_site, "cp-1").await.members().await.expect("members");
    let mut names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["cp-1", "cp-2", "cp-3"]);
    assert!(members.iter().all(|member| !member.is_learner));
    let id = |name: &str| members.iter().find(|member| member.name == name).expect("a member").id;
    let status = client(&test_site, "cp-2").await.status().await.expect("a status");
    assert_eq!((status.member_id, status.leader), (id("cp-2"), id("cp-1")));
    assert_eq!(status.version, "3.6.8");

    let refused = client(&test_site, "cp-2").await.move_leader(id("cp-3")).await;
    assert!(matches!(refused, Err(Error::NotLeader)), "{refused:?}");
    client(&test_site, "cp-1").await.move_leader(id("cp-3")).await.expect("moved");
    assert_eq!(client(&test_site, "cp-1").await.status().await.expect("a status").leader, id("cp-3"));

    client(&test_site, "cp-1").await.remove_member(id("cp-3")).await.expect("removed");
    assert_eq!(cluster.etcd_members().len(), 2);
    let gone = client(&test_site, "cp-1").await.remove_member(id("cp-3")).await;
    assert!(matches!(gone, Err(Error::MemberNotFound)), "{gone:?}");
    // Its API server has lost etcd, and its kubelet the API server.
    pass(60).await;
    let node = get(&test_site.client(), &node_kind(), "", "cp-3").await.expect("a Node");
    assert_eq!(condition(&node, "Ready"), "Unknown");
    assert_eq!(cluster.listener(&third), crate::cluster::ListenerState::Broken);
}

#[tokio::test(start_paused = true)]
async fn etcd_accepts_only_clients_of_its_own_ca() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    pass(5).await;
    let foreign =
        Authority::create(&test_site.env, PrivateKey::generate().expect("a key")).expect("an authority");
    let connected = connect(&test_site, "cp-1", &foreign).await;
    // With TLS 1.3 a rejected client notices only at the first response.
    let answered = match connected {
        Ok(mut client) => client.status().await.map(drop),
        Err(error) => Err(error),
    };
    assert!(answered.is_err());
    let kubernetes = connect(&test_site, "cp-1", &test_site.authorities.ca).await;
    let answered = match kubernetes {
        Ok(mut client) => client.status().await.map(drop),
        Err(error) => Err(error),
    };
    assert!(answered.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_dead_member_prevents_joins_until_it_is_removed() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    test_site.control_plane("cp-2").await;
    let third = test_site.control_plane("cp-3").await;
    pass(5).await;
    test_site.site.destroy(&third).expect("destroyed");
    let node = test_site.machine("cp-4").await;
    test_site.balance(&node);
    let request = crate::request::JoinRequest {
        control_plane: Some(test_site.shared_files()),
        ..test_site.join_request(node.clone())
    };
    let error = test_site.join(request.clone()).await.expect_err("refused");
    assert_eq!(error.phase, "check-etcd");
    let mut first = client(&test_site, "cp-1").await;
    let dead = first.members().await.expect("members").into_iter().find(|member| member.name == "cp-3");
    first.remove_member(dead.expect("a member").id).await.expect("removed");
    test_site.join(request).await.expect("joined");
}
