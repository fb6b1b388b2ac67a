//! Who sees what, and how much they may have.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn what_belongs_to_others_is_not_listed_and_not_touched() {
    let world = World::new();
    let network = world.network("bob", "bobs").await;
    assert_eq!(world.get("alice", "listNetworks", &[("id", &network)]).await.body, json!({}));
    assert_eq!(world.get("alice", "deleteNetwork", &[("id", &network)]).await.code(), (531, Some(4365)));
    // Root sees only his own unless he says that he wants everything.
    assert_eq!(world.get("admin", "listNetworks", &[]).await.body, json!({}));
    assert_eq!(world.get("admin", "listNetworks", &[("listall", "true")]).await.body["count"], 1);
    // An id widens nothing where networks are listed, and does where others are.
    assert_eq!(world.get("admin", "listNetworks", &[("id", &network)]).await.body, json!({}));
    let address = world.done("bob", "associateIpAddress", &[("networkid", &network)]).await;
    let address = address["ipaddress"]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.get("admin", "listPublicIpAddresses", &[("id", &address)]).await.body["count"], 1);
}

#[tokio::test]
async fn limits_are_535_and_say_which() {
    let world = World::new();
    let domain =
        world.get("dadmin", "listDomains", &[]).await.body["domain"][0]["id"].as_str().unwrap().to_owned();
    let limit = [("resourcetype", "6"), ("max", "1"), ("account", "alice"), ("domainid", domain.as_str())];
    assert_eq!(world.get("dadmin", "updateResourceLimit", &limit).await.status, 200);
    world.network("alice", "one").await;
    let zone = world.zone().await;
    let offering = world
        .id("listNetworkOfferings", "networkoffering", "DefaultIsolatedNetworkOfferingWithSourceNatService")
        .await;
    let refused = world
        .get(
            "alice",
            "createNetwork",
            &[("zoneid", &zone), ("networkofferingid", &offering), ("name", "two")],
        )
        .await;
    assert_eq!(refused.code(), (535, Some(4370)));
    assert!(refused.text().contains("Type = 'network'"), "{refused:?}");
    let shown = world.get("alice", "listAccounts", &[]).await.body["account"][0].clone();
    assert_eq!(
        (&shown["networklimit"], &shown["networktotal"], &shown["networkavailable"]),
        (&json!("1"), &json!(1), &json!("0"))
    );
}

#[tokio::test]
async fn new_keys_make_the_old_ones_worthless() {
    let world = World::new();
    let old = world.simulator.credentials("alice").unwrap();
    let user = world.get("alice", "listUsers", &[]).await.body["user"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.get("alice", "registerUserKeys", &[("id", &user)]).await.status, 200);
    let query = world.query_with(&old.api_key, &old.secret_key, "listZones", &[]);
    assert_eq!(world.send(http::Method::GET, &query, "").await.unwrap().status(), 401);
    assert_eq!(world.get("alice", "listZones", &[]).await.status, 200);
}

#[tokio::test]
async fn things_of_a_project_are_seen_only_with_its_id() {
    let world = World::new();
    let made = world.get("alice", "createProject", &[("name", "p1"), ("displaytext", "one")]).await;
    world.wait("alice", &made).await;
    let project = made.body["id"].as_str().unwrap().to_owned();
    let zone = world.zone().await;
    let offering = world
        .id("listNetworkOfferings", "networkoffering", "DefaultIsolatedNetworkOfferingWithSourceNatService")
        .await;
    let parameters = [
        ("zoneid", zone.as_str()),
        ("networkofferingid", &offering),
        ("name", "pnet"),
        ("projectid", &project),
    ];
    let network = world.get("alice", "createNetwork", &parameters).await.body["network"].clone();
    assert_eq!((&network["project"], network.get("account")), (&json!("p1"), None));
    assert_eq!(world.get("alice", "listNetworks", &[]).await.body, json!({}));
    assert_eq!(world.get("alice", "listNetworks", &[("projectid", &project)]).await.body["count"], 1);
    assert_eq!(world.get("alice", "listNetworks", &[("projectid", "-1")]).await.body["count"], 1);
    assert_eq!(world.get("bob", "listNetworks", &[("projectid", &project)]).await.code(), (432, Some(9999)));
}
