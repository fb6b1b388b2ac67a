//! The client behaves like a local site.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use capstan_env::Env;
use capstan_guest::vm::{GuestFault, Image, Phase, VmSpec};
use capstan_guest::{Site, SiteError, SiteOptions, Timings};
use capstan_sim_site::{Changed, Remote, SiteCallError, SiteHandle, serve};
use tokio::net::TcpListener;

fn machine(id: &str) -> VmSpec {
    VmSpec {
        id: id.to_owned(),
        name: "m".to_owned(),
        user_data: b"#cloud-config\n\xff".to_vec(),
        image: Image { kubernetes: Some("v1.36.0".to_owned()) },
        address: None,
        provider_id: Some(format!("sim://{id}")),
        cpus: 2,
        memory_mib: 1024,
        tags: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        faults: vec![GuestFault::NeverBoots],
    }
}

/// A site, and a client of it.
async fn both() -> (Site, Remote) {
    let options = SiteOptions { timings: Timings::none(), ..SiteOptions::default() };
    let site = Site::new(Env::system(), options);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(serve(site.clone(), listener, std::future::pending()));
    (site, Remote::new(&url).expect("an address"))
}

#[tokio::test]
async fn machines_are_created_read_and_destroyed_over_http() {
    let (site, remote) = both().await;
    let handle = SiteHandle::from(remote);
    let id = "ns/m/1 2%";
    assert!(handle.vm(id).await.expect("an answer").is_none());
    let made = handle.create(machine(id)).await.expect("a machine");
    assert_eq!((made.id.as_str(), &made.phase), (id, &Phase::Booting));
    let (here, there) = (site.vm(id).expect("here"), handle.vm(id).await.expect("an answer").expect("there"));
    assert_eq!((here.address, &here.tags), (there.address, &there.tags));
    let again = handle.create(machine(id)).await.expect_err("once is all there is of an id");
    assert!(matches!(again, SiteCallError::Refused(SiteError::Exists(held)) if held == id));
    handle.destroy(id).await.expect("destroyed");
    assert!(site.vm(id).is_none());
    let gone = handle.destroy(id).await.expect_err("it is gone");
    assert!(matches!(gone, SiteCallError::Refused(SiteError::NoSuchVm(held)) if held == id));
}

#[tokio::test]
async fn load_balancers_are_the_same_on_both_sides() {
    let (site, remote) = both().await;
    let handle = SiteHandle::from(remote);
    assert_eq!(handle.balancer("ns/c").await.expect("an answer"), None);
    let members = BTreeSet::from([Ipv4Addr::new(172, 16, 0, 2)]);
    handle.balance("ns/c", &members).await.expect("nothing happens");
    handle.allocate("ns/c").await.expect("allocated");
    handle.balance("ns/c", &members).await.expect("members");
    let there = handle.balancer("ns/c").await.expect("an answer");
    assert_eq!(there, site.balancer("ns/c"));
    assert_eq!(there.map(|held| held.members), Some(members));
    handle.release("ns/c").await.expect("released");
    handle.release("ns/c").await.expect("released already");
    assert_eq!(site.balancer("ns/c"), None);
}

#[tokio::test]
async fn changes_are_sent_after_an_initial_any() {
    let (site, remote) = both().await;
    let mut changes = SiteHandle::from(remote).changes();
    assert_eq!(changes.next().await, Some(Changed::Any));
    site.create(machine("ns/m/1")).expect("a machine");
    assert_eq!(changes.next().await, Some(Changed::Machine("ns/m/1".to_owned())));
}

#[tokio::test]
async fn an_unreachable_site_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let handle = SiteHandle::from(Remote::new(&url).expect("an address"));
    let error = handle.vm("a").await.expect_err("nothing listens");
    assert!(matches!(error, SiteCallError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}
