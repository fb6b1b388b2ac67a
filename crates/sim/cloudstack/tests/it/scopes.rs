//! Whose things commands make and lists show.

use serde_json::json;

use crate::filters::{are_refused, values};
use crate::world::World;

/// Parameters of a request.
type Parameters<'a> = &'a [(&'a str, &'a str)];

async fn domain(world: &World, account: &str) -> String {
    let found = world.get(account, "listAccounts", &[]).await;
    found.body["account"][0]["domainid"].as_str().unwrap().to_owned()
}

/// A project of somebody's with a network in it.
async fn project(world: &World, account: &str, name: &str) -> String {
    let made = world.get(account, "createProject", &[("name", name), ("displaytext", name)]).await;
    world.wait(account, &made).await;
    made.body["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn nobody_makes_things_for_others_but_administrators_by_account_and_domain() {
    let world = World::new();
    let own = domain(&world, "alice").await;
    let project = project(&world, "alice", "p1").await;
    let group = [("name", "g1"), ("type", "host anti-affinity")];
    let make = "createAffinityGroup";
    let with = |more: &[(&'static str, &str)]| {
        let all = group.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned()));
        all.collect::<Vec<(&'static str, String)>>()
    };
    for (account, more, code) in [
        ("alice", with(&[("account", "alice")]), (431, 4350)),
        ("admin", with(&[("account", "alice")]), (431, 4350)),
        ("alice", with(&[("account", "nobody"), ("domainid", &own)]), (531, 4365)),
        ("alice", with(&[("account", "bob"), ("domainid", &own)]), (531, 4365)),
        ("dadmin", with(&[("account", "nobody"), ("domainid", &own)]), (431, 4350)),
        ("alice", with(&[("account", "alice"), ("domainid", &own), ("projectid", &project)]), (431, 4350)),
    ] {
        let more: Vec<_> = more.iter().map(|(name, value)| (*name, value.as_str())).collect();
        are_refused(&world, &[(account, make, &more, code)]).await;
    }
    for (account, name, of) in [("alice", "g1", "alice"), ("dadmin", "g2", "bob")] {
        let for_account =
            [("name", name), ("type", "host anti-affinity"), ("account", of), ("domainid", &own)];
        let made = world.done(account, make, &for_account).await;
        assert_eq!(made["affinitygroup"]["account"], of);
    }
}

#[tokio::test]
async fn things_of_projects_are_listed_for_their_members_and_for_root() {
    let world = World::new();
    let project = project(&world, "alice", "p1").await;
    for (name, more) in [("own", None), ("shared", Some(("projectid", project.as_str())))] {
        let mut group = vec![("name", name), ("type", "host anti-affinity")];
        group.extend(more);
        world.done("alice", "createAffinityGroup", &group).await;
    }
    let rows: [(&str, Parameters, &[&str]); 5] = [
        ("alice", &[("projectid", "-1")], &["shared"]),
        ("alice", &[("projectid", "-1"), ("listall", "true")], &["own", "shared"]),
        ("dadmin", &[("projectid", "-1"), ("listall", "true")], &[]),
        ("admin", &[("projectid", "-1")], &["shared"]),
        ("admin", &[("projectid", "-1"), ("listall", "true")], &["own", "shared"]),
    ];
    for (account, parameters, expected) in rows {
        let mut names = values(&world.get(account, "listAffinityGroups", parameters).await, "name");
        names.sort();
        assert_eq!(names, expected, "{account} {parameters:?}");
    }
}

#[tokio::test]
async fn networks_are_listed_by_rules_of_their_own() {
    let world = World::new();
    let (mine, own) = (world.network("alice", "mine").await, domain(&world, "alice").await);
    world.network("bob", "his").await;
    let project = project(&world, "alice", "p1").await;
    let zone = world.zone().await;
    let offering = "DefaultIsolatedNetworkOfferingWithSourceNatService";
    let offering = world.id("listNetworkOfferings", "networkoffering", offering).await;
    let network = [
        ("zoneid", zone.as_str()),
        ("networkofferingid", &offering),
        ("name", "ours"),
        ("projectid", &project),
    ];
    assert_eq!(world.get("alice", "createNetwork", &network).await.status, 200);
    let rows: &[(&str, Parameters, &[&str])] = &[
        ("alice", &[("account", "bob")], &["mine"]),
        ("alice", &[("projectid", "-1")], &["mine", "ours"]),
        ("alice", &[("projectid", &project)], &["ours"]),
        ("dadmin", &[], &["his", "mine"]),
        ("dadmin", &[("projectid", "-1")], &["his", "mine", "ours"]),
        ("admin", &[], &[]),
        ("admin", &[("id", &mine)], &[]),
        ("admin", &[("listall", "true")], &["his", "mine"]),
        ("admin", &[("domainid", &own)], &["his", "mine"]),
        ("admin", &[("domainid", &own), ("account", "bob")], &["his"]),
        ("alice", &[("forvpc", "true")], &[]),
        ("alice", &[("forvpc", "false")], &["mine"]),
        ("alice", &[("networkfilter", "Account")], &["mine"]),
        ("alice", &[("networkfilter", "shared")], &[]),
        ("alice", &[("traffictype", "Public")], &[]),
        ("alice", &[("acltype", "Domain")], &[]),
        ("alice", &[("restartrequired", "true")], &[]),
        ("alice", &[("specifyipranges", "true")], &[]),
        ("alice", &[("supportedservices", "Lb,SourceNat")], &["mine"]),
        ("alice", &[("supportedservices", "SecurityGroup")], &[]),
    ];
    for (account, parameters, expected) in rows {
        let mut names = values(&world.get(account, "listNetworks", parameters).await, "name");
        names.sort();
        assert_eq!(names, *expected, "{account} {parameters:?}");
    }
    are_refused(
        &world,
        &[
            ("alice", "listNetworks", &[("networkfilter", "bogus")], (431, 4350)),
            ("alice", "listNetworks", &[("supportedservices", "Bogus")], (431, 4350)),
            ("alice", "listNetworks", &[("account", "bob"), ("domainid", &own)], (531, 4365)),
        ],
    )
    .await;
}

#[tokio::test]
async fn addresses_of_a_network_that_is_gone_are_all_addresses() {
    let world = World::new();
    let (kept, gone) = (world.network("alice", "kept").await, world.network("alice", "gone").await);
    let foreign = world.network("bob", "his").await;
    let made = world.done("alice", "associateIpAddress", &[("networkid", &kept)]).await;
    let address = made["ipaddress"]["ipaddress"].as_str().unwrap().to_owned();
    assert_eq!(
        world.get("alice", "listPublicIpAddresses", &[("associatednetworkid", &gone)]).await.body,
        json!({})
    );
    world.done("alice", "deleteNetwork", &[("id", &gone)]).await;
    let rows: [(&str, Parameters, usize); 7] = [
        ("alice", &[("associatednetworkid", &gone)], 1),
        ("alice", &[("keyword", &address)], 1),
        ("alice", &[("keyword", "198.51.100.")], 0),
        ("alice", &[("state", "Free")], 3),
        ("alice", &[("state", "Allocated"), ("allocatedonly", "false")], 1),
        ("admin", &[], 0),
        ("admin", &[("allocatedonly", "false")], 4),
    ];
    for (account, parameters, count) in rows {
        let listed = values(&world.get(account, "listPublicIpAddresses", parameters).await, "ipaddress");
        assert_eq!(listed.len(), count, "{account} {parameters:?}: {listed:?}");
    }
    are_refused(
        &world,
        &[
            ("alice", "listPublicIpAddresses", &[("associatednetworkid", &foreign)], (531, 4365)),
            ("alice", "listPublicIpAddresses", &[("state", "Free"), ("allocatedonly", "true")], (431, 4350)),
        ],
    )
    .await;
}

#[tokio::test]
async fn groups_of_a_machine_are_its_owners_and_are_found_by_their_type() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    world.done("alice", "createAffinityGroup", &[("name", "g1"), ("type", "host anti-affinity")]).await;
    are_refused(&world, &[("bob", "listAffinityGroups", &[("virtualmachineid", &vm)], (531, 4365))]).await;
    assert_eq!(world.get("alice", "listAffinityGroups", &[("virtualmachineid", &vm)]).await.body, json!({}));
    for (word, count) in [("ANTI", 1), ("g1", 1), ("together", 0)] {
        let listed = world.get("alice", "listAffinityGroups", &[("keyword", word)]).await;
        assert_eq!(values(&listed, "name").len(), count, "{word}");
    }
}

#[tokio::test]
async fn projects_of_others_are_not_asked_for_and_the_newest_comes_first() {
    let world = World::new();
    for name in ["first", "second"] {
        project(&world, "alice", name).await;
    }
    let (own, root) = (domain(&world, "alice").await, domain(&world, "admin").await);
    assert_ne!(own, root);
    are_refused(
        &world,
        &[
            ("alice", "listProjects", &[("account", "bob")], (531, 4365)),
            ("alice", "listProjects", &[("domainid", &root)], (531, 4365)),
            ("dadmin", "listProjects", &[("account", "alice")], (431, 4350)),
        ],
    )
    .await;
    assert_eq!(values(&world.get("alice", "listProjects", &[]).await, "name"), ["second", "first"]);
    let of_alice = [("account", "alice"), ("domainid", own.as_str())];
    assert_eq!(values(&world.get("alice", "listProjects", &of_alice).await, "name"), ["second", "first"]);
}

#[tokio::test]
async fn machines_are_found_by_hypervisor_and_by_the_address_that_leads_to_them() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    // The first is the one that machines are seen with.
    world.done("alice", "associateIpAddress", &[("networkid", &network)]).await;
    let ip = world.done("alice", "associateIpAddress", &[("networkid", &network)]).await["ipaddress"].clone();
    let (id, address) = (ip["id"].as_str().unwrap(), ip["ipaddress"].as_str().unwrap());
    let command = "listVirtualMachines";
    are_refused(&world, &[("alice", command, &[("hypervisor", "Bogus")], (431, 4350))]).await;
    assert_eq!(world.get("alice", command, &[("keyword", address)]).await.body, json!({}));
    let nat = [("ipaddressid", id), ("virtualmachineid", vm.as_str())];
    assert_eq!(world.get("alice", "enableStaticNat", &nat).await.status, 200);
    assert_eq!(
        values(&world.get("alice", command, &[("keyword", address)]).await, "id"),
        std::slice::from_ref(&vm)
    );
    assert_eq!(values(&world.get("alice", command, &[("hypervisor", "simulator")]).await, "id"), [vm]);
    assert_eq!(world.get("alice", command, &[("hypervisor", "KVM")]).await.body, json!({}));
}

#[tokio::test]
async fn limits_are_listed_whole_whatever_the_page() {
    let world = World::new();
    let listed = world.get("alice", "listResourceLimits", &[("page", "1"), ("pagesize", "3")]).await;
    assert_eq!(values(&listed, "resourcetype").len(), 17);
}
